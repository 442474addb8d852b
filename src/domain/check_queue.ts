import type { ASK_WORDS } from '../vocabulary.ts';
import type { BudgetUse, RequestClass } from './budget.ts';
import { firstCheckAtMs } from './check_schedule.ts';
import { isSettled, type OrderState } from './order.ts';

/** Why settled asked about a link: a queued reason, or the schedule. */
export type AskReason = keyof typeof ASK_WORDS;
export type CheckReason = Exclude<AskReason, 'scheduled'>;

/**
 * Why settled should ask the service about a link now, weakest reason first (`person`: about many orders at once). A
 * link may have several reasons; the strongest decides its place in the queue. One answer ends all reasons that came
 * before its request left.
 */
export const CHECK_RANKS: Readonly<Record<CheckReason, number>> = {
  registered: 0,
  listed: 1,
  person: 1,
  link_changed: 2,
  rejected: 3,
  stale: 4,
  unreadable: 4,
  not_understood: 4,
  link_mismatch: 4,
  returned: 5,
  doubtful_money: 6,
};
export const CHECK_REASONS = Object.keys(CHECK_RANKS) as readonly CheckReason[];

/**
 * The ranks of each class that asks about links, strongest class first; `from` and `to` are inclusive. Customers may
 * return as often as they like, so their checks must not use up the slots for doubtful money and for people.
 */
export const CHECK_CLASSES = [
  { class: 'confirm', from: 6, to: 6 },
  { class: 'hint', from: 2, to: 5 },
  { class: 'janitor', from: 0, to: 1 },
] as const satisfies readonly { class: RequestClass; from: number; to: number }[];

/** Reasons that tell nothing new once money was counted. The schedule asks about such links. */
export const MOOT_ONCE_SETTLED: readonly CheckReason[] = ['registered', 'listed', 'link_changed', 'returned'];

/** Whether a check for this reason would tell nothing new in this state. */
export function isMoot(reason: CheckReason, state: OrderState): boolean {
  return isSettled(state) && MOOT_ONCE_SETTLED.includes(reason);
}

/** Whether anyone who knows a link's token can cause checks of this rank. Such checks have their own limit. */
export function canBeForged(rank: number): boolean {
  return rank >= CHECK_RANKS.link_changed && rank <= CHECK_RANKS.link_mismatch;
}

/** Anyone can forge hints, so they cause at most one check of a link in this time, and at most this many a minute. */
export const HINT_EVERY_MS = 300_000;
const HINTS_PER_MINUTE_MAX = 10;
/** The window in which hints are counted. */
export const HINT_WINDOW_MS = 60_000;
/** A customer's return queues at most one check of a link in this time. */
const RETURN_EVERY_MS = 60_000;

/**
 * Whether settled asks because a customer came back: not within a minute of the last return. One that is further in the
 * future was recorded before the clock was set back.
 */
export function isReturnDue(returnedAtMs: number | null, nowMs: number): boolean {
  return returnedAtMs === null || Math.abs(nowMs - returnedAtMs) >= RETURN_EVERY_MS;
}

/** settled holds a completion that the API does not confirm after this time. Until then it asks at these intervals. */
export const UNCONFIRMED_AFTER_MS = 600_000;
const CONFIRM_AGAIN_MS = [5_000, 15_000, 30_000] as const;
const CONFIRM_AGAIN_MS_MAX = 60_000;

/** When to ask again about a completion that has waited since `sinceMs`. Always later than `nowMs`. */
export function confirmAgainAtMs(sinceMs: number, nowMs: number): number {
  const waitedMs = nowMs - sinceMs;
  const stepMs = CONFIRM_AGAIN_MS.find((ms) => waitedMs < ms * 2) ?? CONFIRM_AGAIN_MS_MAX;
  const endMs = sinceMs + UNCONFIRMED_AFTER_MS;
  return nowMs < endMs ? Math.min(nowMs + stepMs, endMs) : nowMs + stepMs;
}

/** A check of a link that settled is still opening waits this long, or until the link is open. */
const OPENING_WAIT_MS = 60_000;

export type WatchedLink = {
  linkKey: number;
  reference: string;
  token: string;
  linkId: string | null;
  /** Whether settled is opening the link and does not have its address yet. */
  isOpening: boolean;
};

export type ClaimedCheck = WatchedLink & { class: RequestClass; reason: AskReason; failures: number };

/** A check that is due in the queue. */
export type QueuedCheck = WatchedLink & {
  rank: number;
  reason: CheckReason;
  /** The strongest of its reasons that remains once the order is settled; null if none does. */
  lastingReason: CheckReason | null;
  /** The state of the link's order. */
  state: OrderState;
  dueAtMs: number;
  failures: number;
  /** When settled last followed a hint about the link. */
  hintedAtMs: number | null;
};

/** A link that is due in the schedule. */
export type ScheduledCheck = WatchedLink & { failures: number; settledAtMs: number | null; plannedMs: number };

type CheckClass = (typeof CHECK_CLASSES)[number]['class'];

/** How many checks may be claimed in all after each class's turn. `forged`: how many of them may be forgeable. */
export type ClaimRooms = Record<CheckClass, number> & { forged: number };

/** @param followed how many hints settled followed lately */
export function claimRooms(
  { left }: BudgetUse,
  { limit, slots }: { limit: number; slots: number },
  followed: number,
): ClaimRooms {
  const room = (requestClass: CheckClass) => Math.min(limit, left(requestClass, slots));
  const forged = HINTS_PER_MINUTE_MAX - followed;
  return { confirm: room('confirm'), hint: room('hint'), janitor: room('janitor'), forged };
}

