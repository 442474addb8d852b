import {
  type ClaimedCheck,
  type ClaimPlan,
  claimRooms,
  HINT_WINDOW_MS,
  linksOf,
  planClaim,
  type QueuedCheck,
  ranksWithRoom,
  type ScheduledCheck,
  type WatchedLink,
} from '../../domain/check_queue.ts';
import type { Claim } from '../../domain/retry.ts';
import { statement, type Transaction, TURNS, type Work } from '../transaction.ts';
import { readBudget } from './budget.ts';
import { endMoot, LASTING_REASON } from './check_queue.ts';

/**
 * The most rows of each rank that one claim reads. It puts off those that must wait, so the next claim reads others.
 */
const SEEN_MAX = 256;
/** A row requested this far in the future was written before the clock was set back. It is due. */
const REQUESTED_AHEAD_MS = 60_000;

/** A parked opening waits for a person, so its order's link is checked like any other. */
const GOES_ON = `EXISTS (SELECT 1 FROM opening p WHERE p.link_key = l.key AND p.status IN ('pending', 'leased'))`;
const WATCHED = `l.key AS linkKey, o.reference, l.token, l.link_id AS linkId, ${GOES_ON} AS isOpening`;

const FIND_LINK = statement(`
  SELECT ${WATCHED} FROM orders o JOIN link l ON l.order_key = o.key WHERE o.reference = @reference
  ORDER BY l.key DESC LIMIT 1`);

const TAKE_TURN = statement('SELECT pg_advisory_xact_lock(@turn)');
const STEP_BACK_HINTS = statement('UPDATE link SET hinted_at_ms = @nowMs WHERE hinted_at_ms > @nowMs');
const COUNT_HINTS = statement('SELECT count(*) AS followed FROM link WHERE hinted_at_ms > @sinceMs');

const queued = (checks: string, limited: string) =>
  statement(
    `SELECT ${WATCHED}, o.key AS orderKey, c.rank, c.reason, ${LASTING_REASON} AS lastingReason, c.due_at_ms AS dueAtMs,
       c.failures, o.state, l.hinted_at_ms AS hintedAtMs
     FROM (SELECT link_key, rank, reason, due_at_ms, failures FROM link_check
       WHERE ${checks} AND (due_at_ms <= @nowMs OR requested_at_ms > @nowMs::bigint + ${REQUESTED_AHEAD_MS})
       ${limited}) AS c
     JOIN link l ON l.key = c.link_key JOIN orders o ON o.key = l.order_key ORDER BY c.due_at_ms, c.link_key`,
  );
const QUEUED = queued('rank = @rank', `ORDER BY due_at_ms, link_key LIMIT ${SEEN_MAX}`);
const QUEUED_OF = queued('link_key = ANY(@linkKeys::bigint[])', '');

const scheduled = (links: string) =>
  statement(
    `SELECT ${WATCHED}, o.key AS orderKey, l.check_failures AS failures, s.paid_at_ms AS settledAtMs,
       l.next_check_at_ms AS plannedMs
     FROM (SELECT key, order_key, token, link_id, check_failures, next_check_at_ms FROM link
       WHERE ${links}next_check_at_ms <= @nowMs ORDER BY next_check_at_ms, key LIMIT ${SEEN_MAX}) AS l
     JOIN orders o ON o.key = l.order_key LEFT JOIN settlement s ON s.order_key = l.order_key
     ORDER BY l.next_check_at_ms, l.key`,
  );
const SCHEDULED = scheduled('');
const SCHEDULED_OF = scheduled('key = ANY(@linkKeys::bigint[]) AND ');
// A transaction that has locked an order may be about to answer or end the check of its link.
const LOCK_ORDERS = statement(`
  SELECT key FROM orders WHERE key = ANY(@orderKeys::bigint[]) ORDER BY key FOR NO KEY UPDATE SKIP LOCKED`);

type OfOrder = { orderKey: number };
type QueuedRow = QueuedCheck & OfOrder;
type ScheduledRow = ScheduledCheck & OfOrder;

