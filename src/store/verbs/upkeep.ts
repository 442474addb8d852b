import { PLANNED_WITHIN_MS } from '../../domain/check_schedule.ts';
import { statement, type Transaction, TURNS, type Work } from '../transaction.ts';

export type BodyDrop = {
  /** Bodies of rows settled later than this, and of hints received later, are kept. */
  untilMs: number;
  nowMs: number;
  /** The `next` of the previous call; 0 to begin. */
  after: number;
  /** The most rows read; fewer if they are large. */
  limit: number;
};

/** `next` is null if nothing more can be dropped. */
type BodiesDropped = { dropped: number; next: number | null };

export const upkeepVerbs = {
  /**
   * Drops old bodies of settled events and readings, and of hints. Their rows stay, and unsettled rows keep their
   * bodies. Each call does little, so that no delivery waits for it; the next call continues at `next`.
   */
  *dropBodies(tx: Transaction, drop: BodyDrop): Work<BodiesDropped> {
    // Replicas drop bodies one at a time. While another does, this one skips its turn.
    if (tx.hasReplicas && !(yield* takeTurn(tx))) return { dropped: 0, next: null };
    const dropped = yield* dropHints(tx, drop);
    return dropped > 0 ? { dropped, next: drop.after } : yield* dropEvents(tx, drop);
  },
  /**
   * Makes rows due now if they wait longer than any row may, because a clock that was ahead put them off. Leases that
   * would last too long expire within a minute. Changes at most `limit` rows of a kind; repeat until it changes none.
   */
  *hastenDue(tx: Transaction, hasten: { waitMsMax: number; nowMs: number; limit: number }): Work<{ hastened: number }> {
    const { waitMsMax, nowMs, limit } = hasten;
    const values = { nowMs, lapseMs: nowMs + LEASE_LAPSES_MS, untilMs: nowMs + waitMsMax, limit };
    if (tx.hasReplicas) tx.send(HASTEN_REPLICAS, values);
    const changes = [...HASTEN_JOBS, HASTEN_CHECKS, HASTEN_SCHEDULE].map((each) => tx.run(each, values));
    let hastened = 0;
    for (const changed of changes) hastened += yield* changed;
    return { hastened };
  },
};

const TAKE_TURN = statement(`SELECT pg_try_advisory_xact_lock(${TURNS.upkeep}) AS isOurs`);

function* takeTurn(tx: Transaction): Work<boolean> {
  return (yield* tx.one<{ isOurs: boolean }>(TAKE_TURN))?.isOurs === true;
}

/** The most bytes that one call drops. To free a large body, the database reads its pages one by one. */
const DROPPED_BYTES_MAX = 1024 * 1024;

const OLD_HINTS = statement(`
  SELECT key, length(body) AS bytes FROM hint WHERE length(body) > 0 AND last_at_ms <= @untilMs
  ORDER BY last_at_ms LIMIT @limit`);
// A hint that another transaction has locked came again, or is being dropped.
const EMPTY_HINTS = statement(`
  UPDATE hint SET body = @nothing WHERE key IN
    (SELECT key FROM hint WHERE key = ANY(@keys::bigint[]) AND last_at_ms <= @untilMs FOR NO KEY UPDATE SKIP LOCKED)`);

/** Returns how many hints it dropped: 0 if none is left. */
function* dropHints(tx: Transaction, { untilMs, limit }: BodyDrop): Work<number> {
  const keys: number[] = [];
  let bytes = 0;
  for (const hint of yield* tx.all<{ key: number; bytes: number }>(OLD_HINTS, { untilMs, limit })) {
    if (bytes >= DROPPED_BYTES_MAX) break;
    keys.push(hint.key);
    bytes += hint.bytes;
  }
  return keys.length === 0 ? 0 : yield* tx.run(EMPTY_HINTS, { keys, untilMs, nothing: new Uint8Array() });
}

type BodyRow = { key: number; bytes: number; receivedAtMs: number; settledAtMs: number | null };

// CROSS JOIN fixes the order: bodies by their keys, then the row of each.
const KEPT_BODIES = statement(`
  SELECT b.inbox_key AS key, length(b.body) AS bytes, i.received_at_ms AS receivedAtMs,
    CASE WHEN i.status = 'done' THEN i.ended_at_ms END AS settledAtMs
  FROM inbox_body b CROSS JOIN inbox i WHERE i.key = b.inbox_key AND b.inbox_key > @after AND i.key > @after
  ORDER BY b.inbox_key LIMIT @limit`);
// Locks the rows, so that none becomes pending again while its body is deleted.
const REMOVE_BODIES = statement(`
  DELETE FROM inbox_body WHERE inbox_key IN (
    SELECT key FROM inbox WHERE key = ANY(@keys::bigint[]) AND status = 'done' AND ended_at_ms <= @untilMs
    FOR NO KEY UPDATE SKIP LOCKED)`);

