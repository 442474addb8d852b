import type { Database } from 'better-sqlite3';
import type { Queries, Stats } from '../queries.ts';
import type { Synchronous } from './synchronous.ts';

export function statsQuery(db: Database): Synchronous<Queries>['stats'] {
  const count = (sql: string) => db.prepare(sql).pluck();
  const byState = db.prepare('SELECT state AS name, count(*) AS n FROM orders GROUP BY state');
  const eventsByStatus = statusCounts(db, 'inbox', { counted: ['pending', 'leased', 'dead'], rest: 'done' });
  const noticesByStatus = statusCounts(db, 'outbox', {
    counted: ['leased', 'done', 'dead'],
    rest: 'pending',
  });
  const holds = count('SELECT count(*) FROM hold WHERE ended_at_ms IS NULL');
  const attention = count('SELECT count(*) FROM attention WHERE ended_at_ms IS NULL');
  const checks = count('SELECT count(*) FROM link_check');
  const rejections = count('SELECT coalesce(sum(count), 0) FROM rejection');
  const oldestDue = count(`SELECT min(due_at_ms) FROM inbox WHERE status = 'pending'`);

  return (nowMs): Stats => {
    const oldest = oldestDue.get() as number | null;
    return {
      orders: tally(byState.all()),
      events: eventsByStatus(),
      notices: noticesByStatus(),
      holds: holds.get() as number,
      attention: attention.get() as number,
      checks: checks.get() as number,
      rejections: rejections.get() as number,
      lagMs: oldest === null ? 0 : Math.max(0, nowMs - oldest),
    };
  };
}

/**
 * Counts rows by status without reading them all: rows are never deleted, so the highest key is their number, and every
 * status but the commonest has a partial index.
 */
function statusCounts(
  db: Database,
  table: 'inbox' | 'outbox',
  { counted, rest }: { counted: readonly string[]; rest: string },
): () => Record<string, number> {
  const all = db.prepare(`SELECT coalesce(max(key), 0) FROM ${table}`).pluck();
  const statements = counted.map((status) => ({
    status,
    // The second condition is the outbox index's own: SQLite uses a partial index only where it is repeated.
    rows: db
      .prepare(`SELECT count(*) FROM ${table} WHERE status = '${status}' AND status <> '${rest}'`)
      .pluck(),
  }));
  return () => {
    const counts = Object.fromEntries(statements.map(({ status, rows }) => [status, rows.get() as number]));
    const others = Object.values(counts).reduce((sum, n) => sum + n, 0);
    return { ...counts, [rest]: (all.get() as number) - others };
  };
}

function tally(rows: unknown[]): Record<string, number> {
  return Object.fromEntries((rows as { name: string; n: number }[]).map(({ name, n }) => [name, n]));
}
