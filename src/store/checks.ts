import {
  CHECK_CLASSES,
  type CheckReason,
  canBeForged,
  HINT_EVERY_MS,
  HINTS_PER_MINUTE_MAX,
} from '../domain/check_queue.ts';
import { firstCheckAtMs } from '../domain/check_schedule.ts';
import type { BudgetUse } from './budget.ts';
import type { ClaimedCheck, WatchedLink } from './contract_links.ts';

/** Rows that one claim looks at in each place of the queue, at most: what must wait is put off, and not seen again. */
export const SEEN_MAX = 256;
/** Hints are counted over so long. */
export const HINT_WINDOW_MS = 60_000;
/** What was requested so much after now was so before the clock was set back: it is due. */
export const REQUESTED_AHEAD_MS = 60_000;
/** A check of a link that settled is still opening waits so long, or until it is opened. */
const OPENING_WAIT_MS = 60_000;

/** A check whose turn has come in the queue. */
export type QueuedCheck = WatchedLink & {
  rank: number;
  reason: CheckReason;
  dueAtMs: number;
  failures: number;
  /** When a hint to the link was followed last. */
  hintedAtMs: number | null;
};

/** A link whose scheduled time has come. */
export type ScheduledCheck = WatchedLink & { failures: number; settledAtMs: number | null; plannedMs: number };

/** What is due, each in the order in which it came to be due. */
export type DueChecks = { ofRank(rank: number): readonly QueuedCheck[]; bySchedule: readonly ScheduledCheck[] };

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
};

/** Plans which of the checks that are due are claimed, the strongest first, and which are put off. Changes nothing. */
export function planClaim(due: DueChecks, rooms: ClaimRooms, nowMs: number): ClaimPlan {
  const plan: ClaimPlan = { claimed: [], followed: [], putOff: [], putOffInSchedule: [] };
  const { claimed, followed } = plan;
  for (const { class: requestClass, from, to } of CHECK_CLASSES) {
    for (let rank: number = to; rank >= from; rank--) {
      const hasRoom = () => hasRoomFor(rank, rooms[requestClass] - claimed.length, rooms.forged - followed.length);
      for (const check of due.ofRank(rank)) {
        if (!hasRoom()) break;
        planQueued(plan, check, requestClass, nowMs);
      }
    }
  }
  if (claimed.length >= rooms.janitor) return plan;
  const inQueue = new Set(claimed.map(({ linkKey }) => linkKey));
  for (const check of due.bySchedule) {
    if (claimed.length >= rooms.janitor) break;
    if (!inQueue.has(check.linkKey)) planScheduled(plan, check, nowMs);
  }
  return plan;
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
