import { EventEmitter } from 'node:events';
import { MessageChannel, type Transferable } from 'node:worker_threads';
import Database from 'better-sqlite3';
import type { ThreadStart } from '../../src/store/sqlite/messages.ts';
import { migrate } from '../../src/store/sqlite/open.ts';
import { serveDatabase } from '../../src/store/sqlite/thread.ts';
import type { DatabaseThread } from '../../src/store/sqlite/threads.ts';

/**
 * What a database thread does, without the thread: to start two of them for each app takes longer than most tests. Calls
 * and answers are packed, copied and batched as they are on their way between threads. What only a thread can show, as
 * that the rest of settled goes on while the database is locked, needs real ones.
 */
export function startWithoutThread(start: ThreadStart): DatabaseThread {
  return new Threadless(start) as unknown as DatabaseThread;
}

class Threadless extends EventEmitter {
  readonly #port;

  constructor(start: ThreadStart) {
    super();
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.on('message', (message) => this.emit('message', message));
    port1.once('close', () => this.emit('exit', 0));
    serveDatabase(port2, { ...structuredClone(start), template: template() });
    // A thread that waits for nothing ends.
    if (port2.listenerCount('message') === 0) port2.close();
  }

  postMessage(message: unknown, transfer: readonly Transferable[] = []): void {
    this.#port.postMessage(message, transfer);
  }
}

let made: Uint8Array | undefined;

/** Migrated once in each process: that costs as much as the rest of an app's start. */
function template(): Uint8Array {
  if (made === undefined) {
    const db = new Database(':memory:');
    migrate(db, 'the template');
    made = db.serialize();
    db.close();
  }
  return made;
}
