import type { Outcome } from '../../domain/decision.ts';
import type { Order } from '../../domain/order.ts';
import { type FaultNote, faultNote, type RowStatus } from '../../domain/retry.ts';
import type { KeptReason } from '../../vocabulary.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';
import { defineList, finder, inTime, type Listed, type Narrowed, type RowPage, readKeys } from './list_pages.ts';
import { loadOrder } from './orders.ts';

/** Null or absent matches everything, as in every filter of a list. */
export type EventFilter = {
  /** A delivery of the service, or its answer when settled asked. */
  kind?: 'event' | 'reading' | null | undefined;
  status?: RowStatus | null | undefined;
  type?: string | null | undefined;
  outcome?: Outcome | null | undefined;
  reference?: string | null | undefined;
  /** Received within this time. */
  sinceMs?: number | null | undefined;
  untilMs?: number | null | undefined;
};

export type EventSummary = {
  key: number;
  eventId: string;
  type: string | null;
  reference: string;
  linkId: string | null;
  status: RowStatus;
  outcome: string | null;
  rule: string | null;
  attempt: number;
  conflict: boolean;
  duplicates: number;
  receivedAtMs: number;
  dueAtMs: number;
  endedAtMs: number | null;
  fault: FaultNote | null;
  /** The number of a reading, which is an answer of the API; null for an event. */
  reading: number | null;
};
export type EventDetail = EventSummary & {
  timestamp: string;
  /** Null if the body was dropped because the event is old. */
  body: Uint8Array | null;
  bodySha256: Uint8Array;
};

export type RejectionFilter = { reason?: KeptReason | null; reference?: string | null };

export type RejectionSummary = {
  key: number;
  reference: string;
  reason: string;
  count: number;
  /** JSON of the newest diagnosis. */
  diagnosis: string | null;
  firstAtMs: number;
  lastAtMs: number;
};

export const listVerbs = {
  *findOrder(tx: Transaction, reference: string): Work<Order | null> {
    return (yield* loadOrder.byReference(tx, reference))?.order ?? null;
  },
  *listEvents(tx: Transaction, page: RowPage & EventFilter): Work<Listed<EventSummary>> {
    const { keys, ...more } = yield* readKeys(tx, EVENT_LIST, narrowEvents(page), page);
    const rows = keys.length === 0 ? [] : yield* tx.all<EventRow>(EVENTS_OF_KEYS, { keys });
    return { rows: rows.map(eventSummary), ...more };
  },
  *findEvent(tx: Transaction, eventKey: number): Work<EventDetail | null> {
    const row = yield* tx.one<EventRow & Omit<EventDetail, keyof EventSummary>>(FIND_EVENT, { eventKey });
    if (row === undefined) return null;
    const { timestamp, body, bodySha256, ...summary } = row;
    return { ...eventSummary(summary), timestamp, body, bodySha256 };
  },
  *listRejections(tx: Transaction, page: RowPage & RejectionFilter): Work<Listed<RejectionSummary>> {
    const { keys, ...more } = yield* readKeys(tx, REJECTION_LIST, narrowRejections(page), page);
    const rows = keys.length === 0 ? [] : yield* tx.all<RejectionSummary>(REJECTIONS_OF_KEYS, { keys });
    return { rows, ...more };
  },
};

/** A row of `EVENT`. */
export type EventRow = Omit<EventSummary, 'conflict' | 'fault'> & {
  isConflict: boolean;
  faultCode: string | null;
  faultMessage: string | null;
};

export function eventSummary({ isConflict, faultCode, faultMessage, ...row }: EventRow): EventSummary {
  return { ...row, conflict: isConflict, fault: faultNote(faultCode, faultMessage) };
}

const EVENT_COLUMNS = `i.key, i.event_id AS eventId, i.type, o.reference, l.link_id AS linkId, i.status, i.outcome,
  i.rule, i.attempt, i.conflict AS isConflict, i.duplicates, i.received_at_ms AS receivedAtMs, i.due_at_ms AS dueAtMs,
  i.ended_at_ms AS endedAtMs, i.fault_code AS faultCode, i.fault_message AS faultMessage, i.reading`;
const EVENTS = 'inbox i JOIN link l ON l.key = i.link_key JOIN orders o ON o.key = l.order_key';

