import type { FactKind, PaymentFact } from '../domain/fact.ts';
import { parseAmount, type StatedMoney } from '../domain/money.ts';
import { type Found, type Part, valuesOf } from './places.ts';
import { readCurrency, scalarText, statedText, usableId } from './values.ts';

/** What a payment status says of a payment (spec §2, Payment). */
export const FACT_KINDS_BY_STATUS: ReadonlyMap<string, FactKind> = new Map([
  ['PENDING', 'pending'],
  ['COMPLETED', 'completed'],
  ['REFUNDED', 'refunded'],
  ['DISPUTED', 'disputed'],
]);

/** What an event says of a payment. */
type Statement = {
  facts: PaymentFact[];
  unsure: boolean;
  /** Why no fact came of it although it must; null where one did, or none must. */
  notUnderstood: string | null;
  speaks: boolean;
  ofPayment: boolean;
  /** Whether a fact came of it that is not only of a payment that was begun. */
  saysMoneyCame: boolean;
};

/**
 * The status that the link as a whole has beside its latest payment's: alike, or the statement is unclear. It does not
 * speak where neither is there, and speaks of no payment where nothing was begun.
 *
 * @param torn what else in the event contradicts itself; null where nothing does
 */
export function readPaymentStatement(found: Found, torn: string | null): Statement {
  const ofLink = statusesOf(found, 'paymentStatus');
  const said = [...ofLink, ...statusesOf(found, 'latestStatus')];
  const hasPayment = found.payments > 0 || found.odd.has('payment');
  const ofPayment = hasPayment || said.some((status) => status !== 'NOT_STARTED');
  const spoken = { speaks: said.length > 0, ofPayment };
  const [status] = ofLink;
  const kind = status === undefined ? undefined : FACT_KINDS_BY_STATUS.get(status);
  if (torn === null && kind !== undefined && said.every((other) => other === status)) {
    const fact = readFact(kind, found);
    const saysMoneyCame = fact.kind !== 'pending';
    return { facts: [fact], unsure: fact.kind === 'unclear', notUnderstood: null, ...spoken, saysMoneyCame };
  }
  if (said.some((other) => other === 'COMPLETED' || other === 'REFUNDED' || other === 'DISPUTED')) {
    const facts = [readFact('unclear', found)];
    return { facts, unsure: true, notUnderstood: null, ...spoken, saysMoneyCame: true };
  }
  const notUnderstood = torn ?? (ofPayment ? whyNoStatus(said) : null);
  return { facts: [], unsure: notUnderstood !== null, notUnderstood, ...spoken, saysMoneyCame: false };
}

function whyNoStatus(said: readonly string[]): string {
  const unknown = said.filter((status) => status !== 'NOT_STARTED' && !FACT_KINDS_BY_STATUS.has(status));
  if (unknown.length > 0) return `settled does not know its payment status ${shown(unknown)}`;
  if (said.length === 0) return 'it names a payment without a status';
  return `what it says of the payment contradicts itself (${shown([...new Set(said)])})`;
}

/** A fact of this kind; unclear instead where its money or an id is said in two ways, or something odd stands there. */
function readFact(kind: FactKind, found: Found): PaymentFact {
  const paymentId = agreed(valuesOf(found, 'paymentId').map(usableId));
  const reference = agreed(valuesOf(found, 'reference').map(scalarText));
  const linkMoney = agreedMoney(valuesOf(found, 'amount'), valuesOf(found, 'currency'));
  const quoteMoney = paymentMoney(found);
  const isClear =
    found.odd.size === 0 &&
    !namesLess(found, linkMoney.first) &&
    NAMES.every((part) => valuesOf(found, part).every((value) => scalarText(value) !== null)) &&
    [paymentId, reference, linkMoney, quoteMoney].every(({ isAgreed }) => isAgreed);
  return {
    kind: isClear || kind === 'pending' ? kind : 'unclear',
    authority: { by: 'event' },
    paymentId: paymentId.first,
    linkMoney: linkMoney.first,
    quoteMoney: quoteMoney.first,
    reference: reference.first,
  };
}

