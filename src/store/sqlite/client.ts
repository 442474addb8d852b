import { type Fault, terminalFault, transientFault } from '../../fault.ts';
import type { Clock } from '../../work/clock.ts';
import { type CallOptions, type Opened, type OpenedEngine, type Store, stopped, WAITING_MAX } from '../contract.ts';
import { called } from '../transaction.ts';
import {
  type FromThread,
  type NumberedAnswer,
  type NumberedCall,
  pack,
  receiveError,
  recordsOfAnswers,
  recordsOfCalls,
  type ThreadStart,
  type ToThread,
  unpack,
} from './messages.ts';
import type { WriterOptions } from './open.ts';
import { type DatabaseThread, runBackup, startThread, whenOpened } from './threads.ts';
import { LANES } from './verbs.ts';

/**
 * The most calls of one turn that travel in one message: the thread commits the first while the turn continues.
 * Deliveries recorded per second at 64 connections, relative to one message a turn: 4 calls 1.2 times, 16 calls 1.35
 * times, 32 calls 1.1 times.
 */
const MESSAGE_CALLS = 16;

export type SqliteStoreOptions = Pick<WriterOptions, 'path' | 'secretsKeyId' | 'olderKeyIds' | 'newInstanceId'> &
  Omit<ThreadOptions, 'start' | 'onChange'>;

type ThreadOptions = ThreadClientOptions & {
  start: ThreadStart;
  /** Starts the thread; default: one of its own. */
  startDatabase?: (start: ThreadStart) => DatabaseThread;
};

type ThreadClientOptions = CallOptions & {
  /** Called after a batch that changed anything. */
  onChange: () => void;
  /** Called when the thread met an error after which none of its answers can be trusted. */
  onFailed: (fault: Error) => void;
};

export type ThreadClient = {
  call(verb: string, args: readonly unknown[]): Promise<unknown>;
  /** Refuses every waiting call now. The thread still finishes those that it has begun. */
  abandon(): void;
  close(): Promise<void>;
};

type Waiting = { resolve: (value: unknown) => void; reject: (error: Error) => void; sinceMs: number };

/** Opens the embedded store: one thread writes with group commit, one reads. */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<OpenedEngine> {
  const { path, secretsKeyId, olderKeyIds = [], newInstanceId, clock, startDatabase = startThread } = options;
  const start: ThreadStart = {
    role: 'writer',
    path,
    secretsKeyId,
    olderKeyIds,
    newInstanceId,
    nowMs: clock.nowMs(),
    backupTo: null,
  };
  const changes = countChanges(clock);
  const writer = await openThread({ ...options, startDatabase, start, onChange: changes.note });
  const reading: ThreadClientOptions = { ...options, onBatch: () => {}, onChange: () => {} };
  // Its first calls wait while it opens, because a start has nothing to read.
  const reader = clientOf(startDatabase({ ...start, role: 'reader' }), reading);
  const store: Store = {
    ...storeVerbs(writer, reader),
    // One process uses the database, so it knows of every change.
    changeMark: async () => String(changes.count()),
    quietMs: changes.quietMs,
    serverStates: async () => [],
    backup: ({ path: to }) => runBackup({ ...start, role: 'backup', backupTo: to }),
    // Migrations build every index before the process serves.
    buildIndexes: async () => ({ built: [], missing: [] }),
    close: async () => {
      await Promise.all([reader.close(), writer.close()]);
    },
  };
  const abandon = () => {
    writer.abandon();
    reader.abandon();
  };
  return { store, opened: writer.opened as Opened, abandon };
}

type Caller = Pick<ThreadClient, 'call'>;

/** The verbs of the contract, each called in the thread of its lane. */
function storeVerbs(writer: Caller, reader: Caller) {
  const by = (thread: Caller) => (name: string, _verb: unknown, args: readonly unknown[]) => thread.call(name, args);
  return { ...called(LANES.intake, by(writer)), ...called(LANES.work, by(writer)), ...called(LANES.read, by(reader)) };
}

function countChanges(clock: Clock) {
  let count = 0;
  let changedAtMs = clock.monotonicMs();
  return {
    note: (): void => {
      count++;
      changedAtMs = clock.monotonicMs();
    },
    count: () => count,
    quietMs: () => clock.monotonicMs() - changedAtMs,
  };
}

/** Starts a database thread and waits until its database is open. `opened`: what a writer found; null for a reader. */
export async function openThread({
  start,
  startDatabase = startThread,
  ...options
}: ThreadOptions): Promise<ThreadClient & { opened: Opened | null }> {
  const worker = startDatabase(start);
  return { opened: await whenOpened(worker), ...clientOf(worker, options) };
}

