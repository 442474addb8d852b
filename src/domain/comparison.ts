import type { PaymentFact } from './fact.ts';
import type { CustomerPaid } from './ledger.ts';
import { formatAmount, isCurrency, type Money, parseAmount, type StatedMoney } from './money.ts';
import type { HoldReason, Order } from './order.ts';

/**
 * How what a completion says compares with the order's claim, and the money that it captured. The service fixes a link's
 * amount when it makes the link, so a link for other money is misread or is not the order's, and never pays it.
 *
 * - `equal`: the link's own money is the order's, or only the quote names money and that is the order's
 * - `unnamed`: no money, or the order's amount in a currency that is not named
 * - a hold reason: other money than the order's, unreadable or contradictory; another currency; another reference
 */
export type Agreement = {
  readonly verdict: 'equal' | 'unnamed' | MismatchReason;
  /** The link's money if that is the order's and the quote does not name less; otherwise what the quote names. */
  readonly captured: Money;
  /** Whether `captured` was named: an amount that can be read, and its currency. */
  readonly isNamed: boolean;
  /** What the quote of a link whose money is the order's says that the customer paid; null if it says less, or nothing. */
  readonly customerPaid: CustomerPaid | null;
};
type MismatchReason = Extract<HoldReason, 'amount_mismatch' | 'currency_mismatch' | 'reference_mismatch'>;

/** Compares the reference, the link's own money and the payment's quote with the order. Pure; never throws. */
export function agreement(order: Order, fact: PaymentFact): Agreement {
  const currency = fact.quoteMoney?.currency ?? fact.linkMoney?.currency ?? null;
  const link = compare(order.amount, fact.linkMoney, currency);
  const quote = compare(order.amount, fact.quoteMoney, currency);
  // Instalment interest, or the service converted: the link says what the merchant gets.
  const quoteMayDiffer =
    link.verdict === 'equal' && isCurrencyNamed(fact) && (quote.verdict === 'more' || isConverted(quote));
  const money = quoteMayDiffer ? link.money : (quote.money ?? link.money);
  const isNamed = currency !== null && money !== null && money.amountMinor > 0;
  const isSaid = isNamed && (quoteMayDiffer || (link.verdict === 'equal' && quote.verdict === 'equal'));
  const said = {
    captured: money ?? { amountMinor: order.amount.amountMinor, currency: order.amount.currency },
    isNamed,
    customerPaid: isSaid ? quote.said : null,
  };
  if (fact.reference !== null && fact.reference !== order.reference) {
    return { verdict: 'reference_mismatch', ...said };
  }
  const verdicts = quoteMayDiffer ? [link.verdict] : [link.verdict, quote.verdict];
  if (verdicts.includes('currency_mismatch')) return { verdict: 'currency_mismatch', ...said };
  if (verdicts.some((verdict) => verdict === 'amount_mismatch' || verdict === 'more')) {
    return { verdict: 'amount_mismatch', ...said };
  }
  return { verdict: isNamed ? 'equal' : 'unnamed', ...said };
}

/**
 * Whether a completion's quote agrees with a link that names the order's money: false if the quote names less, or
 * cannot be read as money. Null if there is nothing to compare, or if the quote names more or another currency:
 * interest and conversion are not misreadings.
 */
export function quoteAgrees(order: Order, fact: PaymentFact): boolean | null {
  if (fact.quoteMoney === null) return null;
  const currency = fact.quoteMoney.currency ?? fact.linkMoney?.currency ?? null;
  if (compare(order.amount, fact.linkMoney, currency).verdict !== 'equal') return null;
  const quote = compare(order.amount, fact.quoteMoney, currency);
  if (quote.verdict === 'equal') return true;
  const isUnreadable = quote.verdict === 'currency_mismatch' && !isConverted(quote);
  return quote.verdict === 'amount_mismatch' || isUnreadable ? false : null;
}

/**
 * In a currency that exists. `R$`, `986` or an object may be a misreading of the order's own currency, so money in them
 * is doubtful.
 */
function isConverted({ verdict, money }: Comparison): boolean {
  return verdict === 'currency_mismatch' && money !== null && isCurrency(money.currency);
}

/** Whether the link itself names its currency, or neither the link nor the quote does. */
function isCurrencyNamed({ linkMoney, quoteMoney }: PaymentFact): boolean {
  return (linkMoney?.currency ?? null) !== null || (quoteMoney?.currency ?? null) === null;
}

type Comparison = {
  verdict: 'absent' | 'equal' | 'more' | 'amount_mismatch' | 'currency_mismatch';
  money: Money | null;
  /** The amount that is kept as `customerPaid`; null if there is none. */
  said: CustomerPaid | null;
};

function compare(claim: Money, stated: StatedMoney | null, impliedCurrency: string | null): Comparison {
  if (stated === null) return { verdict: 'absent', money: null, said: null };
  const currency = stated.currency ?? impliedCurrency ?? claim.currency;
  const nothing = { amountMinor: 0, currency };
  if (stated.amount === null) {
    return currency === claim.currency
      ? { verdict: 'absent', money: null, said: null }
      : { verdict: 'currency_mismatch', money: nothing, said: null };
  }
  const amount = parseAmount(stated.amount, currency);
  if (!amount.ok) {
    // Currencies of which ISO 4217 knows nothing may have more decimals than are assumed here.
    if (amount.fault === 'too_many_decimals' && currency !== claim.currency) {
      return { verdict: 'currency_mismatch', money: nothing, said: { amount: stated.amount, currency } };
    }
    // This money cannot be counted: the entry says zero, the hold and the event say why.
    return { verdict: 'amount_mismatch', money: nothing, said: null };
  }
  const money = { amountMinor: amount.amountMinor, currency };
  const said = { amount: formatAmount(money), currency };
  if (currency !== claim.currency) return { verdict: 'currency_mismatch', money, said };
  if (amount.amountMinor === claim.amountMinor) return { verdict: 'equal', money, said };
  return { verdict: amount.amountMinor > claim.amountMinor ? 'more' : 'amount_mismatch', money, said };
}