/**
 * The events of one order, newest first: a statement without its limit. Finds them by the order's links; `+ 0` keeps
 * both engines from walking all events in the order of their keys.
 */
export const EVENTS_OF_ORDER = `SELECT ${EVENT_COLUMNS} FROM orders o JOIN link l ON l.order_key = o.key
  CROSS JOIN inbox i WHERE i.link_key = l.key AND o.key = @orderKey ORDER BY i.key + 0 DESC`;

const EVENTS_OF_KEYS = statement(`
  SELECT ${EVENT_COLUMNS} FROM ${EVENTS} WHERE i.key = ANY(@keys::bigint[]) ORDER BY i.key DESC`);

const EVENT_MATCHES = `(@status::text IS NULL OR i.status = @status) AND (@type::text IS NULL OR i.type = @type)
  AND (@outcome::text IS NULL OR i.outcome = @outcome)
  AND (@kind::text IS NULL OR (i.reading IS NOT NULL) = (@kind = 'reading')) AND ${inTime('inbox', 'i')}`;
const OF_LINKS = 'orders o JOIN link l ON l.order_key = o.key CROSS JOIN';

export const EVENT_LIST = defineList({
  table: 'inbox',
  alias: 'i',
  matches: EVENT_MATCHES,
  ordered: {
    ofOrder: { from: `${OF_LINKS} inbox i`, condition: 'i.link_key = l.key AND o.reference = @reference' },
    dead: { from: 'inbox i INDEXED BY inbox_dead', condition: "i.status = 'dead'" },
  },
});

// The status is a literal, because a partial index is used only for its own literal.
const withStatus = (status: 'pending' | 'leased' | 'dead') =>
  statement(`SELECT key FROM inbox WHERE status = '${status}' ORDER BY ${ORDER_OF[status]} LIMIT @few`);
const ORDER_OF = { pending: 'due_at_ms, key', leased: 'due_at_ms', dead: 'key' } as const;
const EVENTS_WITH = { pending: withStatus('pending'), leased: withStatus('leased'), dead: withStatus('dead') };

export function narrowEvents(filter: EventFilter): Narrowed {
  const { kind = null, status = null, type = null, outcome = null, reference = null } = filter;
  const { sinceMs = null, untilMs = null } = filter;
  const values = { kind, status, type, outcome, reference, sinceMs, untilMs };
  const others = [kind, type, outcome, sinceMs, untilMs].filter((value) => value !== null);
  const isDead = status === 'dead' && others.length === 0;
  return {
    values,
    finders: status === null || status === 'done' ? [] : [finder(EVENTS_WITH[status], {})],
    ordered: reference !== null ? 'ofOrder' : isDead ? 'dead' : null,
  };
}

const FIND_EVENT = statement(`
  SELECT ${EVENT_COLUMNS}, i.timestamp, i.body_sha256 AS bodySha256, b.body
  FROM ${EVENTS} LEFT JOIN inbox_body b ON b.inbox_key = i.key WHERE i.key = @eventKey`);

/** Rejections, newest first: a statement without its last condition. */
export const REJECTION = `SELECT r.key, o.reference, r.reason, r.count, r.diagnosis, r.first_at_ms AS firstAtMs,
  r.last_at_ms AS lastAtMs FROM rejection r JOIN link l ON l.key = r.link_key JOIN orders o ON o.key = l.order_key`;
const REJECTIONS_OF_KEYS = statement(`${REJECTION} WHERE r.key = ANY(@keys::bigint[]) ORDER BY r.key DESC`);

const REJECTION_LIST = defineList({
  table: 'rejection',
  alias: 'r',
  matches: '(@reason::text IS NULL OR r.reason = @reason)',
  ordered: {
    ofOrder: { from: `${OF_LINKS} rejection r`, condition: 'r.link_key = l.key AND o.reference = @reference' },
  },
});

const REJECTIONS_FOR = statement('SELECT key FROM rejection WHERE reason = @reason ORDER BY last_at_ms LIMIT @few');

function narrowRejections({ reason = null, reference = null }: RejectionFilter): Narrowed {
  return {
    values: { reason, reference },
    finders: reason === null ? [] : [finder(REJECTIONS_FOR, { reason })],
    ordered: reference === null ? null : 'ofOrder',
  };
}
