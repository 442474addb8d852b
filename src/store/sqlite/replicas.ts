import type { Database } from 'better-sqlite3';
import type { LeaseCounts, Sharing } from '../replicas.ts';
import type { Synchronous } from './synchronous.ts';

/** One process has the database for itself: it has no replicas. */
export function replicaVerbs(db: Database): Synchronous<Sharing> {
  const version = db.prepare('SELECT sqlite_version()').pluck();
  const lapsed = db.prepare(
    `SELECT (SELECT count(*) FROM inbox WHERE status = 'leased' AND due_at_ms <= @nowMs) AS events,
       (SELECT count(*) FROM opening WHERE status = 'leased' AND due_at_ms <= @nowMs) AS openings,
       (SELECT count(*) FROM outbox WHERE status = 'leased' AND due_at_ms <= @nowMs) AS notices`,
  );
  return {
    storeState: (nowMs) => ({
      server: `SQLite ${version.get()}`,
      replicas: [],
      lapsed: lapsed.get({ nowMs }) as LeaseCounts,
    }),
  };
}
