import { parseText } from '../json.ts';
import { asObject, type JsonObject, scalarText } from './values.ts';

/**
 * The places in which an event may hold its parts. The service documents little about its events (spec §6, "Gaps"), so
 * settled looks in all of these places and in no other. docs/events.md shows the table; a test holds the two equal.
 */

/** The objects that an event is made of. */
type Role = 'envelope' | 'payload' | 'link' | 'payment' | 'quote' | 'customer';

type Place = {
  /** The objects that may contain it. */
  readonly in: readonly Role[];
  /** Its names. Each may also be written in snake case (`payment_status`). */
  readonly names: readonly string[];
};

/** Names of objects. The outermost object is an envelope, and every envelope is a payload too. */
export const OBJECT_PLACES = [
  { role: 'envelope', in: ['payload'], names: ['event'] },
  { role: 'payload', in: ['payload'], names: ['data', 'payload', 'object', 'resource'] },
  { role: 'link', in: ['payload'], names: ['paymentLink', 'link'] },
  { role: 'payment', in: ['payload', 'link'], names: ['latestPayment'] },
  { role: 'payment', in: ['payload', 'link'], names: ['payment', 'payments'] },
  { role: 'quote', in: ['payment'], names: ['quote'] },
  { role: 'customer', in: ['payment'], names: ['customer'] },
] as const satisfies readonly (Place & { role: Role })[];

/** Names of values. Those from `method` on are only shown: they decide nothing, so none of them is ever odd. */
export const VALUE_PLACES = [
  { part: 'eventId', in: ['envelope'], names: ['id'] },
  { part: 'type', in: ['envelope'], names: ['type', 'event', 'eventType', 'kind'] },
  { part: 'linkId', in: ['link'], names: ['id'] },
  { part: 'linkId', in: ['payload'], names: ['paymentLinkId', 'linkId'] },
  { part: 'paymentStatus', in: ['payload', 'link'], names: ['paymentStatus'] },
  { part: 'paymentId', in: ['payment'], names: ['id'] },
  { part: 'latestStatus', in: ['payment'], names: ['status'] },
  { part: 'paymentAmount', in: ['payment'], names: ['amount'] },
  { part: 'paymentCurrency', in: ['payment'], names: ['currency'] },
  { part: 'quoteAmount', in: ['quote'], names: ['amount'] },
  { part: 'quoteCurrency', in: ['quote'], names: ['currency'] },
  { part: 'amount', in: ['payload', 'link'], names: ['amount'] },
  { part: 'currency', in: ['payload', 'link'], names: ['currency'] },
  { part: 'reference', in: ['payload', 'link'], names: ['externalReference'] },
  { part: 'linkStatus', in: ['payload', 'link'], names: ['status'] },
  { part: 'method', in: ['quote', 'payment'], names: ['paymentMethod'] },
  { part: 'installments', in: ['quote', 'payment'], names: ['installments'] },
  { part: 'totalBrlMinor', in: ['quote', 'payment'], names: ['totalBRL', 'totalBrl'] },
  { part: 'customerName', in: ['customer'], names: ['name'] },
  { part: 'customerEmail', in: ['customer'], names: ['email'] },
  { part: 'createdAtMs', in: ['payment'], names: ['createdAt'] },
  { part: 'completedAtMs', in: ['payment'], names: ['completedAt'] },
  { part: 'availableAtMs', in: ['payment'], names: ['availableAt'] },
  { part: 'expiresAtMs', in: ['payload', 'link'], names: ['expiresAt'] },
] as const satisfies readonly (Place & { part: string })[];

export type Part = (typeof VALUE_PLACES)[number]['part'];

/** Names of a payment, a list of payments, or their count. */
const PAYMENTS: ReadonlySet<string> = new Set(['payment', 'payments']);
/** What a payment has, and a count of payments has not. */
const PAYMENTS_OWN: ReadonlySet<string> = new Set(['id', 'status', 'amount', 'currency', 'quote']);

