import Database from 'better-sqlite3';
import type { OrderState } from '../../domain/order.ts';
import type { RowStatus } from '../../domain/retry.ts';
import { auditQueries } from '../verbs/audit.ts';
import { countUnopenable } from '../verbs/secrets.ts';
import { asOpenFault, corrupt } from './faults.ts';
import { readInstance, refuseForeign } from './identity.ts';
import { openForWriting } from './open.ts';
import { finish, transactionOn } from './transaction.ts';
import { counterVerbs } from './verbs.ts';

/** The progress of a store. Comparing two shows what the older one lacks. */
export type Standing = {
  orders: Readonly<Partial<Record<OrderState, number>>>;
  events: Readonly<Partial<Record<RowStatus, number>>>;
  notices: Readonly<Partial<Record<RowStatus, number>>>;
  auditRows: number;
};

export type Drilled = Standing & {
  /** Equal in all copies of one store. */
  instanceId: string;
  /** The last heartbeat of its store. */
  copiedAtMs: number;
  /** Whether `settled backup` wrote it: the copy itself says so. */
  saysThatItIsACopy: boolean;
  /** Names of the migrations that it lacked. */
  migrated: string[];
  /** The number of links whose secret no known key opens. */
  unopenable: number;
};

/** `path`: a file for this drill alone, which it changes. `keyIds`: the current key first. */
export type DrillOptions = { path: string; keyIds: readonly [string, ...string[]]; nowMs: number };

/**
 * Uses a copy of a database, apart from every server, as a restored one: checks its integrity, migrates it, and opens it.
 * Faults: those of opening a store.
 */
export function drillCopy({ path, keyIds, nowMs }: DrillOptions): Drilled {
  try {
    const saysThatItIsACopy = inspect(path);
    const [secretsKeyId, ...olderKeyIds] = keyIds;
    const opening = { path, secretsKeyId, olderKeyIds, newInstanceId: '', isRestored: true, nowMs };
    const { db, lock, migrated, instanceId } = openForWriting(opening);
    try {
      const tx = transactionOn(db);
      const { orders, events, notices } = finish(counterVerbs.stats(tx, nowMs));
      const copiedAtMs = db.prepare('SELECT alive_at_ms FROM instance').pluck().get() as number;
      const unopenable = finish(countUnopenable(tx, keyIds));
      const auditRows = finish(auditQueries.auditHead(tx)).number;
      return { instanceId, copiedAtMs, saysThatItIsACopy, migrated, unopenable, orders, events, notices, auditRows };
    } finally {
      db.close();
      lock.close();
    }
  } catch (error) {
    throw asOpenFault(error, path);
  }
}

/** Checks every page before the file is opened for writing. Returns whether it says that it is a copy. */
function inspect(path: string): boolean {
  refuseForeign(path);
  const db = new Database(path, { fileMustExist: true });
  try {
    const said = db.pragma('integrity_check(1)', { simple: true });
    if (said !== 'ok') throw corrupt(path, String(said));
    const [stray] = db.pragma('foreign_key_check') as { table: string; parent: string }[];
    if (stray !== undefined)
      throw corrupt(path, `a row of ${stray.table} names one of ${stray.parent} that is missing`);
    return readInstance(db, path).isCopy;
  } finally {
    db.close();
  }
}
