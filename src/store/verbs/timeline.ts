import { type CheckReason, isMoot } from '../../domain/check_queue.ts';
import { firstCheckAtMs } from '../../domain/check_schedule.ts';
import type { Reported } from '../../domain/comparison.ts';
import type { OpeningState } from '../../domain/opening.ts';
import type { Order, OrderState } from '../../domain/order.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';
import type { AttentionSummary } from './attention.ts';
import { LASTING_REASON } from './check_queue.ts';
import {
  EVENTS_OF_ORDER,
  type EventRow,
  type EventSummary,
  eventSummary,
  REJECTION,
  type RejectionSummary,
} from './lists.ts';
import { NOTICE, type NoticeRow, type NoticeSummary, noticeSummary } from './notice_lists.ts';
import { OPENING_COLUMNS, type OpeningColumns, openingState } from './openings.ts';
import { loadOrder } from './orders.ts';
import { readReported } from './payments.ts';
import type { DriftRow } from './service_lists.ts';

export type HistoryRow = {
  atMs: number;
  what: string;
  outcome: string | null;
  from: string | null;
  to: string | null;
  /** `event` with the event's key, `reading` with its number, or `person` with the reason, if one was given. */
  cause: { kind: 'event' | 'reading' | 'person'; id: string | null };
  /** Who decided, as in the audit; null if it was no named person. */
  by: string | null;
  effects: string[];
};

export type Timeline = {
  order: Order;
  history: HistoryRow[];
  events: EventSummary[];
  hints: { eventId: string; timestamp: string; lastAtMs: number; count: number }[];
  rejections: RejectionSummary[];
  attention: AttentionSummary[];
  notices: NoticeSummary[];
  /** When the order's link expires; null if unknown. */
  linkExpiresAtMs: number | null;
  /** The check of this order's link that waits for the API; null if none does. */
  check: { reason: string; requestedAtMs: number; dueAtMs: number } | null;
  /** When the schedule asks about the order's link next; null if never. */
  nextCheckAtMs: number | null;
  /** Failed attempts to ask about it since the service last answered. */
  checkFailures: number;
  /** Why settled cannot use the signing secret that the service named for the link; null if there is no such flaw. */
  secretFlaw: string | null;
  /** The progress of the opening, if settled opens the link itself. */
  opening:
    | (OpeningState & {
        attempt: number;
        dueAtMs: number;
        /** Whether settled missed the service's answer to the creation, which may have named a secret. */
        secretUnseen?: boolean;
      })
    | null;
  drift: DriftRow[];
  /** What the newest webhook reported that settled asked the service about; null if there is none, or it names no money. */
  reported: Reported | null;
};

/** The most rows of each kind in a timeline; the newest. */
const ROWS_MAX = 500;

const newest = (sql: string) => statement(`${sql} DESC LIMIT ${ROWS_MAX}`);

const CHECK = statement(`
  SELECT c.reason, ${LASTING_REASON} AS lastingReason, c.requested_at_ms AS requestedAtMs, c.due_at_ms AS dueAtMs
  FROM link_check c JOIN link l ON l.key = c.link_key WHERE l.order_key = @orderKey LIMIT 1`);
const SCHEDULE = statement(`
  SELECT next_check_at_ms AS nextCheckAtMs, check_failures AS checkFailures, expires_at_ms AS linkExpiresAtMs,
    service_secret_flaw AS secretFlaw
  FROM link WHERE order_key = @orderKey ORDER BY key DESC LIMIT 1`);
const OPENING = statement(`
  SELECT ${OPENING_COLUMNS}, p.attempt, p.due_at_ms AS dueAtMs,
    p.answer_lost AND l.service_sealed_secret IS NULL AS isSecretUnseen
  FROM opening p JOIN link l ON l.key = p.link_key WHERE l.order_key = @orderKey ORDER BY l.key DESC LIMIT 1`);

const HISTORY = newest(
  `SELECT h.at_ms AS atMs, h.what, h.outcome, h.from_state AS "from", h.to_state AS "to", h.cause_kind AS causeKind,
     h.cause_id AS causeId, h.effects, CASE WHEN h.cause_kind = 'person' AND h.outcome = 'applied' THEN (
       SELECT a.actor FROM audit a WHERE a.subject = @reference AND a.at_ms = h.at_ms
         AND a.action IN ('accept_order', 'reject_order', 'cancel_order') LIMIT 1) END AS decidedBy
   FROM history h WHERE h.order_key = @orderKey ORDER BY h.key`,
);
const EVENTS = statement(`${EVENTS_OF_ORDER} LIMIT ${ROWS_MAX}`);
const HINTS = newest(
  `SELECT h.event_id AS eventId, h.timestamp, h.last_at_ms AS lastAtMs, h.count
   FROM hint h JOIN link l ON l.key = h.link_key WHERE l.order_key = @orderKey ORDER BY h.key`,
);
const REJECTIONS = newest(`${REJECTION} WHERE l.order_key = @orderKey ORDER BY r.key`);
const OPEN_ATTENTION = newest(
  `SELECT a.key, a.kind, a.subject, o.reference, a.params, a.count, a.opened_at_ms AS openedAtMs, a.last_at_ms AS lastAtMs
   FROM attention a JOIN orders o ON o.key = a.order_key
   WHERE a.order_key = @orderKey AND a.ended_at_ms IS NULL ORDER BY a.key`,
);
const NOTICES = newest(`${NOTICE} WHERE n.order_key = @orderKey ORDER BY n.key`);
const DRIFT = newest(
  `SELECT at_ms AS atMs, reading, learned_by AS learnedBy, ours, theirs, rule, right_side AS rightSide
   FROM drift WHERE order_key = @orderKey ORDER BY key`,
);