/** Names that may hold a payload, or only a word or an address for what the event is about. */
const NAMING: ReadonlySet<string> = new Set(['object', 'resource']);
const NAMES_SOMETHING = /^(?:[a-z][a-z_.-]{0,39}|(?:https?:\/)?\/[^\s{]*)$/i;

/** A link's own fields, which an event does not have: an object with one of them is the link itself (spec §2). */
const LINKS_OWN = ['url', 'shortUrl', 'isMultiUse', 'isActive', 'isExpired', 'webhookUrl', 'paymentsSummary'];

/** Levels of payloads below the outermost object. */
const PAYLOAD_DEPTH_MAX = 3;
/** Levels of JSON inside text that are opened. */
const TEXT_DEPTH_MAX = 2;

/** How to read text in the place of an object: with exact amounts, plainly, or not at all before it is verified. */
export type Texts = 'exactly' | 'plainly' | 'closed';

/** What was found at the places of an event. */
export type FoundPlaces = {
  readonly texts: Texts;
  /** Why the body is no event, as the end of a sentence; nothing was found then. Null if it is one. */
  readonly noEvent: string | null;
  /** Every value except null, in the order of the event. */
  readonly values: Partial<Record<Part, unknown[]>>;
  payments: number;
  /**
   * Roles whose place holds something unusable that cannot count as missing: a link, a payment or a quote; or a payload
   * that is text but cannot be opened, or is nested too deep. Several payments are odd too.
   */
  readonly odd: Set<Role>;
  /** Whether an envelope is the link itself, by fields that only links have. */
  isLink: boolean;
  /** The length of the longest list in the place of one event or payload; null if there is none. */
  listOf: number | null;
};

export function valuesOf({ values }: FoundPlaces, part: Part): readonly unknown[] {
  return values[part] ?? [];
}

/** Walks a parsed body: intake and settlement read one by this walk alone. */
export function findPlaces(body: unknown, texts: Texts): FoundPlaces {
  const found = nothing(texts, null);
  const whole = unwrap(found, body, 0);
  if (whole !== null && found.listOf === null) visit(found, whole, 'envelope', 0);
  if (found.listOf !== null) {
    return nothing(texts, `it is a list of ${found.listOf}, and settled reads one event a delivery`);
  }
  return whole === null ? nothing(texts, 'it is no JSON object') : found;
}

function nothing(texts: Texts, noEvent: string | null): FoundPlaces {
  return { texts, noEvent, values: {}, payments: 0, odd: new Set(), isLink: false, listOf: null };
}

/** An object, and in how many levels of text it was nested. */
type Opened = { object: JsonObject; textDepth: number };
type OpenedText = { value: unknown; textDepth: number };

/** What a name means in an object of one role: an object, a value, or either. */
type Slot = { role: Role | null; part: Part | null };

function visit(found: FoundPlaces, { object, textDepth }: Opened, role: Role, depth: number): void {
  if (role === 'payment') found.payments++;
  for (const name of Object.keys(object)) {
    if (role === 'envelope' && LINKS_OWN_SPELLED.has(name)) found.isLink = true;
    const slot = SLOTS[role].get(name);
    const value = object[name];
    if (slot === undefined || value === null || value === undefined) continue;
    if (PAYMENTS.has(name)) {
      visitPayments(found, value, textDepth);
      continue;
    }
    const { role: innerRole } = slot;
    const open = innerRole !== null && isPayload(innerRole) ? unwrap : openObject;
    const inner = innerRole === null ? null : open(found, value, textDepth);
    if (innerRole === null || inner === null) note(found, slot, name, value);
    else if (!isPayload(innerRole)) visit(found, inner, innerRole, depth);
    else if (depth < PAYLOAD_DEPTH_MAX) visit(found, inner, innerRole, depth + 1);
    else found.odd.add('payload');
  }
}

/** Visits a payment or a list of them. A number, or an object without a payment's parts, only counts payments. */
function visitPayments(found: FoundPlaces, value: unknown, textDepth: number): void {
  const opened = openText(found, value, textDepth);
  const isList = Array.isArray(opened.value);
  const all = isList ? (opened.value as unknown[]) : [opened.value];
  if (all.length > 1) found.odd.add('payment');
  for (const one of all) {
    const inner = openObject(found, one, opened.textDepth);
    if (inner === null) {
      if (isList || scalarText(one) === null || typeof one === 'string') found.odd.add('payment');
    } else if (isList || Object.keys(inner.object).some((name) => PAYMENTS_OWN.has(name))) {
      visit(found, inner, 'payment', 0);
    }
  }
}

function isPayload(role: Role): boolean {
  return role === 'envelope' || role === 'payload';
}

/** The object at a place: given directly, as JSON text, or as the only element of a list. */
function unwrap(found: FoundPlaces, value: unknown, textDepth: number): Opened | null {
  const opened = openText(found, value, textDepth);
  if (!Array.isArray(opened.value)) return objectIn(opened);
  const { length } = opened.value;
  if (length > 1) found.listOf = Math.max(length, found.listOf ?? 0);
  return length === 1 ? openObject(found, opened.value[0], opened.textDepth) : null;
}

/** An object given directly or as JSON text; null for anything else. */
function openObject(found: FoundPlaces, value: unknown, before: number): Opened | null {
  return objectIn(openText(found, value, before));
}

function objectIn({ value, textDepth }: OpenedText): Opened | null {
  const object = asObject(value);
  return object === null ? null : { object, textDepth };
}

/** Opens text that may be JSON; returns anything else unchanged. */
function openText(found: FoundPlaces, given: unknown, before: number): OpenedText {
  let value = given;
  let textDepth = before;
  while (typeof value === 'string' && found.texts !== 'closed' && textDepth < TEXT_DEPTH_MAX) {
    if (!/^\s*["[{]/.test(value)) break;
    const parsed = parseText(value, { exact: found.texts === 'exactly' });
    if (parsed === undefined) break;
    value = parsed;
    textDepth++;
  }
  return { value, textDepth };
}

function note(found: FoundPlaces, { role, part }: Slot, name: string, value: unknown): void {
  if (part !== null) {
    const known = found.values[part];
    if (known === undefined) found.values[part] = [value];
    else known.push(value);
  } else if (role === 'payment' || role === 'quote') found.odd.add(role);
  else if (role === 'payload') {
    if (isClosed(name, value)) found.odd.add(role);
  }
  // A link given as text is not odd: it may be the link's address.
  else if (role === 'link' && typeof value !== 'string') found.odd.add(role);
}

/** Whether text in the place of a payload may hide one: it could not be opened, and is no mere name. */
function isClosed(name: string, value: unknown): boolean {
  const text = Array.isArray(value) && value.length === 1 ? value[0] : value;
  if (typeof text !== 'string' || text.trim() === '') return false;
  return !(NAMING.has(name) && NAMES_SOMETHING.test(text));
}

/** A name in its own spelling, and in snake case. */
function spellings(name: string): string[] {
  const snake = name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
  return snake === name ? [name] : [name, snake];
}

const LINKS_OWN_SPELLED = new Set(LINKS_OWN.flatMap(spellings));

/** What each name means, by the role of the object that has it. Every envelope is a payload too. */
const SLOTS: Readonly<Record<Role, ReadonlyMap<string, Slot>>> = {
  envelope: slotsOf('envelope', 'payload'),
  payload: slotsOf('payload'),
  link: slotsOf('link'),
  payment: slotsOf('payment'),
  quote: slotsOf('quote'),
  customer: slotsOf('customer'),
};

function slotsOf(...roles: Role[]): Map<string, Slot> {
  const slots = new Map<string, Slot>();
  const isIn = (place: Place) => place.in.some((role) => roles.includes(role));
  for (const place of OBJECT_PLACES.filter(isIn)) {
    for (const name of place.names.flatMap(spellings)) slots.set(name, { role: place.role, part: null });
  }
  for (const place of VALUE_PLACES.filter(isIn)) {
    for (const name of place.names.flatMap(spellings)) {
      slots.set(name, { role: slots.get(name)?.role ?? null, part: place.part });
    }
  }
  return slots;
}
