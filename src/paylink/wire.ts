import { createHmac } from 'node:crypto';
import { bareFact, type PaymentFact } from '../domain/fact.ts';
import { parseJson } from './json.ts';
import { type Found, findPlaces, type NoEvent, type Texts, valuesOf } from './places.ts';
import { agreed, readPaymentStatement, shown } from './statement.ts';
import { ID_LENGTH_MAX, statedText, usableId } from './values.ts';

/**
 * The payment-link service's words for events: header names, what is signed, and what an event means. The places at
 * which an event keeps its parts are the table of places.ts. Its words for the answers of its API are in answers.ts and
 * reading.ts, those for requests in client.ts; no other file knows any.
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

/** What intake needs of an event: its id and type where it names them, and every link id that it names. */
export type Envelope = {
  readonly eventId: string | null;
  readonly type: string | null;
  readonly linkIds: readonly string[];
};

/**
 * Reads the envelope of a parsed body. What is absent is null. An id that is the link's own is no event id, whether
 * `linkId` names the link, the body itself does, or the body is the link.
 */
export function readEnvelope(
  body: unknown,
  { linkId = null, texts = 'plainly' }: { linkId?: string | null; texts?: Texts } = {},
): Envelope {
  const found = findPlaces(body, texts);
  if (!isEvent(found)) return { eventId: null, type: null, linkIds: [] };
  const links = linkIds(found);
  const types = typesOf(found).join(', ').slice(0, ID_LENGTH_MAX);
  return { eventId: eventIdOf(found, links, linkId), type: types === '' ? null : types, linkIds: links };
}

/**
 * The link ids that an unverified body names. One of very many values names none: parsing it would hold up others. JSON
 * inside of text is not opened before the body is verified.
 */
export function readUnverifiedLinkIds(body: Uint8Array): readonly string[] {
  const parsed = parseJson(body, { valuesMax: UNVERIFIED_VALUES_MAX });
  return readEnvelope(parsed, { texts: 'closed' }).linkIds;
}

function isEvent(found: Found | NoEvent): found is Found {
  return typeof found === 'object' && 'values' in found;
}

/** Null where none is usable, or two differ. */
function eventIdOf(found: Found, links: readonly string[], linkId: string | null): string | null {
  const { first, isAgreed } = agreed(valuesOf(found, 'eventId').map(usableId));
  if (first === null || !isAgreed || first === linkId) return null;
  const isLinks = links.length > 0 ? links.includes(first) : found.isLink;
  return isLinks ? null : first;
}

function linkIds(found: Found): string[] {
  const ids = valuesOf(found, 'linkId').map(usableId);
  return [...new Set(ids.filter((id) => id !== null))];
}

/** What an authentic event says. */
export type EventReading = {
  readonly linkIds: readonly string[];
  readonly facts: readonly PaymentFact[];
  /** It says less than settled needs, so the API should be asked. */
  readonly unsure: boolean;
  /** Why nothing could be read of it that it must say, as the end of a sentence; null where it was understood. */
  readonly notUnderstood: string | null;
  /** It says that the link's own status changed, which the API tells more of. */
  readonly linkChanged: boolean;
  /** The status that it then names, in capitals; null otherwise. */
  readonly linkStatus: string | null;
};

const CREATED = 'payment_link.created';
const STATUS_CHANGED = 'payment_link.status_changed';
const KNOWN_TYPES: ReadonlySet<string> = new Set([CREATED, STATUS_CHANGED, 'payment_link.payment_status_changed']);

function unread(notUnderstood: string, linkIds: readonly string[] = []): EventReading {
  return { linkIds, facts: [], unsure: true, notUnderstood, linkChanged: false, linkStatus: null };
}

/** Reads an event that was parsed with `parseBodyExactly` into payment facts. */
export function readEvent(body: unknown): EventReading {
  const found = findPlaces(body, 'exactly');
  if (found === 'no_object') return unread('it is no JSON object');
  if (!isEvent(found)) return unread(`it is a list of ${found.listOf}, and settled reads one event a delivery`);
  const links = linkIds(found);
  const types = [...new Set(typesOf(found).map((type) => type.toLowerCase()))];
  const [type = null] = types;
  if (types.length === 1 && type !== null && !KNOWN_TYPES.has(type)) {
    return unread(`settled does not know its type ${shown([type])}`, links);
  }
  const linkChanged = types.length === 1 && type === STATUS_CHANGED;
  const linkStatuses = linkChanged ? linkStatusesOf(found) : [];
  const torn = tornIn('types', types) ?? tornIn('link statuses', linkStatuses);
  const statement = readPaymentStatement(found, torn);
  const mustSpeak = type !== CREATED && (!linkChanged || statement.ofPayment);
  const silent = mustSpeak && !statement.speaks ? 'it names no payment status where settled looks for it' : null;
  const notUnderstood = statement.notUnderstood ?? silent;
  if (notUnderstood === null && found.odd.has('payload') && !statement.saysMoneyCame) {
    return unread('what stands in the place of its content cannot be opened', links);
  }
  const [linkStatus = null] = torn === null ? linkStatuses : [];
  return {
    linkIds: links,
    facts: [...statement.facts, ...(linkStatus === 'EXPIRED' ? [bareFact('expired', { by: 'event' })] : [])],
    unsure: statement.unsure || notUnderstood !== null,
    notUnderstood,
    linkChanged,
    linkStatus,
  };
}

/** The types that it names, each once. One that is no text is a type that nobody knows. */
function typesOf(found: Found): string[] {
  return [...new Set(valuesOf(found, 'type').map(statedText))].filter((type) => type !== null);
}

/** Each once, in capitals. */
function linkStatusesOf(found: Found): string[] {
  const named = valuesOf(found, 'linkStatus').filter((status) => typeof status === 'string');
  return [...new Set(named.map((status) => status.toUpperCase()))];
}

function tornIn(what: string, named: readonly string[]): string | null {
  return named.length > 1 ? `it names several ${what}: ${shown(named)}` : null;
}
