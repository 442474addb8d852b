import { parseText } from '../json.ts';
import { asObject, type JsonObject, scalarText } from './values.ts';

/**
 * The table of places: under which names an event keeps its parts. The service documents little of its events (spec §6,
 * "Gaps"), so settled reads an event at all of these places and at no other. docs/events.md shows the table; a test
 * holds the two together.
 */

/** The objects that an event is made of. */
type Role = 'envelope' | 'payload' | 'link' | 'payment' | 'quote' | 'customer';

type Place = {
  /** The objects that may hold it. */
  readonly in: readonly Role[];
  /** Its names; each may also be written in snake case (`payment_status`). */
  readonly names: readonly string[];
};

/** Names that hold objects. The outermost object is an envelope, and every envelope is a payload as well. */
export const OBJECT_PLACES = [
  { role: 'envelope', in: ['payload'], names: ['event'] },
  { role: 'payload', in: ['payload'], names: ['data', 'payload', 'object', 'resource'] },
  { role: 'link', in: ['payload'], names: ['paymentLink', 'link'] },
  { role: 'payment', in: ['payload', 'link'], names: ['latestPayment'] },
  { role: 'payment', in: ['payload', 'link'], names: ['payment', 'payments'] },
  { role: 'quote', in: ['payment'], names: ['quote'] },
  { role: 'customer', in: ['payment'], names: ['customer'] },
] as const satisfies readonly (Place & { role: Role })[];

/** Names that hold what an event is settled by. */
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

/** Names that hold what is only shown. They decide nothing: no value of theirs is odd. */
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

/** Names that may hold a list of payments, or their count. */
const PAYMENTS: ReadonlySet<string> = new Set(['payment', 'payments']);

/** Names that may hold a payload, or only a word or an address that says what the event is about. */
const NAMING: ReadonlySet<string> = new Set(['object', 'resource']);
const NAMES_SOMETHING = /^(?:[a-z][a-z_.-]{0,39}|(?:https?:\/)?\/[^\s{]*)$/i;

/** Names of a link's own fields that an event does not have: an object that has one is the link itself (spec §2). */
const LINKS_OWN = ['url', 'shortUrl', 'isMultiUse', 'isActive', 'isExpired', 'webhookUrl', 'paymentsSummary'];

/** Payloads within payloads, below the outermost object. */
const PAYLOAD_DEPTH_MAX = 3;
/** Texts within texts that are opened as JSON. */
const TEXT_DEPTH_MAX = 2;

/** What an event has at its places. */
export type FoundPlaces = {
  /** Every value but null, in the order of the event. */
  readonly values: Readonly<Partial<Record<Part, readonly unknown[]>>>;
  readonly payments: number;
  /**
   * Roles whose place holds something else that cannot count as missing: a link, a payment or a quote; a payload, if it
   * is text that cannot be opened, or is nested too deep. Several payments are odd as well.
   */
  readonly odd: ReadonlySet<Role>;
  /** Whether an envelope is the link itself, by fields that links alone have. */
  readonly isLink: boolean;
};

/** How text in the place of an object is read: with exact amounts, plainly, or not at all before it is verified. */
export type Texts = 'exactly' | 'plainly' | 'closed';

export function valuesOf({ values }: FoundPlaces, part: Part): readonly unknown[] {
  return values[part] ?? [];
}

/** What is in place of an event: a list of that many, or something that is not an object. */
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

/** An object, and how many texts it was nested in. */
type Opened = { object: JsonObject; textDepth: number };
type OpenedText = { value: unknown; textDepth: number };

/** What one name stands for in an object of one role: objects, a value, or either. */
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

/** One payment, or a list of them. A number says only how many there are, and so does an object without a payment's parts. */
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

/** The object that an event's place holds: as it is, as JSON text, or as the one element of a list. */
function unwrap(walk: Walk, value: unknown, textDepth: number): Opened | null {
  const opened = openText(walk, value, textDepth);
  if (!Array.isArray(opened.value)) return objectIn(opened);
  const { length } = opened.value;
  if (length > 1) walk.listOf = Math.max(length, walk.listOf ?? 0);
  return length === 1 ? openObject(walk, opened.value[0], opened.textDepth) : null;
}

/** An object, or the one that a text holds as JSON; null if there is something else. */
function openObject(walk: Walk, value: unknown, before: number): Opened | null {
  return objectIn(openText(walk, value, before));
}

function objectIn({ value, textDepth }: OpenedText): Opened | null {
  const object = asObject(value);
  return object === null ? null : { object, textDepth };
}

/** Text that may be JSON, opened; anything else as it is. */
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
  // A link as text is not odd: it may be the link's address.
  else if (role === 'link' && typeof value !== 'string') walk.odd.add(role);
}

/** Whether text in place of a payload may hide one: it could not be opened, and is not merely a name. */
function isClosed(name: string, value: unknown): boolean {
  const text = Array.isArray(value) && value.length === 1 ? value[0] : value;
  if (typeof text !== 'string' || text.trim() === '') return false;
  return !(NAMING.has(name) && NAMES_SOMETHING.test(text));
}

/** A name as it is, and in snake case. */
function spellings(name: string): string[] {
  const snake = name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
  return snake === name ? [name] : [name, snake];
}

const LINKS_OWN_SPELLED = new Set(LINKS_OWN.flatMap(spellings));

type Slots = Readonly<Record<Role, ReadonlyMap<string, Slot>>>;

/** The table by role and spelling, as the walk looks it up. */
const SLOTS = slotsByRole([...VALUE_PLACES, ...DETAIL_PLACES]);
/** Without what is only shown: each delivery is walked once more for its envelope alone. */
const ENVELOPE_SLOTS = slotsByRole(VALUE_PLACES);

/** Names of a payment by which it is known from a count of payments. */
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
