import type { Checks, WatchedLink } from '../asking.ts';
import {
  type ClaimPlan,
  claimRooms,
  type DueChecks,
  HINT_WINDOW_MS,
  planClaim,
  type QueuedCheck,
  REQUESTED_AHEAD_MS,
  ranksWithRoom,
  type ScheduledCheck,
  SEEN_MAX,
} from '../checks.ts';
import { statement } from '../statement.ts';
import { readBudget } from './budget.ts';
import { dropCheck, fallBackCheck } from './matters.ts';
import type { InTransaction, Transaction } from './transaction.ts';

type CheckVerbs = InTransaction<Pick<Checks, 'findLink' | 'claimChecks'>>;

/** An opening whose reference belongs to another link waits for a person: the order's own link is asked about as any other. */
const GOES_ON = `EXISTS (SELECT 1 FROM opening p WHERE p.link_key = l.key AND p.status IN ('pending', 'leased'))`;
const WATCHED = `l.key AS linkKey, o.reference, l.token, l.link_id AS linkId, ${GOES_ON} AS opening`;

const FIND = statement(
  `SELECT ${WATCHED} FROM orders o JOIN link l ON l.order_key = o.key WHERE o.reference = @reference
   ORDER BY l.key DESC LIMIT 1`,
);

const findLink: CheckVerbs['findLink'] = async (tx, reference) =>
  (await tx.one<WatchedLink>(FIND, { reference })) ?? null;

/** The number by which those who claim checks take turns: hints are counted over all replicas. */
const TURN = 1_667_785_067;
const TAKE_TURN = statement('SELECT pg_advisory_xact_lock(@turn)');
const STEP_BACK_HINTS = statement('UPDATE link SET hinted_at_ms = @nowMs WHERE hinted_at_ms > @nowMs');
const COUNT_HINTS = statement('SELECT count(*) AS followed FROM link WHERE hinted_at_ms > @sinceMs');

const DUE = `(c.due_at_ms <= @nowMs OR c.requested_at_ms > @nowMs::bigint + ${REQUESTED_AHEAD_MS})`;
const queued = (checks: string) =>
  statement(
    `SELECT ${WATCHED}, o.key AS orderKey, c.rank, c.reason, c.due_at_ms AS dueAtMs, c.failures, c.again_reason AS againReason,
       o.state, l.hinted_at_ms AS hintedAtMs
     FROM ${checks} JOIN link l ON l.key = c.link_key JOIN orders o ON o.key = l.order_key`,
  );
const QUEUED = queued(
  `unnest(@ranks::int[]) AS place (rank) CROSS JOIN LATERAL (SELECT * FROM link_check c WHERE c.rank = place.rank AND ${DUE}
     ORDER BY c.due_at_ms, c.link_key LIMIT ${SEEN_MAX}) AS c`,
);
const QUEUED_OF = queued(`(SELECT * FROM link_check c WHERE c.link_key = ANY(@linkKeys::bigint[]) AND ${DUE}) AS c`);

const scheduled = (links: string) =>
  statement(
    `SELECT ${WATCHED}, o.key AS orderKey, l.check_failures AS failures, s.paid_at_ms AS settledAtMs,
       l.next_check_at_ms AS plannedMs
     FROM (SELECT * FROM link WHERE ${links}next_check_at_ms <= @nowMs ORDER BY next_check_at_ms, key LIMIT ${SEEN_MAX}) AS l
     JOIN orders o ON o.key = l.order_key LEFT JOIN settlement s ON s.order_key = l.order_key
     ORDER BY l.next_check_at_ms, l.key`,
  );
const SCHEDULED = scheduled('');
const SCHEDULED_OF = scheduled('key = ANY(@linkKeys::bigint[]) AND ');
// Whoever else holds an order may be about to answer, or to end, what was asked about it.
const LOCK_ORDERS = statement(
  'SELECT key FROM orders WHERE key = ANY(@orderKeys::bigint[]) ORDER BY key FOR NO KEY UPDATE SKIP LOCKED',
);

type OfOrder = { orderKey: number };
type QueuedRow = QueuedCheck & OfOrder;
type ScheduledRow = ScheduledCheck & OfOrder;

/**
 * Claims by what stands in the rows of orders that are held: what is due is read, its orders are locked, and it is read
 * again. Checks of orders that somebody else holds are left to the next claim.
 */
