import { confirmAgainAtMs, UNCONFIRMED_AFTER_MS } from '../domain/check_queue.ts';
import type { Decision } from '../domain/decision.ts';
import { bareFact } from '../domain/fact.ts';
import type { Order } from '../domain/order.ts';
import { decide } from '../domain/settlement.ts';
import type { Cause } from './effects.ts';

/** A completion that waits for the API since `sinceMs`, and what did not confirm it: a reading, or no link at all. */
export type Unconfirmed = { linkKey: number; sinceMs: number; reading: number | null; nowMs: number };

/**
 * Goes on with a completion that the service was asked about and does not show: it is asked again, and the order is held
 * once that went on for long enough.
 */
export function whileUnconfirmed(
  order: Order,
  { sinceMs, reading, nowMs }: Unconfirmed,
): { againAtMs: number } | { held: Decision; cause: Cause } {
  if (nowMs - sinceMs < UNCONFIRMED_AFTER_MS) return { againAtMs: confirmAgainAtMs(sinceMs, nowMs) };
  const authority = reading === null ? ({ by: 'event' } as const) : ({ by: 'reading', number: reading } as const);
  const fact = bareFact('unconfirmed', authority);
  return {
    held: decide(order, fact, { asks: 'never', quoteIsDoubtful: false }),
    cause: { kind: 'reading', id: reading === null ? null : String(reading) },
  };
}
