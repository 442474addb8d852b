import type { Database } from 'better-sqlite3';
import type { Queries, Stats } from '../queries.ts';
import type { Synchronous } from './engine.ts';

export function statsQuery(db: Database): Synchronous<Queries>['stats'] {
  const count = (sql: string) => db.prepare(sql).pluck();
  const byState = db.prepare('SELECT state AS name, count(*) AS n FROM orders GROUP BY state');
  const noticesByStatus = db.prepare('SELECT status AS name, count(*) AS n FROM outbox GROUP BY status');
  // Inbox rows are never deleted, so the highest key is their number; only the few that are not done are counted.
  const recorded = count('SELECT coalesce(max(key), 0) FROM inbox');
  const unfinished = ['pending', 'leased', 'dead'].map((status) => ({
    status,
    rows: count(`SELECT count(*) FROM inbox WHERE status = '${status}'`),
  }));
  const holds = count('SELECT count(*) FROM hold WHERE ended_at_ms IS NULL');
  const attention = count('SELECT count(*) FROM attention WHERE ended_at_ms IS NULL');
  const checks = count('SELECT count(*) FROM link_check');
  const rejections = count('SELECT coalesce(sum(count), 0) FROM rejection');
  const oldestDue = count(`SELECT min(due_at_ms) FROM inbox WHERE status = 'pending'`);

  return (nowMs): Stats => {
    const events = Object.fromEntries(unfinished.map(({ status, rows }) => [status, rows.get() as number]));
    const left = Object.values(events).reduce((sum, n) => sum + n, 0);
    const oldest = oldestDue.get() as number | null;
    return {
      orders: tally(byState.all()),
      events: { ...events, done: (recorded.get() as number) - left },
      notices: tally(noticesByStatus.all()),
      holds: holds.get() as number,
      attention: attention.get() as number,
      checks: checks.get() as number,
      rejections: rejections.get() as number,
      lagMs: oldest === null ? 0 : Math.max(0, nowMs - oldest),
    };
  };
}

function tally(rows: unknown[]): Record<string, number> {
  return Object.fromEntries((rows as { name: string; n: number }[]).map(({ name, n }) => [name, n]));
}
