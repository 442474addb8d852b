import { type Books, type Payment, UNNAMED } from './ledger.ts';

/**
 * What the service says of a payment beside its status and its money. It decides nothing: what was not said, or could not be
 * read, is null.
 */
export type PaymentDetails = {
  /** As the service calls it, in capitals. */
  readonly method: string | null;
  readonly installments: number | null;
  /** What the customer pays in all, instalment interest included, in centavos. */
  readonly totalBrlMinor: number | null;
  readonly customerName: string | null;
  readonly customerEmail: string | null;
  readonly createdAtMs: number | null;
  readonly completedAtMs: number | null;
  readonly availableAtMs: number | null;
};

export const NO_DETAILS: PaymentDetails = {
  method: null,
  installments: null,
  totalBrlMinor: null,
  customerName: null,
  customerEmail: null,
  createdAtMs: null,
  completedAtMs: null,
  availableAtMs: null,
};
const NAMES = Object.keys(NO_DETAILS) as readonly (keyof PaymentDetails)[];

/** What one event or reading says of a payment. */
export type SaidDetails = PaymentDetails & { readonly paymentId: string | null };

/** What is known of a payment, counted or not; `key` as in the ledger. */
export type KnownDetails = PaymentDetails & {
  readonly key: string;
  /** When the newest of it came. */
  readonly saidAtMs: number;
  /** Whether the customer's name and e-mail address were dropped: they are not kept again. */
  readonly isForgotten: boolean;
};

/** The currency of `totalBrlMinor`. */
export const TOTAL_CURRENCY = 'BRL';

/** Payments of one order whose details are kept. An order has a handful: each attempt to pay makes one. */
const DETAILS_MAX = 100;

export function saysAnything(said: PaymentDetails): boolean {
  return NAMES.some((name) => said[name] !== null);
}

/**
 * What is known of a payment after something was said of it: the newer word counts, and nothing takes back what was said.
 * Null if there is nothing to write.
 *
 * @param saidAtMs when it was said; older words only fill what is not known
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

/** The first details, and of the others what those leave out. */
function filled(first: PaymentDetails, others: PaymentDetails): PaymentDetails {
  return Object.fromEntries(NAMES.map((name) => [name, first[name] ?? others[name]])) as unknown as PaymentDetails;
}

/** What is known of a counted payment. One that was counted without an id may have got its id later. */
export function detailsOf(
  { details }: { readonly details: readonly KnownDetails[] },
  { key, id }: Pick<Payment, 'key' | 'id'>,
): PaymentDetails {
  const ofKey = details.find((one) => one.key === key) ?? NO_DETAILS;
  if (id === null || id === key) return ofKey;
  return filled(details.find((one) => one.key === id) ?? NO_DETAILS, ofKey);
}

/** The ids by which documents name the payments of these keys; null: without an id. */
export function idsOfKeys(
  keys: readonly string[],
  { adoptedPaymentId }: Pick<Books, 'adoptedPaymentId'>,
): ReadonlySet<string | null> {
  return new Set(keys.flatMap((key) => (key === UNNAMED ? [null, adoptedPaymentId] : [key])));
}

/** `Ana Souza <ana@example.com>`, or what of it is known; null if neither is. */
export function customerWords({ customerName: name, customerEmail: email }: PaymentDetails): string | null {
  return name !== null && email !== null ? `${name} <${email}>` : (name ?? email);
}

/** The words under which a text is searched: without case and accents, in one spelling of each character. */
export function searchWords(text: string): string {
  const plain = /^[ -~]*$/.test(text) ? text : text.normalize('NFKD').replace(/\p{M}/gu, '');
  return plain.toLowerCase();
}
