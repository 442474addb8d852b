import { createHmac } from 'node:crypto';
import { bareFact, type FactKind, type PaymentFact } from '../domain/fact.ts';
import { UNNAMED } from '../domain/ledger.ts';
import type { StatedMoney } from '../domain/money.ts';

/**
 * The payment-link service's words, and the only file that knows them: header names, what is signed, and where an
 * event keeps its parts. The service documents little of its events (spec §6, "Gaps"), so reading is tolerant:
 * docs/events.md lists every accepted place.
 */
export const SIGNATURE_HEADER = 'x-service-signature';
export const TIMESTAMP_HEADER = 'x-service-timestamp';

/** HMAC-SHA256 over the timestamp header's characters, `.`, and the raw body; 32 bytes (spec §6). */
export function deliveryMac(secret: string, timestamp: string, body: Uint8Array): Buffer {
  return createHmac('sha256', secret).update(timestamp).update('.').update(body).digest();
}

/** Nesting beyond this is refused before parsing; a reviver would recurse as deep. */
const DEPTH_MAX = 32;
/** Values in a body that is not verified yet, at most: building them is what parsing costs. Events have far fewer. */
const UNVERIFIED_VALUES_MAX = 2_000;

/** A JSON number by its own characters: amounts must not pass through floating point. */
class JsonNumber {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Parses a body as JSON; undefined where it is not UTF-8, not JSON, or nested more than 32 deep. */
export function parseBody(body: Uint8Array): unknown {
  return parse(body, undefined);
}

/** As `parseBody`, with every number kept as the characters that were sent. */
export function parseBodyExactly(body: Uint8Array): unknown {
  return parse(body, (_key, value, context) =>
    typeof value === 'number' ? new JsonNumber(context?.source ?? String(value)) : value,
  );
}

type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown;

function parse(
  body: Uint8Array,
  reviver: Reviver | undefined,
  valuesMax = Number.POSITIVE_INFINITY,
): unknown {
  try {
    const text = utf8.decode(body);
    return exceeds(text, DEPTH_MAX, valuesMax) ? undefined : JSON.parse(text, reviver);
  } catch {
    return undefined;
  }
}

/** Whether JSON text is nested deeper, or holds more values, than is allowed. Reads characters and builds nothing. */
function exceeds(text: string, depthMax: number, valuesMax: number): boolean {
  let depth = 0;
  let values = 1;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (inString) {
      if (code === 0x5c) i++;
      else if (code === 0x22) inString = false;
    } else if (code === 0x22) inString = true;
    else if (code === 0x7b || code === 0x5b) {
      if (++depth > depthMax || ++values > valuesMax) return true;
    } else if (code === 0x7d || code === 0x5d) depth--;
    else if (code === 0x2c && ++values > valuesMax) return true;
  }
  return false;
}

const ID_LENGTH_MAX = 255;
const CURRENCY_LENGTH_MAX = 16;
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
  return readEnvelope(parse(body, undefined, UNVERIFIED_VALUES_MAX)).linkIds;
}

/** What an authentic event says. `unsure`: it says less than settled needs, so the API should be asked. */
export type EventReading = {
  readonly linkIds: readonly string[];
  readonly facts: readonly PaymentFact[];
  readonly unsure: boolean;
};

const KNOWN_TYPES: ReadonlySet<string> = new Set([
  'payment_link.created',
  'payment_link.status_changed',
  'payment_link.payment_status_changed',
]);

/** Reads an event that was parsed with `parseBodyExactly` into payment facts. */
export function readEvent(body: unknown): EventReading {
  const root = asObject(body);
  if (root === null) return { linkIds: [], facts: [], unsure: true };
  const found = places(root);
  const type = firstText([root], TYPE_NAMES)?.toLowerCase() ?? null;
  if (type !== null && !KNOWN_TYPES.has(type)) return { linkIds: linkIds(found), facts: [], unsure: true };
  const statement = readPaymentStatement(found);
  const expired = type === 'payment_link.status_changed' && linkStatus(found) === 'EXPIRED';
  const silent = !statement.speaks && type !== 'payment_link.created';
  return {
    linkIds: linkIds(found),
    facts: [...statement.facts, ...(expired ? [bareFact('expired', { by: 'event' })] : [])],
    unsure: silent || statement.unsure || type === 'payment_link.status_changed',
  };
}

type JsonObject = Record<string, unknown>;

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

