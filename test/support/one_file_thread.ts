import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Plugin } from 'vitest/config';

/**
 * Has the apps of tests run their database threads from one file, made of the eighty that a thread is read from, in threads
 * that are used again (pooled_worker.ts): a test starts two with each app, and most of its processor time went there.
 * Processes of their own, as the tests of test/process start them, read the files as they are.
 */

const CLIENT = fileURLToPath(new URL('../../src/store/sqlite/client.ts', import.meta.url));
const THREAD = fileURLToPath(new URL('../../src/store/sqlite/thread.ts', import.meta.url));
const POOL = fileURLToPath(new URL('pooled_worker.ts', import.meta.url));
/** In the client: the file that a thread runs, and what runs it. */
const REPLACED = [
  [
    "new URL('./thread.ts', import.meta.url)",
    "new URL(process.env.SETTLED_TEST_THREAD ?? './thread.ts', import.meta.url)",
  ],
  ["import { Worker } from 'node:worker_threads'", `import { Worker } from ${JSON.stringify(POOL)}`],
] as const;
/** In the thread: its port and its data are those of its use. */
const OWN = "import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';";
const OF_USE =
  "import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';" +
  'const { parentPort, workerData } = globalThis.settledThread;';

export function oneFileThread(): Plugin {
  return {
    name: 'one-file-thread',
    enforce: 'pre',
    transform(code, id) {
      if (id !== CLIENT) return null;
      const made = REPLACED.reduce((text, [from, to]) => replaced(text, from, to, id), code);
      return { code: made, map: null };
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
        transform: (code, id) => {
          const own = id === THREAD ? replaced(code, OWN, OF_USE, id) : code;
          return own.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href));
        },
      },
    ],
  });
  await bundle.write({ file, format: 'esm' });
  await bundle.close();
}

function replaced(code: string, from: string, to: string, file: string): string {
  if (!code.includes(from)) throw new Error(`${file} no longer has ${from}`);
  return code.replaceAll(from, to);
}
