import type { Database, Statement } from 'better-sqlite3';
import { CHECK_CLASSES } from '../../domain/check.ts';
import type { Queries, Stats } from '../queries.ts';
import { budgetUse } from './budget.ts';
import type { Synchronous } from './synchronous.ts';

const DAY_MS = 86_400_000;

export function statsQuery(db: Database): Synchronous<Queries>['stats'] {
  const count = (sql: string) => db.prepare(sql).pluck();
  const byState = db.prepare('SELECT state AS name, count(*) AS n FROM orders GROUP BY state');
  const eventsByStatus = statusCounts(db, 'inbox');
  const noticesByStatus = statusCounts(db, 'outbox');
  const holds = count('SELECT count(*) FROM hold WHERE ended_at_ms IS NULL');
  const attention = count('SELECT count(*) FROM attention WHERE ended_at_ms IS NULL');
  const checksByRank = db.prepare('SELECT rank, count(*) AS n FROM link_check GROUP BY rank');
  const openings = (['pending', 'leased', 'taken'] as const).map((status) => ({
    status,
    rows: count(`SELECT count(*) FROM opening WHERE status = '${status}'`),
  }));
  // Rows are only added.
  const drift = count('SELECT coalesce(max(key), 0) FROM drift');
  const budget = budgetUse(db);
  const rejections = count('SELECT coalesce(sum(count), 0) FROM rejection');
  const lags = lagQueries(db);
  const webhooksMissing = count(
    'SELECT count(*) FROM settlement WHERE webhook_missing = 1 AND paid_at_ms > ? AND paid_at_ms <= ?',
  );
  const feed = db.prepare(
    `SELECT (SELECT coalesce(max(key), 0) FROM outbox) AS newest, generation, restored_from_ms AS restoredFromMs
     FROM instance`,
  );

  return (nowMs): Stats => {
    const { slotsInUse, pausedUntilMs } = budget.read(nowMs);
    const ranks = checksByRank.all() as { rank: number; n: number }[];
    return {
      orders: tally(byState.all()),
      events: eventsByStatus(),
      notices: noticesByStatus(),
      holds: holds.get() as number,
      attention: attention.get() as number,
      checks: ranks.reduce((sum, { n }) => sum + n, 0),
      checksByClass: tallyClasses(ranks),
      openings: Object.fromEntries(openings.map(({ status, rows }) => [status, rows.get() as number])),
      drift: drift.get() as number,
      api: { slotsInUse, pausedUntilMs },
      rejections: rejections.get() as number,
      ...lags(nowMs),
      webhooksMissing: webhooksMissing.get(nowMs - 8 * DAY_MS, nowMs - DAY_MS) as number,
      feed: feed.get() as Stats['feed'],
    };
  };
}

/** How long the oldest of each kind has been due. Each time is the first entry of an index. */
function lagQueries(db: Database): (nowMs: number) => Pick<Stats, 'lagMs' | 'noticesLagMs' | 'checksLagMs'> {
  const oldest = (sql: string) => db.prepare(sql).pluck();
  const event = oldest(`SELECT min(due_at_ms) FROM inbox WHERE status = 'pending'`);
  const newNotice = oldest(
    `SELECT min(due_at_ms) FROM outbox WHERE status = 'pending' AND attempt = 0 AND due_at_ms IS NOT NULL`,
  );
  const triedNotice = oldest(
    `SELECT min(first_tried_at_ms) FROM outbox WHERE status = 'pending' AND attempt > 0`,
  );
  const queued = oldest('SELECT min(due_at_ms) FROM link_check WHERE rank = ?');
  const scheduled = oldest('SELECT min(next_check_at_ms) FROM link WHERE next_check_at_ms IS NOT NULL');

  return (nowMs) => {
    const since = (...timesMs: (number | null)[]) =>
      Math.max(0, ...timesMs.map((ms) => (ms === null ? 0 : nowMs - ms)));
    const at = (query: Statement, ...values: number[]) => query.get(...values) as number | null;
    const checksLagMs: Stats['checksLagMs'] = { confirm: 0, hint: 0, janitor: since(at(scheduled)) };
    for (const { class: name, from, to } of CHECK_CLASSES) {
      for (let rank: number = from; rank <= to; rank++)
        checksLagMs[name] = Math.max(checksLagMs[name], since(at(queued, rank)));
    }
    return {
      lagMs: since(at(event)),
      noticesLagMs: since(at(newNotice), at(triedNotice)),
      checksLagMs,
    };
  };
}

/**
 * Counts rows by status without reading them all: rows are never deleted, so the highest key is their number, and every
 * status but `done` has a partial index.
 */
function statusCounts(db: Database, table: 'inbox' | 'outbox'): () => Record<string, number> {
  const all = db.prepare(`SELECT coalesce(max(key), 0) FROM ${table}`).pluck();
  const statements = ['pending', 'leased', 'dead'].map((status) => ({
    status,
    rows: db.prepare(`SELECT count(*) FROM ${table} WHERE status = '${status}'`).pluck(),
  }));
  return () => {
    const counts = Object.fromEntries(statements.map(({ status, rows }) => [status, rows.get() as number]));
    const others = Object.values(counts).reduce((sum, n) => sum + n, 0);
    return { ...counts, done: (all.get() as number) - others };
  };
}

function tally(rows: unknown[]): Record<string, number> {
  return Object.fromEntries((rows as { name: string; n: number }[]).map(({ name, n }) => [name, n]));
}

function tallyClasses(ranks: readonly { rank: number; n: number }[]): Stats['checksByClass'] {
  const counts: Stats['checksByClass'] = { confirm: 0, hint: 0, janitor: 0 };
  for (const { class: name, from, to } of CHECK_CLASSES) {
    for (const { rank, n } of ranks) if (rank >= from && rank <= to) counts[name] += n;
  }
  return counts;
}
