import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Plugin } from 'vitest/config';

/**
 * Bundles the eighty files of a database thread into one for the apps of tests, and runs it in threads that are reused
 * (pooled_worker.ts). Each app of a test starts two threads, which took most of its processor time. one_file_programs.ts
 * does the same for separate processes, as in test/process.
 */

export const CLIENT = fileURLToPath(new URL('../../src/store/sqlite/client.ts', import.meta.url));
const THREAD = fileURLToPath(new URL('../../src/store/sqlite/thread.ts', import.meta.url));
const POOL = fileURLToPath(new URL('pooled_worker.ts', import.meta.url));
/** Replaced in the client: the file that a thread runs, and the class that runs it. */
const REPLACED = [
  [
    "new URL('./thread.ts', import.meta.url)",
    "new URL(process.env.SETTLED_TEST_THREAD ?? './thread.ts', import.meta.url)",
  ],
  ["import { Worker } from 'node:worker_threads'", `import { Worker } from ${JSON.stringify(POOL)}`],
] as const;
/** Replaced in the thread: each use has its own port and data. */
const OWN = "import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';";
const OF_USE =
  "import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';" +
  'const { parentPort, workerData } = globalThis.settledThread;';

/**
 * Replaced where a new database is made: a thread migrates one, and makes the next ones of what that came to. It costs as
 * much as the rest of an app's start.
 */
const STORE = fileURLToPath(new URL('../../src/store/sqlite/open.ts', import.meta.url));
const DRAFTED = [
  [
    'const db = new Database(draft);',
    "globalThis.settledDraft && require('node:fs').writeFileSync(draft, globalThis.settledDraft);const db = new Database(draft);",
  ],
  [
    "migrate(db, path);\n    db.prepare(\n      'INSERT INTO instance",
    "migrate(db, path);\n    globalThis.settledDraft ??= db.serialize();\n    db.prepare(\n      'INSERT INTO instance",
  ],
] as const;

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

/** Writes the file, once for all projects. */
export async function setup(): Promise<void> {
  if (process.env.SETTLED_TEST_THREAD !== undefined) return;
  const folder = mkdtempSync(join(tmpdir(), 'settled-thread-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'thread.cjs');
  process.env.SETTLED_TEST_THREAD = pathToFileURL(file).href;
  // Vitest depends on it.
  const { rolldown } = await import('rolldown');
  const bundle = await rolldown({
    input: THREAD,
    platform: 'node',
    plugins: [
      {
        name: 'as-in-its-place',
        resolveId: (id) => {
          if (/^[./]/.test(id) || id.startsWith('node:')) return null;
          return { id: createRequire(THREAD).resolve(id), external: 'absolute' };
        },
        transform: (code, id) => {
          const own = id === THREAD ? replaced(code, OWN, OF_USE, id) : id === STORE ? drafted(code) : code;
          return inItsPlace(own, id);
        },
      },
    ],
  });
  await bundle.write({ file, format: 'cjs' });
  await bundle.close();
}

function drafted(code: string): string {
  return DRAFTED.reduce((text, [from, to]) => replaced(text, from, to, STORE), code);
}

/** A module that finds what lies beside it, although it is bundled elsewhere. */
export function inItsPlace(code: string, file: string): string {
  return code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(file).href));
}

/** Throws if the file no longer has what is to be replaced. */
export function replaced(code: string, from: string, to: string, file: string): string {
  if (!code.includes(from)) throw new Error(`${file} no longer has ${from}`);
  return code.replaceAll(from, to);
}
