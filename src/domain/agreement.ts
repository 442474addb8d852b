import type { PaymentFact } from './fact.ts';
import { type Money, parseAmount, type StatedMoney } from './money.ts';
import type { HoldReason, Order } from './order.ts';

/**
 * How a completion's words stand to the order's claim, and the money that it captured.
 *
 * - `equal`: the money that was named is the order's
 * - `more`: a larger amount of the same currency
 * - `unnamed`: no amount, or one not below the order's whose currency nobody named
 * - a hold reason: less, unreadable or contradictory; another currency; another reference
 */
export type Agreement = {
  readonly verdict: 'equal' | 'more' | 'unnamed' | MismatchReason;
  readonly captured: Money;
};
type MismatchReason = Extract<HoldReason, 'amount_mismatch' | 'currency_mismatch' | 'reference_mismatch'>;

/** Compares the reference, the link's own money and the payment's quote with the order. Pure; never throws. */
export function agreement(order: Order, fact: PaymentFact): Agreement {
  const currency = fact.quoteMoney?.currency ?? fact.linkMoney?.currency ?? null;
  const link = compare(order.amount, fact.linkMoney, currency);
  const quote = compare(order.amount, fact.quoteMoney, currency);
  const captured = quote.money ??
    link.money ?? { amountMinor: order.amount.amountMinor, currency: order.amount.currency };
  if (fact.reference !== null && fact.reference !== order.reference) {
    return { verdict: 'reference_mismatch', captured };
  }
  for (const reason of ['currency_mismatch', 'amount_mismatch'] as const) {
    if (link.verdict === reason || quote.verdict === reason) return { verdict: reason, captured };
  }
  // A link for more whose payment is not for more contradicts itself: what was captured is in doubt.
  if (link.verdict === 'more' && quote.verdict === 'equal') return { verdict: 'amount_mismatch', captured };
  const isNamed = currency !== null && (link.verdict !== 'absent' || quote.verdict !== 'absent');
  if (!isNamed) return { verdict: 'unnamed', captured };
  const more = link.verdict === 'more' || quote.verdict === 'more';
  return { verdict: more ? 'more' : 'equal', captured };
}

/**
 * Whether a completion's quote names the order's money on a link that does; null where there is nothing to compare. The
 * spec does not say that the two are the same.
 */
export function quoteAgrees(order: Order, fact: PaymentFact): boolean | null {
  if (fact.quoteMoney === null) return null;
  const currency = fact.quoteMoney.currency ?? fact.linkMoney?.currency ?? null;
  if (compare(order.amount, fact.linkMoney, currency).verdict !== 'equal') return null;
  const { verdict } = compare(order.amount, fact.quoteMoney, currency);
  return verdict === 'absent' ? null : verdict === 'equal';
}

type Comparison = {
  verdict: 'absent' | 'equal' | 'more' | 'amount_mismatch' | 'currency_mismatch';
  money: Money | null;
};

function compare(claim: Money, stated: StatedMoney | null, impliedCurrency: string | null): Comparison {
  if (stated === null) return { verdict: 'absent', money: null };
  const currency = stated.currency ?? impliedCurrency ?? claim.currency;
  if (stated.amount === null && currency === claim.currency) return { verdict: 'absent', money: null };
  if (stated.amount === null) return { verdict: 'currency_mismatch', money: { amountMinor: 0, currency } };
  const amount = parseAmount(stated.amount, currency);
  if (!amount.ok) {
    // Nothing that can be counted: the entry says zero, the hold and the event say why.
    return { verdict: 'amount_mismatch', money: { amountMinor: 0, currency } };
  }
  const money = { amountMinor: amount.amountMinor, currency };
  if (currency !== claim.currency) return { verdict: 'currency_mismatch', money };
  if (amount.amountMinor === claim.amountMinor) return { verdict: 'equal', money };
  return { verdict: amount.amountMinor > claim.amountMinor ? 'more' : 'amount_mismatch', money };
}