/** Everything known about an order, oldest first. Null if there is no such order. */
export function* timeline(tx: Transaction, reference: string): Work<Timeline | null> {
  const loaded = yield* loadOrder.byReference(tx, reference);
  if (loaded === null) return null;
  const { order, orderKey } = loaded;
  const check = tx.one<CheckColumns>(CHECK, { orderKey });
  const schedule = tx.one<ScheduleColumns>(SCHEDULE, { orderKey });
  const opening = tx.one<OpeningSummaryColumns>(OPENING, { orderKey });
  const lines = tx.all<HistoryColumns>(HISTORY, { orderKey, reference });
  const events = tx.all<EventRow>(EVENTS, { orderKey });
  const hints = tx.all<Timeline['hints'][number]>(HINTS, { orderKey });
  const rejections = tx.all<RejectionSummary>(REJECTIONS, { orderKey });
  const attention = tx.all<AttentionColumns>(OPEN_ATTENTION, { orderKey });
  const notices = tx.all<NoticeRow>(NOTICES, { orderKey });
  const drift = tx.all<DriftRow>(DRIFT, { orderKey });
  const history = (yield* lines).map(historyRow).reverse();
  const link = scheduleSummary((yield* schedule) as ScheduleColumns, order.settlement?.paidAtMs ?? null);
  return {
    order,
    history,
    events: (yield* events).map(eventSummary).reverse(),
    hints: (yield* hints).reverse(),
    rejections: (yield* rejections).reverse(),
    attention: (yield* attention).map((row) => ({ ...row, params: JSON.parse(row.params) })).reverse(),
    notices: (yield* notices).map(noticeSummary).reverse(),
    drift: (yield* drift).reverse(),
    check: waitingCheck(yield* check, order.state),
    ...link,
    opening: openingSummary(yield* opening),
    reported: (yield* readReported(tx, [orderKey])).get(orderKey) ?? null,
  };
}

type AttentionColumns = Omit<AttentionSummary, 'params'> & { params: string };

type HistoryColumns = Omit<HistoryRow, 'cause' | 'by' | 'effects'> & {
  decidedBy: string | null;
  causeKind: HistoryRow['cause']['kind'];
  causeId: string | null;
  effects: string;
};

function historyRow({ causeKind, causeId, decidedBy: by, effects, ...row }: HistoryColumns): HistoryRow {
  return { ...row, cause: { kind: causeKind, id: causeId }, by, effects: effects === '' ? [] : effects.split('\n') };
}

type CheckColumns = NonNullable<Timeline['check']> & { reason: CheckReason; lastingReason: CheckReason | null };

/** The queued check, by its strongest reason that is not moot. */
function waitingCheck(check: CheckColumns | undefined, state: OrderState): Timeline['check'] {
  if (check === undefined) return null;
  const { lastingReason, ...columns } = check;
  const reason = isMoot(columns.reason, state) ? lastingReason : columns.reason;
  return reason === null ? null : { ...columns, reason };
}

type ScheduleColumns = Pick<Timeline, 'nextCheckAtMs' | 'checkFailures' | 'linkExpiresAtMs' | 'secretFlaw'>;

/** Until the next check of a paid order, its link keeps the scheduled time of the open order. */
function scheduleSummary(link: ScheduleColumns, settledAtMs: number | null): ScheduleColumns {
  if (link.nextCheckAtMs === null) return link;
  return { ...link, nextCheckAtMs: firstCheckAtMs({ settledAtMs }, link.nextCheckAtMs) };
}

type OpeningSummaryColumns = OpeningColumns & { attempt: number; dueAtMs: number; isSecretUnseen: boolean };

function openingSummary(row: OpeningSummaryColumns | undefined): Timeline['opening'] {
  if (row === undefined) return null;
  const { attempt, dueAtMs, isSecretUnseen: secretUnseen, ...columns } = row;
  return { ...openingState(columns), attempt, dueAtMs, secretUnseen };
}
