import { Worker } from 'node:worker_threads';
import type { Opened } from '../contract.ts';
import { type FromThread, receiveError, type ThreadStart } from './messages.ts';

/** What the client uses of the thread that holds the database. */
export type DatabaseThread = Pick<Worker, 'on' | 'once' | 'off' | 'postMessage'>;

/** A thread that loads its code while the rest of the process loads its own. */
let loading: Worker | null = null;

/** Begins to start the first thread of a store that will be opened. */
export function beginThread(): void {
  loading = begin();
}

/** Starts a thread that holds a database. */
export function startThread(start: ThreadStart): Worker {
  const thread = loading ?? begin();
  loading = null;
  thread.postMessage(start);
  return thread;
}

/** Copies the database at `start.path` to `start.backupTo`, in its own thread. */
export function runBackup(start: ThreadStart): Promise<{ bytes: number }> {
  const worker = startThread(start);
  return new Promise((resolve, reject) => {
    worker.once('error', reject);
    worker.once('message', (message: FromThread) => {
      if ('closed' in message) resolve({ bytes: message.bytes ?? 0 });
      else if ('failed' in message) reject(receiveError(message.failed));
    });
  });
}

/** Resolves once the thread's database is open: with what the writer found, or null for a reader. */
export function whenOpened(worker: DatabaseThread): Promise<Opened | null> {
  return new Promise((resolve, reject) => {
    worker.once('error', reject);
    worker.once('message', (message: FromThread) => {
      worker.off('error', reject);
      if ('opened' in message) resolve(message.opened);
      else if ('failed' in message) reject(receiveError(message.failed));
    });
  });
}

function begin(): Worker {
  return new Worker(new URL('./thread.ts', import.meta.url));
}