export const checkVerbs = {
  /** The link of an order, for a person who asks now. Null if there is no such order. */
  *findLink(tx: Transaction, reference: string): Work<WatchedLink | null> {
    return (yield* tx.one<WatchedLink>(FIND_LINK, { reference })) ?? null;
  },
  /**
   * Leases as many links as the budget admits now: first those in the queue, strongest reason first, then those due in
   * the schedule. Drops reasons for which asking would tell nothing new.
   *
   * Reads what is due, locks the orders, and reads again. Checks whose orders another transaction has locked are left
   * to the next claim.
   */
  *claimChecks(tx: Transaction, { limit, slots, nowMs, leaseMs }: Claim & { slots: number }): Work<ClaimedCheck[]> {
    tx.lock(TAKE_TURN, { turn: TURNS.checks });
    tx.send(STEP_BACK_HINTS, { nowMs });
    const hints = tx.one<{ followed: number }>(COUNT_HINTS, { sinceMs: nowMs - HINT_WINDOW_MS });
    const budget = yield* readBudget(tx, nowMs);
    const rooms = claimRooms(budget, { limit, slots }, (yield* hints)?.followed ?? 0);
    const ofRanks = ranksWithRoom(rooms).map((rank) => tx.all<QueuedRow>(QUEUED, { rank, nowMs }));
    const bySchedule = rooms.janitor > 0 ? tx.all<ScheduledRow>(SCHEDULED, { nowMs }) : null;
    const inQueue: QueuedRow[] = [];
    for (const ofRank of ofRanks) inQueue.push(...(yield* ofRank));
    const inSchedule = bySchedule === null ? [] : yield* bySchedule;
    const touched = linksOf(planClaim(inQueue, inSchedule, rooms, nowMs));
    if (touched.size === 0) return [];

    const linkKeys = [...touched];
    const ofTouched = [...inQueue, ...inSchedule].filter(({ linkKey }) => touched.has(linkKey));
    const locked = tx.all<{ key: number }>(LOCK_ORDERS, { orderKeys: ofTouched.map(({ orderKey }) => orderKey) });
    const again = tx.all<QueuedRow>(QUEUED_OF, { linkKeys, nowMs });
    const scheduledAgain = rooms.janitor > 0 ? tx.all<ScheduledRow>(SCHEDULED_OF, { linkKeys, nowMs }) : null;
    const lockedKeys = new Set((yield* locked).map(({ key }) => key));
    const isLocked = ({ orderKey }: OfOrder) => lockedKeys.has(orderKey);
    const queuedNow = (yield* again).filter(isLocked);
    const scheduledNow = scheduledAgain === null ? [] : (yield* scheduledAgain).filter(isLocked);
    const turns = planClaim(queuedNow, scheduledNow, rooms, nowMs);
    carryOut(tx, turns, nowMs, leaseMs);
    return turns.claimed;
  },
};

const PUT_OFF = statement(`
  UPDATE link_check SET due_at_ms = @untilMs, requested_at_ms = least(requested_at_ms, @nowMs)
  WHERE link_key = @linkKey`);
const PUT_OFF_IN_SCHEDULE = statement('UPDATE link SET next_check_at_ms = @untilMs WHERE key = @linkKey');
const NOTE_HINTS = statement('UPDATE link SET hinted_at_ms = @nowMs WHERE key = ANY(@linkKeys::bigint[])');
const LEASE_IN_QUEUE = statement(`
  UPDATE link_check SET due_at_ms = @untilMs, requested_at_ms = least(requested_at_ms, @nowMs),
    claimed_after = (SELECT last_request FROM api_state)
  WHERE link_key = ANY(@linkKeys::bigint[]) AND (due_at_ms < @untilMs OR requested_at_ms > @nowMs)`);
const LEASE_IN_SCHEDULE = statement(`
  UPDATE link SET next_check_at_ms = @untilMs
  WHERE key = ANY(@linkKeys::bigint[]) AND next_check_at_ms < @untilMs`);

/** A claimed link is due again only when its lease expires, in the queue and in the schedule. */
function carryOut(tx: Transaction, turns: ClaimPlan, nowMs: number, leaseMs: number): void {
  const { claimed, followed, putOff, putOffInSchedule, moot } = turns;
  if (moot.length > 0) endMoot(tx, moot);
  for (const later of putOff) tx.send(PUT_OFF, { ...later, nowMs });
  for (const later of putOffInSchedule) tx.send(PUT_OFF_IN_SCHEDULE, later);
  const leased = { linkKeys: claimed.map(({ linkKey }) => linkKey), nowMs, untilMs: nowMs + leaseMs };
  if (claimed.length > 0) {
    tx.send(LEASE_IN_QUEUE, leased);
    tx.send(LEASE_IN_SCHEDULE, leased);
  }
  if (followed.length > 0) tx.send(NOTE_HINTS, { linkKeys: followed, nowMs });
}
