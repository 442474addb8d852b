import Database from 'better-sqlite3';
import type { OrderState } from '../../domain/order.ts';
import type { RowStatus } from '../../domain/retry.ts';
import type { SealedCredentials } from '../contract_inbox.ts';
import type { KeysNoted } from '../engine.ts';
import { auditQueries } from '../verbs/audit.ts';
import { secretVerbs } from '../verbs/secrets.ts';
import { catchUpAtOnce } from '../verbs/sweep.ts';
import { asOpenFault, corrupt } from './faults.ts';
import { refuseForeign } from './identity.ts';
import { migrate, openForWriting } from './open.ts';
import { connection, finish, SqliteTransaction } from './transaction.ts';
import { counterVerbs } from './verbs.ts';

/** A drill opens a copy of a database apart from everything that serves, to know beforehand what a restore from it gives. */

/** How far a store is: two of them show what the older one lacks. */
export type Standing = {
  /** The same in all copies of one store; null if the server that was asked does not say. */
  instanceId: string | null;
  orders: Readonly<Partial<Record<OrderState, number>>>;
  events: Readonly<Partial<Record<RowStatus, number>>>;
  notices: Readonly<Partial<Record<RowStatus, number>>>;
  auditRows: number;
  /** The times of the newest rows; null if there are none. */
  newest: { orderMs: number | null; eventMs: number | null; noticeMs: number | null };
};

export type DrillOptions = {
  /** A file of the drill's own: it is changed. */
  path: string;
  /** Whether one of the known keys opens all secrets of a link. */
  canOpen: (secrets: SealedCredentials) => boolean;
  nowMs: number;
};

export type Drilled = {
  standing: Standing;
  /** When its store gave its last sign of life. */
  copiedAtMs: number;
  /** Whether `settled backup` wrote it: it says itself that it is a copy. */
  saysThatItIsACopy: boolean;
  /** The names of the migrations that it lacked. */
  migrated: string[];
  /** The ids of the keys without which settled refuses to start on it. */
  keysNeeded: string[];
  /** Links that have a secret, and those of them whose secret no known key opens. */
  links: { all: number; unopenable: number };
  /** Links that can still be paid: a start asks the service about each. */
  payable: number;
};

/**
 * Puts a copy to use as a restored database is: checks that it is whole, migrates it, and opens it as one that took another
 * one's place. Needs no key, so that a copy whose key is lost can be looked into as well. Faults: `store_corrupt`,
 * `store_foreign`, `store_newer`, `store_migration_changed`, `store_full`.
 */
export function drillCopy({ path, canOpen, nowMs }: DrillOptions): Drilled {
  const { keys, isCopy, migrated } = prepare(path);
  return inUse({ path, keys, isRestored: true, nowMs }, (db, tx) => ({
    standing: standingOf(db, tx, nowMs),
    copiedAtMs: db.prepare('SELECT alive_at_ms FROM instance').pluck().get() as number,
    saysThatItIsACopy: isCopy,
    migrated,
    keysNeeded: keys,
    links: tryLinks(tx, canOpen),
    payable: finish(catchUpAtOnce(tx, { dryRun: true, nowMs })).links,
  }));
}

/** How far the store of a file is. `path`: a file of the caller's own, which is changed. Faults: as of `drillCopy`. */
export function standingOfFile({ path, nowMs }: Pick<DrillOptions, 'path' | 'nowMs'>): Standing {
  const { keys } = prepare(path);
  return inUse({ path, keys, isRestored: false, nowMs }, (db, tx) => standingOf(db, tx, nowMs));
}

type Prepared = { keys: string[]; isCopy: boolean; migrated: string[] };

/** Checks a file before it is opened as a database of settled, and migrates it: an older one may have no name for its keys. */
function prepare(path: string): Prepared {
  try {
    refuseForeign(path);
    const db = new Database(path, { fileMustExist: true });
    try {
      db.pragma('synchronous = OFF');
      assertWhole(db, path);
      const migrated = migrate(db, path);
      const row = db.prepare(INSTANCE).get() as (KeysNoted & { isCopy: number }) | undefined;
      if (row === undefined) throw corrupt(path, 'its instance row is missing');
      const keys = [row.secretsKeyId, ...row.otherKeyIds.split(' ').filter((id) => id !== '')];
      return { keys, isCopy: row.isCopy === 1, migrated };
    } finally {
      db.close();
    }
  } catch (error) {
    throw asOpenFault(error, path);
  }
}

const INSTANCE = `
  SELECT secrets_key_id AS secretsKeyId, secrets_key_others AS otherKeyIds, is_copy AS isCopy FROM instance`;

/** https://sqlite.org/pragma.html#pragma_integrity_check; it does not look at foreign keys. */
function assertWhole(db: Database.Database, path: string): void {
  const said = db.pragma('integrity_check(1)', { simple: true });
  if (said !== 'ok') throw corrupt(path, String(said));
  const [stray] = db.pragma('foreign_key_check') as { table: string; parent: string }[];
  if (stray === undefined) return;
  throw corrupt(path, `a row of ${stray.table} names one of ${stray.parent} that is missing`);
}

type Use = { path: string; keys: readonly string[]; isRestored: boolean; nowMs: number };

/** Opens it with the keys that it asks for. */
function inUse<T>(
  { path, keys, isRestored, nowMs }: Use,
  look: (db: Database.Database, tx: SqliteTransaction) => T,
): T {
  const [secretsKeyId, ...olderKeyIds] = keys as [string, ...string[]];
  const { db, lock } = openForWriting({ path, secretsKeyId, olderKeyIds, newInstanceId: '', isRestored, nowMs });
  try {
    return look(db, new SqliteTransaction(connection(db, { replica: 'drill', newId: () => '' })));
  } catch (error) {
    throw asOpenFault(error, path);
  } finally {
    db.close();
    lock.close();
  }
}

const NEWEST = `
  SELECT (SELECT created_at_ms FROM orders ORDER BY key DESC LIMIT 1) AS orderMs,
    (SELECT received_at_ms FROM inbox ORDER BY key DESC LIMIT 1) AS eventMs,
    (SELECT created_at_ms FROM outbox ORDER BY key DESC LIMIT 1) AS noticeMs`;

function standingOf(db: Database.Database, tx: SqliteTransaction, nowMs: number): Standing {
  const { orders, events, notices } = finish(counterVerbs.stats(tx, nowMs));
  return {
    instanceId: db.prepare('SELECT instance_id FROM instance').pluck().get() as string,
    orders,
    events,
    notices,
    auditRows: finish(auditQueries.auditHead(tx)).number,
    newest: db.prepare(NEWEST).get() as Standing['newest'],
  };
}

const LINKS_AT_ONCE = 500;

/** Opens the secrets of every link: that a key has the right name proves nothing of what was sealed. */
function tryLinks(tx: SqliteTransaction, canOpen: DrillOptions['canOpen']): Drilled['links'] {
  const links = { all: 0, unopenable: 0 };
  for (let after = 0; ; ) {
    const rows = finish(secretVerbs.listSecrets(tx, { after, limit: LINKS_AT_ONCE }));
    const last = rows.at(-1);
    if (last === undefined) return links;
    links.all += rows.length;
    links.unopenable += rows.filter((row) => !canOpen(row)).length;
    after = last.linkKey;
  }
}
