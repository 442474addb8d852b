import type { Database } from 'better-sqlite3';
import { Fault } from '../../fault.ts';

/** What a database says of itself. */
export type Instance = {
  instanceId: string;
  /** The ids of the keys under which its secrets may rest: more than one while the key is being changed. */
  secretsKeyIds: readonly string[];
  /** While links made since are looked for: when the copy was made that took the place of the database. */
  restoredFromMs: number | null;
};

export type InstanceOptions = {
  path: string;
  /** The id of the current secrets key. */
  secretsKeyId: string;
  /** Of keys that can be opened with as well. */
  olderKeyIds?: readonly string[];
  nowMs: number;
  /** Opens the database although its secrets rest under a key that is lost. */
  adoptsKey?: boolean;
  /** Takes it for a copy that took the place of the database, whatever it says of itself. */
  isRestored?: boolean;
};

type Row = {
  instanceId: string;
  secretsKeyId: string;
  otherKeyIds: string;
  isCopy: 0 | 1;
  restoredFromMs: number | null;
};

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
  const secretsKeyIds = keysInUse(options, row);
  const [restsUnder, ...others] = secretsKeyIds;
  // The first write: it finds a disk that can be read but not written. By a millisecond only, because the first heartbeat
  // is to find for how long nobody was alive. The row names a key before any secret is sealed under it.
  db.prepare(
    'UPDATE instance SET alive_at_ms = alive_at_ms + 1, secrets_key_id = ?, secrets_key_others = ?',
  ).run(restsUnder, others.join(' '));
  if (row.isCopy === 1 || isRestored) putToUse(db, nowMs);
  const { instanceId, restoredFromMs } = select.get() as Row;
  return { instanceId, secretsKeyIds, restoredFromMs };
}

/** The keys under which secrets rest or will, the one before a change first. Throws where one of them is not given. */
function keysInUse(options: InstanceOptions, { secretsKeyId, otherKeyIds }: Row): string[] {
  const given = [options.secretsKeyId, ...(options.olderKeyIds ?? [])];
  const needed = [secretsKeyId, ...otherKeyIds.split(' ').filter((id) => id !== '')];
  const missing = needed.filter((id) => !given.includes(id));
  if (missing.length > 0 && options.adoptsKey !== true) throw wrongKey(options, needed, missing);
  return [...new Set([...needed.filter((id) => given.includes(id)), options.secretsKeyId])];
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

function wrongKey(
  { path, secretsKeyId }: InstanceOptions,
  needed: readonly string[],
  missing: readonly string[],
): Fault {
  const [id] = missing;
  const what =
    needed.length === 1
      ? `The secrets key (id ${secretsKeyId}) is not the one under which the secrets of ${path} rest (id ${id}). Give that ` +
        'one: SETTLED_SECRETS_KEY, or the file ' +
        `${path}.key. Where the key was changed since, give it beside the new one:`
      : `The secrets key of ${path} is being changed: its secrets rest under the keys ${needed.join(' and ')}, and all of ` +
        `them are needed until that has ended. Missing: ${missing.join(', ')}. Give the one that is to stay as ` +
        `SETTLED_SECRETS_KEY, or in the file ${path}.key, and beside it the other:`;
  return new Fault(
    'terminal',
    'secrets_key_wrong',
    `${what} SETTLED_SECRETS_KEY_PREVIOUS, or the file ${path}.key.${needed.length === 1 ? id : 'ID'}. Where it is lost ` +
      'for ever: settled migrate --new-key',
  );
}
