import { closeSync, openSync, readSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import { Fault } from '../../fault.ts';
import type { Instance } from '../contract.ts';
import { type KeysGiven, type KeysNoted, keysInUse } from '../keys.ts';
import { corrupt } from './faults.ts';

/** The application id of settled's databases. */
export const APPLICATION_ID = 0x5e771ed0;

/** https://sqlite.org/fileformat.html#the_database_header */
const HEADER = { bytes: 100, magic: 'SQLite format 3\0', applicationIdAt: 68 } as const;

/** Refuses a file that is not settled's database. Reads only its header: opens and makes nothing. */
export function refuseForeign(path: string): void {
  const header = Buffer.alloc(HEADER.bytes);
  const descriptor = openSync(path, 'r');
  try {
    if (readSync(descriptor, header) === 0) {
      throw foreign(`${path} is an empty file. Remove it, or restore a backup in its place.`);
    }
  } finally {
    closeSync(descriptor);
  }
  if (!header.toString('latin1').startsWith(HEADER.magic)) throw corrupt(path, 'file is not a database');
  if (header.readUInt32BE(HEADER.applicationIdAt) !== APPLICATION_ID) {
    throw foreign(`${path} is a database of another program. Point SETTLED_STORE at settled's own.`);
  }
}

function foreign(message: string): Fault {
  return new Fault('terminal', 'store_foreign', message);
}

export type InstanceOptions = Omit<KeysGiven, 'name' | 'keyPlaces'> & {
  path: string;
  nowMs: number;
  /** Treats the database as a copy that replaced another, whatever it says itself. */
  isRestored?: boolean;
  /** The target of a move being resumed, which may have marked this database as moved already. */
  movesTo?: string;
};

type Row = KeysNoted & { instanceId: string; isCopy: 0 | 1; restoredFromMs: number | null; movedTo: string | null };

/** Reads the instance row, refuses a database whose secrets cannot be opened, and records that a copy is now in use. */
export function openInstance(db: Database, options: InstanceOptions): Instance {
  const { path, isRestored = false, nowMs } = options;
  const select = db.prepare(
    `SELECT instance_id AS instanceId, secrets_key_id AS secretsKeyId, secrets_key_others AS otherKeyIds,
       is_copy AS isCopy, restored_from_ms AS restoredFromMs, moved_to AS movedTo FROM instance`,
  );
  const row = select.get() as Row | undefined;
  if (row === undefined) {
    throw new Fault(
      'terminal',
      'store_foreign',
      `${path} has no instance row. Restore the newest backup in its place.`,
    );
  }
  if (row.movedTo !== null && row.movedTo !== options.movesTo) throw moved(path, row.movedTo);
  const secretsKeyIds = keysInUse(keysGiven(options), row);
  const [restsUnder, ...others] = secretsKeyIds;
  // The first write, which fails on a disk that can only be read. It adds one millisecond, so that the first heartbeat
  // still finds how long no process was alive. The row names a key before any secret is sealed under it.
  db.prepare('UPDATE instance SET alive_at_ms = alive_at_ms + 1, secrets_key_id = ?, secrets_key_others = ?').run(
    restsUnder,
    others.join(' '),
  );
  if (row.isCopy === 1 || isRestored) putToUse(db, nowMs);
  const { instanceId, restoredFromMs } = select.get() as Row;
  return { instanceId, secretsKeyIds, restoredFromMs };
}

/** Refuses a file whose store has moved: two stores would settle the same payments. */
export function moved(path: string, to: string): Fault {
  return new Fault(
    'terminal',
    'store_moved',
    `The store in ${path} was moved to ${to}, and only that one may be served: name it in SETTLED_STORE, with its ` +
      `password. If no replica can serve it because the move was interrupted, give \`settled move\` again.`,
  );
}

/** The keys that are given for a file, with the places in which they may be. */
export function keysGiven({ path, ...options }: Omit<InstanceOptions, 'nowMs'>): KeysGiven {
  const keyPlaces = {
    current: `SETTLED_SECRETS_KEY, or the file ${path}.key`,
    older: `SETTLED_SECRETS_KEY_PREVIOUS, or the file ${path}.key.ID`,
  };
  return { ...options, name: path, keyPlaces };
}

/** The generation comes from the time, so that a copy restored twice gets two different ones. */
function putToUse(db: Database, nowMs: number): void {
  db.prepare(
    `UPDATE instance SET is_copy = 0, generation = max(generation + 1, ? / 1000),
       restored_from_ms = min(coalesce(restored_from_ms, alive_at_ms), alive_at_ms)`,
  ).run(BigInt(Math.trunc(nowMs)));
}
