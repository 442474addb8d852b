import { MONEY_CAME, type PaymentFact } from '../domain/fact.ts';
import { type AttentionKind, type LearnedBy, mayBeUnconfirmed, type Order } from '../domain/order.ts';

/** The check that a reading may answer: since when a completion waits, and after which request each thing was heard. */
export type Waiting = { confirmSinceMs: number | null; reasonAfter: number; heardAfter: number };

/** Whether something that is newer was settled before a reading: another reading, or an event. */
export function isOvertaken({ lastReading }: Order, reading: number): boolean {
  return lastReading !== null && reading <= lastReading;
}

/**
 * What becomes of the check that a reading answers: it ends, unless something new was heard since it was asked for, or
 * since `sinceMs` a completion is to be confirmed that the reading does not show. `goes_on`: what was heard takes the place
 * of its reason, unless it was claimed again since and is asked about right now. `waits_on`: its reason is not answered.
 */
export function answers(
  order: Order,
  reading: number,
  facts: readonly PaymentFact[],
  { confirmSinceMs: sinceMs, reasonAfter, heardAfter }: Waiting,
): 'ended' | 'goes_on' | 'waits_on' | { sinceMs: number } {
  const isShown = facts.some(({ kind }) => MONEY_CAME.has(kind));
  if (sinceMs !== null && mayBeUnconfirmed(order.state) && !isShown) return { sinceMs };
  if (heardAfter < reading) return 'ended';
  return reasonAfter >= reading ? 'waits_on' : 'goes_on';
}

/**
 * Whether a reading that was applied leaves nothing to learn from an event that could not be settled and came before its
 * request left: it is what the order's payment was learned from, and it raised no matter. An order that was paid before
 * says nothing of such an event: it may have told of another payment, or of another link's.
 */
export function tellsAll({
  loaded: { order },
  learnedBy,
  raised,
}: {
  loaded: { order: Order };
  learnedBy: LearnedBy | null;
  raised: readonly AttentionKind[];
}): boolean {
  const isSettled = order.state === 'paid' || order.state === 'refunded' || order.state === 'disputed';
  return isSettled && learnedBy !== null && raised.length === 0;
}
