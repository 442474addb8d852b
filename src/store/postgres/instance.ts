import { Fault } from '../../fault.ts';
import { type Instance, type KeysGiven, type KeysNoted, keysInUse } from '../engine.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';

export type InstanceOptions = Omit<KeysGiven, 'keyPlaces'> & {
  nowMs: number;
  /** The name of a database that is made now. */
  newInstanceId: string;
  /** Takes it for a copy that took the place of the database: nothing in it says so by itself. */
  isRestored?: boolean;
};

const KEY_PLACES = { current: 'SETTLED_SECRETS_KEY', older: 'SETTLED_SECRETS_KEY_PREVIOUS' };

type Row = KeysNoted & { instanceId: string; restoredFromMs: number | null };

const SELECT = statement(
  `SELECT instance_id AS instanceId, secrets_key_id AS secretsKeyId, secrets_key_others AS otherKeyIds,
     restored_from_ms AS restoredFromMs FROM instance FOR UPDATE`,
);
const INSERT = statement(
  `INSERT INTO instance (one, instance_id, secrets_key_id, created_at_ms, alive_at_ms)
   VALUES (1, @newInstanceId, @secretsKeyId, @nowMs, @nowMs) ON CONFLICT DO NOTHING`,
);
const NAME_KEYS = statement('UPDATE instance SET secrets_key_id = @first, secrets_key_others = @others');
/*
 * Positions of the feed, versions of orders, and what was done since the copy was made, are another store's. The generation
 * is taken from the time, because a copy that is restored twice must not get the same one twice.
 */
const PUT_TO_USE = statement(
  `UPDATE instance SET generation = greatest(generation + 1, @nowMs::bigint / 1000),
     restored_from_ms = least(restored_from_ms, alive_at_ms)
   RETURNING restored_from_ms AS restoredFromMs`,
);

/**
 * Reads the instance row, or writes it where the database is new; refuses a database whose secrets cannot be opened. The
 * row names a key before any secret is sealed under it.
 */
export function* openInstance(tx: Transaction, options: InstanceOptions): Work<Instance & { created: boolean }> {
  const { nowMs, isRestored = false } = options;
  const row = yield* tx.one<Row>(SELECT);
  if (row === undefined) {
    if (isRestored) throw nothingRestored(options.name);
    // Another replica began on the new database just now.
    if ((yield* tx.run(INSERT, options)) === 0) return yield* openInstance(tx, options);
    const { newInstanceId: instanceId, secretsKeyId } = options;
    return { instanceId, secretsKeyIds: [secretsKeyId], restoredFromMs: null, created: true };
  }
  const secretsKeyIds = keysInUse({ ...options, keyPlaces: KEY_PLACES }, row);
  const [first, ...others] = secretsKeyIds;
  yield* tx.run(NAME_KEYS, { first, others: others.join(' ') });
  const restored = isRestored ? yield* tx.one<Row>(PUT_TO_USE, { nowMs }) : row;
  const restoredFromMs = restored?.restoredFromMs ?? null;
  return { instanceId: row.instanceId, secretsKeyIds, restoredFromMs, created: false };
}

function nothingRestored(name: string): Fault {
  return new Fault(
    'terminal',
    'store_foreign',
    `${name} has no instance row, so it is no copy of a database of settled. Restore the dump, then migrate.`,
  );
}
