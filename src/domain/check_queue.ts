import type { BudgetUse, RequestClass } from './budget.ts';
import { firstCheckAtMs } from './check_schedule.ts';
import { isSettled, type OrderState } from './order.ts';

/**
 * Why settled should ask the service about a link now, the weakest reason first. A link may have several; the strongest
 * gives it its place in the queue. One answer ends all that were heard before its request left.
 *
 * - `registered`: the link is new here
 * - `listed`: the service's list shows another status than ours
 * - `person`: a person asks about many orders at once
 * - `link_changed`: an event says that the link's status changed
 * - `rejected`: deliveries were refused as not authentic
 * - `stale`, `unreadable`, `not_understood`, `link_mismatch`: an authentic delivery could not settle
 * - `returned`: the customer came back from the service's page
 * - `doubtful_money`: a decision waits for the API, or needs more facts about money that it counted
 */
const RANKS = {
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
} as const;
export type CheckReason = keyof typeof RANKS;
export const CHECK_REASONS = Object.keys(RANKS) as readonly CheckReason[];

/** Why a link was asked about: a queued reason, the schedule, or a person who asks now. */
export type AskReason = CheckReason | 'scheduled';

export function checkRank(reason: CheckReason): number {
  return RANKS[reason];
}

/**
 * The ranks of each class that asks about links, the strongest class first; `from` and `to` are inclusive. Customers come back as
 * often as they like, so what they cause must not use up the slots of doubts about money, nor of people who ask.
 */
export const CHECK_CLASSES = [
  { class: 'confirm', from: 6, to: 6 },
  { class: 'hint', from: 2, to: 5 },
  { class: 'janitor', from: 0, to: 1 },
] as const satisfies readonly { class: RequestClass; from: number; to: number }[];

/** Reasons that say nothing new once money was counted: the schedule asks for its reading. */
export const MOOT_ONCE_SETTLED: readonly CheckReason[] = ['registered', 'listed', 'link_changed', 'returned'];

/** Whether asking for this reason tells nothing new while the order is in this state. */
export function isMoot(reason: CheckReason, state: OrderState): boolean {
  return isSettled(state) && MOOT_ONCE_SETTLED.includes(reason);
}

/** Whether anyone who knows a link's token can cause checks of this rank; such checks have a limit of their own. */
export function canBeForged(rank: number): boolean {
  return rank >= RANKS.link_changed && rank <= RANKS.link_mismatch;
}

/** Forgers can send hints. Hints cause at most one check of a link in this time, and this many checks in a minute. */
export const HINT_EVERY_MS = 300_000;
const HINTS_PER_MINUTE_MAX = 10;
/** Over which hints are counted. */
export const HINT_WINDOW_MS = 60_000;
/** The customer's return queues one check per link in this time. */
const RETURN_EVERY_MS = 60_000;

/**
 * What becomes of a customer's return: it asks for a check; it is only noted, if the clock was set back since the last
 * one; or nothing, because the last one was less than a minute ago.
 */
export function turnOfReturn(returnedAtMs: number | null, nowMs: number): 'check' | 'note' | 'nothing' {
  if (returnedAtMs === null || returnedAtMs + RETURN_EVERY_MS <= nowMs) return 'check';
  return returnedAtMs > nowMs ? 'note' : 'nothing';
}

/** A completion that the API does not confirm is held after this time; until then settled asks again after these times. */
export const UNCONFIRMED_AFTER_MS = 600_000;
const CONFIRM_AGAIN_MS = [5_000, 15_000, 30_000] as const;
const CONFIRM_AGAIN_MS_MAX = 60_000;

/** When to ask again for a completion that waits since `sinceMs`: always later than `nowMs`. */
export function confirmAgainAtMs(sinceMs: number, nowMs: number): number {
  const waitedMs = nowMs - sinceMs;
  const stepMs = CONFIRM_AGAIN_MS.find((ms) => waitedMs < ms * 2) ?? CONFIRM_AGAIN_MS_MAX;
  const endMs = sinceMs + UNCONFIRMED_AFTER_MS;
  return nowMs < endMs ? Math.min(nowMs + stepMs, endMs) : nowMs + stepMs;
}

