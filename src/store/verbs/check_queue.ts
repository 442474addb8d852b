import { CHECK_RANKS, type CheckReason, MOOT_ONCE_SETTLED } from '../../domain/check_queue.ts';
import { firstTailAfter, nextCheckFromNowMs, type Watched } from '../../domain/check_schedule.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';

/** A request for a check. `confirms`: a completion waits for the API's answer, and is held if none comes. */
export type CheckRequest = { linkKey: number; reason: CheckReason; atMs: number; confirms?: boolean };

const REQUEST = statement(`
  INSERT INTO link_check (link_key, reason, rank, requested_at_ms, due_at_ms, confirm_since_ms, claimed_after)
  VALUES (@linkKey, @reason, @rank, @atMs, @atMs, @confirmSinceMs, 0)
  ON CONFLICT (link_key) DO UPDATE SET
    reason = CASE WHEN excluded.rank > link_check.rank THEN excluded.reason ELSE link_check.reason END,
    due_at_ms = CASE WHEN excluded.rank > link_check.rank THEN excluded.due_at_ms ELSE link_check.due_at_ms END,
    rank = greatest(link_check.rank, excluded.rank),
    requested_at_ms = greatest(link_check.requested_at_ms, excluded.requested_at_ms),
    confirm_since_ms = coalesce(link_check.confirm_since_ms, excluded.confirm_since_ms)`);
const HEAR = statement(`
  INSERT INTO check_reason (link_key, reason, rank, heard_after)
  VALUES (@linkKey, @reason, @rank, (SELECT last_request FROM api_state))
  ON CONFLICT (link_key, reason) DO UPDATE SET heard_after = excluded.heard_after`);

/**
 * Queues a check of a link. A link has a row for each reason and one place in the queue, which its strongest reason
 * decides. A reason stronger than all others makes the link due now; any other waits with them, because one answer ends
 * every weaker reason that came before its request left. The caller has locked the order.
 */
export function requestCheck(tx: Transaction, { linkKey, reason, atMs, confirms = false }: CheckRequest): void {
  const rank = CHECK_RANKS[reason];
  tx.send(REQUEST, { linkKey, reason, rank, atMs, confirmSinceMs: confirms ? atMs : null });
  tx.send(HEAR, { linkKey, reason, rank });
}

const DROP = statement('DELETE FROM link_check WHERE link_key = @linkKey');

/** Removes a link and all its reasons from the queue. The caller has locked the order. */
export function dropCheck(tx: Transaction, linkKey: number): void {
  tx.send(DROP, { linkKey });
}

/** The reasons of a link, strongest first, then oldest first. */
const STRONGEST_FIRST = 'ORDER BY r.rank DESC, r.heard_after, r.reason LIMIT 1';
const STRONGEST = `(reason, rank) =
  (SELECT r.reason, r.rank FROM check_reason r WHERE r.link_key = link_check.link_key ${STRONGEST_FIRST})`;
const LEAVE = statement(`
  DELETE FROM link_check WHERE link_key = ANY(@linkKeys::bigint[])
    AND NOT EXISTS (SELECT 1 FROM check_reason r WHERE r.link_key = link_check.link_key)`);

const END_ANSWERED = statement('DELETE FROM check_reason WHERE link_key = @linkKey AND heard_after < @reading');
// If the link was claimed again since, that claim keeps its lease.
const AFTER_ANSWER = statement(`
  UPDATE link_check SET ${STRONGEST}, confirm_since_ms = NULL,
    due_at_ms = CASE WHEN claimed_after < @reading THEN least(due_at_ms, @nowMs) ELSE due_at_ms END,
    failures = CASE WHEN claimed_after < @reading THEN 0 ELSE failures END
  WHERE link_key = @linkKey`);

/**
 * Ends the reasons that a reading answers: those that came before its request left. If others remain, the link is due
 * for the strongest of them. The caller has locked the order.
 */
export function endAnswered(tx: Transaction, answered: { linkKey: number; reading: number; nowMs: number }): void {
  tx.send(END_ANSWERED, answered);
  tx.send(LEAVE, { linkKeys: [answered.linkKey] });
  tx.send(AFTER_ANSWER, answered);
}

const MOOT = MOOT_ONCE_SETTLED.map((reason) => `'${reason}'`).join(', ');
const END_MOOT = statement(`
  DELETE FROM check_reason WHERE link_key = ANY(@linkKeys::bigint[]) AND reason IN (${MOOT})`);
const AFTER_MOOT = statement(`
  UPDATE link_check SET ${STRONGEST}, failures = 0 WHERE link_key = ANY(@linkKeys::bigint[])`);

/** Ends the moot reasons of links whose orders are settled. See `isMoot`. */
export function endMoot(tx: Transaction, linkKeys: readonly number[]): void {
  tx.send(END_MOOT, { linkKeys });
  tx.send(LEAVE, { linkKeys });
  tx.send(AFTER_MOOT, { linkKeys });
}

/** The strongest reason of a queued link that remains once its order is settled: an expression on `c.link_key`. */
export const LASTING_REASON = `(SELECT r.reason FROM check_reason r
  WHERE r.link_key = c.link_key AND r.reason NOT IN (${MOOT}) ${STRONGEST_FIRST})`;

/** Whether a completion from an event waits for the API to confirm it: an expression on `@linkKey`. */
export const COMPLETION_AWAITED = `EXISTS (
  SELECT 1 FROM link_check WHERE link_key = @linkKey AND confirm_since_ms IS NOT NULL)`;

const FIND_WATCHED = statement(`
  SELECT l.created_at_ms AS createdAtMs, l.expires_at_ms AS expiresAtMs, s.paid_at_ms AS settledAtMs,
    coalesce(l.status = 'ACTIVE', false) AS mayBePaid
  FROM link l LEFT JOIN settlement s ON s.order_key = l.order_key WHERE l.key = @linkKey`);
const SCHEDULE = statement('UPDATE link SET next_check_at_ms = @nextAtMs WHERE key = @linkKey');
const BEGIN_TAIL = statement(`
  UPDATE link SET next_check_at_ms = @nextAtMs WHERE order_key = @orderKey AND next_check_at_ms IS NULL`);

/** The schedule of checks, which applies when no event comes. */
export const checkSchedule = {
  /** Sets a link's next scheduled time after `afterMs`, or none if the schedule has ended. */
  *plan(tx: Transaction, linkKey: number, afterMs: number): Work<void> {
    const watched = (yield* tx.one<Watched>(FIND_WATCHED, { linkKey })) as Watched;
    tx.send(SCHEDULE, { nextAtMs: nextCheckFromNowMs(watched, afterMs), linkKey });
  },
  /** Begins the schedule of an order that was just paid, if the schedule of its open link had ended. */
  beginPaidSchedule(tx: Transaction, orderKey: number, settledAtMs: number): void {
    tx.send(BEGIN_TAIL, { nextAtMs: firstTailAfter(settledAtMs, settledAtMs), orderKey });
  },
};
