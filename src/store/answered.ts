import { MONEY_CAME, type PaymentFact } from '../domain/fact.ts';
import { type AttentionKind, type LearnedBy, mayBeUnconfirmed, type Order } from '../domain/order.ts';

/** Whether something that is newer was settled before a reading: another reading, or an event. */
export function isOvertaken({ lastReading }: Order, reading: number): boolean {
  return lastReading !== null && reading <= lastReading;
}

/** Whether a completion that waits for the API to confirm it goes on waiting: a reading with these facts does not show it. */
export function isUnconfirmed(order: Order, facts: readonly PaymentFact[]): boolean {
  return mayBeUnconfirmed(order.state) && !facts.some(({ kind }) => MONEY_CAME.has(kind));
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
