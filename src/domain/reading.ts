import { confirmAgainAtMs, UNCONFIRMED_AFTER_MS } from './check_queue.ts';
import type { Decision, Outcome, SettlementPolicy } from './decision.ts';
import { bareFact, MONEY_CAME, type PaymentFact } from './fact.ts';
import type { Cause } from './history.ts';
import type { AttentionKind } from './matter.ts';
import { isSettled, type LearnedBy, mayBeUnconfirmed, type Order } from './order.ts';
import type { FaultNote } from './retry.ts';
import { decide } from './settlement.ts';

/** Whether something that is newer was settled before a reading: another reading, or an event. */
export function isOvertaken({ lastReading }: Order, reading: number): boolean {
  return lastReading !== null && reading <= lastReading;
}

/** Whether a completion still waits for the API to confirm it, because a reading with these facts does not show it. */
export function isUnconfirmed(order: Order, facts: readonly PaymentFact[]): boolean {
  return mayBeUnconfirmed(order.state) && !facts.some(({ kind }) => MONEY_CAME.has(kind));
}

/**
 * Whether a reading that was applied leaves nothing to learn from an event that could not be settled and came before its
 * request left: settled learned the order's payment from it, and it raised no attention. If the order was paid before, the
 * event may have told of another payment, or of another link's.
 */
export function tellsAll({ loaded, learnedBy, raised }: AppliedReading): boolean {
  return isSettled(loaded.order.state) && learnedBy !== null && raised.length === 0;
}

/** What a reading left: the order, how settled learned that it is paid if this reading said so, and attention. */
type AppliedReading = { loaded: { order: Order }; learnedBy: LearnedBy | null; raised: readonly AttentionKind[] };

/** A completion that waits for the API since `sinceMs`, and what did not confirm it: a reading, or no link at all. */
export type Unconfirmed = { linkKey: number; sinceMs: number; reading: number | null; nowMs: number };

/**
 * Goes on with a completion that the service does not show: settled asks again, and holds the order after
 * `UNCONFIRMED_AFTER_MS`.
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

/** Whether a row was understood, and if not, why; and how settled asks the service. */
type Understood = { notUnderstood: string | null; policy: Pick<SettlementPolicy, 'asks'> };

/** What is noted at a row that is done and was not understood. */
export function unreadNote({ notUnderstood }: Understood): FaultNote | null {
  if (notUnderstood === null) return null;
  const message = `${notUnderstood.slice(0, 1).toUpperCase()}${notUnderstood.slice(1)}.`;
  return { code: 'event_not_understood', message };
}

/**
 * What a row does to the matter that events of its link were not understood: one matter for all of them, whose subject is
 * the order's reference. With an API to ask, the answer tells more than a person can find. An event that is understood says
 * nothing of the others: they may have told of another payment.
 *
 * - `raises`: a person is told of it, and why it was not understood
 * - `pays`: that person is told that this event made the order paid
 * - `ends`: this event is understood, so the matter is over unless others wait
 */
export function unreadMatter(
  { notUnderstood, policy }: Understood,
  {
    outcomeBefore,
    faultBefore,
    reading,
  }: { outcomeBefore: Outcome | null; faultBefore: string | null; reading: number | null },
  { learnedBy }: { learnedBy: LearnedBy | null },
): { raises: string | null; pays: boolean; ends: boolean } {
  if (notUnderstood !== null) {
    const tells = policy.asks === 'never' || reading !== null;
    return { raises: tells ? notUnderstood : null, pays: false, ends: false };
  }
  // A reading ends it with the other matters that readings end.
  if (reading !== null) return { raises: null, pays: false, ends: false };
  const isReplay = outcomeBefore !== null || faultBefore !== null;
  return { raises: null, pays: learnedBy !== null, ends: isReplay };
}
