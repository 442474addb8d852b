import { type CheckReason, canBeForged, HINT_EVERY_MS } from '../domain/check.ts';
import type { OrderState } from '../domain/order.ts';
import { firstCheckAtMs } from '../domain/watch.ts';

/** Rows that one claim looks at in each place of the queue, at most: what must wait is put off, and not seen again. */
export const SEEN_MAX = 256;
/** Hints are counted over so long. */
export const HINT_WINDOW_MS = 60_000;
/** What was requested so much after now was so before the clock was set back: it is due. */
export const CLOCK_STEP_MS = 60_000;
/** A check of a link that settled is still opening waits so long, or until it is opened. */
const OPENING_WAIT_MS = 60_000;

/** Reasons that say nothing new once money was counted: its reading is asked for by the schedule. */
const MOOT_ONCE_SETTLED: ReadonlySet<CheckReason> = new Set([
  'registered',
  'listed',
  'link_changed',
  'returned',
]);
const SETTLED: ReadonlySet<OrderState> = new Set(['paid', 'refunded', 'disputed']);

/** Whether a check that is queued for this reason is dropped where its order is in this state. */
export function isMoot(reason: CheckReason, state: OrderState): boolean {
  return SETTLED.has(state) && MOOT_ONCE_SETTLED.has(reason);
}

export type DueCheck = {
  rank: number;
  reason: CheckReason;
  state: OrderState;
  opening: boolean;
  /** When a hint to the link was followed last. */
  hintedAtMs: number | null;
};

/** What becomes of a check whose turn has come in the queue: it is asked, not asked at all, or asked later. */
export function turnInQueue(
  { rank, reason, state, opening, hintedAtMs }: DueCheck,
  nowMs: number,
): 'ask' | 'drop' | { untilMs: number } {
  if (isMoot(reason, state)) return 'drop';
  if (opening) return { untilMs: nowMs + OPENING_WAIT_MS };
  if (!canBeForged(rank) || hintedAtMs === null) return 'ask';
  const againAtMs = hintedAtMs + HINT_EVERY_MS;
  return againAtMs > nowMs ? { untilMs: againAtMs } : 'ask';
}

export type DueBySchedule = { opening: boolean; settledAtMs: number | null; plannedMs: number };

/** What becomes of a link whose scheduled time has come. One that was paid meanwhile has the schedule of paid orders. */
export function turnInSchedule(link: DueBySchedule, nowMs: number): 'ask' | { untilMs: number } {
  if (link.opening) return { untilMs: nowMs + OPENING_WAIT_MS };
  const atMs = firstCheckAtMs(link, link.plannedMs);
  return atMs > nowMs ? { untilMs: atMs } : 'ask';
}
