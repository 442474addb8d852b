import { statSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import type { OrderState } from '../../domain/order.ts';
import { Fault, terminalFault } from '../../fault.ts';
import type { Opened } from '../contract.ts';
import type { Transaction, Work } from '../transaction.ts';
import { storeFault } from './faults.ts';
import { openForReading } from './file.ts';
import { type OpenedDatabase, openForWriting, type WriterOptions } from './open.ts';
import { type Connection, connection, finish, SqliteTransaction } from './transaction.ts';
import { COUNT_ORDERS, LANES } from './verbs.ts';

export type Call = { verb: string; args: readonly unknown[] };
/** `wrote`: whether the call wrote any row. */
export type CallAnswer = { ok: true; value: unknown; wrote: boolean } | { ok: false; error: unknown };

type Verb = (tx: Transaction, ...args: unknown[]) => Work<unknown>;

/** The writing half: runs calls in batches, with one transaction and one fsync for each. */
export type Writer = {
  readonly opened: Opened;
  /** Runs every call in one durable transaction. A failing call rolls back only its own work. */
  run(calls: readonly Call[]): CallAnswer[];
  close(): void;
};

export function openWriter(
  options: WriterOptions & { newId: () => string },
  opened: OpenedDatabase = openForWriting(options),
): Writer {
  const { path, newId } = options;
  const { db, lock, migrated: _, ...found } = opened;
  const of = connection(db, { replica: newId(), newId });
  const commit = groupCommit(of, { ...LANES.intake, ...LANES.work }, path);
  const { faultOf } = placeOf(path);
  return {
    opened: found,
    run: (calls) =>
      commit(calls).map((answer, index) =>
        answer.ok && calls[index]?.verb === 'eraseDropped' ? emptyLog(db, faultOf) : answer,
      ),
    close: () => {
      db.close();
      lock.close();
    },
  };
}

/** Copies the log over the pages that it replaces, and empties it. Not while a reader needs those pages. */
function emptyLog(db: Database, faultOf: (error: unknown) => unknown): CallAnswer {
  try {
    const isErased = db.pragma('wal_checkpoint(TRUNCATE)', { simple: true }) === 0;
    return { ok: true, value: { isErased }, wrote: false };
  } catch (error) {
    return { ok: false, error: faultOf(error) };
  }
}

/** The reading half. */
export type Reader = { run(call: Call): CallAnswer; close(): void };

/** Each call sees one snapshot of the database, so an order never disagrees with its ledger. */
export function openReader(path: string, given?: Database): Reader {
  const { faultOf } = placeOf(path);
  const db = given ?? openOrFail();
  const of = connection(db, { replica: '', newId: noIds });
  const inOneSnapshot = db.transaction((call: Call) => carryOut(of, LANES.read, call));
  return {
    run: (call) => {
      try {
        return { ok: true, value: inOneSnapshot.deferred(call), wrote: false };
      } catch (error) {
        return { ok: false, error: faultOf(error) };
      }
    },
    close: () => db.close(),
  };

  function openOrFail(): Database {
    try {
      return openForReading(path);
    } catch (error) {
      throw faultOf(error);
    }
  }
}

function noIds(): never {
  throw new Error('a verb that only reads makes nothing that has an id');
}

/**
 * Runs every call of a batch in one durable transaction, one after the other. A failing call rolls back only its own
 * work. A terminal fault, in a call or in the commit, fails the whole batch, because the writer must not go on.
 */
export function groupCommit(of: Connection, verbs: object, path: string): (calls: readonly Call[]) => CallAnswer[] {
  const { db } = of;
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const rollback = db.prepare('ROLLBACK');
  const savepoint = db.prepare('SAVEPOINT call');
  const release = db.prepare('RELEASE call');
  const rollbackTo = db.prepare('ROLLBACK TO call');
  const { lostFault, faultOf } = placeOf(path);
  const run = (call: Call): CallAnswer => {
    const before = of.writes;
    const value = carryOut(of, verbs, call);
    return { ok: true, value, wrote: of.writes > before };
  };

  function runGuarded(call: Call): CallAnswer {
    const moved = of.moves.length;
    savepoint.run();
    try {
      const answer = run(call);
      release.run();
      return answer;
    } catch (error) {
      // A full disk rolls back the whole transaction, so nothing of the batch is left to commit.
      if (!db.inTransaction) throw error;
      rollbackTo.run();
      release.run();
      of.moves.length = moved;
      const fault = faultOf(error);
      if (fault instanceof Fault && fault.kind === 'terminal') throw fault;
      return { ok: false, error: fault };
    }
  }

  function commitAll(calls: readonly Call[], runOne: (call: Call) => CallAnswer): CallAnswer[] {
    of.moves = [];
    begin.run();
    const answers = calls.map(runOne);
    const fault = lostFault() ?? of.bug;
    if (fault !== null) throw fault;
    countOrders(of);
    commit.run();
    return answers;
  }

  /** Null if a call failed for a reason of its own. Nothing was kept then. */
  function tryUnguarded(calls: readonly Call[]): CallAnswer[] | null {
    let failedInCall = false;
    const runOne = (call: Call): CallAnswer => {
      failedInCall = true;
      const answer = run(call);
      failedInCall = false;
      return answer;
    };
    try {
      return commitAll(calls, runOne);
    } catch (error) {
      if (db.inTransaction) rollback.run();
      const fault = faultOf(error);
      if (!failedInCall || fault instanceof Fault) throw fault;
      return null;
    }
  }

  return (calls) => {
    try {
      // A savepoint makes SQLite copy every page that a call changes. Calls rarely fail, so they run without one. A
      // batch with a failed call is rolled back and run again with a savepoint for each call (decision 0006).
      return tryUnguarded(calls) ?? commitAll(calls, runGuarded);
    } catch (error) {
      if (db.inTransaction) rollback.run();
      const fault = faultOf(error);
      return calls.map(() => ({ ok: false, error: fault }));
    }
  };
}

/** Counts the orders of the batch by the states that they left and came to. */
function countOrders(of: Connection): void {
  const growth = new Map<OrderState, number>();
  const add = (state: OrderState, n: number) => growth.set(state, (growth.get(state) ?? 0) + n);
  for (const { from, to } of of.moves) {
    add(from, -1);
    add(to, 1);
  }
  const tx = new SqliteTransaction(of);
  for (const [state, n] of growth) tx.send(COUNT_ORDERS, { state, n });
}

/** Runs one call to its end, in a transaction object that ends with it. */
function carryOut(of: Connection, verbs: object, { verb, args }: Call): unknown {
  if (!Object.hasOwn(verbs, verb)) throw new Error(`the store has no verb ${verb}`);
  const tx = new SqliteTransaction(of);
  try {
    return finish((verbs as Record<string, Verb>)[verb]?.(tx, ...args) as Work<unknown>) ?? null;
  } finally {
    tx.end();
  }
}

function placeOf(path: string) {
  const place = statSync(path, { throwIfNoEntry: false });

  /** Null while the file is in its place. An unlinked file accepts commits that can never be read. */
  function lostFault(): Fault | null {
    const found = statSync(path, { throwIfNoEntry: false });
    if (place !== undefined && found?.ino === place.ino && found.dev === place.dev) return null;
    return terminalFault(
      'store_lost',
      `${path} was removed or replaced while settled was running. Put the file back, or restore a backup, and start again.`,
    );
  }

  /** What an error means. If the file is gone, that is why, whatever SQLite finds first. */
  function faultOf(error: unknown): unknown {
    const fault = storeFault(error, path);
    return fault === error ? error : (lostFault() ?? fault);
  }

  return { lostFault, faultOf };
}

/** The most calls of one lane in a batch, which bounds the time between a call and its fsync. */
const BATCH_MAX = 256;
/**
 * The most other calls in a batch with deliveries, or in one of the batches after it: a delivery that comes during a
 * batch waits for all of it. Large enough that one fsync serves many settlements, small enough for a few milliseconds.
 */
const OTHER_BESIDE_INTAKE_MAX = 64;
/** After this many batches without a delivery, none is expected. */
const QUIET_BATCHES = 8;

/** The queues in which calls wait for their batch, in the order of their arrival. */
export type Lanes<Call> = {
  add(call: Call): void;
  /** Takes the next batch; empty if nothing waits. */
  next(): Call[];
};

/** Deliveries go first. Other work fills what they leave, and always gets its share. */
export function openLanes<Call extends { verb: string }>(): Lanes<Call> {
  const intake: Call[] = [];
  const other: Call[] = [];
  let batchesSinceIntake = QUIET_BATCHES;
  return {
    add: (call) => void (Object.hasOwn(LANES.intake, call.verb) ? intake : other).push(call),
    next: () => {
      const deliveries = intake.splice(0, BATCH_MAX);
      batchesSinceIntake = deliveries.length > 0 ? 0 : batchesSinceIntake + 1;
      const share = batchesSinceIntake > QUIET_BATCHES ? BATCH_MAX : OTHER_BESIDE_INTAKE_MAX;
      return deliveries.concat(other.splice(0, share));
    },
  };
}
