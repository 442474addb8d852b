import { existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { Fault } from '../../fault.ts';
import type { Asking } from '../asking.ts';
import type { Opened } from '../instance.ts';
import type { Refusals } from '../rejections.ts';
import type { Inbox, Intake, Keeping, Links, Orders } from '../store.ts';
import type { Telling } from '../telling.ts';
import type { Work } from '../transaction.ts';
import { READ, WORK } from '../verbs/table.ts';
import { claimVerbs } from './claims.ts';
import { clockStepVerbs } from './clock_steps.ts';
import { storeFault } from './faults.ts';
import { markCopy } from './instance.ts';
import { intakeVerbs } from './intake.ts';
import { tellingVerbs } from './notices.ts';
import { type OpenedDatabase, type OpenOptions, openForReading, openForWriting, syncPath } from './open.ts';
import { queryVerbs } from './queries.ts';
import { replicaVerbs } from './replicas.ts';
import { retentionVerbs } from './retention.ts';
import { secretVerbs } from './secrets.ts';
import { sweepVerbs } from './sweep.ts';
import type { Synchronous } from './synchronous.ts';
import { type Connection, connection, finish, OpenTransaction } from './transaction.ts';

type WriteVerbs = Synchronous<
  Intake & Links & Inbox & Orders & Refusals & Asking & Telling & Omit<Keeping, 'backup' | 'close'>
>;

export type Call = { verb: string; args: readonly unknown[] };
export type Answer = { ok: true; value: unknown } | { ok: false; error: unknown };

/** The writing half: verbs in batches, one transaction and one fsync for each batch. */
export type Writer = {
  readonly opened: Opened;
  /** Runs every call in one durable transaction. A call that fails takes back its own work only. */
  run(calls: readonly Call[]): Answer[];
  close(): void;
};

export function openWriter(
  options: OpenOptions & { newId: () => string },
  opened: OpenedDatabase = openForWriting(options),
): Writer {
  const { path, newId } = options;
  const { db, lock, migrated: _, ...found } = opened;
  const verbs = {
    ...sweepVerbs(db),
    ...tellingVerbs(db),
    ...retentionVerbs(db),
    ...secretVerbs(db),
    ...clockStepVerbs(db),
    heartbeat: beater(db),
  };
  return {
    opened: found,
    run: batchRunner({
      db,
      verbs: { ...verbs, ...WORK, ...claimVerbs, ...intakeVerbs },
      path,
      assertInPlace: placeKeeper(path),
      of: connection(db, { replica: newId(), newId }),
    }),
    close: () => {
      db.close();
      lock.close();
    },
  };
}

function beater(db: Database.Database): WriteVerbs['heartbeat'] {
  const last = db.prepare('SELECT alive_at_ms FROM instance').pluck();
  const beat = db.prepare('UPDATE instance SET alive_at_ms = ?');
  return (atMs) => {
    const gapMs = atMs - (last.get() as number);
    beat.run(atMs);
    return { gapMs: Math.max(0, gapMs), aheadMs: Math.max(0, -gapMs) };
  };
}

export type Reader = { run(call: Call): Answer; close(): void };

/** The reading half. A verb's statements see one moment of the database: an order never disagrees with its ledger. */
export function openReader(path: string, db: Database.Database = openForReading(path)): Reader {
  const verbs = { ...queryVerbs(db), ...replicaVerbs(db), ...READ };
  const of = connection(db, { replica: '', newId: () => '' });
  const inOneSnapshot = db.transaction((call: Call) => invoke(verbs, call, of));
  return {
    run: (call) => {
      try {
        return { ok: true, value: inOneSnapshot.deferred(call) };
      } catch (error) {
        return { ok: false, error: storeFault(error, path) };
      }
    },
    close: () => db.close(),
  };
}

/**
 * Writes a consistent copy of the database at `path` to `to`, which must not exist, and makes it durable. For a thread
 * of its own.
 */
export function backUp(path: string, to: string): { bytes: number } {
  if (existsSync(to)) throw new Error(`${to} exists; a backup never replaces a file`);
  const draft = `${to}.part`;
  const db = openForReading(path);
  try {
    db.prepare('VACUUM INTO ?').run(draft);
    markAsCopy(draft);
    syncPath(draft);
    renameSync(draft, to);
    syncPath(dirname(to));
    return { bytes: statSync(to).size };
  } catch (error) {
    // Half a copy on a full disk would only keep it full.
    rmSync(draft, { force: true });
    throw storeFault(error, to);
  } finally {
    db.close();
  }
}

/** Nobody relies on the draft before it is whole; then it is synced at once. */
function markAsCopy(draft: string): void {
  const copy = new Database(draft, { fileMustExist: true });
  try {
    copy.pragma('journal_mode = MEMORY');
    copy.pragma('synchronous = OFF');
    markCopy(copy);
  } finally {
    copy.close();
  }
}

function batchRunner({
  db,
  verbs,
  path,
  assertInPlace,
  of,
}: {
  db: Database.Database;
  verbs: object;
  path: string;
  of: Connection;
  assertInPlace: () => void;
}): (calls: readonly Call[]) => Answer[] {
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const rollback = db.prepare('ROLLBACK');
  const savepoint = db.prepare('SAVEPOINT call');
  const release = db.prepare('RELEASE call');
  const rollbackTo = db.prepare('ROLLBACK TO call');

  function run(call: Call): Answer {
    return { ok: true, value: invoke(verbs, call, of) };
  }

  function runGuarded(call: Call): Answer {
    savepoint.run();
    try {
      const answer = run(call);
      release.run();
      return answer;
    } catch (error) {
      // A full disk takes back the whole transaction; then nothing of the batch is left to commit.
      if (!db.inTransaction) throw error;
      rollbackTo.run();
      release.run();
      const fault = storeFault(error, path);
      if (fault instanceof Fault && fault.kind === 'terminal') throw fault;
      return { ok: false, error: fault };
    }
  }

  function commitAll(calls: readonly Call[], runOne: (call: Call) => Answer): Answer[] {
    begin.run();
    const answers = calls.map(runOne);
    assertInPlace();
    commit.run();
    return answers;
  }

  /** Null where a call failed for a reason of its own: then nothing was kept. */
  function tryUnguarded(calls: readonly Call[]): Answer[] | null {
    let failedInCall = false;
    const runOne = (call: Call): Answer => {
      failedInCall = true;
      const answer = run(call);
      failedInCall = false;
      return answer;
    };
    try {
      return commitAll(calls, runOne);
    } catch (error) {
      if (db.inTransaction) rollback.run();
      const fault = storeFault(error, path);
      if (!failedInCall || fault instanceof Fault) throw fault;
      return null;
    }
  }

  return (calls) => {
    try {
      // A savepoint makes SQLite copy every page that a call changes. Calls hardly ever fail, so they run without; a batch
      // in which one failed is taken back and run again with a savepoint for each.
      return tryUnguarded(calls) ?? commitAll(calls, runGuarded);
    } catch (error) {
      if (db.inTransaction) rollback.run();
      const fault = storeFault(error, path);
      return calls.map(() => ({ ok: false, error: fault }));
    }
  };
}

function invoke(verbs: object, { verb, args }: Call, of: Connection): unknown {
  if (!Object.hasOwn(verbs, verb)) throw new Error(`the store has no verb ${verb}`);
  if (!isShared(verb)) return (verbs as Record<string, (...args: unknown[]) => unknown>)[verb]?.(...args) ?? null;
  if (of.bug !== null) throw of.bug;
  const tx = new OpenTransaction(of);
  const value = finish(
    (verbs as Record<string, (...args: unknown[]) => Work<unknown>>)[verb]?.(tx, ...args) as Work<unknown>,
  );
  tx.end();
  return value ?? null;
}

function isShared(verb: string): boolean {
  return (
    Object.hasOwn(claimVerbs, verb) ||
    Object.hasOwn(intakeVerbs, verb) ||
    Object.hasOwn(WORK, verb) ||
    Object.hasOwn(READ, verb)
  );
}

/** An unlinked file goes on accepting commits that nobody will ever read: none of them may be acknowledged. */
function placeKeeper(path: string): () => void {
  const { dev, ino } = statSync(path);
  return () => {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found?.ino === ino && found.dev === dev) return;
    throw new Fault(
      'terminal',
      'store_lost',
      `${path} was removed or replaced while settled was running. Put the file back, or restore a backup, and start again.`,
    );
  };
}
