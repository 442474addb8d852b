import type { SaidFact } from './fact.ts';
import { isReadable, isWorth, type Payment, type Stated } from './ledger.ts';
import { inDecimal, isCurrency, type Money, parseAmount, type StatedMoney, shownAmount } from './money.ts';
import type { HoldReason, Order } from './order.ts';

/**
 * How the money in a completion compares with the order's claim, and the money that it captured. The service fixes a
 * link's amount when it makes the link, so a link for other money is misread or another order's, and never pays this
 * one.
 * - `equal`: the link's own money equals the order's, or only the quote names money and that equals it
 * - `unnamed`: the fact names no money, or the order's amount without a currency
 * - a hold reason: other money than the order's, unreadable or contradictory; another currency; another reference
 */
export type Agreement = {
  readonly verdict: 'equal' | 'unnamed' | MismatchReason;
  /**
   * The link's money if it equals the order's and the quote does not name less; otherwise the money that the quote
   * names.
   */
  readonly captured: Money;
  /** Whether the service named `captured`: a readable amount, and its currency. */
  readonly isNamed: boolean;
  /** What the customer paid, by the quote of a link whose money equals the order's. Null if it is less, or unnamed. */
  readonly customerPaid: Stated | null;
};
type MismatchReason = Extract<HoldReason, 'amount_mismatch' | 'currency_mismatch' | 'reference_mismatch'>;

/** Compares the fact's reference, its link's money and its payment's quote with the order. Pure; never throws. */
export function agreement(order: Order, fact: SaidFact): Agreement {
  const currency = fact.quoteMoney?.currency ?? fact.linkMoney?.currency ?? null;
  const link = compare(order.amount, fact.linkMoney, currency);
  const quote = compare(order.amount, fact.quoteMoney, currency);
  // The quote may name instalment interest or a converted amount. The link says what the merchant gets.
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

/** The sum that a fact names by its quote, or else by its link, whose own amount says nothing of the payment. Null: none. */
export function statedSum(order: Order, { quoteMoney, linkMoney }: SaidFact): Stated | null {
  const named = quoteMoney !== null && quoteMoney.amount !== null ? quoteMoney : linkMoney;
  if (named === null || named.amount === null) return null;
  const currency = named.currency ?? quoteMoney?.currency ?? linkMoney?.currency ?? order.amount.currency;
  const read = parseAmount(named.amount, currency);
  const stated = read.ok ? inDecimal({ ...read, currency }) : { amount: shownAmount(named.amount), currency };
  return named === linkMoney && isWorth(order.amount, stated) ? null : stated;
}

/** What a fact names in the place of money that settled cannot read; null if it names readable money, or nothing. */
export function unreadable(order: Order, fact: SaidFact): Stated | null {
  return isReadable(agreement(order, fact).captured) ? null : statedSum(order, fact);
}

/** Money that was reported; `stated` is what stands in the place of an amount that is not readable. */
export type Reported = Pick<Payment, 'captured' | 'stated'>;

/** What a fact reports as paid; null if it reports no completed payment, or names no money. */
export function reportedMoney(order: Order, fact: SaidFact): Reported | null {
  if (fact.kind !== 'completed' || (fact.quoteMoney ?? fact.linkMoney) === null) return null;
  return { captured: agreement(order, fact).captured, stated: unreadable(order, fact) };
}

/**
 * Whether a completion's quote agrees with a link that names the order's money: false if the quote names less, or is
 * unreadable. Null if there is nothing to compare. Null too if the quote names more or another currency, because
 * interest and conversion are no misreadings.
 */
export function quoteAgrees(order: Order, fact: SaidFact): boolean | null {
  if (fact.quoteMoney === null) return null;
  const currency = fact.quoteMoney.currency ?? fact.linkMoney?.currency ?? null;
  if (compare(order.amount, fact.linkMoney, currency).verdict !== 'equal') return null;
  const quote = compare(order.amount, fact.quoteMoney, currency);
  if (quote.verdict === 'equal') return true;
  const isUnreadable = quote.verdict === 'currency_mismatch' && !isConverted(quote);
  return quote.verdict === 'amount_mismatch' || isUnreadable ? false : null;
}

/**
 * Whether the quote is in another real currency. `R$`, `986` or an object may be a misreading of the order's own
 * currency, so money in them is doubtful.
 */
function isConverted({ verdict, money }: Comparison): boolean {
  return verdict === 'currency_mismatch' && money !== null && isCurrency(money.currency);
}

/** Whether the link names its currency, or neither link nor quote does. */
function isCurrencyNamed({ linkMoney, quoteMoney }: SaidFact): boolean {
  return (linkMoney?.currency ?? null) !== null || (quoteMoney?.currency ?? null) === null;
}

type Comparison = {
  verdict: 'absent' | 'equal' | 'more' | 'amount_mismatch' | 'currency_mismatch';
  money: Money | null;
  /** The amount to store as `customerPaid`; null if there is none. */
  said: Stated | null;
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
    // A currency that ISO 4217 does not list may have more decimals than settled assumes.
    if (amount.fault === 'too_many_decimals' && currency !== claim.currency) {
      return { verdict: 'currency_mismatch', money: nothing, said: { amount: stated.amount, currency } };
    }
    // This money cannot be counted, so the ledger entry says zero. The hold and the event say why.
    return { verdict: 'amount_mismatch', money: nothing, said: null };
  }
  const money = { amountMinor: amount.amountMinor, currency };
  const said = inDecimal(money);
  if (currency !== claim.currency) return { verdict: 'currency_mismatch', money, said };
  if (amount.amountMinor === claim.amountMinor) return { verdict: 'equal', money, said };
  return { verdict: amount.amountMinor > claim.amountMinor ? 'more' : 'amount_mismatch', money, said };
}
