import { createHmac } from 'node:crypto';
import { bareFact, type FactKind, type PaymentFact } from '../domain/fact.ts';
import { parseAmount, type StatedMoney } from '../domain/money.ts';
import { parseJson } from './json.ts';
import {
  asObject,
  field,
  ID_LENGTH_MAX,
  type JsonObject,
  objects,
  readMoney,
  scalarText,
  statedText,
  usableId,
} from './values.ts';

/**
 * The payment-link service's words for events: header names, what is signed, and where an event keeps its parts. The
 * service documents little of its events (spec §6, "Gaps"), so reading is tolerant: docs/events.md lists every accepted
 * place. Its words for the answers of its API are in answers.ts and reading.ts, those for requests in client.ts; no
 * other file knows any.
 */
export type HeaderNames = { readonly signature: string; readonly timestamp: string };

/** What the names of both headers begin with: the service's brand, which its specification writes as `x-service`. */
export const HEADER_PREFIX = 'x-service';

/** The names of the two headers of a delivery, in lower case. */
export function headerNames(prefix: string): HeaderNames {
  return { signature: `${prefix}-signature`, timestamp: `${prefix}-timestamp` };
}

/** HMAC-SHA256 over the timestamp header's characters, `.`, and the raw body; 32 bytes (spec §6). */
export function deliveryMac(secret: string, timestamp: string, body: Uint8Array): Buffer {
  return createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest();
}

/** Values in a body that is not verified yet, at most: building them is what parsing costs. Events have far fewer. */
const UNVERIFIED_VALUES_MAX = 2_000;

/** Parses a body as JSON; undefined where it is not UTF-8, not JSON, or nested more than 32 deep. */
export function parseBody(body: Uint8Array): unknown {
  return parseJson(body);
}

/** As `parseBody`, with every number kept as the characters that were sent. */
export function parseBodyExactly(body: Uint8Array): unknown {
  return parseJson(body, { exact: true });
}

const TYPE_NAMES = ['type', 'event', 'eventType', 'kind'] as const;

/** What intake needs of an event: its id and type where it names them, and every link id that it names. */
export type Envelope = {
  readonly eventId: string | null;
  readonly type: string | null;
  readonly linkIds: readonly string[];
};

/** Reads the envelope of a parsed body. Whatever is absent or of another type is null. */
export function readEnvelope(body: unknown): Envelope {
  const root = asObject(body);
  if (root === null) return { eventId: null, type: null, linkIds: [] };
  return {
    eventId: usableId(field(root, 'id')),
    type: firstText([root], TYPE_NAMES)?.slice(0, ID_LENGTH_MAX) ?? null,
    linkIds: linkIds(places(root)),
  };
}

/** The link ids that an unverified body names. One of very many values names none: parsing it would hold up others. */
export function readUnverifiedLinkIds(body: Uint8Array): readonly string[] {
  return readEnvelope(parseJson(body, { valuesMax: UNVERIFIED_VALUES_MAX })).linkIds;
}

/** What an authentic event says. */
export type EventReading = {
  readonly linkIds: readonly string[];
  readonly facts: readonly PaymentFact[];
  /** It says less than settled needs, so the API should be asked. */
  readonly unsure: boolean;
  /** It says that the link's own status changed, which the API tells more of. */
  readonly linkChanged: boolean;
  /** The status that it then names, in capitals; null otherwise. */
  readonly linkStatus: string | null;
  /** It says something of a payment, be it in words that settled does not know. */
  readonly speaksOfPayment: boolean;
};

const PAYMENT_STATUS_CHANGED = 'payment_link.payment_status_changed';
const KNOWN_TYPES: ReadonlySet<string> = new Set([
  'payment_link.created',
  'payment_link.status_changed',
  PAYMENT_STATUS_CHANGED,
]);

/** Of an event that is not understood. */
const UNREAD = { facts: [], unsure: true, linkChanged: false, linkStatus: null } as const;

/** Reads an event that was parsed with `parseBodyExactly` into payment facts. */
export function readEvent(body: unknown): EventReading {
  const root = asObject(body);
  if (root === null) return { ...UNREAD, linkIds: [], speaksOfPayment: false };
  const found = places(root);
  const type = firstText([root], TYPE_NAMES)?.toLowerCase() ?? null;
  const statement = readPaymentStatement(found);
  const speaksOfPayment = statement.ofPayment || type === PAYMENT_STATUS_CHANGED;
  if (type !== null && !KNOWN_TYPES.has(type)) {
    return { ...UNREAD, linkIds: linkIds(found), speaksOfPayment };
  }
  const linkChanged = type === 'payment_link.status_changed';
  const status = linkChanged ? linkStatus(found) : null;
  const expired = status === 'EXPIRED';
  const mustSpeak = type !== 'payment_link.created' && (!linkChanged || statement.ofPayment);
  return {
    linkIds: linkIds(found),
    facts: [...statement.facts, ...(expired ? [bareFact('expired', { by: 'event' })] : [])],
    unsure: statement.unsure || (mustSpeak && !statement.speaks),
    linkChanged,
    linkStatus: status,
    speaksOfPayment,
  };
}

