import { CHECK_CLASSES } from '../../domain/check_queue.ts';
import { firstCheckAtMs } from '../../domain/check_schedule.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';
import { KEY_MAX, type RowPage } from './list_pages.ts';

/** What people see about the service: drift, stale deliveries, and what settled will ask it next. */

/** A difference found between the service and settled. */
export type DriftRow = {
  atMs: number;
  /** The number of the reading that showed it, and why settled asked. */
  reading: number;
  learnedBy: string;
  /** The order's state and money before and after, in words. While undecided, `theirs` is what the service says. */
  ours: string;
  theirs: string;
  rule: string;
  rightSide: 'service' | 'undecided';
};

export type ListedDrift = DriftRow & { key: number; reference: string };

type ListedHint = {
  key: number;
  reference: string;
  eventId: string;
  /** The characters of the timestamp header. */
  timestamp: string;
  count: number;
  firstAtMs: number;
  lastAtMs: number;
};

type NextRequests = {
  /** Links in the queue of checks, in the order in which settled takes them once they are due. */
  queue: QueuedRequest[];
  /** Links in the schedule, the next one first. */
  schedule: { reference: string; linkId: string | null; failures: number; dueAtMs: number }[];
  /** Links that settled is opening. Those with status `taken` wait for a person. */
  openings: WaitingOpening[];
};

export type QueuedRequest = {
  reference: string;
  linkId: string | null;
  reason: string;
  rank: number;
  /** Attempts in a row that the service did not answer. */
  failures: number;
  requestedAtMs: number;
  dueAtMs: number;
};

type WaitingOpening = {
  reference: string;
  status: 'pending' | 'leased' | 'taken';
  attempt: number;
  dueAtMs: number;
  faultCode: string | null;
  faultMessage: string | null;
};

const DRIFT = `SELECT d.key, o.reference, d.at_ms AS atMs, d.reading, d.learned_by AS learnedBy, d.ours, d.theirs, d.rule,
  d.right_side AS rightSide FROM drift d JOIN orders o ON o.key = d.order_key`;
const ALL_DRIFT = statement(`${DRIFT} WHERE d.key < @before ORDER BY d.key DESC LIMIT @limit`);
// `+ 0` keeps both engines from walking all rows in the order of their keys.
const DRIFT_OF_ORDER = statement(`
  ${DRIFT} WHERE o.reference = @reference AND d.key < @before ORDER BY d.key + 0 DESC LIMIT @limit`);

const HINT = `SELECT h.key, o.reference, h.event_id AS eventId, h.timestamp, h.count, h.first_at_ms AS firstAtMs,
  h.last_at_ms AS lastAtMs FROM hint h JOIN link l ON l.key = h.link_key JOIN orders o ON o.key = l.order_key`;
const ALL_HINTS = statement(`${HINT} WHERE h.key < @before ORDER BY h.key DESC LIMIT @limit`);
const HINTS_OF_ORDER = statement(`
  ${HINT} WHERE o.reference = @reference AND h.key < @before ORDER BY h.key + 0 DESC LIMIT @limit`);

// One rank at a time, in the order of the index.
const QUEUE = statement(`
  SELECT o.reference, l.link_id AS linkId, c.reason, c.rank, c.failures, c.requested_at_ms AS requestedAtMs,
    c.due_at_ms AS dueAtMs
  FROM (SELECT link_key, reason, rank, failures, requested_at_ms, due_at_ms FROM link_check
    WHERE rank = @rank ORDER BY due_at_ms LIMIT @limit) AS c
  JOIN link l ON l.key = c.link_key JOIN orders o ON o.key = l.order_key ORDER BY c.due_at_ms, c.link_key`);
const SCHEDULE = statement(`
  SELECT o.reference, l.link_id AS linkId, l.check_failures AS failures, l.next_check_at_ms AS plannedMs,
    s.paid_at_ms AS settledAtMs
  FROM (SELECT key, order_key, link_id, check_failures, next_check_at_ms FROM link
    WHERE next_check_at_ms IS NOT NULL ORDER BY next_check_at_ms LIMIT @limit) AS l
  JOIN orders o ON o.key = l.order_key LEFT JOIN settlement s ON s.order_key = l.order_key
  ORDER BY l.next_check_at_ms, l.key`);

// The status is a literal, because a partial index is used only for its own literal.
const openings = (status: WaitingOpening['status'], order: string) =>
  statement(`
  SELECT o.reference, p.status, p.attempt, p.due_at_ms AS dueAtMs, p.fault_code AS faultCode,
    p.fault_message AS faultMessage
  FROM (SELECT * FROM opening WHERE status = '${status}' ORDER BY ${order} LIMIT @limit) AS p
  JOIN link l ON l.key = p.link_key JOIN orders o ON o.key = l.order_key ORDER BY p.${order}`);
const OPENINGS = [openings('leased', 'due_at_ms'), openings('pending', 'due_at_ms'), openings('taken', 'link_key')];

type ScheduleRow = Omit<NextRequests['schedule'][number], 'dueAtMs'> & {
  plannedMs: number;
  settledAtMs: number | null;
};

/** The ranks of the queue, strongest first. */
const RANKS = CHECK_CLASSES.flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, n) => to - n));

type OrderPage = RowPage & { reference: string | null };

export const serviceQueries = {
  /** Differences found between the service and settled, newest first. */
  *listDrift(tx: Transaction, { limit, after, reference }: OrderPage): Work<ListedDrift[]> {
    const asked = { limit, before: after ?? KEY_MAX, reference };
    return yield* tx.all<ListedDrift>(reference === null ? ALL_DRIFT : DRIFT_OF_ORDER, asked);
  },
  /** Authentic deliveries that were stale, newest first. A repeated one is counted. */
  *listHints(tx: Transaction, { limit, after, reference }: OrderPage): Work<ListedHint[]> {
    const asked = { limit, before: after ?? KEY_MAX, reference };
    return yield* tx.all<ListedHint>(reference === null ? ALL_HINTS : HINTS_OF_ORDER, asked);
  },
  /** What settled will ask the service, as far as it is known now: at most `limit` rows of each kind. */
  *nextRequests(tx: Transaction, { limit }: { limit: number }): Work<NextRequests> {
    const ofRanks = RANKS.map((rank) => tx.all<QueuedRequest>(QUEUE, { rank, limit }));
    const schedule = tx.all<ScheduleRow>(SCHEDULE, { limit });
    const ofStatuses = OPENINGS.map((one) => tx.all<WaitingOpening>(one, { limit }));
    const queue: QueuedRequest[] = [];
    for (const ofRank of ofRanks) queue.push(...(yield* ofRank));
    const waiting: WaitingOpening[] = [];
    for (const ofStatus of ofStatuses) waiting.push(...(yield* ofStatus));
    return {
      queue: queue.slice(0, limit),
      schedule: (yield* schedule).map(({ plannedMs, settledAtMs, ...link }) => {
        return { ...link, dueAtMs: firstCheckAtMs({ settledAtMs }, plannedMs) };
      }),
      openings: waiting.slice(0, limit),
    };
  },
};
