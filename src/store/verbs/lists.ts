import type { Order } from '../../domain/order.ts';
import { faultNote } from '../../domain/retry.ts';
import type { EventDetail, EventSummary, ListedOrder, Queries, RejectionSummary } from '../contract_queries.ts';
import { type InTransaction, statement } from '../transaction.ts';
import { completeAll, loadOrder, ORDER, type OrderRow } from './orders.ts';

/** Lists go from the newest key down; this is the one above them all. */
export const KEY_MAX = Number.MAX_SAFE_INTEGER;

/** If a clock was set back by at most this much, a list of what came since a time misses no row. */
const CLOCK_STEP_MS = 3_600_000;

/** Rows from the first key since this time on came after a time, even if the clock was set back. */
function firstMsAfter(untilMs: number): number {
  return untilMs + 2 * CLOCK_STEP_MS + 1;
}

/** A pattern for LIKE, with `\` as its escape character, that finds a text anywhere in another. */
function containing(text: string): string {
  return `%${text.replace(/[\\%_]/g, '\\$&')}%`;
}

type Lists = Pick<Queries, 'findOrder' | 'listOrders' | 'listEvents' | 'findEvent' | 'listRejections'>;

export const listVerbs: InTransaction<Lists> = {
  *findOrder(tx, reference) {
    return (yield* loadOrder.byReference(tx, reference))?.order ?? null;
  },
  *listOrders(tx, { limit, after, state, search, sinceMs, untilMs }) {
    const asked = {
      limit,
      before: after ?? KEY_MAX,
      state,
      search,
      pattern: search === null ? null : containing(search),
      sinceMs,
      untilMs,
      afterMs: untilMs === null ? null : firstMsAfter(untilMs),
    };
    const rows = yield* tx.all<OrderRow>(orderList({ state, search, sinceMs, untilMs }), asked);
    const kinds = tx.all<{ orderKey: number; kind: string }>(OPEN_KINDS, { keys: rows.map(({ key }) => key) });
    const orders = yield* completeAll(tx, rows);
    const kindsOf = Map.groupBy(yield* kinds, ({ orderKey }) => orderKey);
    return rows.map(
      ({ key }, index): ListedOrder => ({
        key,
        value: orders[index] as Order,
        attention: (kindsOf.get(key) ?? []).map(({ kind }) => kind),
      }),
    );
  },
  *listEvents(tx, { limit, after, status, reference, sinceMs }) {
    const asked = { limit, before: after ?? KEY_MAX, reference, sinceMs };
    const rows = yield* tx.all<EventRow>(eventList({ status, reference, sinceMs }), asked);
    return rows.map(eventSummary);
  },
  *findEvent(tx, eventKey) {
    const row = yield* tx.one<EventRow & Pick<EventDetail, 'timestamp' | 'body' | 'bodySha256'>>(FIND_EVENT, {
      eventKey,
    });
    if (row === undefined) return null;
    const { timestamp, body, bodySha256, ...summary } = row;
    return { ...eventSummary(summary), timestamp, body, bodySha256 };
  },
  *listRejections(tx, { limit, after, reference }) {
    const asked = { limit, before: after ?? KEY_MAX, reference };
    return yield* tx.all<RejectionSummary>(reference === null ? REJECTIONS : REJECTIONS_OF_ORDER, asked);
  },
};

type OrderFilter = Pick<Parameters<Queries['listOrders']>[0], 'state' | 'search' | 'sinceMs' | 'untilMs'>;

const BY_SEARCH = `(reference ILIKE @pattern ESCAPE '\\'
  OR EXISTS (SELECT 1 FROM link l WHERE l.order_key = orders.key AND l.link_id = @search)
  OR EXISTS (SELECT 1 FROM ledger g WHERE g.order_key = orders.key AND g.payment_key = @search))`;

function orderList({ state, search, sinceMs, untilMs }: OrderFilter) {
  const conditions = ['key < @before'];
  if (state !== null) conditions.push('state = @state');
  if (search !== null) conditions.push(BY_SEARCH);
  if (sinceMs !== null) conditions.push(cameSince('orders', 'orders'));
  if (untilMs !== null) conditions.push(`key < ${firstKeySince('orders', '@afterMs')}`, 'created_at_ms <= @untilMs');
  return statement(`${ORDER} WHERE ${conditions.join(' AND ')} ORDER BY key DESC LIMIT @limit`);
}

