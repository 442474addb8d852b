import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';

import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/**
 * `npm run package`: makes the package that `npx` and `npm install` take. It has the folders of the checkout, with
 * JavaScript and types in place of TypeScript. In a checkout it takes only files that git knows. Two packages of the
 * same files have the same bytes on any machine and in any folder, with the same version of Node.
 */

const HELP = `npm run package -- [options]

  --to FOLDER   where the package is written (.)
`;

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Copied as they are; the client because shops may copy it as well. */
const COPIED = [
  ...['assets', 'bin', 'client', 'deploy', 'docs', 'examples', 'migrations'],
  ...['.env.example', 'CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md'],
];
/** Emitted as JavaScript and types, and copied but for the TypeScript. */
const EMITTED = ['client', 'demo', 'sandbox', 'src'];
const PROGRAM = 'bin/settled.mjs';

/** What a checkout says of itself that holds for its package too. */
const SAME = ['name', 'version', 'description', 'license', 'type', 'engines', 'bin'] as const;
const NEEDED = ['dependencies', 'optionalDependencies'] as const;

class MissingGit extends Error {}
const EXIT_NO_GIT = 69;

/** Makes the package in a folder. Returns its path. Throws if the TypeScript cannot be emitted, or npm cannot pack. */
function makePackage(to: string): string {
  const staging = mkdtempSync(join(tmpdir(), 'settled-package-'));
  try {
    const files = ownFiles();
    for (const file of files.filter(isCopied)) cpSync(join(ROOT, file), join(staging, file));
    emit(staging, files);
    writeFileSync(join(staging, 'package.json'), `${JSON.stringify(descriptionOf(staging), null, 2)}\n`);
    levelModes(staging);
    mkdirSync(to, { recursive: true });
    const [{ filename }] = JSON.parse(npm(['pack', staging, '--pack-destination', to, '--json', '--ignore-scripts']));
    return join(to, filename);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/**
 * The files of settled. A checkout also has others in the same folders, such as the database of an example that was tried,
 * and secrets: those that git does not know are left out. What has no folder .git is a release, and has nothing else.
 */
function ownFiles(): string[] {
  if (existsSync(join(ROOT, '.git'))) {
    const options = { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 26 } as const;
    // The checkout may belong to somebody else.
    const { stdout: listed, error, status } = spawnSync('git', ['-c', 'safe.directory=*', 'ls-files', '-z'], options);
    if (error !== undefined || status !== 0) {
      throw new MissingGit('In a checkout git says which files are packed, and git does not run. Install git.');
    }
    return listed.split('\0').filter((file) => file !== '' && existsSync(join(ROOT, file)));
  }
  return [...new Set([...COPIED, ...EMITTED])]
    .filter((place) => existsSync(join(ROOT, place)))
    .flatMap((place) =>
      statSync(join(ROOT, place)).isFile() ? place : filesOf(join(ROOT, place)).map((file) => join(place, file)),
    );
}

function isCopied(file: string): boolean {
  const isIn = (places: readonly string[]) => places.some((place) => file === place || file.startsWith(`${place}/`));
  return isIn(COPIED) || (isIn(EMITTED) && !file.endsWith('.ts'));
}

function emit(staging: string, files: readonly string[]): void {
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  const project = join(ROOT, 'release/tsconfig.json');
  execFileSync(process.execPath, [compiler, '--project', project, '--outDir', staging, '--singleThreaded'], {
    stdio: 'inherit',
  });
  // The compiler takes all that it finds in the folders.
  const known = new Set(files.flatMap((file) => [file, file.replace(/\.ts$/, '.js'), file.replace(/\.ts$/, '.d.ts')]));
  for (const file of filesOf(staging).filter((one) => !known.has(one))) rmSync(join(staging, file));
  const emitted = filesOf(staging).filter((file) => EMITTED.some((place) => file.startsWith(`${place}/`)));
  for (const file of emitted.filter((name) => name.endsWith('.js'))) nameEmittedFiles(join(staging, file));
}

/** The compiler rewrites what is imported, and not the addresses of files that are started: threads and processes. */
const ADDRESS_OF_OWN_FILE = /(?<=new URL\('(\.\.?\/[\w./-]+)\.)ts(?=', import\.meta\.url\))/g;

function nameEmittedFiles(path: string): void {
  const code = readFileSync(path, 'utf8');
  const named = code.replace(ADDRESS_OF_OWN_FILE, (_, place: string) => {
    const target = join(dirname(path), `${place}.js`);
    if (!existsSync(target)) throw new Error(`${path} starts ${target}, which was not emitted`);
    return 'js';
  });
  if (named !== code) writeFileSync(path, named);
}

/** The package.json of the package. */
function descriptionOf(staging: string): object {
  const own = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const client = { types: './client/settled.d.ts', default: './client/settled.js' };
  return {
    ...Object.fromEntries([...SAME, ...NEEDED].map((name) => [name, own[name]])),
    exports: {
      ...(existsSync(join(staging, client.default)) ? { './client': client } : {}),
      './package.json': './package.json',
    },
  };
}

/** npm packs the modes that it finds, which the checkout has from its owner. */
function levelModes(staging: string): void {
  for (const file of filesOf(staging)) chmodSync(join(staging, file), file === PROGRAM ? 0o755 : 0o644);
}

function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}

function npm(args: readonly string[]): string {
  // npm says where it is to what it runs.
  const { npm_execpath: own } = process.env;
  const [program, ...first] = own === undefined ? ['npm'] : [process.execPath, own];
  return execFileSync(program as string, [...first, ...args], {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

const { values } = parseArgs({ options: { to: { type: 'string', default: '.' }, help: { type: 'boolean' } } });
if (values.help) process.stdout.write(HELP);
else {
  try {
    const path = makePackage(resolve(values.to));
    const digest = createHash('sha256').update(readFileSync(path)).digest('hex');
    process.stdout.write(`${digest}  ${relative(process.cwd(), path)}\n`);
  } catch (error) {
    if (!(error instanceof MissingGit)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = EXIT_NO_GIT;
  }
}