/** Parts that name something: what is neither text nor a number there is odd, and does not count as left out. */
const NAMES: readonly Part[] = ['linkId', 'paymentId', 'reference'];

/** Every payment status at this part, in capitals. */
function statusesOf(found: Found, part: 'paymentStatus' | 'latestStatus'): string[] {
  const named = valuesOf(found, part).map(statedText);
  return named.filter((status) => status !== null).map((status) => status.toUpperCase());
}

/** What several places name: the first of it, and whether all of them name the same. */
type Agreed<T> = { first: T | null; isAgreed: boolean };

export function agreed(
  named: readonly (string | null)[],
  isSame: (one: string, other: string) => boolean = (one, other) => one === other,
): Agreed<string> {
  let first: string | null = null;
  let isAgreed = true;
  for (const value of named) {
    if (first === null) first = value;
    else if (value !== null && !isSame(first, value)) isAgreed = false;
  }
  return { first, isAgreed };
}

/** Amounts and currencies agree each by themselves: one place may name what another leaves out. */
function agreedMoney(amounts: readonly unknown[], currencies: readonly unknown[]): Agreed<StatedMoney> {
  const currency = agreed(currencies.map(readCurrency));
  const amount = agreed(
    amounts.map(statedText),
    (one, other) => one === other || isSameAmount(one, other, currency.first ?? ''),
  );
  const isNamed = amount.first !== null || currency.first !== null;
  const money = isNamed ? { amount: amount.first, currency: currency.first } : null;
  return { first: money, isAgreed: amount.isAgreed && currency.isAgreed };
}

/**
 * What the payment's quote names, and the payment itself, read together. If they differ, but the payment itself names the
 * link's money, the quote says what the customer paid: that may hold interest, or be of another currency.
 */
function paymentMoney(found: Found): Agreed<StatedMoney> {
  const of = (what: 'quote' | 'payment') =>
    [valuesOf(found, `${what}Amount`), valuesOf(found, `${what}Currency`)] as const;
  const [quote, own] = [of('quote'), of('payment')];
  const both = agreedMoney([...quote[0], ...own[0]], [...quote[1], ...own[1]]);
  if (both.isAgreed) return both;
  const amounts = [...own[0], ...valuesOf(found, 'amount')];
  const isLinks = agreedMoney(amounts, [...own[1], ...valuesOf(found, 'currency')]).isAgreed;
  return isLinks && valuesOf(found, 'amount').length > 0 ? agreedMoney(...quote) : both;
}

/** Whether the payment itself names less than its link, or what cannot be read. Its quote is judged with the order's money. */
function namesLess(found: Found, linkMoney: StatedMoney | null): boolean {
  const { first: own } = agreedMoney(valuesOf(found, 'paymentAmount'), valuesOf(found, 'paymentCurrency'));
  if (own === null || own.amount === null) return false;
  const currency = own.currency ?? linkMoney?.currency ?? '';
  const read = parseAmount(own.amount, currency);
  if (!read.ok) return true;
  if (linkMoney === null || linkMoney.amount === null || currency !== (linkMoney.currency ?? currency)) return false;
  const ofLink = parseAmount(linkMoney.amount, currency);
  return ofLink.ok && read.amountMinor < ofLink.amountMinor;
}

/** `100` and `100.00` are one amount. */
function isSameAmount(one: string, other: string, currency: string): boolean {
  const [read, reread] = [parseAmount(one, currency), parseAmount(other, currency)];
  return read.ok && reread.ok && read.amountMinor === reread.amountMinor;
}

const SHOWN_MAX = 120;

/** What somebody else wrote, for a sentence: printable, and of bounded length. */
export function shown(named: readonly string[]): string {
  const text = named.join(', ').replace(/\p{C}/gu, '');
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX).toWellFormed()}…` : text;
}