/** Every text under `name`, in capitals. */
function statuses(places: readonly JsonObject[], name: string): string[] {
  const named = places.map((place) => scalarText(field(place, name)));
  return named.filter((status) => status !== null).map((status) => status.toUpperCase());
}

const FACT_KINDS_BY_STATUS: ReadonlyMap<string, FactKind> = new Map([
  ['PENDING', 'pending'],
  ['COMPLETED', 'completed'],
  ['REFUNDED', 'refunded'],
  ['DISPUTED', 'disputed'],
]);

/**
 * The status that the link as a whole has beside its latest payment's: alike, or the statement is unclear. It does not
 * speak where neither is there.
 */
function readPaymentStatement(found: Places): { facts: PaymentFact[]; unsure: boolean; speaks: boolean } {
  const everywhere = [...found.payloads, ...found.links];
  const latest = objects(everywhere.map((place) => field(place, 'latestPayment')));
  const ofLink = statuses(everywhere, 'paymentStatus');
  const said = [...ofLink, ...statuses(latest, 'status')];
  const [status] = ofLink;
  const kind = status === undefined ? undefined : FACT_KINDS_BY_STATUS.get(status);
  if (kind !== undefined && said.every((other) => other === status)) {
    return { facts: [readFact(kind, found, latest[0])], unsure: false, speaks: true };
  }
  if (said.some((other) => other === 'COMPLETED' || other === 'REFUNDED' || other === 'DISPUTED')) {
    return { facts: [readFact('unclear', found, latest[0])], unsure: true, speaks: true };
  }
  const unsure = said.some((other) => other !== 'NOT_STARTED');
  return { facts: [], unsure, speaks: said.length > 0 };
}

function readFact(kind: FactKind, found: Places, latest: JsonObject | undefined): PaymentFact {
  const quote = latest === undefined ? null : asObject(field(latest, 'quote'));
  return {
    kind,
    authority: { by: 'event' },
    paymentId: latest === undefined ? null : usableId(field(latest, 'id')),
    linkMoney: firstMoney([...found.links, ...found.payloads]),
    quoteMoney: quote === null ? null : readMoney(quote),
    reference: firstReference([...found.links, ...found.payloads]),
  };
}

/**
 * An id that can be stored and compared: text of 1 to 255 characters, or a whole number that has one spelling only.
 * `unnamed` is the ledger's own word for a payment without an id.
 */
function usableId(value: unknown): string | null {
  const id = typeof value === 'string' ? value : wholeNumberText(value);
  if (id === null || id.length === 0 || id.length > ID_LENGTH_MAX || id === UNNAMED) return null;
  return id.isWellFormed() && !id.includes('\0') ? id : null;
}

function wholeNumberText(value: unknown): string | null {
  const number = value instanceof JsonNumber ? Number(value.text) : value;
  return Number.isSafeInteger(number) ? String(number) : null;
}

function firstReference(candidates: readonly JsonObject[]): string | null {
  for (const candidate of candidates) {
    const reference = scalarText(field(candidate, 'externalReference'));
    if (reference !== null) return reference;
  }
  return null;
}

function firstMoney(candidates: readonly JsonObject[]): StatedMoney | null {
  const named = candidates.map(readMoney).filter((money) => money !== null);
  return named.find(({ amount }) => amount !== null) ?? named[0] ?? null;
}

function readMoney(place: JsonObject): StatedMoney | null {
  const amount = statedText(field(place, 'amount'));
  const currency = statedText(field(place, 'currency'))?.toUpperCase().slice(0, CURRENCY_LENGTH_MAX) ?? null;
  return amount === null && currency === null ? null : { amount, currency };
}

/** An amount or currency that is there but is neither becomes text that none has: it must not count as unnamed. */
function statedText(value: unknown): string | null {
  return value === undefined || value === null ? null : (scalarText(value) ?? typeof value);
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

function scalarText(value: unknown): string | null {
  if (typeof value === 'string') return value;
  if (value instanceof JsonNumber) return value.text;
  return typeof value === 'number' ? String(value) : null;
}

/** An own property; never one that the object inherits. */
function field(object: JsonObject, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

function objects(values: readonly unknown[]): JsonObject[] {
  return values.map(asObject).filter((value) => value !== null);
}

function asObject(value: unknown): JsonObject | null {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject && !(value instanceof JsonNumber) ? (value as JsonObject) : null;
}
