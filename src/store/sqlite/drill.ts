import Database from 'better-sqlite3';
import type { OrderState } from '../../domain/order.ts';
import type { RowStatus } from '../../domain/retry.ts';
import { keyIdsOf } from '../keys.ts';
import { auditQueries } from '../verbs/audit.ts';
import { type SealedCredentials, secretVerbs } from '../verbs/secrets.ts';
import { asOpenFault, corrupt } from './faults.ts';
import { readInstance, refuseForeign } from './identity.ts';
import { openForWriting } from './open.ts';
import { finish, type SqliteTransaction, transactionOn } from './transaction.ts';
import { counterVerbs } from './verbs.ts';

/** A drill opens a copy of a database, apart from every server, to show what a restore from it would give. */

/** The progress of a store. Comparing two shows what the older one lacks. */
export type Standing = {
  /** Equal in all copies of one store; null if the asked server does not say it. */
  instanceId: string | null;
  orders: Readonly<Partial<Record<OrderState, number>>>;
  events: Readonly<Partial<Record<RowStatus, number>>>;
  notices: Readonly<Partial<Record<RowStatus, number>>>;
  auditRows: number;
};

export type DrillOptions = {
  /** A file for this drill alone, which it changes. */
  path: string;
  /** Whether one of the known keys opens all secrets of a link. */
  canOpen: (secrets: SealedCredentials) => boolean;
  nowMs: number;
};

export type Drilled = {
  standing: Standing;
  /** The last heartbeat of its store. */
  copiedAtMs: number;
  /** Whether `settled backup` wrote it: the copy itself says so. */
  saysThatItIsACopy: boolean;
  /** Names of the migrations that it lacked. */
  migrated: string[];
  /** Ids of the keys that settled needs to start on it. */
  keysNeeded: string[];
  /** The number of links with a secret, and of those whose secret no known key opens. */
  links: { all: number; unopenable: number };
};

/**
 * Uses a copy as a restored database: checks its integrity, migrates it, and opens it as a replacement. Needs no key,
 * so that a copy whose key is lost can be examined too. Faults: `store_corrupt`, `store_foreign`, `store_newer`,
 * `store_migration_changed`, `store_full`.
 */
export function drillCopy({ path, canOpen, nowMs }: DrillOptions): Drilled {
  const { keys, isCopy } = inspect(path);
  const [secretsKeyId, ...olderKeyIds] = keys;
  const opening = { path, secretsKeyId, olderKeyIds, newInstanceId: '', isRestored: true, nowMs };
  const { db, lock, migrated } = openForWriting(opening);
  try {
    const tx = transactionOn(db);
    return {
      standing: standingOf(db, tx, nowMs),
      copiedAtMs: db.prepare('SELECT alive_at_ms FROM instance').pluck().get() as number,
      saysThatItIsACopy: isCopy,
      migrated,
      keysNeeded: keys,
      links: tryLinks(tx, canOpen),
    };
  } catch (error) {
    throw asOpenFault(error, path);
  } finally {
    db.close();
    lock.close();
  }
}

/** Checks a file before it is opened, and reads which keys that needs. */
function inspect(path: string): { keys: [string, ...string[]]; isCopy: boolean } {
  try {
    refuseForeign(path);
    const db = new Database(path, { fileMustExist: true });
    try {
      assertWhole(db, path);
      const { keys, isCopy } = readInstance(db, path, () => corrupt(path, 'its instance row is missing'));
      return { keys: keyIdsOf(keys), isCopy };
    } finally {
      db.close();
    }
  } catch (error) {
    throw asOpenFault(error, path);
  }
}

/** https://sqlite.org/pragma.html#pragma_integrity_check; it does not look at foreign keys. */
function assertWhole(db: Database.Database, path: string): void {
  const said = db.pragma('integrity_check(1)', { simple: true });
  if (said !== 'ok') throw corrupt(path, String(said));
  const [stray] = db.pragma('foreign_key_check') as { table: string; parent: string }[];
  if (stray === undefined) return;
  throw corrupt(path, `a row of ${stray.table} names one of ${stray.parent} that is missing`);
}

function standingOf(db: Database.Database, tx: SqliteTransaction, nowMs: number): Standing {
  const { orders, events, notices } = finish(counterVerbs.stats(tx, nowMs));
  return {
    instanceId: db.prepare('SELECT instance_id FROM instance').pluck().get() as string,
    orders,
    events,
    notices,
    auditRows: finish(auditQueries.auditHead(tx)).number,
  };
}

const LINKS_AT_ONCE = 500;

/** Opens the secrets of every link, because the id of a key proves nothing about what was sealed. */
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
