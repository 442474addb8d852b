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
    return { facts: [fact], unsure: fact.kind === 'unclear', notUnderstood: null, ...spoken };
  }
  if (said.some((other) => other === 'COMPLETED' || other === 'REFUNDED' || other === 'DISPUTED')) {
    return { facts: [readFact('unclear', found)], unsure: true, notUnderstood: null, ...spoken };
  }
  const notUnderstood = torn ?? (ofPayment ? whyNoStatus(said) : null);
  return { facts: [], unsure: notUnderstood !== null, notUnderstood, ...spoken };
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
  const quoteMoney = agreedMoney(valuesOf(found, 'quoteAmount'), valuesOf(found, 'quoteCurrency'));
  const isClear =
    found.odd.size === 0 &&
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
