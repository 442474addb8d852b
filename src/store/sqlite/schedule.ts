import type { Database } from 'better-sqlite3';
import { nextCheckAtMs, type Watched } from '../../domain/watch.ts';

/** When a link is asked about next, by what is known of it and of its order. */
export function watcher(db: Database) {
  const find = db.prepare(
    `SELECT l.created_at_ms AS createdAtMs, l.expires_at_ms AS expiresAtMs, s.paid_at_ms AS settledAtMs
     FROM link l LEFT JOIN settlement s ON s.order_key = l.order_key WHERE l.key = ?`,
  );
  const schedule = db.prepare('UPDATE link SET next_check_at_ms = ? WHERE key = ?');
  return {
    /** Sets a link's next time after `afterMs`, or none where the schedule is over. */
    reschedule(linkKey: number, afterMs: number): void {
      schedule.run(nextCheckAtMs(find.get(linkKey) as Watched, afterMs), linkKey);
    },
  };
}