/** A check of a link that settled is still opening waits for this long, or until it is opened. */
const OPENING_WAIT_MS = 60_000;

export type WatchedLink = {
  linkKey: number;
  reference: string;
  token: string;
  linkId: string | null;
  /** Whether settled opens it and does not have its address yet. */
  isOpening: boolean;
};

export type ClaimedCheck = WatchedLink & { class: RequestClass; reason: AskReason; failures: number };

/** A check whose turn has come in the queue. */
export type QueuedCheck = WatchedLink & {
  rank: number;
  reason: CheckReason;
  /** The strongest of its reasons that stays if its order is settled. */
  lastingReason: CheckReason | null;
  /** Of its order. */
  state: OrderState;
  dueAtMs: number;
  failures: number;
  /** When a hint to the link was followed last. */
  hintedAtMs: number | null;
};

/** A link whose scheduled time has come. */
export type ScheduledCheck = WatchedLink & { failures: number; settledAtMs: number | null; plannedMs: number };

type CheckClass = (typeof CHECK_CLASSES)[number]['class'];

/** How many may be claimed in all once those of each class are; `forged`: how many of them may be forged. */
export type ClaimRooms = Record<CheckClass, number> & { forged: number };

/** @param followed how many hints were followed lately */
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

/** What one claim does. */
export type ClaimPlan = {
  claimed: ClaimedCheck[];
  /** Claimed links of hints. */
  followed: number[];
  putOff: PutOff[];
  putOffInSchedule: PutOff[];
  /** Links whose strongest reason is moot. */
  moot: number[];
};

/**
 * Plans which of the checks that are due are claimed, the strongest first, and which are put off. Changes nothing.
 *
 * @param bySchedule in the order in which they came to be due
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

/** A check as it is without its moot reasons: none, if it has no other. Their failures do not count against the others. */
function withoutMoot(check: QueuedCheck): QueuedCheck[] {
  const { lastingReason: reason } = check;
  return reason === null ? [] : [{ ...check, reason, rank: checkRank(reason), failures: 0 }];
}

/** The links that a claim changes anything of. */
export function linksOf({ claimed, putOff, putOffInSchedule, moot }: ClaimPlan): Set<number> {
  const rows = [...claimed, ...putOff, ...putOffInSchedule];
  return new Set([...rows.map(({ linkKey }) => linkKey), ...moot]);
}

/** @param left room in the class of the rank; `forged`: for what can be forged */
function hasRoomFor(rank: number, left: number, forged: number): boolean {
  return left > 0 && (!canBeForged(rank) || forged > 0);
}

/** The ranks of which a claim may take anything. */
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

/** What becomes of a check whose turn has come in the queue: settled asks now, or later. */
function turnInQueue({ rank, isOpening, hintedAtMs }: QueuedCheck, nowMs: number): 'ask' | { untilMs: number } {
  if (isOpening) return { untilMs: nowMs + OPENING_WAIT_MS };
  if (!canBeForged(rank) || hintedAtMs === null) return 'ask';
  const againAtMs = hintedAtMs + HINT_EVERY_MS;
  return againAtMs > nowMs ? { untilMs: againAtMs } : 'ask';
}

/** What becomes of a link whose scheduled time has come. One that was paid meanwhile has the schedule of paid orders. */
function turnInSchedule(check: ScheduledCheck, nowMs: number): 'ask' | { untilMs: number } {
  if (check.isOpening) return { untilMs: nowMs + OPENING_WAIT_MS };
  // Money of the future was counted while the clock was ahead: that says nothing of when to ask.
  const isAhead = check.settledAtMs !== null && check.settledAtMs > nowMs;
  const atMs = isAhead ? nowMs : firstCheckAtMs(check, check.plannedMs);
  return atMs > nowMs ? { untilMs: atMs } : 'ask';
}
