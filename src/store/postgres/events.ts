import { type EventRow, eventSummary } from '../events.ts';
import { KEY_MAX } from '../lists.ts';
import type { EventDetail, Queries } from '../queries.ts';
import { statement } from '../statement.ts';
import { firstKeySince } from './rows.ts';
import type { InTransaction } from './transaction.ts';

export const EVENT_COLUMNS = `i.key, i.event_id AS eventId, i.type, o.reference, l.link_id AS linkId, i.status, i.outcome,
  i.rule, i.attempt, i.conflict, i.duplicates, i.received_at_ms AS receivedAtMs, i.due_at_ms AS dueAtMs,
  i.ended_at_ms AS endedAtMs, i.fault_code AS faultCode, i.fault_message AS faultMessage, i.reading`;
const EVENT_TABLES = 'inbox i JOIN link l ON l.key = i.link_key JOIN orders o ON o.key = l.order_key';
/** For the events of one order. They are looked for by its links, also where the server last looked at an empty table. */
export const EVENT_TABLES_OF_ORDER = `orders o JOIN link l ON l.order_key = o.key CROSS JOIN LATERAL (
  SELECT * FROM inbox WHERE link_key = l.key OFFSET 0) i`;

const FIND = statement(
  `SELECT ${EVENT_COLUMNS}, i.timestamp, i.body_sha256 AS bodySha256, b.body
   FROM ${EVENT_TABLES} LEFT JOIN inbox_body b ON b.inbox_key = i.key WHERE i.key = @eventKey`,
);

type DetailRow = EventRow & Pick<EventDetail, 'timestamp' | 'body' | 'bodySha256'>;

export const eventQueries: InTransaction<Pick<Queries, 'listEvents' | 'findEvent'>> = {
  listEvents: async (tx, { limit, after, status, reference, sinceMs }) => {
    const conditions = [
      'i.key < @before',
      // Written out, because a partial index is used only for its own literal.
      ...(status === null ? [] : [`i.status = '${status}'`]),
      ...(reference === null ? [] : ['o.reference = @reference']),
      ...(sinceMs === null
        ? []
        : [`i.key >= ${firstKeySince('inbox', 'received_at_ms')}`, 'i.received_at_ms >= @sinceMs']),
    ];
    const list = statement(
      `SELECT ${EVENT_COLUMNS} FROM ${reference === null ? EVENT_TABLES : EVENT_TABLES_OF_ORDER}
       WHERE ${conditions.join(' AND ')} ORDER BY i.key DESC LIMIT @limit`,
    );
    const values = { before: after ?? KEY_MAX, limit, reference, sinceMs };
    return (await tx.all<EventRow>(list, values)).map(eventSummary);
  },
  findEvent: async (tx, eventKey) => {
    const row = await tx.one<DetailRow>(FIND, { eventKey });
    if (row === undefined) return null;
    const { timestamp, body, bodySha256, ...summary } = row;
    return { ...eventSummary(summary), timestamp, body, bodySha256 };
  },
};
