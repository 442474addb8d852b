import type { Database } from 'better-sqlite3';
import { Fault } from '../../fault.ts';
import { type Instance, type KeysGiven, type KeysNoted, keysInUse } from '../instance.ts';

export type InstanceOptions = Omit<KeysGiven, 'name' | 'keyPlaces'> & {
  path: string;
  nowMs: number;
  /** Takes it for a copy that took the place of the database, whatever it says of itself. */
  isRestored?: boolean;
};

type Row = KeysNoted & { instanceId: string; isCopy: 0 | 1; restoredFromMs: number | null };

/** Reads the instance row, refuses a database whose secrets cannot be opened, and notes that a copy is put to use. */
export function openInstance(db: Database, options: InstanceOptions): Instance {
  const { path, isRestored = false, nowMs } = options;
  const select = db.prepare(
    `SELECT instance_id AS instanceId, secrets_key_id AS secretsKeyId, secrets_key_others AS otherKeyIds,
       is_copy AS isCopy, restored_from_ms AS restoredFromMs FROM instance`,
  );
  const row = select.get() as Row | undefined;
  if (row === undefined) {
    throw new Fault(
      'terminal',
      'store_foreign',
      `${path} has no instance row. Restore the newest backup in its place.`,
    );
  }
  const secretsKeyIds = keysInUse(keysGiven(options), row);
  const [restsUnder, ...others] = secretsKeyIds;
  // The first write: it finds a disk that can be read but not written. By a millisecond only, because the first heartbeat
  // is to find for how long nobody was alive. The row names a key before any secret is sealed under it.
  db.prepare('UPDATE instance SET alive_at_ms = alive_at_ms + 1, secrets_key_id = ?, secrets_key_others = ?').run(
    restsUnder,
    others.join(' '),
  );
  if (row.isCopy === 1 || isRestored) putToUse(db, nowMs);
  const { instanceId, restoredFromMs } = select.get() as Row;
  return { instanceId, secretsKeyIds, restoredFromMs };
}

function keysGiven({ path, ...options }: InstanceOptions): KeysGiven {
  const keyPlaces = {
    current: `SETTLED_SECRETS_KEY, or the file ${path}.key`,
    older: `SETTLED_SECRETS_KEY_PREVIOUS, or the file ${path}.key.ID`,
  };
  return { ...options, name: path, keyPlaces };
}

/**
 * Positions of the feed, versions of orders, and what was done since the copy was made, are another store's. The generation
 * is taken from the time, because a copy that is restored twice must not get the same one twice.
 */
function putToUse(db: Database, nowMs: number): void {
  db.prepare(
    `UPDATE instance SET is_copy = 0, generation = max(generation + 1, ? / 1000),
       restored_from_ms = min(coalesce(restored_from_ms, alive_at_ms), alive_at_ms)`,
  ).run(BigInt(Math.trunc(nowMs)));
}

/**
 * What every version of an order that is given from now on is above: 0, and after a restore a number above all that were
 * given before. A generation is a time in seconds, and no order changes every second of the time between two restores.
 */
export function versionFloor(db: Database): number {
  const generation = db.prepare('SELECT generation FROM instance').pluck().get() as number;
  return generation === 1 ? 0 : generation;
}

/** Says in a copy that it is one. The caller makes it durable. */
export function markCopy(copy: Database): void {
  copy.prepare('UPDATE instance SET is_copy = 1').run();
}
