import {
  CHECK_CLASSES,
  type CheckReason,
  canBeForged,
  checkRank,
  HINTS_PER_MINUTE_MAX,
} from '../../domain/check.ts';
import type { OrderState } from '../../domain/order.ts';
import type { Checks, ClaimedCheck, WatchedLink } from '../asking.ts';
import type { BudgetUse } from '../budget.ts';
import { CLOCK_STEP_MS, HINT_WINDOW_MS, SEEN_MAX, turnInQueue, turnInSchedule } from '../checks.ts';
import { readBudget } from './budget.ts';
import { dropCheck, fallBackCheck } from './matters.ts';
import { statement } from './statement.ts';
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

const DUE = `(c.due_at_ms <= @nowMs OR c.requested_at_ms > @nowMs::bigint + ${CLOCK_STEP_MS})`;
const queued = (checks: string) =>
  statement(
    `SELECT ${WATCHED}, o.key AS orderKey, c.rank, c.reason, c.failures, c.again_reason AS againReason, o.state,
       l.hinted_at_ms AS hintedAtMs
     FROM ${checks} JOIN link l ON l.key = c.link_key JOIN orders o ON o.key = l.order_key
     ORDER BY c.due_at_ms, c.link_key`,
  );
const QUEUED = queued(
  `unnest(@ranks::int[]) AS place (rank) CROSS JOIN LATERAL (SELECT * FROM link_check c WHERE c.rank = place.rank AND ${DUE}
     ORDER BY c.due_at_ms, c.link_key LIMIT ${SEEN_MAX}) AS c`,
);
const QUEUED_OF = queued(
  `(SELECT * FROM link_check c WHERE c.link_key = ANY(@linkKeys::bigint[]) AND ${DUE}) AS c`,
);

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

type OfOrder = WatchedLink & { orderKey: number };
type QueuedRow = OfOrder & {
  rank: number;
  reason: CheckReason;
  failures: number;
  againReason: CheckReason | null;
  state: OrderState;
  hintedAtMs: number | null;
};
type ScheduledRow = OfOrder & { failures: number; settledAtMs: number | null; plannedMs: number };

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
  const rooms = roomsOf(budget, { limit, slots, hintsLeft: HINTS_PER_MINUTE_MAX - (hints?.followed ?? 0) });
  const ranks = ranksWithRoom(rooms);
  if (rooms.janitor <= 0 && ranks.length === 0) return [];
  const [inQueue, inSchedule] = await Promise.all([
    tx.all<QueuedRow>(QUEUED, { ranks, nowMs }),
    rooms.janitor > 0 ? tx.all<ScheduledRow>(SCHEDULED, { nowMs }) : [],
  ]);
  const found = planClaim(inQueue, inSchedule, rooms, nowMs);
  if (found.touched.size === 0) return [];

  const linkKeys = [...found.touched.keys()];
  const [locked, queuedNow, scheduledNow] = await Promise.all([
    tx.all<{ key: number }>(LOCK_ORDERS, { orderKeys: [...found.touched.values()] }),
    tx.all<QueuedRow>(QUEUED_OF, { linkKeys, nowMs }),
    rooms.janitor > 0 ? tx.all<ScheduledRow>(SCHEDULED_OF, { linkKeys, nowMs }) : [],
  ]);
  const held = new Set(locked.map(({ key }) => key));
  const isHeld = ({ orderKey }: OfOrder) => held.has(orderKey);
  const plan = planClaim(queuedNow.filter(isHeld), scheduledNow.filter(isHeld), rooms, nowMs);
  await carryOut(tx, plan, nowMs, leaseMs);
  return plan.claimed;
};

/** How many may be claimed in all once those of each class are; `hints`: how many of them may be forged. */
type Rooms = Record<(typeof CHECK_CLASSES)[number]['class'], number> & { forged: number };

function roomsOf(
  { left }: BudgetUse,
  { limit, slots, hintsLeft }: { limit: number; slots: number; hintsLeft: number },
): Rooms {
  const [confirm, hint, janitor] = CHECK_CLASSES.map((place) => Math.min(limit, left(place.class, slots)));
  return { confirm, hint, janitor, forged: hintsLeft } as Rooms;
}

