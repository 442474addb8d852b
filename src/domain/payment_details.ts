import { type Books, type Payment, UNNAMED } from './ledger.ts';
import { formatAmount } from './money.ts';

/** What the service says about a payment besides its status and money. Decides nothing. Null: not said, or unreadable. */
export type PaymentDetails = Readonly<typeof NO_DETAILS>;

export const NO_DETAILS = {
  /** The service's own name for it, in capitals. */
  method: null as string | null,
  installments: null as number | null,
  /** What the customer pays in all, with instalment interest, in centavos. */
  totalBrlMinor: null as number | null,
  customerName: null as string | null,
  customerEmail: null as string | null,
  createdAtMs: null as number | null,
  completedAtMs: null as number | null,
  availableAtMs: null as number | null,
};
const NAMES = Object.keys(NO_DETAILS) as readonly (keyof PaymentDetails)[];

/** What one event or reading says about a payment. */
export type SaidDetails = PaymentDetails & { readonly paymentId: string | null };

/** What is known about a payment, counted or not; `key` as in the ledger. */
export type KnownDetails = PaymentDetails & {
  readonly key: string;
  /** When the newest of these details came. */
  readonly saidAtMs: number;
  /** Whether the customer's name and e-mail address were erased. They are then not stored again. */
  readonly isForgotten: boolean;
};

/** The currency of `totalBrlMinor`. */
export const TOTAL_CURRENCY = 'BRL';

/** The most payments of one order whose details are kept. Each attempt to pay makes one, and an order has a handful. */
const DETAILS_MAX = 100;

export function saysAnything(said: PaymentDetails): boolean {
  return NAMES.some((name) => said[name] !== null);
}

/**
 * Merges new details into the known ones: the newer value wins, and a missing value erases nothing. Null if nothing
 * changes.
 * @param saidAtMs when the service said it; older details only fill gaps
 */
export function learnDetails(
  known: readonly KnownDetails[],
  { paymentId, ...said }: SaidDetails,
  saidAtMs: number,
): KnownDetails | null {
  const key = paymentId ?? UNNAMED;
  const before = known.find((one) => one.key === key);
  if (before === undefined) {
    return known.length < DETAILS_MAX && saysAnything(said) ? { ...said, key, saidAtMs, isForgotten: false } : null;
  }
  const isNewer = saidAtMs >= before.saidAtMs;
  const both = isNewer ? filled(said, before) : filled(before, said);
  const { isForgotten } = before;
  const after = isForgotten ? { ...both, customerName: null, customerEmail: null } : both;
  if (NAMES.every((name) => after[name] === before[name])) return null;
  return { ...after, key, saidAtMs: Math.max(saidAtMs, before.saidAtMs), isForgotten };
}

/** The first details, with gaps filled from the others. */
function filled(first: PaymentDetails, others: PaymentDetails): PaymentDetails {
  return Object.fromEntries(NAMES.map((name) => [name, first[name] ?? others[name]])) as unknown as PaymentDetails;
}

/** The details of a counted payment. A payment counted without an id may have got its id later. */
export function detailsOf(
  { details }: { readonly details: readonly KnownDetails[] },
  { key, id }: Pick<Payment, 'key' | 'id'>,
): PaymentDetails {
  const ofKey = details.find((one) => one.key === key) ?? NO_DETAILS;
  if (id === null || id === key) return ofKey;
  return filled(details.find((one) => one.key === id) ?? NO_DETAILS, ofKey);
}

/** Details as the document of a payment has them: null if the service did not say it. */
type DetailsDocument = ReturnType<typeof detailsDocument>;

export function detailsDocument(said: PaymentDetails) {
  const { method, installments, totalBrlMinor, customerName: name, customerEmail: email } = said;
  const time = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());
  return {
    method,
    installments,
    totalBRL: totalBrlMinor === null ? null : formatAmount({ amountMinor: totalBrlMinor, currency: TOTAL_CURRENCY }),
    customer: name === null && email === null ? null : { name, email },
    createdAt: time(said.createdAtMs),
    completedAt: time(said.completedAtMs),
    availableAt: time(said.availableAtMs),
  };
}

/** How the customer pays: details of a document that are a text or a number. Tables have a column for each. */
export const WAYS_TO_PAY = ['method', 'installments', 'totalBRL'] as const satisfies (keyof DetailsDocument)[];

/** In how many instalments the customer pays; null for one, which says nothing. */
export function severalInstalments({ installments }: Pick<PaymentDetails, 'installments'>): number | null {
  return installments === 1 ? null : installments;
}

/** The total with interest; null if it is what counts of the payment. */
export function otherTotal(payment: Pick<DetailsDocument, 'totalBRL'> & { amount: string | null; currency: string }) {
  const { totalBRL, amount, currency } = payment;
  return totalBRL === null || (totalBRL === amount && currency === TOTAL_CURRENCY)
    ? null
    : { amount: totalBRL, currency: TOTAL_CURRENCY };
}

/** The ids by which documents name the payments with these keys; null for a payment without an id. */
export function idsOfKeys(
  keys: readonly string[],
  { adoptedPaymentId }: Pick<Books, 'adoptedPaymentId'>,
): ReadonlySet<string | null> {
  return new Set(keys.flatMap((key) => (key === UNNAMED ? [null, adoptedPaymentId] : [key])));
}

/** A person's name and e-mail address; null: not said, or dropped. */
export type Customer = { readonly name: string | null; readonly email: string | null };

/** `Ana Souza <ana@example.com>`, or the known part of it; null if neither part is known. */
export function customerWords({ name, email }: Customer): string | null {
  return name !== null && email !== null ? `${name} <${email}>` : (name ?? email);
}

/** A text in the form in which it is searched: without case and accents, with one spelling of each character. */
export function searchWords(text: string): string {
  const plain = /^[ -~]*$/.test(text) ? text : text.normalize('NFKD').replace(/\p{M}/gu, '');
  return plain.toLowerCase();
}
