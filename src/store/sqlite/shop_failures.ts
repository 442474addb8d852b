import type { Database } from 'better-sqlite3';
import { REFUSES_AFTER, type ShopFailures } from '../../domain/shop_failures.ts';
import { attemptColumns, type Ended } from '../notices.ts';
import { FAILURES_COLUMNS, type FailuresRow, refusalMatter, SHOP_REFUSES, shopFailures } from '../shop_failures.ts';
import { attentionVerbs } from './matters.ts';

/** Counts the attempts to tell the shop that failed in a row, and opens and ends the matter for a person. */
export function shopFailureVerbs(db: Database) {
  const failedBefore = db.prepare('SELECT attempt > 1 AND fault_code IS NOT NULL FROM outbox WHERE key = ?').pluck();
  const count = db.prepare(
    `INSERT INTO shop_failure
       (one, attempts, since_ms, last_at_ms, fault_code, fault_message, answer_status, answer_body, raised)
     SELECT 1, 1, @nowMs, @nowMs, @code, @message, @answerStatus, @answerBody, 0
     WHERE @begins = 1 OR EXISTS (SELECT 1 FROM shop_failure)
     ON CONFLICT (one) DO UPDATE SET attempts = attempts + 1, since_ms = min(since_ms, excluded.since_ms),
       last_at_ms = excluded.last_at_ms, fault_code = excluded.fault_code, fault_message = excluded.fault_message,
       answer_status = excluded.answer_status, answer_body = excluded.answer_body,
       raised = raised OR attempts + 1 >= ${REFUSES_AFTER.attempts}
         OR excluded.last_at_ms - since_ms >= ${REFUSES_AFTER.ageMs}
     RETURNING ${FAILURES_COLUMNS}, raised`,
  );
  const raiseOld = db.prepare(
    `UPDATE shop_failure SET raised = 1 WHERE one = 1 AND raised = 0 AND since_ms <= ? RETURNING ${FAILURES_COLUMNS}`,
  );
  // By its key: to delete all rows of a table is a write, even if there are none.
  const forget = db.prepare('DELETE FROM shop_failure WHERE one = 1');
  const attention = attentionVerbs(db);
  return {
    /** Whether an earlier attempt to send a notice failed. Asked before this attempt is written. */
    failedBefore: (noticeKey: number) => failedBefore.get(noticeKey) === 1,
    /** An attempt failed. One that failed before begins no row: the shop took another notice since, and may take others. */
    count({ failedBefore, ...ended }: Pick<Ended, 'fault' | 'answer' | 'nowMs'> & { failedBefore: boolean }) {
      const begins = failedBefore ? 0 : 1;
      const row = count.get({ nowMs: ended.nowMs, begins, ...attemptColumns(ended) }) as
        | (FailuresRow & { raised: 0 | 1 })
        | undefined;
      if (row?.raised) attention.raiseForNoOrder(SHOP_REFUSES.kind, refusalMatter(row, ended.nowMs));
    },
    /** A notice was taken. */
    end(nowMs: number) {
      if (forget.run().changes > 0) attention.end(SHOP_REFUSES.kind, SHOP_REFUSES.subject, nowMs);
    },
    /** Opens the matter if nothing was sent since that would have. */
    raiseOld(nowMs: number) {
      const row = raiseOld.get(nowMs - REFUSES_AFTER.ageMs) as FailuresRow | undefined;
      if (row !== undefined) attention.raiseForNoOrder(SHOP_REFUSES.kind, refusalMatter(row, nowMs));
    },
  };
}

export function shopFailuresQuery(db: Database): () => ShopFailures | null {
  const read = db.prepare(`SELECT ${FAILURES_COLUMNS} FROM shop_failure`);
  return () => {
    const row = read.get() as FailuresRow | undefined;
    return row === undefined ? null : shopFailures(row);
  };
}
