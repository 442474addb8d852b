import { FACT_WORDS, namesOf } from '../vocabulary.ts';
import type { StatedMoney } from './money.ts';
import type { ServiceLink } from './order.ts';
import type { SaidDetails } from './payment_details.ts';

/**
 * What happened, according to the service or a person. The last three are a person's instructions; the service states
 * the others in an event or a reading.
 * - `unclear`: the service contradicts itself about a completion
 * - `unpaid`: a reading shows no completed payment
 * - `disabled`: a reading shows the link inactive and unpaid
 * - `unconfirmed`: settled asked about an event's completion for long enough, and no reading shows it
 */
export type FactKind = keyof typeof FACT_WORDS;
export const FACT_KINDS = namesOf(FACT_WORDS);

/** Kinds that say that a payment was completed at some time. */
export const MONEY_CAME: ReadonlySet<FactKind> = new Set(['completed', 'disputed', 'refunded']);

/** The source of a fact. A reading's number, taken from the API budget before its request leaves, orders readings. */
export type Authority =
  | { readonly by: 'event' }
  | { readonly by: 'reading'; readonly number: number }
  | { readonly by: 'person' };

/** What a webhook or a reading says, in one form. Null means that it was not said. */
export type SaidFact = {
  readonly kind: FactKind;
  readonly paymentId: string | null;
  readonly linkMoney: StatedMoney | null;
  /** The money of the payment's quote, never the total with instalment interest. */
  readonly quoteMoney: StatedMoney | null;
  /** The link's `externalReference`. */
  readonly reference: string | null;
};

/** A fact with its source, as `decide` takes it. */
export type PaymentFact = SaidFact & { readonly authority: Authority };

/** The source of what a row of the inbox says: the reading of this number, or an event if it is null. */
export function authorityOf(reading: number | null): Authority {
  return reading === null ? { by: 'event' } : { by: 'reading', number: reading };
}

/** A fact with nothing but its kind. */
export function bareFact(kind: FactKind): SaidFact {
  return { kind, paymentId: null, linkMoney: null, quoteMoney: null, reference: null };
}

/** What an event, or a reading, says of its link and of payments. */
export type EventContent = {
  /** Every id by which it names its link. */
  readonly linkIds: readonly string[];
  readonly facts: readonly SaidFact[];
  /** Why settled could not read what the event must say, as the end of a sentence; null if it was understood. */
  readonly notUnderstood: string | null;
  /** Whether the event says that the link's own status changed: a reason to ask the API, not to doubt the event. */
  readonly linkChanged: boolean;
  /** The status that it names then, in capitals; otherwise null. */
  readonly linkStatus: string | null;
  /** What it says about payments besides status and money. It is stored, and decides nothing. */
  readonly details: readonly SaidDetails[];
  /** When the link expires, if the event names it. Stored only if unknown so far. */
  readonly expiresAtMs: number | null;
  /** The link as a reading shows it; null for an event. */
  readonly link: ServiceLink | null;
};

/** Whether an event says less than settled needs, so that settled asks the API. */
export function saysTooLittle({ facts, notUnderstood }: Pick<EventContent, 'facts' | 'notUnderstood'>): boolean {
  return notUnderstood !== null || facts.some(({ kind }) => kind === 'unclear');
}
