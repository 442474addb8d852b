import type { Database, Statement } from 'better-sqlite3';
import { EVERY_MATTER } from '../matter_list.ts';
import type { Queries, Stats } from '../queries.ts';
import {
  CHECK_RANKS,
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
import { budgetReader } from './budget.ts';
import { matterGroups } from './matter_list.ts';
import type { Synchronous } from './synchronous.ts';

export function statsQuery(db: Database): Synchronous<Queries>['stats'] {
  const count = (sql: string) => db.prepare(sql).pluck();
  const byState = db.prepare('SELECT state AS name, n FROM order_count WHERE n > 0');
  const eventsByStatus = eventCounts(db);
  const noticesByStatus = db.prepare('SELECT status AS name, n FROM notice_count');
  const matters = matterGroups(db);
  const checksByRank = db.prepare('SELECT rank, n FROM check_count');
  const openings = OPENING_STATUSES.map((status) => ({
    status,
    rows: count(`SELECT count(*) FROM opening WHERE status = '${status}'`),
  }));
  // Rows are only added.
  const drift = count('SELECT coalesce(max(key), 0) FROM drift');
  const budget = budgetReader(db);
  const shopFailures = count('SELECT coalesce(max(attempts), 0) FROM shop_failure');
  const rejections = count('SELECT coalesce(sum(count), 0) FROM rejection');
  const oldest = oldestQueries(db);
  const webhooksMissing = count(
    'SELECT count(*) FROM settlement WHERE webhook_missing = 1 AND paid_at_ms > @afterMs AND paid_at_ms <= @untilMs',
  );
  const feed = db.prepare(
    `SELECT (SELECT coalesce(max(key), 0) FROM outbox) AS newest, generation, restored_from_ms AS restoredFromMs
     FROM instance`,
  );

  return (nowMs): Stats => {
    const { slotsInUse, pausedUntilMs } = budget(nowMs);
    const ranks = checksByRank.all() as RankCount[];
    return {
      orders: tally(byState.all() as Named[]),
      events: eventsByStatus(),
      notices: tally(noticesByStatus.all() as Named[]),
      matters: matters(EVERY_MATTER),
      ...checkCounts(ranks),
      openings: Object.fromEntries(openings.map(({ status, rows }) => [status, rows.get() as number])),
      drift: drift.get() as number,
      api: { slotsInUse, pausedUntilMs },
      rejections: rejections.get() as number,
      shopFailures: shopFailures.get() as number,
      ...lags(oldest(), nowMs),
      webhooksMissing: webhooksMissing.get(webhookWeek(nowMs)) as number,
      feed: feed.get() as Stats['feed'],
    };
  };
}

/** When the oldest of each kind became due. Each time is the first entry of an index. */
function oldestQueries(db: Database): () => Oldest {
  const oldest = (sql: string) => db.prepare(sql).pluck();
  const event = oldest(`SELECT min(due_at_ms) FROM inbox WHERE status = 'pending'`);
  const newNotice = oldest(
    `SELECT min(due_at_ms) FROM outbox WHERE status = 'pending' AND attempt = 0 AND due_at_ms IS NOT NULL`,
  );
  const triedNotice = oldest(`SELECT min(first_tried_at_ms) FROM outbox WHERE status = 'pending' AND attempt > 0`);
  const queued = oldest('SELECT min(due_at_ms) FROM link_check WHERE rank = ?');
  const scheduled = oldest('SELECT min(next_check_at_ms) FROM link WHERE next_check_at_ms IS NOT NULL');
  const at = (query: Statement, ...values: number[]) => query.get(...values) as number | null;
  return () => ({
    eventMs: at(event),
    newNoticeMs: at(newNotice),
    triedNoticeMs: at(triedNotice),
    scheduledMs: at(scheduled),
    queued: CHECK_RANKS.map((rank) => ({ rank, dueAtMs: at(queued, rank) })),
  });
}

/**
 * Counts events by status without reading them all: they are never deleted, so the highest key is their number, and every
 * status but `done` has a partial index. Only what was not settled yet is pending.
 */
function eventCounts(db: Database): () => Record<string, number> {
  const all = db.prepare('SELECT coalesce(max(key), 0) FROM inbox').pluck();
  const statements = NOT_DONE.map((status) => ({
    status,
    rows: db.prepare(`SELECT count(*) FROM inbox WHERE status = '${status}'`).pluck(),
  }));
  return () => {
    const counts = Object.fromEntries(statements.map(({ status, rows }) => [status, rows.get() as number]));
    return withDone(counts, all.get() as number);
  };
}
