import type { Queries, Stats } from '../contract_queries.ts';
import { type InTransaction, statement, type Transaction, type Work } from '../transaction.ts';
import {
  type Counted,
  type Named,
  readStats,
  type Statuses,
  statusesOf,
  tally,
  type WebhookWeek,
  withDone,
} from '../verbs/stats.ts';

type CountedTable = 'inbox' | 'outbox';

const ORDERS = statement('SELECT state AS name, count(*) AS n FROM orders GROUP BY state');
const rowsOf = (table: CountedTable) =>
  `(SELECT n + (SELECT count(*) FROM ${table} WHERE key > to_key) FROM counted WHERE name = '${table}')`;
const EVENTS = statusesOf('inbox', rowsOf('inbox'));
const NOTICES = statusesOf('outbox', rowsOf('outbox'));
// Each rank is the beginning of an index.
const CHECKS = statement('SELECT rank, count(*) AS n, min(due_at_ms) AS dueAtMs FROM link_check GROUP BY rank');
const COUNTS = statement(
  `SELECT (SELECT count(*) FROM drift) AS drift,
     (SELECT count(*) FROM settlement WHERE webhook_missing AND paid_at_ms > @afterMs AND paid_at_ms <= @untilMs)
       AS webhooksMissing`,
);
/** Notices without a position that are counted at most. If nobody reads the feed, no notice has a position. */
const FRESH_MAX = 10_000;
const FEED = statement(
  `SELECT (SELECT coalesce(max(position), 0) FROM outbox)
       + (SELECT count(*) FROM (SELECT 1 FROM outbox WHERE position IS NULL LIMIT ${FRESH_MAX}) AS fresh) AS newest,
     generation, restored_from_ms AS restoredFromMs FROM instance`,
);

export const counterVerbs: InTransaction<Pick<Queries, 'stats'>> = {
  stats: (tx, nowMs) => readStats(tx, nowMs, count),
};

type Counts = Pick<Stats, 'drift' | 'webhooksMissing'>;

function* count(tx: Transaction, week: WebhookWeek): Work<Counted> {
  const orders = tx.all<Named>(ORDERS);
  const events = tx.one<Statuses>(EVENTS);
  const notices = tx.one<Statuses>(NOTICES);
  const checks = tx.all<Counted['checks'][number]>(CHECKS);
  const counts = tx.one<Counts>(COUNTS, week);
  const feed = tx.one<Stats['feed']>(FEED);
  return {
    orders: tally(yield* orders),
    events: withDone((yield* events) as Statuses),
    notices: withDone((yield* notices) as Statuses),
    checks: yield* checks,
    ...((yield* counts) as Counts),
    feed: (yield* feed) as Stats['feed'],
  };
}

/** How many keys a count advances by in one step. */
const STEP = 20_000;
/** No transaction takes so long: every row with a smaller key than a row of this age is committed. */
const COMMITTED_AFTER_MS = 600_000;
const countOn = (table: CountedTable, atMs: string) =>
  statement(
    `UPDATE counted SET to_key = to_key + ${STEP},
       n = n + (SELECT count(*) FROM ${table} WHERE key > to_key AND key <= to_key + ${STEP})
     WHERE name = '${table}' AND (SELECT ${atMs} FROM ${table} WHERE key > to_key + ${STEP} ORDER BY key LIMIT 1)
       <= @nowMs::bigint - ${COMMITTED_AFTER_MS}`,
  );
const COUNT_EVENTS = countOn('inbox', 'received_at_ms');
const COUNT_NOTICES = countOn('outbox', 'created_at_ms');

/** Counts old rows once, a step at a time, so that `stats` does not read all of them. */
export function countOldRows(tx: Pick<Transaction, 'send'>, nowMs: number): void {
  tx.send(COUNT_EVENTS, { nowMs });
  tx.send(COUNT_NOTICES, { nowMs });
}
