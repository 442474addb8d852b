import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { gzipSync } from 'node:zlib';
import express, { type Router } from 'express';
import { acceptsGzip, protect, sendCompressed } from './send.ts';
import type { View } from './view.ts';

const require = createRequire(import.meta.url);
const FOLDER = new URL('../../assets/', import.meta.url);

/** The source files of each asset. The script imports idiomorph from the same folder. */
const SOURCES = {
  'console.css': ['settled.css', 'console.css'],
  'console.js': ['console.js'],
  'icon.svg': ['icon.svg'],
} as const;

export type AssetName = keyof typeof SOURCES | 'idiomorph.js';

const TYPES = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8', svg: 'image/svg+xml' } as const;

type Asset = { bytes: Buffer; type: string; compressed: Buffer | null };

const ASSETS: ReadonlyMap<string, Asset> = new Map(readAssets());

/** A digest of all assets. Each address contains it, so an address never stands for other bytes. */
const VERSION = versionOf(ASSETS);

const YEAR_SECONDS = 31_536_000;

/** The address of an asset in a page. */
export function assetHref({ prefix }: Pick<View, 'prefix'>, name: AssetName): string {
  return `${prefix}/assets/${VERSION}/${name}`;
}

/** Style, scripts and icon of the console. They need no session: nothing of the installation is in them. */
export function assetRoutes(): Router {
  const router = express.Router({ caseSensitive: true, strict: true });
  router.get('/assets/:version/:name', (request, response, next) => {
    const { version, name } = request.params;
    const asset = ASSETS.get(name);
    if (asset === undefined) return next();
    // A page of another release requests its own version. It gets this one, and requests it again the next time.
    const isOurs = version === VERSION;
    protect(response);
    response
      .set('cache-control', isOurs ? `public, max-age=${YEAR_SECONDS}, immutable` : 'no-cache')
      .set('content-type', asset.type);
    if (!acceptsGzip(request)) return void response.send(asset.bytes);
    asset.compressed ??= gzipSync(asset.bytes, { level: 9 });
    sendCompressed(response, asset.compressed);
  });
  return router;
}

function readAssets(): [string, Asset][] {
  const own = Object.entries(SOURCES).map(([name, files]): [string, Asset] => [
    name,
    assetOf(name, Buffer.concat(files.map((file) => readFileSync(new URL(file, FOLDER))))),
  ]);
  return [...own, ['idiomorph.js', assetOf('idiomorph.js', readIdiomorph())]];
}

/** The package has its smallest form as a script only; a line makes a module of it. */
function readIdiomorph(): Buffer {
  const path = require.resolve('idiomorph/dist/idiomorph.min.js');
  return Buffer.from(`${readFileSync(path, 'utf8').trimEnd()}\nexport { Idiomorph };\n`);
}

function assetOf(name: string, bytes: Buffer): Asset {
  const [extension] = name.split('.').slice(-1) as [keyof typeof TYPES];
  return { bytes, type: TYPES[extension], compressed: null };
}

function versionOf(assets: ReadonlyMap<string, Asset>): string {
  const hash = createHash('sha256');
  for (const { bytes } of assets.values()) hash.update(bytes);
  return hash.digest('base64url').slice(0, 12);
}
