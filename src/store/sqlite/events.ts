import type { Database } from 'better-sqlite3';
import { type EventRow, eventSummary } from '../events.ts';
import { KEY_MAX } from '../lists.ts';
import type { EventDetail, EventSummary, Queries } from '../queries.ts';
import { firstKeySince } from './rows.ts';
import type { Synchronous } from './synchronous.ts';

export const EVENT_COLUMNS = `i.key, i.event_id AS eventId, i.type, o.reference, l.link_id AS linkId, i.status, i.outcome,
  i.rule, i.attempt, i.conflict, i.duplicates, i.received_at_ms AS receivedAtMs, i.due_at_ms AS dueAtMs,
  i.ended_at_ms AS endedAtMs, i.fault_code AS faultCode, i.fault_message AS faultMessage, i.reading`;
export const EVENT_TABLES = 'inbox i JOIN link l ON l.key = i.link_key JOIN orders o ON o.key = l.order_key';

/** Written out, because SQLite uses a partial index only for the literal that it was made with. */
const STATUS_IS: Record<EventSummary['status'], string> = {
  pending: "i.status = 'pending'",
  leased: "i.status = 'leased'",
  done: "i.status = 'done'",
  dead: "i.status = 'dead'",
};

export function eventQueries(db: Database): Pick<Synchronous<Queries>, 'listEvents' | 'findEvent'> {
  const find = db.prepare(
    `SELECT ${EVENT_COLUMNS}, i.timestamp, i.body_sha256 AS bodySha256, b.body
     FROM ${EVENT_TABLES} LEFT JOIN inbox_body b ON b.inbox_key = i.key WHERE i.key = ?`,
  );
  const firstSince = firstKeySince(db, 'inbox', 'received_at_ms');
  return {
    listEvents: ({ limit, after, status, reference, sinceMs }) => {
      const byStatus = status === null ? '' : ` AND ${STATUS_IS[status]}`;
      const byReference = reference === null ? '' : ' AND o.reference = @reference';
      const byTime = sinceMs === null ? '' : ' AND i.key >= @from AND i.received_at_ms >= @sinceMs';
      const sql = `SELECT ${EVENT_COLUMNS} FROM ${EVENT_TABLES} WHERE i.key < @after${byStatus}${byReference}${byTime}
        ORDER BY i.key DESC LIMIT @limit`;
      const rows = db
        .prepare(sql)
        .all({
          after: after ?? KEY_MAX,
          limit,
          ...(reference === null ? {} : { reference }),
          ...(sinceMs === null ? {} : { sinceMs, from: firstSince(sinceMs) }),
        }) as EventRow[];
      return rows.map(eventSummary);
    },
    findEvent: (eventKey) => {
      const row = find.get(eventKey) as (EventRow & Pick<EventDetail, 'timestamp' | 'body' | 'bodySha256'>) | undefined;
      if (row === undefined) return null;
      const { timestamp, body, bodySha256, ...summary } = row;
      return { ...eventSummary(summary), timestamp, body, bodySha256 };
    },
  };
}
