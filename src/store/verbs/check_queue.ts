import { type CheckReason, checkRank } from '../../domain/check_queue.ts';
import { firstTailAfter, nextCheckFromNowMs, type Watched } from '../../domain/check_schedule.ts';
import { statement } from '../statement.ts';
import type { Transaction, Work } from '../transaction.ts';

/** A request for a check; `confirms`: a completion waits for the API's answer, and is held if that never comes. */
export type CheckRequest = { linkKey: number; reason: CheckReason; atMs: number; confirms?: boolean };

const REQUEST = statement(
  `INSERT INTO link_check (link_key, reason, rank, requested_at_ms, due_at_ms, confirm_since_ms, reason_after, heard_after)
   VALUES (@linkKey, @reason, @rank, @atMs, @atMs, @confirmSinceMs, (SELECT last_request FROM api_state),
     (SELECT last_request FROM api_state))
   ON CONFLICT (link_key) DO UPDATE SET
     reason = CASE WHEN excluded.rank > link_check.rank THEN excluded.reason ELSE link_check.reason END,
     due_at_ms = CASE WHEN excluded.rank > link_check.rank THEN excluded.due_at_ms ELSE link_check.due_at_ms END,
     reason_after = CASE WHEN excluded.rank > link_check.rank THEN excluded.reason_after ELSE link_check.reason_after END,
     again_reason = CASE WHEN excluded.rank > link_check.rank THEN NULL
       WHEN link_check.again_rank IS NULL OR excluded.rank > link_check.again_rank THEN excluded.reason
       ELSE link_check.again_reason END,
     again_rank = CASE WHEN excluded.rank > link_check.rank THEN NULL
       ELSE greatest(coalesce(link_check.again_rank, excluded.rank), excluded.rank) END,
     rank = greatest(link_check.rank, excluded.rank),
     requested_at_ms = greatest(link_check.requested_at_ms, excluded.requested_at_ms),
     heard_after = excluded.heard_after,
     confirm_since_ms = coalesce(link_check.confirm_since_ms, excluded.confirm_since_ms)`,
);
const DROP = statement('DELETE FROM link_check WHERE link_key = @linkKey');
const FALL_BACK = statement(
  `UPDATE link_check SET reason = again_reason, rank = again_rank, again_reason = NULL, again_rank = NULL,
     reason_after = heard_after, due_at_ms = @nowMs, failures = 0, confirm_since_ms = NULL
   WHERE link_key = @linkKey AND again_reason IS NOT NULL`,
);

/**
 * Queues a link to be asked about. There is one row for each link: a check answers every reason at once. A stronger reason
 * takes the place of a weaker one and is due at once; any other only says that something new was heard, and takes its
 * place if the answer came too early for it.
 */
export function requestCheck(tx: Transaction, { linkKey, reason, atMs, confirms = false }: CheckRequest): void {
  const confirmSinceMs = confirms ? atMs : null;
  tx.send(REQUEST, { linkKey, reason, rank: checkRank(reason), atMs, confirmSinceMs });
}

export function dropCheck(tx: Transaction, linkKey: number): void {
  tx.send(DROP, { linkKey });
}

/** Lets what was heard beside a check's reason take its place, due at once; false if nothing was. */
export function* fallBackCheck(tx: Transaction, linkKey: number, nowMs: number): Work<boolean> {
  return (yield* tx.run(FALL_BACK, { linkKey, nowMs })) === 1;
}

/** Whether a completion that an event reported waits for the API to confirm it: an expression about @linkKey. */
export const COMPLETION_AWAITED = `EXISTS (
  SELECT 1 FROM link_check WHERE link_key = @linkKey AND confirm_since_ms IS NOT NULL)`;

type WatchedRow = Omit<Watched, 'mayBePaid'> & { status: string | null };

const WATCHED = statement(
  `SELECT l.created_at_ms AS createdAtMs, l.expires_at_ms AS expiresAtMs, s.paid_at_ms AS settledAtMs, l.status
   FROM link l LEFT JOIN settlement s ON s.order_key = l.order_key WHERE l.key = @linkKey`,
);
const SCHEDULE = statement('UPDATE link SET next_check_at_ms = @nextAtMs WHERE key = @linkKey');
const BEGIN_TAIL = statement(
  'UPDATE link SET next_check_at_ms = @nextAtMs WHERE order_key = @orderKey AND next_check_at_ms IS NULL',
);

/** When a link is asked about next if nothing is heard, by what is known of it and of its order. */
export const checkSchedule = {
  /** Sets a link's next time after `afterMs`, or none if the schedule is over. */
  *plan(tx: Transaction, linkKey: number, afterMs: number): Work<void> {
    const { status, ...row } = (yield* tx.one<WatchedRow>(WATCHED, { linkKey })) as WatchedRow;
    const nextAtMs = nextCheckFromNowMs({ ...row, mayBePaid: status === 'ACTIVE' }, afterMs);
    tx.send(SCHEDULE, { nextAtMs, linkKey });
  },
  /** Begins the schedule of an order that was just paid, if that of its open link was over already. */
  beginTail(tx: Transaction, orderKey: number, settledAtMs: number): void {
    tx.send(BEGIN_TAIL, { nextAtMs: firstTailAfter(settledAtMs, settledAtMs), orderKey });
  },
};
