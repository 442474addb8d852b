import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/**
 * Bundles `settled` and its sandbox, each into a few files, for the tests that start them as processes. To find, read and
 * link three hundred files takes almost half of the processor time of a start, and tests start hundreds of processes.
 * Tests that start the launcher, bin/settled.mjs, run the files as they are.
 */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const DEPENDENCIES = join(ROOT, 'node_modules/');
const PROGRAMS = {
  settled: join(ROOT, 'src/cli/main.ts'),
  sandbox: join(ROOT, 'sandbox/main.ts'),
  thread: join(ROOT, 'src/store/sqlite/thread.ts'),
};

/** These find files of their own beside them. */
const IN_THEIR_PLACE = /^(better-sqlite3|pino|pino-pretty)$/;
/** pg does without it. */
const NOT_INSTALLED = 'pg-native';

/** It starts `./thread.ts`, and finds that of the bundle. Every other module finds what lies beside it in the checkout. */
const FINDS_BUNDLED = join(ROOT, 'src/store/sqlite/client.ts');

/** Writes the bundles, once for all projects. */
export async function setup(): Promise<void> {
  if (process.env.SETTLED_TEST_PROGRAMS !== undefined) return;
  const dir = mkdtempSync(join(tmpdir(), 'settled-programs-'));
  process.once('exit', () => rmSync(dir, { recursive: true, force: true }));
  process.env.SETTLED_TEST_PROGRAMS = dir;
  // Vitest depends on it.
  const { rolldown } = await import('rolldown');
  const bundle = await rolldown({
    input: PROGRAMS,
    platform: 'node',
    plugins: [
      {
        name: 'as-in-their-places',
        resolveId: (id, importer) => {
          if (id === NOT_INSTALLED) return { id, external: true };
          if (importer === undefined || !IN_THEIR_PLACE.test(id)) return null;
          return { id: createRequire(importer).resolve(id), external: 'absolute' };
        },
        transform: (code, id) => {
          if (id === FINDS_BUNDLED || id.startsWith(DEPENDENCIES)) return null;
          return code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href));
        },
      },
    ],
  });
  const entryFileNames = ({ name }: { name: string }) => (name === 'thread' ? 'thread.ts' : `${name}.mjs`);
  await bundle.write({ dir, format: 'esm', entryFileNames, chunkFileNames: '[name]-[hash].mjs' });
  await bundle.close();
}
