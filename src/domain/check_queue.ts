import type { RequestClass } from './budget.ts';
import type { OrderState } from './order.ts';

/**
 * Why settled should ask the service about a link now, the weakest reason first. A link may have several; the strongest
 * gives it its place in the queue. One answer ends all that were heard before its request left.
 *
 * - `registered`: the link is new here
 * - `listed`: the service's list shows another status than ours
 * - `link_changed`: an event says that the link's status changed
 * - `rejected`: deliveries were refused as not authentic
 * - `stale`, `unreadable`, `not_understood`, `link_mismatch`: an authentic delivery could not settle
 * - `returned`: the customer came back from the service's page
 * - `doubtful_money`: a decision waits for the API, or needs more facts about money that it counted
 */
export const CHECK_REASONS = [
  'registered',
  'listed',
  'link_changed',
  'rejected',
  'stale',
  'unreadable',
  'not_understood',
  'link_mismatch',
  'returned',
  'doubtful_money',
] as const;
export type CheckReason = (typeof CHECK_REASONS)[number];

/** Why a link was asked about: a queued reason, the schedule, or a person who asks now. */
export type AskReason = CheckReason | 'scheduled' | 'person';

const RANKS: Readonly<Record<CheckReason, number>> = {
  registered: 0,
  listed: 1,
  link_changed: 2,
  rejected: 3,
  stale: 4,
  unreadable: 4,
  not_understood: 4,
  link_mismatch: 4,
  returned: 5,
  doubtful_money: 6,
};

export function checkRank(reason: CheckReason): number {
  return RANKS[reason];
}

/**
 * The ranks of each class that asks about links, the strongest class first. Both ends belong to it. Customers come back as
 * often as they like, so what they cause must not use up the slots of doubts about money, nor of people who ask.
 */
export const CHECK_CLASSES = [
  { class: 'confirm', from: 6, to: 6 },
  { class: 'hint', from: 2, to: 5 },
  { class: 'janitor', from: 0, to: 1 },
] as const satisfies readonly { class: RequestClass; from: number; to: number }[];

/** Reasons that say nothing new once money was counted: the schedule asks for its reading. */
export const MOOT_ONCE_SETTLED: readonly CheckReason[] = ['registered', 'listed', 'link_changed', 'returned'];
const SETTLED: readonly OrderState[] = ['paid', 'refunded', 'disputed'];

/** Whether asking for this reason tells nothing new while the order is in this state. */
export function isMoot(reason: CheckReason, state: OrderState): boolean {
  return SETTLED.includes(state) && MOOT_ONCE_SETTLED.includes(reason);
}

/** Whether anyone who knows a link's token can cause checks of this rank; such checks have a limit of their own. */
export function canBeForged(rank: number): boolean {
  return rank >= RANKS.link_changed && rank <= RANKS.link_mismatch;
}

/** Forgers can send hints. Hints cause at most one check of a link in this time, and this many checks in a minute. */
export const HINT_EVERY_MS = 300_000;
export const HINTS_PER_MINUTE_MAX = 10;
/** The customer's return queues one check per link in this time. */
export const RETURN_EVERY_MS = 60_000;

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
