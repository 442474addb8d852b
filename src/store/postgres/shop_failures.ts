import { REFUSES_AFTER, type ShopFailures } from '../../domain/shop_failures.ts';
import { attemptColumns, type Ended } from '../notices.ts';
import { FAILURES_COLUMNS, type FailuresRow, refusalMatter, SHOP_REFUSES, shopFailures } from '../shop_failures.ts';
import { statement } from '../statement.ts';
import { attention } from './matters.ts';
import type { Transaction } from './transaction.ts';

/**
 * One row for all replicas. Whoever changes it has the rows of the notice already, and changes `attention` after it: its
 * lock says whether the shop took a notice after an attempt failed or before, so that no matter stays open without a row.
 */
const COUNT = statement(
  `INSERT INTO shop_failure
     (one, attempts, since_ms, last_at_ms, fault_code, fault_message, answer_status, answer_body, raised)
   SELECT 1, 1, @nowMs::bigint, @nowMs::bigint, @code::text, @message::text, @answerStatus::integer, @answerBody::text, false
   WHERE @begins::boolean OR EXISTS (SELECT 1 FROM shop_failure)
   ON CONFLICT (one) DO UPDATE SET attempts = shop_failure.attempts + 1,
     since_ms = least(shop_failure.since_ms, excluded.since_ms), last_at_ms = excluded.last_at_ms,
     fault_code = excluded.fault_code, fault_message = excluded.fault_message,
     answer_status = excluded.answer_status, answer_body = excluded.answer_body,
     raised = shop_failure.raised OR shop_failure.attempts + 1 >= ${REFUSES_AFTER.attempts}
       OR excluded.last_at_ms - shop_failure.since_ms >= ${REFUSES_AFTER.ageMs}
   RETURNING ${FAILURES_COLUMNS}, raised`,
);

/** Whether an earlier attempt to send a notice failed: in the statement that writes this one, it reads the row before that. */
export const FAILED_BEFORE = '(SELECT attempt > 1 AND fault_code IS NOT NULL FROM outbox WHERE key = @noticeKey)';

/** For the statement that ends a notice that was taken: nothing is deleted if the lease was lost. */
export const FORGET_FAILURES = 'DELETE FROM shop_failure WHERE EXISTS (SELECT 1 FROM ended) RETURNING one';

type Failed = Pick<Ended, 'fault' | 'answer' | 'nowMs'> & { failedBefore: boolean };

/** An attempt failed. One that failed before begins no row: the shop took another notice since, and may take others. */
export async function countFailure(tx: Transaction, { failedBefore, ...ended }: Failed): Promise<void> {
  const { nowMs } = ended;
  const row = await tx.one<FailuresRow & { raised: boolean }>(COUNT, {
    nowMs,
    begins: !failedBefore,
    ...attemptColumns(ended),
  });
  if (row?.raised) attention.raiseForNoOrder(tx, SHOP_REFUSES.kind, refusalMatter(row, nowMs));
}

// Whoever holds the row counts an attempt, which opens the matter itself, or ends the row.
const RAISE_OLD = statement(
  `WITH old AS (
     SELECT one FROM shop_failure WHERE NOT raised AND since_ms <= @untilMs FOR UPDATE SKIP LOCKED
   )
   UPDATE shop_failure SET raised = true FROM old WHERE shop_failure.one = old.one RETURNING ${FAILURES_COLUMNS}`,
);

/** Opens the matter if nothing was sent since that would have. */
export async function raiseOldFailures(tx: Transaction, nowMs: number): Promise<void> {
  const row = await tx.one<FailuresRow>(RAISE_OLD, { untilMs: nowMs - REFUSES_AFTER.ageMs });
  if (row !== undefined) attention.raiseForNoOrder(tx, SHOP_REFUSES.kind, refusalMatter(row, nowMs));
}

/** Ends the matter, after the row was taken away: only then it is seen if it was opened at that moment. */
export function endRefusal(tx: Transaction, nowMs: number): void {
  attention.end(tx, SHOP_REFUSES.kind, SHOP_REFUSES.subject, nowMs);
}

const READ = statement(`SELECT ${FAILURES_COLUMNS} FROM shop_failure`);

export async function readShopFailures(tx: Transaction): Promise<ShopFailures | null> {
  const row = await tx.one<FailuresRow>(READ);
  return row === undefined ? null : shopFailures(row);
}