function clientOf(worker: DatabaseThread, options: ThreadClientOptions): ThreadClient {
  const waiting = new WaitingCalls(worker, options);
  return {
    call: (verb, args) => waiting.call(verb, args),
    abandon: () => waiting.refuseAll(stopped()),
    close: () => waiting.close(),
  };
}

class WaitingCalls {
  readonly #worker: DatabaseThread;
  readonly #clock: Clock;
  readonly #callTimeoutMs: number;
  readonly #waiting = new Map<number, Waiting>();
  readonly #exited: Promise<void>;
  #unsent: NumberedCall[] = [];
  #lastId = 0;
  /** Calls that the thread has not answered, including those that were given up: the thread still holds them. */
  #unanswered = 0;
  #refusal: Error | null = null;
  /** Whether a timer waits for the oldest call to become overdue. */
  #isWatched = false;

  constructor(worker: DatabaseThread, { clock, callTimeoutMs, onBatch, onChange, onFailed }: ThreadClientOptions) {
    this.#worker = worker;
    this.#clock = clock;
    this.#callTimeoutMs = callTimeoutMs;
    const fail = (fault: Error) => {
      this.refuseAll(fault);
      onFailed(fault);
    };
    worker.on('error', fail);
    this.#exited = new Promise((resolve) => {
      worker.once('exit', () => {
        if (this.#refusal === null) fail(ended());
        resolve();
      });
    });
    worker.on('message', (message: FromThread) => {
      if ('answers' in message) {
        onBatch(message.answers.length, message.seconds);
        if (message.changed) onChange();
        unpack(recordsOfAnswers(message.answers), message.packed);
        this.#settle(message.answers);
      } else if ('failed' in message) fail(receiveError(message.failed));
    });
  }

  call(verb: string, args: readonly unknown[]): Promise<unknown> {
    if (this.#refusal !== null) return Promise.reject(this.#refusal);
    if (this.#unanswered >= WAITING_MAX) return Promise.reject(busy('too many calls are waiting'));
    const id = ++this.#lastId;
    this.#unanswered++;
    const unsent = this.#unsent.push({ id, verb, args: args.map(copied) });
    if (unsent === 1) setImmediate(() => this.#send());
    if (unsent >= MESSAGE_CALLS) this.#send();
    const sinceMs = this.#clock.monotonicMs();
    if (!this.#isWatched) this.#refuseOverdueIn(this.#callTimeoutMs);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject, sinceMs }));
  }

  refuseAll(fault: Error): void {
    this.#refusal ??= fault;
    for (const { reject } of this.#waiting.values()) reject(fault);
    this.#waiting.clear();
  }

  async close(): Promise<void> {
    this.#refusal ??= stopped();
    this.#send();
    this.#post({ close: true });
    await this.#exited;
    this.refuseAll(stopped());
  }

  #send(): void {
    if (this.#unsent.length === 0) return;
    const calls = this.#unsent;
    this.#unsent = [];
    const packed = pack(recordsOfCalls(calls));
    this.#post({ calls, packed }, packed === null ? [] : [packed.bytes]);
  }

  #post(message: ToThread, transfer: ArrayBuffer[] = []): void {
    this.#worker.postMessage(message, transfer);
  }

  #settle(answers: readonly NumberedAnswer[]): void {
    this.#unanswered -= answers.length;
    for (const answer of answers) {
      const waiting = this.#waiting.get(answer.id);
      if (waiting === undefined) continue;
      this.#waiting.delete(answer.id);
      if (answer.ok) waiting.resolve(answer.value);
      else waiting.reject(receiveError(answer.error));
    }
  }

  #refuseOverdueIn(delayMs: number): void {
    this.#isWatched = true;
    this.#clock.after(delayMs, () => this.#refuseOverdue());
  }

  /** Calls wait in the order of their arrival, so the overdue ones come first. */
  #refuseOverdue(): void {
    this.#isWatched = false;
    const oldestAllowedMs = this.#clock.monotonicMs() - this.#callTimeoutMs;
    for (const [id, { reject, sinceMs }] of this.#waiting) {
      if (sinceMs > oldestAllowedMs) {
        this.#refuseOverdueIn(Math.ceil(sinceMs - oldestAllowedMs));
        return;
      }
      this.#waiting.delete(id);
      reject(busy(`no answer within ${this.#callTimeoutMs} ms`));
    }
  }
}

/** Packing takes byte arrays out of their records, and an argument still belongs to its caller. */
function copied(arg: unknown): unknown {
  const isRecord = typeof arg === 'object' && arg !== null && !Array.isArray(arg) && !ArrayBuffer.isView(arg);
  return isRecord ? { ...arg } : arg;
}

function busy(why: string): Fault {
  return transientFault('store_busy', `The database does not keep up: ${why}. Check the disk; try again.`);
}

function ended(): Fault {
  return terminalFault('store_failed', 'The thread that holds the database ended. Start settled again.');
}
