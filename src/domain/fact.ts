import type { StatedMoney } from './money.ts';

/**
 * What happened, according to the service or a person. The last three are a person's instructions; the service states
 * the others in an event or a reading.
 * - `unclear`: the service contradicts itself about a completion
 * - `unpaid`: a reading shows no completed payment
 * - `disabled`: a reading shows the link inactive and unpaid
 * - `unconfirmed`: settled asked about an event's completion for long enough, and no reading shows it
 */
export const FACT_KINDS = [
  'pending',
  'completed',
  'unclear',
  'refunded',
  'disputed',
  'expired',
  'disabled',
  'unpaid',
  'unconfirmed',
  'cancel',
  'accept',
  'reject',
] as const;
export type FactKind = (typeof FACT_KINDS)[number];

/** Kinds that say that a payment was completed at some time. */
export const MONEY_CAME: ReadonlySet<FactKind> = new Set(['completed', 'disputed', 'refunded']);

/** The source of a fact. A reading's number, taken from the API budget before its request leaves, orders readings. */
export type Authority =
  | { readonly by: 'event' }
  | { readonly by: 'reading'; readonly number: number }
  | { readonly by: 'person' };

/** What a webhook or a reading says, in one form. Null means that it was not said. */
export type PaymentFact = {
  readonly kind: FactKind;
  readonly authority: Authority;
  readonly paymentId: string | null;
  readonly linkMoney: StatedMoney | null;
  /** The money of the payment's quote, never the total with instalment interest. */
  readonly quoteMoney: StatedMoney | null;
  /** The link's `externalReference`. */
  readonly reference: string | null;
};

/** A fact with nothing but its kind. */
export function bareFact(kind: FactKind, authority: Authority): PaymentFact {
  return { kind, authority, paymentId: null, linkMoney: null, quoteMoney: null, reference: null };
}
