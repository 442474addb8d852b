import { createHmac } from 'node:crypto';
import { bareFact, type EventContent, type FactKind, MONEY_CAME, type SaidFact } from '../domain/fact.ts';
import { parseAmount, type StatedMoney } from '../domain/money.ts';
import type { SaidDetails } from '../domain/payment_details.ts';
import { parseBody } from '../json.ts';
import { readMoment, readPaymentDetails, theOne } from './payment_details.ts';
import { type FoundPlaces, findPlaces, type Part, type Texts, valuesOf } from './places.ts';
import {
  type Agreed,
  agreed,
  agreedMoney,
  FACT_KINDS_BY_STATUS,
  ID_LENGTH_MAX,
  scalarText,
  statedText,
  usableId,
} from './values.ts';

/**
 * The service's terms for events: header names, what is signed, and what an event means. places.ts has the places of an
 * event's parts; answers.ts and reading.ts have the terms of API answers, and client.ts those of requests. No other
 * file knows any.
 */
export type HeaderNames = { readonly signature: string; readonly timestamp: string };

/** The common prefix of both header names: the service's brand, `x-service` in its specification. */
export const HEADER_PREFIX = 'x-service';

/** The names of the two headers of a delivery, in lower case. */
export function headerNames(prefix: string): HeaderNames {
  return { signature: `${prefix}-signature`, timestamp: `${prefix}-timestamp` };
}

/** HMAC-SHA256 over the timestamp header's characters, `.`, and the raw body; 32 bytes (spec §6). */
export function deliveryMac(secret: string, timestamp: string, body: Uint8Array): Buffer {
  return createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest();
}

/** What intake needs of an event: its id and type (null if it names none), and every link id that it names. */
export type Envelope = {
  readonly eventId: string | null;
  readonly type: string | null;
  readonly linkIds: readonly string[];
  /** Whether the event id is the id of the payment, so that all events of this payment share it. */
  readonly isPaymentId: boolean;
};

/**
 * Reads the envelope of a parsed body. The link's own id is no event id: neither the id in `linkId`, nor one that the
 * body names as a link's, nor the body's own if it is the link.
 */
export function readEnvelope(
  body: unknown,
  { linkId = null, texts = 'plainly' }: { linkId?: string | null; texts?: Texts } = {},
): Envelope {
  const found = findPlaces(body, texts);
  const links = namedOf(found, 'linkId', usableId);
  const types = namedOf(found, 'type', statedText).join(', ').slice(0, ID_LENGTH_MAX);
  const eventId = eventIdOf(found, links, linkId);
  const isPaymentId = eventId !== null && valuesOf(found, 'paymentId').map(usableId).includes(eventId);
  return { eventId, type: types === '' ? null : types, linkIds: links, isPaymentId };
}

/** The most values in an unverified body, because parsing costs by the value. Events have far fewer. */
const UNVERIFIED_VALUES_MAX = 2_000;

/**
 * Reads the link ids in an unverified body. A body of more than 2,000 values names none, because parsing it would delay
 * others. JSON inside text is opened only after the body is verified.
 */
export function readUnverifiedLinkIds(body: Uint8Array): readonly string[] {
  return readEnvelope(parseBody(body, UNVERIFIED_VALUES_MAX), { texts: 'closed' }).linkIds;
}

/** Null if no id is usable, or if two differ. */
function eventIdOf(found: FoundPlaces, links: readonly string[], linkId: string | null): string | null {
  const { first, isAgreed } = agreed(valuesOf(found, 'eventId').map(usableId));
  if (first === null || !isAgreed || first === linkId) return null;
  const isLinks = links.length > 0 ? links.includes(first) : found.isLink;
  return isLinks ? null : first;
}

const CREATED = 'payment_link.created';
const STATUS_CHANGED = 'payment_link.status_changed';
const KNOWN_TYPES: ReadonlySet<string> = new Set([CREATED, STATUS_CHANGED, 'payment_link.payment_status_changed']);