type PutOff = { linkKey: number; untilMs: number };

/** The changes that one claim makes. */
export type ClaimPlan = {
  claimed: ClaimedCheck[];
  /** Links claimed because of a hint. */
  followed: number[];
  putOff: PutOff[];
  putOffInSchedule: PutOff[];
  /** Links whose strongest reason is moot. */
  moot: number[];
};

/**
 * Plans which due checks a claim takes, strongest first, and which it puts off. Pure.
 * @param bySchedule oldest due time first
 */
export function planClaim(
  inQueue: readonly QueuedCheck[],
  bySchedule: readonly ScheduledCheck[],
  rooms: ClaimRooms,
  nowMs: number,
): ClaimPlan {
  const moot = inQueue.filter(({ reason, state }) => isMoot(reason, state)).map(({ linkKey }) => linkKey);
  const plan: ClaimPlan = { claimed: [], followed: [], putOff: [], putOffInSchedule: [], moot };
  const { claimed, followed } = plan;
  const standing = inQueue
    .flatMap((check) => (isMoot(check.reason, check.state) ? withoutMoot(check) : [check]))
    .sort((one, other) => one.dueAtMs - other.dueAtMs || one.linkKey - other.linkKey);
  for (const { class: requestClass, from, to } of CHECK_CLASSES) {
    for (let rank: number = to; rank >= from; rank--) {
      const hasRoom = () => hasRoomFor(rank, rooms[requestClass] - claimed.length, rooms.forged - followed.length);
      for (const check of standing) {
        if (check.rank !== rank) continue;
        if (!hasRoom()) break;
        planQueued(plan, check, requestClass, nowMs);
      }
    }
  }
  if (claimed.length >= rooms.janitor) return plan;
  const fromQueue = new Set(claimed.map(({ linkKey }) => linkKey));
  for (const check of bySchedule) {
    if (claimed.length >= rooms.janitor) break;
    if (!fromQueue.has(check.linkKey)) planScheduled(plan, check, nowMs);
  }
  return plan;
}

/** The check without its moot reasons; empty if it has no other. Failures of moot reasons do not count for the rest. */
function withoutMoot(check: QueuedCheck): QueuedCheck[] {
  const { lastingReason: reason } = check;
  return reason === null ? [] : [{ ...check, reason, rank: CHECK_RANKS[reason], failures: 0 }];
}

/** The links that a claim changes. */
export function linksOf({ claimed, putOff, putOffInSchedule, moot }: ClaimPlan): Set<number> {
  const rows = [...claimed, ...putOff, ...putOffInSchedule];
  return new Set([...rows.map(({ linkKey }) => linkKey), ...moot]);
}

/** @param left free places of the rank's class; `forged`: free places for checks that anyone could forge */
function hasRoomFor(rank: number, left: number, forged: number): boolean {
  return left > 0 && (!canBeForged(rank) || forged > 0);
}

/** The ranks that a claim has room for. */
export function ranksWithRoom(rooms: ClaimRooms): number[] {
  return CHECK_CLASSES.flatMap(({ class: requestClass, from, to }) => {
    const ranks = Array.from({ length: to - from + 1 }, (_, n) => to - n);
    return ranks.filter((rank) => hasRoomFor(rank, rooms[requestClass], rooms.forged));
  });
}

function planQueued(plan: ClaimPlan, check: QueuedCheck, requestClass: CheckClass, nowMs: number): void {
  const { linkKey, rank, reason, failures } = check;
  const turn = turnInQueue(check, nowMs);
  if (turn === 'ask') {
    plan.claimed.push({ ...watchedLink(check), class: requestClass, reason, failures });
    if (canBeForged(rank)) plan.followed.push(linkKey);
  } else plan.putOff.push({ linkKey, ...turn });
}

function planScheduled(plan: ClaimPlan, check: ScheduledCheck, nowMs: number): void {
  const { linkKey, failures } = check;
  const turn = turnInSchedule(check, nowMs);
  if (turn === 'ask') {
    plan.claimed.push({ ...watchedLink(check), class: 'janitor', reason: 'scheduled', failures });
  } else plan.putOffInSchedule.push({ linkKey, ...turn });
}

function watchedLink({ linkKey, reference, token, linkId, isOpening }: WatchedLink): WatchedLink {
  return { linkKey, reference, token, linkId, isOpening };
}

/** What to do with a check that is due in the queue: ask now, or put it off. */
function turnInQueue({ rank, isOpening, hintedAtMs }: QueuedCheck, nowMs: number): 'ask' | { untilMs: number } {
  if (isOpening) return { untilMs: nowMs + OPENING_WAIT_MS };
  if (!canBeForged(rank) || hintedAtMs === null) return 'ask';
  const againAtMs = hintedAtMs + HINT_EVERY_MS;
  return againAtMs > nowMs ? { untilMs: againAtMs } : 'ask';
}

/** What to do with a link that is due in the schedule. If it was paid meanwhile, that of paid orders applies. */
function turnInSchedule(check: ScheduledCheck, nowMs: number): 'ask' | { untilMs: number } {
  if (check.isOpening) return { untilMs: nowMs + OPENING_WAIT_MS };
  // A payment time in the future was written while the clock was ahead, and says nothing about when to ask.
  const isAhead = check.settledAtMs !== null && check.settledAtMs > nowMs;
  const atMs = isAhead ? nowMs : firstCheckAtMs(check, check.plannedMs);
  return atMs > nowMs ? { untilMs: atMs } : 'ask';
}
