import type { Database } from 'better-sqlite3';
import { Fault } from '../../fault.ts';

/** What a database says of itself. */
export type Instance = {
  instanceId: string;
  /** The id of the key under which its secrets rest; the older one, while they are sealed anew. */
  secretsKeyId: string;
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

type Row = { instanceId: string; secretsKeyId: string; isCopy: 0 | 1; restoredFromMs: number | null };

/** Reads the instance row, refuses a database whose secrets cannot be opened, and notes that a copy is put to use. */
export function openInstance(db: Database, options: InstanceOptions): Instance {
  const { path, secretsKeyId, olderKeyIds = [], adoptsKey = false, isRestored = false, nowMs } = options;
  const select = db.prepare(
    `SELECT instance_id AS instanceId, secrets_key_id AS secretsKeyId, is_copy AS isCopy,
       restored_from_ms AS restoredFromMs FROM instance`,
  );
  const row = select.get() as Row | undefined;
  if (row === undefined) {
    throw new Fault(
      'terminal',
      'store_foreign',
      `${path} has no instance row. Restore the newest backup in its place.`,
    );
  }
  if (![secretsKeyId, ...olderKeyIds].includes(row.secretsKeyId)) {
    if (!adoptsKey) throw wrongKey(options, row.secretsKeyId);
    db.prepare('UPDATE instance SET secrets_key_id = ?').run(secretsKeyId);
  }
  // The first write: it finds a disk that can be read but not written. By a millisecond only, because the first heartbeat
  // is to find for how long nobody was alive.
  db.prepare('UPDATE instance SET alive_at_ms = alive_at_ms + 1').run();
  if (row.isCopy === 1 || isRestored) putToUse(db, nowMs);
  const { instanceId, secretsKeyId: restsUnder, restoredFromMs } = select.get() as Row;
  return { instanceId, secretsKeyId: restsUnder, restoredFromMs };
}

/**
 * Positions of the feed, and what was done since the copy was made, are another store's. The generation is taken from the
 * time, because a copy that is restored twice must not get the same one twice.
 */
function putToUse(db: Database, nowMs: number): void {
  db.prepare(
    `UPDATE instance SET is_copy = 0, generation = max(generation + 1, ? / 1000),
       restored_from_ms = min(coalesce(restored_from_ms, alive_at_ms), alive_at_ms)`,
  ).run(BigInt(Math.trunc(nowMs)));
}

/** Says in a copy that it is one. The caller makes it durable. */
export function markCopy(copy: Database): void {
  copy.prepare('UPDATE instance SET is_copy = 1').run();
}

function wrongKey({ path, secretsKeyId }: InstanceOptions, needed: string): Fault {
  return new Fault(
    'terminal',
    'secrets_key_wrong',
    `The secrets key (id ${secretsKeyId}) is not the one under which the secrets of ${path} rest (id ${needed}). Give that ` +
      `one: SETTLED_SECRETS_KEY, or the file ${path}.key. Where the key was changed since, give it beside the new one: ` +
      `SETTLED_SECRETS_KEY_PREVIOUS, or the file ${path}.key.${needed}. Where it is lost for ever: settled migrate --new-key`,
  );
}
