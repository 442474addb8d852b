import { type EventRow, eventSummary } from '../events.ts';
import type { AttentionSummary, DriftRow, Queries, RejectionSummary, Timeline } from '../queries.ts';
import { type Statement, statement } from '../statement.ts';
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
import { EVENT_COLUMNS, EVENT_TABLES_OF_ORDER } from './events.ts';
import { orders } from './orders.ts';
import { ATTENTION } from './rows.ts';
import type { InTransaction, Transaction } from './transaction.ts';

const newest = (sql: string) => statement(`${sql} DESC LIMIT ${TIMELINE_ROWS_MAX}`);
const MINE = 'l.order_key = @orderKey';

const HISTORY = newest(
  `SELECT at_ms AS atMs, what, outcome, from_state AS "from", to_state AS "to", cause_kind AS causeKind,
     cause_id AS causeId, effects FROM history WHERE order_key = @orderKey ORDER BY key`,
);
const EVENTS = newest(`SELECT ${EVENT_COLUMNS} FROM ${EVENT_TABLES_OF_ORDER} WHERE ${MINE} ORDER BY i.key`);
const HINTS = newest(
  `SELECT h.event_id AS eventId, h.timestamp, h.last_at_ms AS lastAtMs, h.count
   FROM hint h JOIN link l ON l.key = h.link_key WHERE ${MINE} ORDER BY h.key`,
);
const REJECTIONS = newest(
  `SELECT r.key, @reference::text AS reference, r.reason, r.count, r.diagnosis, r.first_at_ms AS firstAtMs, r.last_at_ms AS lastAtMs
   FROM rejection r JOIN link l ON l.key = r.link_key WHERE ${MINE} ORDER BY r.key`,
);
const MATTERS = newest(`${ATTENTION} WHERE a.order_key = @orderKey AND a.ended_at_ms IS NULL ORDER BY a.key`);
const NOTICES = newest(`${NOTICE} WHERE n.order_key = @orderKey ORDER BY n.key`);
const CHECK = statement(
  `SELECT c.reason, c.requested_at_ms AS requestedAtMs, c.due_at_ms AS dueAtMs
   FROM link_check c JOIN link l ON l.key = c.link_key WHERE ${MINE} LIMIT 1`,
);
const DRIFT = newest(
  `SELECT at_ms AS atMs, reading, learned_by AS learnedBy, ours, theirs, rule, right_side AS rightSide
   FROM drift WHERE order_key = @orderKey ORDER BY key`,
);
const SCHEDULE = statement(
  `SELECT l.next_check_at_ms AS nextCheckAtMs, l.check_failures AS checkFailures,
     l.expires_at_ms AS linkExpiresAtMs FROM link l WHERE ${MINE} ORDER BY l.key DESC LIMIT 1`,
);
const OPENING = statement(
  `SELECT p.status, p.attempt, p.due_at_ms AS dueAtMs, p.fault_code AS faultCode, p.fault_message AS faultMessage,
     l.withheld, p.answer_lost AND l.service_sealed_secret IS NULL AS secretUnseen
   FROM opening p JOIN link l ON l.key = p.link_key WHERE ${MINE} ORDER BY l.key DESC LIMIT 1`,
);

export const timeline: InTransaction<Queries>['timeline'] = async (tx, reference) => {
  const loaded = await orders.byReference(tx, reference);
  if (loaded === null) return null;
  const { order, orderKey } = loaded;
  const [rows, check, schedule, opening] = await Promise.all([
    allOf(tx, { orderKey, reference }),
    tx.one<CheckColumns>(CHECK, { orderKey }),
    tx.one<ScheduleColumns>(SCHEDULE, { orderKey }),
    tx.one<OpeningSummaryColumns>(OPENING, { orderKey }),
  ]);
  return {
    order,
    ...rows,
    check: waitingCheck(check, order.state),
    ...scheduleSummary(schedule as ScheduleColumns, order.settlement?.paidAtMs ?? null),
    opening: openingSummary(opening),
  };
};

type Rows = Pick<Timeline, 'history' | 'events' | 'hints' | 'rejections' | 'attention' | 'notices' | 'drift'>;

async function allOf(tx: Transaction, of: { orderKey: number; reference: string }): Promise<Rows> {
  const oldestFirst = async <Row>(rows: Statement) => (await tx.all<Row>(rows, of)).reverse();
  const [history, events, hints, rejections, attention, notices, drift] = await Promise.all([
    oldestFirst<HistoryColumns>(HISTORY),
    oldestFirst<EventRow>(EVENTS),
    oldestFirst<Timeline['hints'][number]>(HINTS),
    oldestFirst<RejectionSummary>(REJECTIONS),
    oldestFirst<AttentionSummary>(MATTERS),
    oldestFirst<NoticeRow>(NOTICES),
    oldestFirst<DriftRow>(DRIFT),
  ]);
  return {
    history: history.map(historyRow),
    events: events.map(eventSummary),
    hints,
    rejections,
    attention,
    notices: notices.map(noticeSummary),
    drift,
  };
}
