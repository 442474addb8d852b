import type { Database } from 'better-sqlite3';
import { firstTailAfter, nextCheckFromNowMs, type Watched } from '../../domain/check_schedule.ts';

type WatchedRow = Omit<Watched, 'mayBePaid'> & { status: string | null };

/** When a link is asked about next, by what is known of it and of its order. */
export function watcher(db: Database) {
  const find = db.prepare(
    `SELECT l.created_at_ms AS createdAtMs, l.expires_at_ms AS expiresAtMs, s.paid_at_ms AS settledAtMs, l.status
     FROM link l LEFT JOIN settlement s ON s.order_key = l.order_key WHERE l.key = ?`,
  );
  const schedule = db.prepare('UPDATE link SET next_check_at_ms = ? WHERE key = ?');
  const begin = db.prepare('UPDATE link SET next_check_at_ms = ? WHERE order_key = +? AND next_check_at_ms IS NULL');
  return {
    /** Sets a link's next time after `afterMs`, or none where the schedule is over. */
    reschedule(linkKey: number, afterMs: number): void {
      const { status, ...row } = find.get(linkKey) as WatchedRow;
      schedule.run(nextCheckFromNowMs({ ...row, mayBePaid: status === 'ACTIVE' }, afterMs), linkKey);
    },
    /** Begins the schedule of an order that was paid now, where the one of its open link was over already. */
    beginTail(orderKey: number, settledAtMs: number): void {
      begin.run(firstTailAfter(settledAtMs, settledAtMs), orderKey);
    },
  };
}
