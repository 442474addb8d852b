import { REFUSES_AFTER, type ShopAnswer, type ShopFailures, shortAnswer } from '../../domain/notice.ts';
import { type FaultNote, faultNote } from '../../domain/retry.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';
import { attention, type Matter } from './attention.ts';

/** The matter that the shop refuses notices. There is one shop, so at most one is open. */
const SHOP_REFUSES = { kind: 'shop_refuses_notices', subject: 'shop' } as const;

/** The result of an attempt to send a notice; `fault` is null if the shop accepted it. */
export type AttemptEnd = { fault: FaultNote | null; answer: ShopAnswer | null; nowMs: number };

/** The columns of an attempt in `outbox` and `shop_failure`. */
export function attemptColumns({ fault, answer }: Pick<AttemptEnd, 'fault' | 'answer'>) {
  return {
    code: fault?.code ?? null,
    message: fault?.message ?? null,
    answerStatus: answer?.status ?? null,
    answerBody: answer?.body ?? null,
  };
}

/** The same columns in a SELECT. */
export const ATTEMPT = `fault_code AS faultCode, fault_message AS faultMessage, answer_status AS answerStatus,
  answer_body AS answerBody`;
export type AttemptRow = Record<'faultCode' | 'faultMessage' | 'answerBody', string | null> & {
  answerStatus: number | null;
};

export function readAttempt<Row extends AttemptRow>(columns: Row) {
  const { faultCode, faultMessage, answerStatus, answerBody, ...row } = columns;
  const answer = answerStatus === null ? null : { status: answerStatus, body: answerBody ?? '' };
  return { ...row, fault: faultNote(faultCode, faultMessage), answer };
}

const FAILURES = `attempts, since_ms AS sinceMs, last_at_ms AS lastAtMs, ${ATTEMPT}`;

/**
 * Failed attempts in a row are counted in one row, which all replicas share. A transaction locks its notice first, then
 * this row, then `attention`. This row's lock decides whether the shop accepted a notice before or after an attempt
 * failed, so no matter stays open without the row.
 */
const COUNT = statement(`
  INSERT INTO shop_failure
    (one, attempts, since_ms, last_at_ms, fault_code, fault_message, answer_status, answer_body, raised)
  SELECT 1, 1, @nowMs::bigint, @nowMs::bigint, @code::text, @message::text, @answerStatus::integer, @answerBody::text, false
  WHERE @begins::boolean OR EXISTS (SELECT 1 FROM shop_failure)
  ON CONFLICT (one) DO UPDATE SET attempts = shop_failure.attempts + 1,
    since_ms = least(shop_failure.since_ms, excluded.since_ms), last_at_ms = excluded.last_at_ms,
    fault_code = excluded.fault_code, fault_message = excluded.fault_message,
    answer_status = excluded.answer_status, answer_body = excluded.answer_body,
    raised = shop_failure.raised OR shop_failure.attempts + 1 >= ${REFUSES_AFTER.attempts}
      OR excluded.last_at_ms - shop_failure.since_ms >= ${REFUSES_AFTER.ageMs}
  RETURNING ${FAILURES}, raised AS isRaised`);

/**
 * Counts a failed attempt, and raises the matter once there were enough. A notice that failed before does not begin a
 * count: the shop has accepted another since, and may accept more. Returns the count, null if there is none.
 */
export function* countFailure(
  tx: Transaction,
  ended: AttemptEnd & { hasFailedBefore: boolean },
): Work<ShopFailures | null> {
  const { hasFailedBefore, nowMs } = ended;
  const values = { begins: !hasFailedBefore, nowMs, ...attemptColumns(ended) };
  const row = yield* tx.one<FailuresRow & { isRaised: boolean }>(COUNT, values);
  if (row?.isRaised) attention.raiseForNoOrder(tx, SHOP_REFUSES.kind, refusalMatter(row, nowMs));
  return row === undefined ? null : (readAttempt(row) as ShopFailures);
}

// Skips a row that another transaction has locked: that one counts an attempt and raises the matter, or ends the row.
const RAISE_OLD = statement(`
  UPDATE shop_failure SET raised = true WHERE one = (
    SELECT one FROM shop_failure WHERE NOT raised AND since_ms <= @untilMs FOR NO KEY UPDATE SKIP LOCKED)
  RETURNING ${FAILURES}`);

/** Raises the matter if the first failure is old enough, even without an attempt since. */
export function* raiseOldFailures(tx: Transaction, nowMs: number): Work<void> {
  const row = yield* tx.one<FailuresRow>(RAISE_OLD, { untilMs: nowMs - REFUSES_AFTER.ageMs });
  if (row !== undefined) attention.raiseForNoOrder(tx, SHOP_REFUSES.kind, refusalMatter(row, nowMs));
}

// By its key: when SQLite deletes all rows of a table, it writes a page even if there are none.
const FORGET = statement('DELETE FROM shop_failure WHERE one = 1');

/** Deletes the count because the shop accepted a notice, then ends the matter that the count may have raised. */
export function endFailures(tx: Transaction, nowMs: number): void {
  tx.send(FORGET);
  endRefusal(tx, nowMs);
}

export function endRefusal(tx: Transaction, nowMs: number): void {
  attention.end(tx, SHOP_REFUSES.kind, SHOP_REFUSES.subject, nowMs);
}

const READ = statement(`SELECT ${FAILURES} FROM shop_failure`);

export function* readShopFailures(tx: Transaction): Work<ShopFailures | null> {
  const row = yield* tx.one<FailuresRow>(READ);
  return row === undefined ? null : (readAttempt(row) as ShopFailures);
}

type FailuresRow = Pick<ShopFailures, 'attempts' | 'sinceMs' | 'lastAtMs'> & AttemptRow;

/** The matter after the last attempt. */
function refusalMatter(row: FailuresRow, atMs: number): Matter<'shop_refuses_notices'> {
  const { attempts, sinceMs, lastAtMs, fault, answer } = readAttempt(row) as ShopFailures;
  const short = answer === null ? null : { status: answer.status, body: shortAnswer(answer.body) };
  const params = { attempts, sinceMs, lastAtMs, fault, answer: short };
  return { subject: SHOP_REFUSES.subject, params, atMs };
}
