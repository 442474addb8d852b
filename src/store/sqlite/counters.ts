import type { Sharing } from '../contract.ts';
import type { Queries, Stats } from '../contract_queries.ts';
import { type InTransaction, statement, type Transaction, type Work } from '../transaction.ts';
import {
  type Counted,
  countLeases,
  LEASES,
  type LeaseRow,
  type Named,
  readStats,
  type Statuses,
  statusesOf,
  tally,
  type WebhookWeek,
  withDone,
} from '../verbs/stats.ts';

// Triggers keep these counts: one process writes, so nothing waits for a counter.
const ORDERS = statement('SELECT state AS name, n FROM order_count WHERE n > 0');
const NOTICES = statement('SELECT status AS name, n FROM notice_count');
const CHECKS = statement(
  `SELECT rank, n, (SELECT min(due_at_ms) FROM link_check WHERE rank = check_count.rank) AS dueAtMs FROM check_count`,
);
// Events and drift are never deleted, so the highest key is their number.
const EVENTS = statusesOf('inbox', '(SELECT coalesce(max(key), 0) FROM inbox)');
const COUNTS = statement(
  `SELECT (SELECT coalesce(max(key), 0) FROM drift) AS drift,
     (SELECT count(*) FROM settlement WHERE webhook_missing = 1 AND paid_at_ms > @afterMs AND paid_at_ms <= @untilMs)
       AS webhooksMissing`,
);
const FEED = statement(
  `SELECT (SELECT coalesce(max(key), 0) FROM outbox) AS newest, generation, restored_from_ms AS restoredFromMs
   FROM instance`,
);

type Counts = Pick<Stats, 'drift' | 'webhooksMissing'>;

function* count(tx: Transaction, week: WebhookWeek): Work<Counted> {
  return {
    orders: tally(yield* tx.all<Named>(ORDERS)),
    events: withDone((yield* tx.one<Statuses>(EVENTS)) as Statuses),
    notices: tally(yield* tx.all<Named>(NOTICES)),
    checks: yield* tx.all<Counted['checks'][number]>(CHECKS),
    ...((yield* tx.one<Counts>(COUNTS, week)) as Counts),
    feed: (yield* tx.one<Stats['feed']>(FEED)) as Stats['feed'],
  };
}

const SERVER = statement('SELECT sqlite_version() AS version');

export const counterVerbs: InTransaction<Pick<Queries, 'stats'> & Sharing> = {
  stats: (tx, nowMs) => readStats(tx, nowMs, count),
  /** One process has the database to itself, so it has no replicas. */
  *storeState(tx, nowMs) {
    const server = yield* tx.one<{ version: string }>(SERVER);
    const leases = yield* tx.all<LeaseRow>(LEASES, { nowMs });
    return { server: `SQLite ${server?.version}`, replicas: [], lapsed: countLeases(leases, 'lapsed') };
  },
};
