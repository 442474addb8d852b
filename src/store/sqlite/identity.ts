import { closeSync, openSync, readSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import { type Fault, terminalFault } from '../../fault.ts';
import type { Instance } from '../contract.ts';
import { type KeysGiven, type KeysNoted, keysInUse } from '../keys.ts';
import { corrupt } from './faults.ts';
import { openForReading } from './file.ts';

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
  return terminalFault('store_foreign', message);
}

export type InstanceOptions = Omit<KeysGiven, 'name' | 'keyPlaces'> & {
  path: string;
  nowMs: number;
  /** Treats the database as a copy that replaced another, whatever it says itself. */
  isRestored?: boolean;
  /** The target of a move being resumed, which may have marked this database as moved already. */
  movesTo?: string;
};

/** A file of an earlier settled lacks these columns. */
type Row = { instance_id: string; secrets_key_id: string; restored_from_ms: number | null } & {
  secrets_key_others?: string;
  is_copy?: 0 | 1;
  moved_to?: string | null;
};

/** What a file says about itself, whichever settled wrote it. `missing`: what is thrown if it says nothing. */
export function readInstance(db: Database, path: string, missing = () => without(path)) {
  const row = db.prepare('SELECT * FROM instance').get() as Row | undefined;
  if (row === undefined) throw missing();
  const { secrets_key_others: otherKeyIds = '', is_copy: isCopy = 0, moved_to: movedTo = null, ...rest } = row;
  const keys: KeysNoted = { secretsKeyId: rest.secrets_key_id, otherKeyIds };
  return { instanceId: rest.instance_id, keys, isCopy: isCopy === 1, restoredFromMs: rest.restored_from_ms, movedTo };
}

function without(path: string): Fault {
  return foreign(`${path} has no instance row. Restore the newest backup in its place.`);
}

/** Reads the instance row, refuses a database whose secrets cannot be opened, and records that a copy is now in use. */
export function openInstance(db: Database, options: InstanceOptions): Instance {
  const { path, isRestored = false, nowMs } = options;
  const { keys, isCopy, movedTo } = readInstance(db, path);
  if (movedTo !== null && movedTo !== options.movesTo) throw moved(path, movedTo);
  const secretsKeyIds = keysInUse(keysGiven(options), keys);
  const [restsUnder, ...others] = secretsKeyIds;
  // The first write, which fails on a disk that can only be read. It adds one millisecond, so that the first heartbeat
  // still finds how long no process was alive. The row names a key before any secret is sealed under it.
  db.prepare('UPDATE instance SET alive_at_ms = alive_at_ms + 1, secrets_key_id = ?, secrets_key_others = ?').run(
    restsUnder,
    others.join(' '),
  );
  if (isCopy || isRestored) putToUse(db, nowMs);
  const { instanceId, restoredFromMs } = readInstance(db, path);
  return { instanceId, secretsKeyIds, restoredFromMs };
}

/** Refuses a file that says that its store has moved, and only reads it: a server may serve it. */
export function refuseMoved(path: string): void {
  const db = openForReading(path);
  try {
    const { movedTo } = readInstance(db, path);
    if (movedTo !== null) throw moved(path, movedTo);
  } finally {
    db.close();
  }
}

/** Refuses a file whose store has moved: two stores would settle the same payments. */
export function moved(path: string, to: string): Fault {
  return terminalFault(
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