/** Reads an event that was parsed with `parseBodyExactly` into payment facts. */
export function readEvent(body: unknown): EventContent {
  const found = findPlaces(body, 'exactly');
  if (found.noEvent !== null) return unread(found.noEvent);
  const linkIds = namedOf(found, 'linkId', usableId);
  const types = [...new Set(namedOf(found, 'type', statedText).map((type) => type.toLowerCase()))];
  const [type = null] = types;
  if (types.length === 1 && type !== null && !KNOWN_TYPES.has(type)) {
    return unread(`settled does not know its type ${shown([type])}`, linkIds);
  }
  const linkChanged = types.length === 1 && type === STATUS_CHANGED;
  const linkStatuses = linkChanged ? namedOf(found, 'linkStatus', capitals) : [];
  const contradiction = severalOf('types', types) ?? severalOf('link statuses', linkStatuses);
  const payment = readPayment(found, contradiction);
  const mustSpeak = type !== CREATED && (!linkChanged || payment.ofPayment);
  const silent = mustSpeak && !payment.speaks ? 'it names no payment status where settled looks for it' : null;
  const notUnderstood = payment.notUnderstood ?? silent;
  const saysMoneyCame = payment.facts.some(({ kind }) => kind !== 'pending');
  if (notUnderstood === null && found.odd.has('payload') && !saysMoneyCame) {
    return unread('what stands in the place of its content cannot be opened', linkIds);
  }
  const [linkStatus = null] = contradiction === null ? linkStatuses : [];
  return {
    linkIds,
    facts: [...payment.facts, ...(linkStatus === 'EXPIRED' ? [bareFact('expired')] : [])],
    notUnderstood,
    linkChanged,
    linkStatus,
    details: detailsOf(found),
    expiresAtMs: theOne(valuesOf(found, 'expiresAtMs'), readMoment),
    link: null,
  };
}

function unread(notUnderstood: string, linkIds: readonly string[] = []): EventContent {
  const nothing = { facts: [], linkChanged: false, linkStatus: null, details: [], expiresAtMs: null, link: null };
  return { linkIds, notUnderstood, ...nothing };
}

/** The details of an event's one payment; none if it is unclear which payment that is. */
function detailsOf(found: FoundPlaces): SaidDetails[] {
  if (found.payments === 0 || found.odd.has('payment')) return [];
  const named = valuesOf(found, 'paymentId').map(usableId);
  const { first: paymentId, isAgreed } = agreed(named);
  if (!isAgreed || named.includes(null)) return [];
  return readPaymentDetails(paymentId, (part) => valuesOf(found, part));
}

/** The distinct values that it names for a part, as they are read. */
function namedOf(found: FoundPlaces, part: Part, read: (value: unknown) => string | null): string[] {
  return [...new Set(valuesOf(found, part).map(read))].filter((named) => named !== null);
}

function capitals(value: unknown): string | null {
  return typeof value === 'string' ? value.toUpperCase() : null;
}

function severalOf(what: string, named: readonly string[]): string | null {
  return named.length > 1 ? `it names several ${what}: ${shown(named)}` : null;
}

type SaidOfPayment = {
  facts: SaidFact[];
  /** Why there is no fact although there should be; null if there is one, or none is needed. */
  notUnderstood: string | null;
  speaks: boolean;
  ofPayment: boolean;
};

/**
 * Compares the payment status of the link with that of its latest payment; if they differ, the event is unclear. If
 * both are missing it says nothing, and if no payment has begun it is about none.
 * @param contradiction another contradiction in the event; null if there is none
 */
