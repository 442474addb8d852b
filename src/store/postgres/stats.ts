import { EVERY_MATTER } from '../matter_list.ts';
import type { Queries, Stats } from '../queries.ts';
import { statement } from '../statement.ts';
import {
  checkCounts,
  lags,
  type Named,
  NOT_DONE,
  type Oldest,
  OPENING_STATUSES,
  type RankCount,
  tally,
  webhookWeek,
  withDone,
} from '../stats.ts';
import { readBudget } from './budget.ts';
import { matterGroups } from './matter_list.ts';
import type { InTransaction, Transaction } from './transaction.ts';

const BY_STATE = statement('SELECT state AS name, count(*) AS n FROM orders GROUP BY state');
type Counted = 'inbox' | 'outbox';
/** How many rows have each status but `done`, which is the rest. Every one has an index of its own. */
const countsOf = (table: Counted) =>
  statement(
    `SELECT ${NOT_DONE.map((name) => `(SELECT count(*) FROM ${table} WHERE status = '${name}') AS ${name}`)},
       (SELECT n + (SELECT count(*) FROM ${table} WHERE key > to_key) FROM counted WHERE name = '${table}') AS every`,
  );
const EVENTS = countsOf('inbox');
const NOTICES = countsOf('outbox');

/** Keys by which a count goes on in one step. */
const STEP = 20_000;
/** A row that is so old is followed by all rows of smaller keys: no transaction takes so long. */
const COMMITTED_AFTER_MS = 600_000;
const countOn = (table: Counted, atMs: string) =>
  statement(
    `UPDATE counted SET to_key = to_key + ${STEP},
       n = n + (SELECT count(*) FROM ${table} WHERE key > to_key AND key <= to_key + ${STEP})
     WHERE name = '${table}' AND (SELECT ${atMs} FROM ${table} WHERE key > to_key + ${STEP} ORDER BY key LIMIT 1)
       <= @nowMs::bigint - ${COMMITTED_AFTER_MS}`,
  );
const COUNT_EVENTS = countOn('inbox', 'received_at_ms');
const COUNT_NOTICES = countOn('outbox', 'created_at_ms');

/** Counts old rows once, a few at a time, so that `stats` need not read all of them. */
export function countOldRows(tx: Transaction, nowMs: number): void {
  tx.send(COUNT_EVENTS, { nowMs });
  tx.send(COUNT_NOTICES, { nowMs });
}

const OPENINGS = statement(
  `SELECT ${OPENING_STATUSES.map((name) => `(SELECT count(*) FROM opening WHERE status = '${name}') AS ${name}`)}`,
);
// Each rank is the beginning of an index.
const CHECKS = statement('SELECT rank, count(*) AS n, min(due_at_ms) AS dueAtMs FROM link_check GROUP BY rank');
const OLDEST = statement(
  `SELECT (SELECT min(due_at_ms) FROM inbox WHERE status = 'pending') AS eventMs,
     (SELECT min(due_at_ms) FROM outbox WHERE status = 'pending' AND attempt = 0 AND due_at_ms IS NOT NULL) AS newNoticeMs,
     (SELECT min(first_tried_at_ms) FROM outbox WHERE status = 'pending' AND attempt > 0) AS triedNoticeMs,
     (SELECT min(next_check_at_ms) FROM link WHERE next_check_at_ms IS NOT NULL) AS scheduledMs`,
);
const COUNTS = statement(
  `SELECT (SELECT count(*) FROM drift) AS drift,
     (SELECT coalesce(sum(count), 0) FROM rejection) AS rejections,
     (SELECT coalesce(max(attempts), 0) FROM shop_failure) AS shopFailures,
     (SELECT count(*) FROM settlement WHERE webhook_missing AND paid_at_ms > @afterMs AND paid_at_ms <= @untilMs)
       AS webhooksMissing`,
);
/** Where nobody reads the feed, no notice has a position. */
const FRESH_MAX = 10_000;
const FEED = statement(
  `SELECT (SELECT coalesce(max(position), 0) FROM outbox)
       + (SELECT count(*) FROM (SELECT 1 FROM outbox WHERE position IS NULL LIMIT ${FRESH_MAX}) AS fresh) AS newest,
     generation, restored_from_ms AS restoredFromMs FROM instance`,
);

type Statuses = Record<string, number> & { every: number };
type Check = RankCount & { dueAtMs: number };

export const stats: InTransaction<Queries>['stats'] = async (tx, nowMs) => {
  const [states, events, notices, openings, checks, oldest, counts, budget, feed, matters] = await Promise.all([
    tx.all<Named>(BY_STATE),
    tx.one<Statuses>(EVENTS) as Promise<Statuses>,
    tx.one<Statuses>(NOTICES) as Promise<Statuses>,
    tx.one<Stats['openings']>(OPENINGS) as Promise<Stats['openings']>,
    tx.all<Check>(CHECKS),
    tx.one<Omit<Oldest, 'queued'>>(OLDEST) as Promise<Omit<Oldest, 'queued'>>,
    tx.one<Counts>(COUNTS, webhookWeek(nowMs)) as Promise<Counts>,
    readBudget(tx, nowMs),
    tx.one<Stats['feed']>(FEED) as Promise<Stats['feed']>,
    matterGroups(tx, EVERY_MATTER),
  ]);
  return {
    orders: tally(states),
    events: statusCounts(events),
    notices: statusCounts(notices),
    openings,
    matters,
    ...checkCounts(checks),
    ...counts,
    ...lags({ ...oldest, queued: checks }, nowMs),
    api: { slotsInUse: budget.slotsInUse, pausedUntilMs: budget.pausedUntilMs },
    feed,
  };
};

type Counts = Pick<Stats, 'drift' | 'rejections' | 'shopFailures' | 'webhooksMissing'>;

function statusCounts({ every, ...counts }: Statuses): Record<string, number> {
  return withDone(counts, every);
}