/** Where an event may keep its parts: the payload at the root or under `data` or `payload`, and its link object. */
type Places = { payloads: JsonObject[]; links: JsonObject[] };

function places(root: JsonObject): Places {
  const payloads = [root, ...objects([field(root, 'data'), field(root, 'payload')])];
  const links = objects(
    payloads.flatMap((payload) => [field(payload, 'paymentLink'), field(payload, 'link')]),
  );
  return { payloads, links };
}

function linkIds({ payloads, links }: Places): string[] {
  const named = [
    ...links.map((link) => field(link, 'id')),
    ...payloads.flatMap((payload) => [field(payload, 'paymentLinkId'), field(payload, 'linkId')]),
  ];
  return [...new Set(named.map(usableId).filter((id) => id !== null))];
}

function linkStatus({ payloads, links }: Places): string | null {
  return firstText([...links, ...payloads], ['status'])?.toUpperCase() ?? null;
}

/** Every status under `name`, in capitals. */
function statuses(places: readonly JsonObject[], name: string): string[] {
  const named = places.map((place) => statedText(field(place, name)));
  return named.filter((status) => status !== null).map((status) => status.toUpperCase());
}

/** What a payment status says of a payment (spec §2, Payment). */
export const FACT_KINDS_BY_STATUS: ReadonlyMap<string, FactKind> = new Map([
  ['PENDING', 'pending'],
  ['COMPLETED', 'completed'],
  ['REFUNDED', 'refunded'],
  ['DISPUTED', 'disputed'],
]);

type Statement = { facts: PaymentFact[]; unsure: boolean; speaks: boolean; ofPayment: boolean };

/**
 * The status that the link as a whole has beside its latest payment's: alike, or the statement is unclear. It does not
 * speak where neither is there, and speaks of no payment where nothing was begun.
 */
function readPaymentStatement({ links, payloads }: Places): Statement {
  const everywhere = [...links, ...payloads];
  const latest = parts(everywhere, 'latestPayment');
  const ofLink = statuses(everywhere, 'paymentStatus');
  const said = [...ofLink, ...statuses(latest.objects, 'status')];
  const begun = said.some((status) => status !== 'NOT_STARTED');
  const spoken = { speaks: said.length > 0, ofPayment: begun || latest.objects.length > 0 || latest.isOdd };
  const [status] = ofLink;
  const kind = status === undefined ? undefined : FACT_KINDS_BY_STATUS.get(status);
  if (kind !== undefined && said.every((other) => other === status)) {
    const fact = readFact(kind, everywhere, latest);
    return { facts: [fact], unsure: fact.kind === 'unclear', ...spoken };
  }
  if (said.some((other) => other === 'COMPLETED' || other === 'REFUNDED' || other === 'DISPUTED')) {
    return { facts: [readFact('unclear', everywhere, latest)], unsure: true, ...spoken };
  }
  return { facts: [], unsure: begun, ...spoken };
}

/** A fact of this kind; unclear instead where its money, reference or payment id is said in two ways, or is no object. */
function readFact(kind: FactKind, everywhere: readonly JsonObject[], latest: Parts): PaymentFact {
  const quotes = parts(latest.objects, 'quote');
  const paymentId = agreed(latest.objects.map((payment) => usableId(field(payment, 'id'))));
  const reference = agreed(everywhere.map((place) => scalarText(field(place, 'externalReference'))));
  const linkMoney = agreedMoney(everywhere);
  const quoteMoney = agreedMoney(quotes.objects);
  const isClear =
    !latest.isOdd &&
    !quotes.isOdd &&
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

/** The objects under one name, and whether something that is no object stands there. */
type Parts = { objects: JsonObject[]; isOdd: boolean };

function parts(places: readonly JsonObject[], name: string): Parts {
  const values = places.map((place) => field(place, name) ?? null).filter((value) => value !== null);
  const found = objects(values);
  return { objects: found, isOdd: found.length < values.length };
}

/** What several places name: the first of it, and whether all of them name the same. */
type Agreed<T> = { first: T | null; isAgreed: boolean };

function agreed(
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
function agreedMoney(places: readonly JsonObject[]): Agreed<StatedMoney> {
  const named = places.map(readMoney).filter((money) => money !== null);
  const currency = agreed(named.map((money) => money.currency));
  const amount = agreed(
    named.map((money) => money.amount),
    (one, other) => one === other || isSameAmount(one, other, currency.first ?? ''),
  );
  const money = { amount: amount.first, currency: currency.first };
  return { first: named.length === 0 ? null : money, isAgreed: amount.isAgreed && currency.isAgreed };
}

/** `100` and `100.00` are one amount. */
function isSameAmount(one: string, other: string, currency: string): boolean {
  const [read, reread] = [parseAmount(one, currency), parseAmount(other, currency)];
  return read.ok && reread.ok && read.amountMinor === reread.amountMinor;
}

function firstText(candidates: readonly JsonObject[], names: readonly string[]): string | null {
  for (const candidate of candidates) {
    for (const name of names) {
      const value = field(candidate, name);
      if (typeof value === 'string') return value;
    }
  }
  return null;
}
