import type { Database } from 'better-sqlite3';
import { type EventRow, eventSummary } from '../events.ts';
import type { Queries, Timeline } from '../queries.ts';
import {
  type CheckColumns,
  type HistoryColumns,
  historyRow,
  type OpeningSummaryColumns,
  openingSummary,
  type ScheduleColumns,
  scheduleSummary,
  TIMELINE_ROWS_MAX,
  waitingCheck,
} from '../timeline.ts';
import { NOTICE, type NoticeRow, noticeSummary } from '../verbs/notices.ts';
import { EVENT_COLUMNS, EVENT_TABLES } from './events.ts';
import { orderLoader } from './orders.ts';
import { ATTENTION } from './rows.ts';
import type { Synchronous } from './synchronous.ts';

export function timelineQuery(db: Database): Synchronous<Queries>['timeline'] {
  const orders = orderLoader(db);
  const newest = (sql: string) => db.prepare(`${sql} DESC LIMIT ${TIMELINE_ROWS_MAX}`);
  const mine = 'l.order_key = ?';
  const history = newest(
    `SELECT at_ms AS atMs, what, outcome, from_state AS "from", to_state AS "to", cause_kind AS causeKind,
       cause_id AS causeId, effects FROM history WHERE order_key = ? ORDER BY key`,
  );
  const events = newest(`SELECT ${EVENT_COLUMNS} FROM ${EVENT_TABLES} WHERE ${mine} ORDER BY i.key`);
  const hints = newest(
    `SELECT h.event_id AS eventId, h.timestamp, h.last_at_ms AS lastAtMs, h.count
     FROM hint h JOIN link l ON l.key = h.link_key WHERE ${mine} ORDER BY h.key`,
  );
  const rejections = newest(
    `SELECT r.key, ? AS reference, r.reason, r.count, r.diagnosis, r.first_at_ms AS firstAtMs, r.last_at_ms AS lastAtMs
     FROM rejection r JOIN link l ON l.key = r.link_key WHERE ${mine} ORDER BY r.key`,
  );
  const attention = newest(`${ATTENTION} WHERE a.order_key = ? AND a.ended_at_ms IS NULL ORDER BY a.key`);
  const notices = newest(`${NOTICE} WHERE n.order_key = ? ORDER BY n.key`);
  const check = db.prepare(
    `SELECT c.reason, c.requested_at_ms AS requestedAtMs, c.due_at_ms AS dueAtMs
     FROM link_check c JOIN link l ON l.key = c.link_key WHERE ${mine} LIMIT 1`,
  );
  const drift = newest(
    `SELECT at_ms AS atMs, reading, learned_by AS learnedBy, ours, theirs, rule, right_side AS rightSide
     FROM drift WHERE order_key = ? ORDER BY key`,
  );
  const schedule = db.prepare(
    `SELECT l.next_check_at_ms AS nextCheckAtMs, l.check_failures AS checkFailures,
       l.expires_at_ms AS linkExpiresAtMs FROM link l WHERE ${mine} ORDER BY l.key DESC LIMIT 1`,
  );
  const opening = db.prepare(
    `SELECT p.status, p.attempt, p.due_at_ms AS dueAtMs, p.fault_code AS faultCode, p.fault_message AS faultMessage,
       l.withheld, p.answer_lost AND l.service_sealed_secret IS NULL AS secretUnseen
     FROM opening p JOIN link l ON l.key = p.link_key WHERE ${mine} ORDER BY l.key DESC LIMIT 1`,
  );

  return (reference) => {
    const loaded = orders.byReference(reference);
    if (loaded === null) return null;
    const { order, orderKey } = loaded;
    return {
      order,
      history: (history.all(orderKey).reverse() as HistoryColumns[]).map(historyRow),
      events: (events.all(orderKey).reverse() as EventRow[]).map(eventSummary),
      hints: hints.all(orderKey).reverse() as Timeline['hints'],
      rejections: rejections.all(reference, orderKey).reverse() as Timeline['rejections'],
      attention: attention.all(orderKey).reverse() as Timeline['attention'],
      notices: (notices.all(orderKey).reverse() as NoticeRow[]).map(noticeSummary),
      check: waitingCheck(check.get(orderKey) as CheckColumns | undefined, order.state),
      ...scheduleSummary(schedule.get(orderKey) as ScheduleColumns, order.settlement?.paidAtMs ?? null),
      opening: openingSummary(opening.get(orderKey) as OpeningSummaryColumns | undefined),
      drift: drift.all(orderKey).reverse() as Timeline['drift'],
    };
  };
}
