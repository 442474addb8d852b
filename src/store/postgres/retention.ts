import { type BodyRow, bodiesToDrop, hintsToDrop } from '../retention.ts';
import { statement } from '../statement.ts';
import type { BodiesDropped, BodyDrop, Keeping } from '../store.ts';
import type { InTransaction, Transaction } from './transaction.ts';

/** Replicas drop one after the other. */
const TURN = 7_331_003;
const TAKE_TURN = statement(`SELECT pg_try_advisory_xact_lock(${TURN}) AS mine`);

export const retentionVerbs: InTransaction<Pick<Keeping, 'dropBodies'>> = {
  /** Drops nothing where another replica does at this moment: it is its round then. */
  dropBodies: async (tx, drop) => {
    const turn = await tx.one<{ mine: boolean }>(TAKE_TURN);
    if (turn?.mine !== true) return { dropped: 0, next: null };
    const dropped = await dropHints(tx, drop);
    return dropped > 0 ? { dropped, next: drop.after } : dropEvents(tx, drop);
  },
};

const OLD_HINTS = statement(
  `SELECT key, length(body) AS bytes FROM hint WHERE length(body) > 0 AND last_at_ms <= @untilMs
   ORDER BY last_at_ms LIMIT @limit`,
);
// What somebody else holds at this moment came again, or goes by itself.
const EMPTY_HINTS = statement(
  `UPDATE hint SET body = '' WHERE key IN
     (SELECT key FROM hint WHERE key = ANY(@keys::bigint[]) AND last_at_ms <= @untilMs FOR NO KEY UPDATE SKIP LOCKED)`,
);

/** Returns how many were dropped: 0 where none is left. */
async function dropHints(tx: Transaction, { untilMs, limit }: BodyDrop): Promise<number> {
  const keys = hintsToDrop(await tx.all<{ key: number; bytes: number }>(OLD_HINTS, { untilMs, limit }));
  return keys.length === 0 ? 0 : tx.run(EMPTY_HINTS, { keys, untilMs });
}

const KEPT_BODIES = statement(
  `SELECT b.inbox_key AS key, length(b.body) AS bytes, i.received_at_ms AS receivedAtMs,
     CASE WHEN i.status = 'done' THEN i.ended_at_ms END AS settledAtMs
   FROM inbox_body b JOIN inbox i ON i.key = b.inbox_key WHERE b.inbox_key > @after AND i.key > @after
   ORDER BY b.inbox_key LIMIT @limit`,
);
// The rows are held, so that none is made pending again while its bytes go.
const REMOVE_BODIES = statement(
  `WITH settled AS (
     SELECT key FROM inbox WHERE key = ANY(@keys::bigint[]) AND status = 'done' AND ended_at_ms <= @untilMs
     FOR NO KEY UPDATE SKIP LOCKED
   )
   DELETE FROM inbox_body USING settled WHERE inbox_key = settled.key`,
);

async function dropEvents(tx: Transaction, drop: BodyDrop): Promise<BodiesDropped> {
  const { keys, next } = bodiesToDrop(await tx.all<BodyRow>(KEPT_BODIES, drop), drop);
  const { untilMs } = drop;
  const dropped = keys.length === 0 ? 0 : await tx.run(REMOVE_BODIES, { keys, untilMs });
  return { dropped, next };
}