function* dropEvents(tx: Transaction, drop: BodyDrop): Work<BodiesDropped> {
  const { keys, next } = bodiesToDrop(yield* tx.all<BodyRow>(KEPT_BODIES, drop), drop);
  const { untilMs } = drop;
  return { dropped: keys.length === 0 ? 0 : yield* tx.run(REMOVE_BODIES, { keys, untilMs }), next };
}

/**
 * Walks the bodies by key, in the order of their arrival, up to the first that is too new. Returns the keys to drop,
 * and the call's `next`.
 */
function bodiesToDrop(kept: readonly BodyRow[], { untilMs, nowMs, limit }: BodyDrop) {
  const keys: number[] = [];
  let bytes = 0;
  for (const [index, body] of kept.entries()) {
    // A body from the future came while the clock was ahead. Later ones may still be old.
    if (body.receivedAtMs > untilMs && body.receivedAtMs <= nowMs) break;
    if (body.settledAtMs !== null && body.settledAtMs <= untilMs) {
      keys.push(body.key);
      bytes += body.bytes;
    }
    if (index + 1 === limit || bytes >= DROPPED_BYTES_MAX) return { keys, next: body.key };
  }
  return { keys, next: null };
}

/** A longer lease was taken by a clock that was ahead. Its holder has this long to finish. */
const LEASE_LAPSES_MS = 60_000;

// A row that another transaction has locked gets its time from the corrected clock. Ordered like each job's own index.
const hasten = (table: string, key: string, those: string, dueAtMs: '@nowMs' | '@lapseMs') =>
  statement(
    `UPDATE ${table} SET due_at_ms = ${dueAtMs} WHERE ${key} IN
       (SELECT ${key} FROM ${table} WHERE ${those} AND due_at_ms > greatest(@untilMs::bigint, @lapseMs::bigint, @nowMs::bigint)
        ORDER BY due_at_ms LIMIT @limit FOR NO KEY UPDATE SKIP LOCKED)`,
  );
const HASTEN_JOBS = [
  hasten('inbox', 'key', "status = 'pending'", '@nowMs'),
  hasten('inbox', 'key', "status = 'leased'", '@lapseMs'),
  hasten('outbox', 'key', "status = 'pending' AND attempt = 0", '@nowMs'),
  hasten('outbox', 'key', "status = 'pending' AND attempt > 0", '@nowMs'),
  hasten('outbox', 'key', "status = 'leased'", '@lapseMs'),
  hasten('opening', 'link_key', "status = 'pending'", '@nowMs'),
  hasten('opening', 'link_key', "status = 'leased'", '@lapseMs'),
];
const HASTEN_CHECKS = statement(`
  UPDATE link_check SET due_at_ms = least(due_at_ms, @nowMs), requested_at_ms = least(requested_at_ms, @nowMs),
    confirm_since_ms = CASE WHEN confirm_since_ms > @nowMs THEN @nowMs ELSE confirm_since_ms END
  WHERE link_key IN (SELECT link_key FROM link_check WHERE due_at_ms > @untilMs OR requested_at_ms > @untilMs
    ORDER BY link_key LIMIT @limit FOR NO KEY UPDATE SKIP LOCKED)`);
const HASTEN_SCHEDULE = statement(`
  UPDATE link SET next_check_at_ms = @nowMs WHERE key IN
    (SELECT key FROM link WHERE next_check_at_ms > @nowMs::bigint + ${PLANNED_WITHIN_MS} ORDER BY next_check_at_ms
     LIMIT @limit FOR NO KEY UPDATE SKIP LOCKED)`);
// A replica killed while its clock was ahead would count as alive until that time.
const HASTEN_REPLICAS = statement('UPDATE replica SET alive_at_ms = @nowMs WHERE alive_at_ms > @untilMs');

const OURS = "status = 'leased' AND (holder = @replica OR @isAlone::boolean)";
// The end of an old lease must not delay the row.
const GIVE_BACK = [
  statement(`UPDATE inbox SET status = 'pending', holder = NULL, due_at_ms = received_at_ms WHERE ${OURS}`),
  statement(`
    UPDATE opening SET status = 'pending', holder = NULL, may_exist = true,
      due_at_ms = (SELECT created_at_ms FROM link WHERE key = link_key) WHERE ${OURS}`),
  statement(`UPDATE outbox SET status = 'pending', holder = NULL, due_at_ms = created_at_ms WHERE ${OURS}`),
  statement(`
    UPDATE alert_channel SET holder = NULL, due_at_ms = composed_at_ms
    WHERE holder = @replica OR (@isAlone::boolean AND holder IS NOT NULL)`),
];

/** Returns the rows that this replica has leased to their queues. A process that is alone has every lease. */
export function giveBackLeases(tx: Transaction): void {
  for (const giveBack of GIVE_BACK) tx.send(giveBack, { replica: tx.replica, isAlone: !tx.hasReplicas });
}
