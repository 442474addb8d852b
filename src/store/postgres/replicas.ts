import { statement } from './statement.ts';
import type { Transaction } from './transaction.ts';

/** A process that works on the database. */
export type Replica = { replica: string; version: string; secretsKeyId: string };

/** A row of a replica that has been silent for longer is removed. */
const FORGOTTEN_AFTER_MS = 24 * 3_600_000;

const BEAT = statement(
  `INSERT INTO replica (name, version, secrets_key_id, skew_ms, started_at_ms, alive_at_ms)
   VALUES (@replica, @version, @secretsKeyId, @skewMs, @atMs, @atMs)
   ON CONFLICT (name) DO UPDATE SET secrets_key_id = excluded.secrets_key_id, skew_ms = excluded.skew_ms,
     alive_at_ms = excluded.alive_at_ms`,
);
const FORGET = statement('DELETE FROM replica WHERE alive_at_ms < @untilMs');
const LAST = statement('SELECT alive_at_ms AS aliveAtMs FROM instance FOR NO KEY UPDATE');
const ALIVE = statement('UPDATE instance SET alive_at_ms = greatest(alive_at_ms, @atMs)');

/** A replica says that it is alive. Returns for how long none had said so. */
export async function heartbeat(
  tx: Transaction,
  beat: Replica & { skewMs: number },
  atMs: number,
): Promise<{ gapMs: number }> {
  const last = await tx.one<{ aliveAtMs: number }>(LAST);
  tx.send(ALIVE, { atMs });
  tx.send(BEAT, { ...beat, atMs });
  tx.send(FORGET, { untilMs: atMs - FORGOTTEN_AFTER_MS });
  return { gapMs: Math.max(0, atMs - (last?.aliveAtMs ?? atMs)) };
}
