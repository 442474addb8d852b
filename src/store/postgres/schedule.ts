import { firstTailAfter, nextCheckFromNowMs, type Watched } from '../../domain/check_schedule.ts';
import { statement } from '../statement.ts';
import type { Transaction } from './transaction.ts';

type WatchedRow = Omit<Watched, 'mayBePaid'> & { status: string | null };

const FIND = statement(
  `SELECT l.created_at_ms AS createdAtMs, l.expires_at_ms AS expiresAtMs, s.paid_at_ms AS settledAtMs, l.status
   FROM link l LEFT JOIN settlement s ON s.order_key = l.order_key WHERE l.key = @linkKey`,
);
const SCHEDULE = statement('UPDATE link SET next_check_at_ms = @nextAtMs WHERE key = @linkKey');
const BEGIN = statement(
  'UPDATE link SET next_check_at_ms = @nextAtMs WHERE order_key = @orderKey AND next_check_at_ms IS NULL',
);

/** When a link is asked about next, by what is known of it and of its order. */
export const watch = {
  /** Sets a link's next time after `afterMs`, or none where the schedule is over. */
  async reschedule(tx: Transaction, linkKey: number, afterMs: number): Promise<void> {
    const { status, ...row } = (await tx.one<WatchedRow>(FIND, { linkKey })) as WatchedRow;
    const nextAtMs = nextCheckFromNowMs({ ...row, mayBePaid: status === 'ACTIVE' }, afterMs);
    tx.send(SCHEDULE, { nextAtMs, linkKey });
  },
  /** Begins the schedule of an order that was paid now, where the one of its open link was over already. */
  beginTail(tx: Transaction, orderKey: number, settledAtMs: number): void {
    tx.send(BEGIN, { nextAtMs: firstTailAfter(settledAtMs, settledAtMs), orderKey });
  },
};
