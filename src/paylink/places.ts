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

/** Names of the values that settle an event. */
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
] as const satisfies readonly (Place & { part: string })[];

/** Names of values that are only shown. They decide nothing, so none of them is ever odd. */
export const DETAIL_PLACES = [
  { part: 'method', in: ['quote', 'payment'], names: ['paymentMethod'] },
  { part: 'installments', in: ['quote', 'payment'], names: ['installments'] },
  { part: 'totalBrl', in: ['quote', 'payment'], names: ['totalBRL', 'totalBrl'] },
  { part: 'customerName', in: ['customer'], names: ['name'] },
  { part: 'customerEmail', in: ['customer'], names: ['email'] },
  { part: 'createdAt', in: ['payment'], names: ['createdAt'] },
  { part: 'completedAt', in: ['payment'], names: ['completedAt'] },
  { part: 'availableAt', in: ['payment'], names: ['availableAt'] },
  { part: 'expiresAt', in: ['payload', 'link'], names: ['expiresAt'] },
] as const satisfies readonly (Place & { part: string })[];

export type DetailPart = (typeof DETAIL_PLACES)[number]['part'];
export type Part = (typeof VALUE_PLACES)[number]['part'] | DetailPart;
type ValuePlace = Place & { readonly part: Part };

/** Names of a payment, a list of payments, or their count. */
const PAYMENTS: ReadonlySet<string> = new Set(['payment', 'payments']);

