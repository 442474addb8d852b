import { closeSync, fsyncSync, openSync, renameSync, statSync } from 'node:fs';
import type Database from 'better-sqlite3';
import { Fault } from '../../fault.ts';
import type { Queries } from '../queries.ts';
import type { Inbox, Intake, Keeping, Links, Orders } from '../store.ts';
import { storeFault } from './faults.ts';
import { inboxVerbs } from './inbox.ts';
import { intakeVerbs } from './intake.ts';
import { linkVerbs, orderVerbs } from './links.ts';
import { type OpenOptions, openForReading, openForWriting } from './open.ts';
import { queryVerbs } from './queries.ts';

/** The same verbs as they run inside the engine: synchronous, without a promise. */
export type Synchronous<T> = {
  [K in keyof T]: T[K] extends (...args: infer A) => Promise<infer R> ? (...args: A) => R : never;
};

export type WriteVerbs = Synchronous<Intake & Links & Inbox & Orders & Pick<Keeping, 'heartbeat'>>;
export type ReadVerbs = Synchronous<Queries>;

export type Call = { verb: string; args: readonly unknown[] };
export type Answer = { ok: true; value: unknown } | { ok: false; error: unknown };

/** The writing half: verbs in batches, one transaction and one fsync for each batch. */
export type Writer = {
  readonly created: boolean;
  readonly instanceId: string;
  /** Runs every call in one durable transaction. A call that fails takes back its own work only. */
  run(calls: readonly Call[]): Answer[];
  close(): void;
};

export function openWriter(options: OpenOptions & { newId: () => string }): Writer {
  const { path, newId } = options;
  const { db, lock, created, instanceId } = openForWriting(options);
  // One process per file, so at its start nobody holds a lease.
  db.exec(`UPDATE inbox SET status = 'pending' WHERE status = 'leased'`);
  const { ino } = statSync(path);
  const beat = db.prepare('UPDATE instance SET alive_at_ms = ?');
  const verbs: WriteVerbs = {
    ...intakeVerbs(db),
    ...linkVerbs(db),
    ...inboxVerbs(db, newId),
    ...orderVerbs(db, newId),
    heartbeat: (atMs) => {
      // An unlinked file goes on accepting writes that nobody will ever read.
      assertInPlace(path, ino);
      beat.run(atMs);
    },
  };
  return {
    created,
    instanceId,
    run: batchRunner(db, verbs, path),
    close: () => {
      db.close();
      lock.close();
    },
  };
}

export type Reader = { run(call: Call): Answer; close(): void };

export function openReader(path: string): Reader {
  const db = openForReading(path);
  const verbs: ReadVerbs = queryVerbs(db);
  return {
    run: (call) => {
      try {
        return { ok: true, value: invoke(verbs, call) };
      } catch (error) {
        return { ok: false, error: storeFault(error, path) };
      }
    },
    close: () => db.close(),
  };
}

/** Writes a consistent copy of the database at `path` to `to` and makes it durable. For a thread of its own. */
export function backUp(path: string, to: string): { bytes: number } {
  const draft = `${to}.part`;
  const db = openForReading(path);
  try {
    db.prepare('VACUUM INTO ?').run(draft);
  } finally {
    db.close();
  }
  const descriptor = openSync(draft, 'r');
  fsyncSync(descriptor);
  closeSync(descriptor);
  renameSync(draft, to);
  return { bytes: statSync(to).size };
}

function batchRunner(
  db: Database.Database,
  verbs: WriteVerbs,
  path: string,
): (calls: readonly Call[]) => Answer[] {
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const rollback = db.prepare('ROLLBACK');
  const savepoint = db.prepare('SAVEPOINT call');
  const release = db.prepare('RELEASE call');
  const rollbackTo = db.prepare('ROLLBACK TO call');

  function runOne(call: Call): Answer {
    savepoint.run();
    try {
      const value = invoke(verbs, call);
      release.run();
      return { ok: true, value };
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

  return (calls) => {
    try {
      begin.run();
      const answers = calls.map(runOne);
      commit.run();
      return answers;
    } catch (error) {
      if (db.inTransaction) rollback.run();
      const fault = storeFault(error, path);
      return calls.map(() => ({ ok: false, error: fault }));
    }
  };
}

function invoke(verbs: object, { verb, args }: Call): unknown {
  if (!Object.hasOwn(verbs, verb)) throw new Error(`the store has no verb ${verb}`);
  return (verbs as Record<string, (...args: unknown[]) => unknown>)[verb]?.(...args) ?? null;
}

function assertInPlace(path: string, ino: number): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.ino === ino) return;
  throw new Fault(
    'terminal',
    'store_lost',
    `${path} was removed or replaced while settled was running. Put the file back, or restore a backup, and start again.`,
  );
}