function ranksWithRoom(rooms: Rooms): number[] {
  return CHECK_CLASSES.flatMap((place) => {
    const ranks = Array.from({ length: place.to - place.from + 1 }, (_, n) => place.to - n);
    return ranks.filter((rank) => rooms[place.class] > 0 && (!canBeForged(rank) || rooms.forged > 0));
  });
}

type PutOff = { linkKey: number; dueAtMs: number };
type Plan = {
  claimed: ClaimedCheck[];
  /** Claimed links of hints. */
  followed: number[];
  /** Checks that give way to what was heard beside them, or to nothing. */
  fallBacks: number[];
  drops: number[];
  putOff: PutOff[];
  putOffInSchedule: PutOff[];
  /** Links of all of them, with their orders. */
  touched: Map<number, number>;
};

/** What is claimed of what is due, the strongest first, and what becomes of that which must wait. Changes nothing. */
function planClaim(
  inQueue: readonly QueuedRow[],
  inSchedule: readonly ScheduledRow[],
  rooms: Rooms,
  nowMs: number,
): Plan {
  const plan: Plan = {
    claimed: [],
    followed: [],
    fallBacks: [],
    drops: [],
    putOff: [],
    putOffInSchedule: [],
    touched: new Map(),
  };
  const rows = [...inQueue];
  for (const place of CHECK_CLASSES) {
    for (let rank: number = place.to; rank >= place.from; rank--) {
      for (const row of rows.filter((one) => one.rank === rank)) {
        if (plan.claimed.length >= rooms[place.class]) break;
        if (canBeForged(rank) && plan.followed.length >= rooms.forged) break;
        const fallenBack = planQueued(plan, row, place.class, nowMs);
        if (fallenBack !== null) rows.push(fallenBack);
      }
    }
  }
  for (const row of inSchedule) {
    if (plan.claimed.length >= rooms.janitor) break;
    planScheduled(plan, row, nowMs);
  }
  return plan;
}

/** Returns what the row becomes where it falls back to what was heard beside its reason. */
function planQueued(plan: Plan, row: QueuedRow, as: ClaimedCheck['class'], nowMs: number): QueuedRow | null {
  const { linkKey, orderKey, rank, reason, failures, againReason } = row;
  plan.touched.set(linkKey, orderKey);
  const turn = turnInQueue(row, nowMs);
  if (turn === 'ask') {
    plan.claimed.push({ ...watchedLink(row), class: as, reason, failures });
    if (canBeForged(rank)) plan.followed.push(linkKey);
  } else if (turn !== 'drop') plan.putOff.push({ linkKey, dueAtMs: turn.untilMs });
  else if (againReason === null) plan.drops.push(linkKey);
  else {
    plan.fallBacks.push(linkKey);
    return { ...row, reason: againReason, rank: checkRank(againReason), againReason: null, failures: 0 };
  }
  return null;
}

function planScheduled(plan: Plan, row: ScheduledRow, nowMs: number): void {
  const { linkKey, orderKey, failures } = row;
  // The queue gave it already.
  if (plan.claimed.some((claimed) => claimed.linkKey === linkKey)) return;
  plan.touched.set(linkKey, orderKey);
  const turn = turnInSchedule(row, nowMs);
  if (turn === 'ask') {
    plan.claimed.push({ ...watchedLink(row), class: 'janitor', reason: 'scheduled', failures });
  } else plan.putOffInSchedule.push({ linkKey, dueAtMs: turn.untilMs });
}

function watchedLink({ linkKey, reference, token, linkId, opening }: WatchedLink): WatchedLink {
  return { linkKey, reference, token, linkId, opening };
}

const PUT_OFF = statement(
  `UPDATE link_check SET due_at_ms = @dueAtMs, requested_at_ms = least(requested_at_ms, @nowMs)
   WHERE link_key = @linkKey`,
);
const PUT_OFF_IN_SCHEDULE = statement('UPDATE link SET next_check_at_ms = @dueAtMs WHERE key = @linkKey');
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
async function carryOut(tx: Transaction, plan: Plan, nowMs: number, leaseMs: number): Promise<void> {
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