/** Names that may hold a payload, or only a word or an address for what the event is about. */
const NAMING: ReadonlySet<string> = new Set(['object', 'resource']);
const NAMES_SOMETHING = /^(?:[a-z][a-z_.-]{0,39}|(?:https?:\/)?\/[^\s{]*)$/i;

/** A link's own fields, which an event does not have: an object with one of them is the link itself (spec §2). */
const LINKS_OWN = ['url', 'shortUrl', 'isMultiUse', 'isActive', 'isExpired', 'webhookUrl', 'paymentsSummary'];

/** Levels of payloads below the outermost object. */
const PAYLOAD_DEPTH_MAX = 3;
/** Levels of JSON inside text that are opened. */
const TEXT_DEPTH_MAX = 2;

/** What was found at the places of an event. */
export type FoundPlaces = {
  /** Every value except null, in the order of the event. */
  readonly values: Readonly<Partial<Record<Part, readonly unknown[]>>>;
  readonly payments: number;
  /**
   * Roles whose place holds something unusable that cannot count as missing: a link, a payment or a quote; or a payload
   * that is text but cannot be opened, or is nested too deep. Several payments are odd too.
   */
  readonly odd: ReadonlySet<Role>;
  /** Whether an envelope is the link itself, by fields that only links have. */
  readonly isLink: boolean;
};

/** How to read text in the place of an object: with exact amounts, plainly, or not at all before it is verified. */
export type Texts = 'exactly' | 'plainly' | 'closed';

export function valuesOf({ values }: FoundPlaces, part: Part): readonly unknown[] {
  return values[part] ?? [];
}

/** What came instead of an event: a list of this length, or something that is not an object. */
export type NoEvent = { readonly listOf: number } | 'no_object';

export function findPlaces(body: unknown, texts: Texts): FoundPlaces | NoEvent {
  const walk: Walk = { texts, values: {}, payments: 0, odd: new Set(), isLink: false, listOf: null };
  const whole = unwrap(walk, body, 0);
  if (whole !== null && walk.listOf === null) visit(walk, whole, 'envelope', 0);
  if (walk.listOf !== null) return { listOf: walk.listOf };
  return whole === null ? 'no_object' : walk;
}

type Walk = {
  readonly texts: Texts;
  values: Partial<Record<Part, unknown[]>>;
  payments: number;
  odd: Set<Role>;
  isLink: boolean;
  listOf: number | null;
};

/** An object, and in how many levels of text it was nested. */
type Opened = { object: JsonObject; textDepth: number };
type OpenedText = { value: unknown; textDepth: number };

/** What a name means in an object of one role: an object, a value, or either. */
type Slot = { role: Role | null; part: Part | null };

function visit(walk: Walk, { object, textDepth }: Opened, role: Role, depth: number): void {
  if (role === 'payment') walk.payments++;
  const slots = walk.texts === 'exactly' ? SLOTS : ENVELOPE_SLOTS;
  for (const name of Object.keys(object)) {
    if (role === 'envelope' && LINKS_OWN_SPELLED.has(name)) walk.isLink = true;
    const slot = slots[role].get(name);
    const value = object[name];
    if (slot === undefined || value === null || value === undefined) continue;
    if (PAYMENTS.has(name)) {
      visitPayments(walk, value, textDepth);
      continue;
    }
    const { role: innerRole } = slot;
    const open = innerRole !== null && isPayload(innerRole) ? unwrap : openObject;
    const inner = innerRole === null ? null : open(walk, value, textDepth);
    if (innerRole === null || inner === null) note(walk, slot, name, value);
    else if (!isPayload(innerRole)) visit(walk, inner, innerRole, depth);
    else if (depth < PAYLOAD_DEPTH_MAX) visit(walk, inner, innerRole, depth + 1);
    else walk.odd.add('payload');
  }
}

/** Visits a payment or a list of them. A number, or an object without a payment's parts, only counts payments. */
function visitPayments(walk: Walk, value: unknown, textDepth: number): void {
  const opened = openText(walk, value, textDepth);
  const isList = Array.isArray(opened.value);
  const all = isList ? (opened.value as unknown[]) : [opened.value];
  if (all.length > 1) walk.odd.add('payment');
  for (const one of all) {
    const inner = openObject(walk, one, opened.textDepth);
    if (inner === null) {
      if (isList || scalarText(one) === null || typeof one === 'string') walk.odd.add('payment');
    } else if (isList || Object.keys(inner.object).some((name) => PAYMENTS_OWN.has(name))) {
      visit(walk, inner, 'payment', 0);
    }
  }
}

function isPayload(role: Role): boolean {
  return role === 'envelope' || role === 'payload';
}

/** The object at a place: given directly, as JSON text, or as the only element of a list. */
function unwrap(walk: Walk, value: unknown, textDepth: number): Opened | null {
  const opened = openText(walk, value, textDepth);
  if (!Array.isArray(opened.value)) return objectIn(opened);
  const { length } = opened.value;
  if (length > 1) walk.listOf = Math.max(length, walk.listOf ?? 0);
  return length === 1 ? openObject(walk, opened.value[0], opened.textDepth) : null;
}

/** An object given directly or as JSON text; null for anything else. */
function openObject(walk: Walk, value: unknown, before: number): Opened | null {
  return objectIn(openText(walk, value, before));
}

function objectIn({ value, textDepth }: OpenedText): Opened | null {
  const object = asObject(value);
  return object === null ? null : { object, textDepth };
}

/** Opens text that may be JSON; returns anything else unchanged. */
function openText(walk: Walk, given: unknown, before: number): OpenedText {
  let value = given;
  let textDepth = before;
  while (typeof value === 'string' && walk.texts !== 'closed' && textDepth < TEXT_DEPTH_MAX) {
    if (!/^\s*["[{]/.test(value)) break;
    const parsed = parseText(value, { exact: walk.texts === 'exactly' });
    if (parsed === undefined) break;
    value = parsed;
    textDepth++;
  }
  return { value, textDepth };
}

function note(walk: Walk, { role, part }: Slot, name: string, value: unknown): void {
  if (part !== null) {
    const known = walk.values[part];
    if (known === undefined) walk.values[part] = [value];
    else known.push(value);
  } else if (role === 'payment' || role === 'quote') walk.odd.add(role);
  else if (role === 'payload') {
    if (isClosed(name, value)) walk.odd.add(role);
  }
  // A link given as text is not odd: it may be the link's address.
  else if (role === 'link' && typeof value !== 'string') walk.odd.add(role);
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

type Slots = Readonly<Record<Role, ReadonlyMap<string, Slot>>>;

/** The table by role and spelling, for the walk. */
const SLOTS = slotsByRole([...VALUE_PLACES, ...DETAIL_PLACES]);
/** Without values that are only shown: each delivery is walked once more for its envelope alone. */
const ENVELOPE_SLOTS = slotsByRole(VALUE_PLACES);

/** Names in a payment by which it differs from a count of payments. */
const PAYMENTS_OWN: ReadonlySet<string> = new Set(
  [...OBJECT_PLACES.filter(({ role }) => role === 'quote'), ...VALUE_PLACES]
    .filter(({ in: holders }) => (holders as readonly Role[]).includes('payment'))
    .flatMap(({ names }) => names.flatMap(spellings)),
);

function slotsByRole(places: readonly ValuePlace[]): Slots {
  return {
    envelope: slotsOf(['envelope', 'payload'], places),
    payload: slotsOf(['payload'], places),
    link: slotsOf(['link'], places),
    payment: slotsOf(['payment'], places),
    quote: slotsOf(['quote'], places),
    customer: slotsOf(['customer'], places),
  };
}

function slotsOf(roles: readonly Role[], places: readonly ValuePlace[]): Map<string, Slot> {
  const slots = new Map<string, Slot>();
  const isIn = (place: Place) => place.in.some((role) => roles.includes(role));
  for (const place of OBJECT_PLACES.filter(isIn)) {
    for (const name of place.names.flatMap(spellings)) slots.set(name, { role: place.role, part: null });
  }
  for (const place of places.filter(isIn)) {
    for (const name of place.names.flatMap(spellings)) {
      slots.set(name, { role: slots.get(name)?.role ?? null, part: place.part });
    }
  }
  return slots;
}