const OPEN_KINDS = statement(`
  SELECT order_key AS orderKey, kind FROM attention WHERE order_key = ANY(@keys::bigint[]) AND ended_at_ms IS NULL
  ORDER BY key`);

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
 * The events of one order, newest first: a statement without its last condition. It finds them by the order's links;
 * `+ 0` keeps both engines from walking all events in the order of their keys until enough are found.
 */
export function eventsOfOrder(condition: string): string {
  return `SELECT ${EVENT_COLUMNS} FROM orders o JOIN link l ON l.order_key = o.key CROSS JOIN inbox i
    WHERE i.link_key = l.key AND ${condition} ORDER BY i.key + 0 DESC`;
}

type EventFilter = Pick<Parameters<Queries['listEvents']>[0], 'status' | 'reference' | 'sinceMs'>;

function eventList({ status, reference, sinceMs }: EventFilter) {
  const conditions = ['i.key < @before'];
  // Written out, because a partial index is used only for its own literal.
  if (status !== null) conditions.push(STATUS_IS[status]);
  if (sinceMs !== null) conditions.push(cameSince('inbox', 'i'));
  const list =
    reference === null
      ? `SELECT ${EVENT_COLUMNS} FROM ${EVENTS} WHERE ${conditions.join(' AND ')} ORDER BY i.key DESC`
      : eventsOfOrder(['o.reference = @reference', ...conditions].join(' AND '));
  return statement(`${list} LIMIT @limit`);
}

const STATUS_IS: Record<EventSummary['status'], string> = {
  pending: "i.status = 'pending'",
  leased: "i.status = 'leased'",
  done: "i.status = 'done'",
  dead: "i.status = 'dead'",
};

const FIND_EVENT = statement(`
  SELECT ${EVENT_COLUMNS}, i.timestamp, i.body_sha256 AS bodySha256, b.body
  FROM ${EVENTS} LEFT JOIN inbox_body b ON b.inbox_key = i.key WHERE i.key = @eventKey`);

/** Refused deliveries, newest first: a statement without its last condition. */
export const REJECTION = `SELECT r.key, o.reference, r.reason, r.count, r.diagnosis, r.first_at_ms AS firstAtMs,
  r.last_at_ms AS lastAtMs FROM rejection r JOIN link l ON l.key = r.link_key JOIN orders o ON o.key = l.order_key`;
const REJECTIONS = statement(`${REJECTION} WHERE r.key < @before ORDER BY r.key DESC LIMIT @limit`);
const REJECTIONS_OF_ORDER = statement(`
  ${REJECTION} WHERE r.key < @before AND o.reference = @reference ORDER BY r.key DESC LIMIT @limit`);

/** Rows of a table that came since @sinceMs, as a condition: the key finds them, and the time is looked at then. */
export function cameSince(table: keyof typeof TIME_COLUMN, alias: string): string {
  return `${alias}.key >= ${firstKeySince(table, '@sinceMs')} AND ${alias}.${TIME_COLUMN[table]} >= @sinceMs`;
}

const TIME_COLUMN = { inbox: 'received_at_ms', outbox: 'created_at_ms', orders: 'created_at_ms' };

/**
 * A key below which every row is older than a time, as an expression. Keys grow with time, so halving finds it without an
 * index: `step` halves from 2^40, more than any table has rows.
 */
function firstKeySince(table: keyof typeof TIME_COLUMN, sinceMs: string): string {
  return `(WITH RECURSIVE halving (first, step) AS (
      SELECT 1::bigint, 1099511627776
      UNION ALL
      SELECT first + CASE WHEN (SELECT ${TIME_COLUMN[table]} < ${sinceMs}::bigint - ${CLOCK_STEP_MS} FROM ${table}
          WHERE key >= first + step - 1 ORDER BY key LIMIT 1) THEN step ELSE 0 END, step / 2
      FROM halving WHERE step > 0
    ) SELECT max(first) FROM halving)`;
}
