import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Plugin } from 'vitest/config';

/**
 * Has the apps of tests start their database threads from one file, made of the eighty that a thread is read from: a
 * test starts two threads with each app, and reading took a third of the processor time of that. Processes of their own,
 * as the tests of test/process start them, read the files as they are.
 */

const CLIENT = fileURLToPath(new URL('../../src/store/sqlite/client.ts', import.meta.url));
const THREAD = fileURLToPath(new URL('../../src/store/sqlite/thread.ts', import.meta.url));
const ADDRESS = "new URL('./thread.ts', import.meta.url)";
const MADE = "new URL(process.env.SETTLED_TEST_THREAD ?? './thread.ts', import.meta.url)";

export function oneFileThread(): Plugin {
  return {
    name: 'one-file-thread',
    enforce: 'pre',
    transform(code, id) {
      if (id !== CLIENT) return null;
      if (!code.includes(ADDRESS)) throw new Error(`${CLIENT} no longer has ${ADDRESS}`);
      return { code: code.replaceAll(ADDRESS, MADE), map: null };
    },
  };
}

/** Makes the file, once for all projects. */
export async function setup(): Promise<void> {
  if (process.env.SETTLED_TEST_THREAD !== undefined) return;
  const folder = mkdtempSync(join(tmpdir(), 'settled-thread-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'thread.mjs');
  process.env.SETTLED_TEST_THREAD = pathToFileURL(file).href;
  // Vitest brings it, and uses it for itself.
  const { rolldown } = await import('rolldown');
  const bundle = await rolldown({
    input: THREAD,
    platform: 'node',
    plugins: [
      {
        name: 'as-in-its-place',
        resolveId: (id) => {
          if (/^[./]/.test(id) || id.startsWith('node:')) return null;
          return { id: pathToFileURL(createRequire(THREAD).resolve(id)).href, external: 'absolute' };
        },
        transform: (code, id) => code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href)),
      },
    ],
  });
  await bundle.write({ file, format: 'esm' });
  await bundle.close();
}