function readPayment(found: FoundPlaces, contradiction: string | null): SaidOfPayment {
  const ofLink = paymentStatusesOf(found, 'paymentStatus');
  const said = [...ofLink, ...paymentStatusesOf(found, 'latestStatus')];
  const hasPayment = found.payments > 0 || found.odd.has('payment');
  const ofPayment = hasPayment || said.some((status) => status !== 'NOT_STARTED');
  const spoken = { speaks: said.length > 0, ofPayment };
  const [status] = ofLink;
  const kind = status === undefined ? undefined : FACT_KINDS_BY_STATUS.get(status);
  if (contradiction === null && kind !== undefined && said.every((other) => other === status)) {
    return { facts: [readFact(kind, found)], notUnderstood: null, ...spoken };
  }
  if (said.some((other) => MONEY_CAME.has(FACT_KINDS_BY_STATUS.get(other) ?? 'unclear'))) {
    return { facts: [readFact('unclear', found)], notUnderstood: null, ...spoken };
  }
  return { facts: [], notUnderstood: contradiction ?? (ofPayment ? whyNoStatus(said) : null), ...spoken };
}

/** Every payment status at this place, in capitals. */
function paymentStatusesOf(found: FoundPlaces, part: 'paymentStatus' | 'latestStatus'): string[] {
  return valuesOf(found, part).flatMap((status) => statedText(status)?.toUpperCase() ?? []);
}

function whyNoStatus(said: readonly string[]): string {
  const unknown = said.filter((status) => status !== 'NOT_STARTED' && !FACT_KINDS_BY_STATUS.has(status));
  if (unknown.length > 0) return `settled does not know its payment status ${shown(unknown)}`;
  if (said.length === 0) return 'it names a payment without a status';
  return `what it says of the payment contradicts itself (${shown([...new Set(said)])})`;
}

/** Parts that identify something. A value there that is neither text nor a number is odd, not missing. */
const NAMES: readonly Part[] = ['linkId', 'paymentId', 'reference'];

/** A fact of this kind. It is `unclear` instead if its money or an id is named in two ways, or if something is odd. */
function readFact(kind: FactKind, found: FoundPlaces): SaidFact {
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
    paymentId: paymentId.first,
    linkMoney: linkMoney.first,
    quoteMoney: quoteMoney.first,
    reference: reference.first,
  };
}

/**
 * The money named by the payment's quote and by the payment itself. If they differ but the payment itself names the
 * link's money, the quote says what the customer paid: it may include interest, or be in another currency.
 */
function paymentMoney(found: FoundPlaces): Agreed<StatedMoney> {
  const of = (what: 'quote' | 'payment') =>
    [valuesOf(found, `${what}Amount`), valuesOf(found, `${what}Currency`)] as const;
  const [quote, own] = [of('quote'), of('payment')];
  const both = agreedMoney([...quote[0], ...own[0]], [...quote[1], ...own[1]]);
  if (both.isAgreed) return both;
  const amounts = [...own[0], ...valuesOf(found, 'amount')];
  const isLinks = agreedMoney(amounts, [...own[1], ...valuesOf(found, 'currency')]).isAgreed;
  return isLinks && valuesOf(found, 'amount').length > 0 ? agreedMoney(...quote) : both;
}

/**
 * Whether the payment itself names less than its link, or something unreadable. Its quote is compared with the order.
 */
function namesLess(found: FoundPlaces, linkMoney: StatedMoney | null): boolean {
  const { first: own } = agreedMoney(valuesOf(found, 'paymentAmount'), valuesOf(found, 'paymentCurrency'));
  if (own === null || own.amount === null) return false;
  const currency = own.currency ?? linkMoney?.currency ?? '';
  const read = parseAmount(own.amount, currency);
  if (!read.ok) return true;
  if (linkMoney === null || linkMoney.amount === null || currency !== (linkMoney.currency ?? currency)) return false;
  const ofLink = parseAmount(linkMoney.amount, currency);
  return ofLink.ok && read.amountMinor < ofLink.amountMinor;
}

const SHOWN_MAX = 120;

/** The event's own words, for a sentence: printable, and of limited length. */
function shown(named: readonly string[]): string {
  const text = named.join(', ').replace(/\p{C}/gu, '');
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX).toWellFormed()}…` : text;
}
