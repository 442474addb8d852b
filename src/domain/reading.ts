import { confirmAgainAtMs, UNCONFIRMED_AFTER_MS } from './check_queue.ts';
import type { Decision } from './decision.ts';
import { authorityOf, bareFact, MONEY_CAME, type SaidFact } from './fact.ts';
import type { Cause } from './history.ts';
import type { AttentionKind } from './matter.ts';
import { isSettled, type LearnedBy, mayBeUnconfirmed, type Order } from './order.ts';
import type { FaultNote } from './retry.ts';
import { decide } from './settlement.ts';

/** Whether a newer reading, or an event, was settled before this reading. */
export function isOvertaken({ lastReading }: Order, reading: number): boolean {
  return lastReading !== null && reading <= lastReading;
}

/** Whether a completion still waits for the API to confirm it, because a reading with these facts does not show it. */
export function isUnconfirmed(order: Order, facts: readonly SaidFact[]): boolean {
  return mayBeUnconfirmed(order.state) && !facts.some(({ kind }) => MONEY_CAME.has(kind));
}

/**
 * Whether an applied reading makes an unsettled event redundant. The event must have come before the reading's request
 * left, and the reading must have made the order paid and raised no attention. If the order was paid before, the event
 * may have been about another payment, or another link's.
 */
export function tellsAll({ loaded, paidNow, raised }: AppliedReading): boolean {
  return isSettled(loaded.order.state) && paidNow !== null && raised.length === 0;
}

/** The result of a reading: the order, how settled learned from it that the order is paid (or null), and attention. */
export type AppliedReading = { loaded: { order: Order }; paidNow: LearnedBy | null; raised: readonly AttentionKind[] };

/** A completion unconfirmed since `sinceMs`, and the reading that did not confirm it; null if there is no link. */
export type Unconfirmed = { linkKey: number; sinceMs: number; reading: number | null; nowMs: number };

/**
 * Continues with a completion that the service does not show: settled asks again, and holds the order after
 * `UNCONFIRMED_AFTER_MS`.
 */
export function whileUnconfirmed(
  order: Order,
  { sinceMs, reading, nowMs }: Unconfirmed,
): { againAtMs: number } | { held: Decision; cause: Cause } {
  if (nowMs - sinceMs < UNCONFIRMED_AFTER_MS) return { againAtMs: confirmAgainAtMs(sinceMs, nowMs) };
  const fact = { ...bareFact('unconfirmed'), authority: authorityOf(reading) };
  return {
    held: decide(order, fact, { asks: 'never' }),
    cause: { kind: 'reading', id: reading === null ? null : String(reading) },
  };
}

/** The fault to store with a row that is done and was not understood; null if it was understood. */
export function unreadNote({ notUnderstood }: { notUnderstood: string | null }): FaultNote | null {
  if (notUnderstood === null) return null;
  const message = `${notUnderstood.slice(0, 1).toUpperCase()}${notUnderstood.slice(1)}.`;
  return { code: 'event_not_understood', message };
}
