import type { Database } from 'better-sqlite3';
import { CHECK_CLASSES } from '../../domain/check.ts';
import type { Queries, Stats } from '../queries.ts';
import { budgetUse } from './budget.ts';
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
  const checksByRank = db.prepare('SELECT rank, count(*) AS n FROM link_check GROUP BY rank');
  const openings = (['pending', 'leased', 'taken'] as const).map((status) => ({
    status,
    rows: count(`SELECT count(*) FROM opening WHERE status = '${status}'`),
  }));
  // Rows are only added.
  const drift = count('SELECT coalesce(max(key), 0) FROM drift');
  const budget = budgetUse(db);
  const rejections = count('SELECT coalesce(sum(count), 0) FROM rejection');
  const oldestDue = count(`SELECT min(due_at_ms) FROM inbox WHERE status = 'pending'`);

  return (nowMs): Stats => {
    const oldest = oldestDue.get() as number | null;
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

function tallyClasses(ranks: readonly { rank: number; n: number }[]): Stats['checksByClass'] {
  const counts: Stats['checksByClass'] = { confirm: 0, hint: 0, janitor: 0 };
  for (const { class: name, from, to } of CHECK_CLASSES) {
    for (const { rank, n } of ranks) if (rank >= from && rank <= to) counts[name] += n;
  }
  return counts;
}
