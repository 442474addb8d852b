import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import type { OpenedEngine } from '../../../src/store/contract.ts';
import { openSqliteStore, type SqliteStoreOptions } from '../../../src/store/sqlite/client.ts';
import { openForWriting, type WriterOptions } from '../../../src/store/sqlite/open.ts';
import { systemClock } from '../../../src/work/clock.ts';
import { startWithoutThread } from '../../support/threadless.ts';

/** Opens the embedded store as most tests of it do. */
export function openTestStore(path: string, over: Partial<SqliteStoreOptions> = {}): Promise<OpenedEngine> {
  return openInThreads(path, { startDatabase: startWithoutThread, ...over });
}

/** The same with the threads that it has in a process of settled. */
export function openInThreads(path: string, over: Partial<SqliteStoreOptions> = {}): Promise<OpenedEngine> {
  return openSqliteStore({
    path,
    secretsKeyId: 'key-1',
    newInstanceId: 'instance-1',
    clock: systemClock,
    callTimeoutMs: 10_000,
    onBatch: () => {},
    onFailed: () => {},
    ...over,
  });
}

export function openOptions(path: string, over: Partial<WriterOptions> = {}): WriterOptions {
  return { path, secretsKeyId: 'key-1', newInstanceId: 'instance-1', nowMs: 1_700_000_000_000, ...over };
}

/** Makes a database as a first start does, and leaves it as a clean stop does. */
export function makeDatabase(path: string): void {
  const { db, lock } = openForWriting(openOptions(path));
  db.close();
  lock.close();
}

const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url));

/** Starts child.ts in a process of its own; `line` resolves with the value that it prints. */
export function startChild(args: readonly string[], { command = [] }: { command?: readonly string[] } = {}) {
  const [file = '', ...rest] = [...command, process.execPath, CHILD, ...args];
  const child = spawn(file, rest, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  // biome-ignore lint/suspicious/noExplicitAny: what a child prints has many shapes
  const line = new Promise<any>((resolve, reject) => {
    child.once('error', reject);
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.includes('\n')) resolve(JSON.parse(output));
    });
    void ended.then(() => reject(new Error(`the child printed nothing: ${errors}`)));
  });
  return { child, line, ended };
}

/** Calls what must throw and returns what it throws. */
export function thrownBy(work: () => unknown): Error & { code?: string } {
  try {
    work();
  } catch (error) {
    return error as Error;
  }
  throw new Error('nothing was thrown');
}

/** Changes a database as another program would. */
export function changeAsAnother(path: string, sql: string): void {
  const db = new Database(path);
  db.exec(sql);
  db.close();
}