const claimChecks: CheckVerbs['claimChecks'] = async (tx, { limit, slots, nowMs, leaseMs }) => {
  tx.send(TAKE_TURN, { turn: TURN });
  tx.send(STEP_BACK_HINTS, { nowMs });
  const [hints, budget] = await Promise.all([
    tx.one<{ followed: number }>(COUNT_HINTS, { sinceMs: nowMs - HINT_WINDOW_MS }),
    readBudget(tx, nowMs),
  ]);
  const rooms = claimRooms(budget, { limit, slots }, hints?.followed ?? 0);
  const ranks = ranksWithRoom(rooms);
  if (rooms.janitor <= 0 && ranks.length === 0) return [];
  const [inQueue, inSchedule] = await Promise.all([
    tx.all<QueuedRow>(QUEUED, { ranks, nowMs }),
    rooms.janitor > 0 ? tx.all<ScheduledRow>(SCHEDULED, { nowMs }) : [],
  ]);
  const touched = linksOf(planClaim(due(inQueue, inSchedule), rooms, nowMs));
  if (touched.size === 0) return [];

  const linkKeys = [...touched];
  const ofTouched = [...inQueue, ...inSchedule].filter(({ linkKey }) => touched.has(linkKey));
  const orderKeys = ofTouched.map(({ orderKey }) => orderKey);
  const [locked, queuedNow, scheduledNow] = await Promise.all([
    tx.all<{ key: number }>(LOCK_ORDERS, { orderKeys }),
    tx.all<QueuedRow>(QUEUED_OF, { linkKeys, nowMs }),
    rooms.janitor > 0 ? tx.all<ScheduledRow>(SCHEDULED_OF, { linkKeys, nowMs }) : [],
  ]);
  const held = new Set(locked.map(({ key }) => key));
  const isHeld = ({ orderKey }: OfOrder) => held.has(orderKey);
  const plan = planClaim(due(queuedNow.filter(isHeld), scheduledNow.filter(isHeld)), rooms, nowMs);
  await carryOut(tx, plan, nowMs, leaseMs);
  return plan.claimed;
};

function due(inQueue: readonly QueuedRow[], inSchedule: readonly ScheduledRow[]): DueChecks {
  return { ofRank: (rank) => inQueue.filter((row) => row.rank === rank), bySchedule: () => inSchedule };
}

/** The links that a plan changes anything of. */
function linksOf({ claimed, fallBacks, drops, putOff, putOffInSchedule }: ClaimPlan): Set<number> {
  const rows = [...claimed, ...putOff, ...putOffInSchedule];
  return new Set([...rows.map(({ linkKey }) => linkKey), ...fallBacks, ...drops]);
}

const PUT_OFF = statement(
  `UPDATE link_check SET due_at_ms = @untilMs, requested_at_ms = least(requested_at_ms, @nowMs)
   WHERE link_key = @linkKey`,
);
const PUT_OFF_IN_SCHEDULE = statement('UPDATE link SET next_check_at_ms = @untilMs WHERE key = @linkKey');
const NOTE_HINTS = statement('UPDATE link SET hinted_at_ms = @nowMs WHERE key = ANY(@linkKeys::bigint[])');
// The answer is one to all that was heard so far.
const LEASE_IN_QUEUE = statement(
  `UPDATE link_check SET due_at_ms = @untilMs, requested_at_ms = least(requested_at_ms, @nowMs), again_reason = NULL,
     again_rank = NULL
   WHERE link_key = ANY(@linkKeys::bigint[]) AND (due_at_ms < @untilMs OR requested_at_ms > @nowMs)`,
);
const LEASE_IN_SCHEDULE = statement(
  `UPDATE link SET next_check_at_ms = @untilMs
   WHERE key = ANY(@linkKeys::bigint[]) AND next_check_at_ms < @untilMs`,
);

/** Neither its place in the queue nor its schedule gives a link that is claimed to somebody else. */
async function carryOut(tx: Transaction, plan: ClaimPlan, nowMs: number, leaseMs: number): Promise<void> {
  const { claimed, followed, fallBacks, drops, putOff, putOffInSchedule } = plan;
  const fallenBack = Promise.all(fallBacks.map((linkKey) => fallBackCheck(tx, linkKey, nowMs)));
  for (const linkKey of drops) dropCheck(tx, linkKey);
  for (const later of putOff) tx.send(PUT_OFF, { ...later, nowMs });
  for (const later of putOffInSchedule) tx.send(PUT_OFF_IN_SCHEDULE, later);
  const leased = { linkKeys: claimed.map(({ linkKey }) => linkKey), nowMs, untilMs: nowMs + leaseMs };
  if (claimed.length > 0) {
    tx.send(LEASE_IN_QUEUE, leased);
    tx.send(LEASE_IN_SCHEDULE, leased);
  }
  if (followed.length > 0) tx.send(NOTE_HINTS, { linkKeys: followed, nowMs });
  await fallenBack;
}

export const checkVerbs: CheckVerbs = { findLink, claimChecks };
