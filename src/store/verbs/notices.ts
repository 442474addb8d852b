import { isAboutMoney, type NoticeType, noticeName, readNoticeName, type ShopAnswer } from '../../domain/notice.ts';
import type { Claim, FaultNote, RowStatus } from '../../domain/retry.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';
import { attention } from './attention.ts';
import { type Author, writeAudit } from './audit.ts';
import { attemptColumns, countFailure, endFailures, endRefusal, raiseOldFailures } from './shop_failures.ts';
import { DEAD, endUntoldMoney, mayBePassed, noteUntoldMoney, PASS_ON, START_AGAIN, supersede } from './superseding.ts';

/**
 * Sends notices to the shop. Pending and leased notices are owed. Only one notice of an order is sent at a time; the
 * next follows once it is done or dead. `domain/retry.ts` describes the statuses.
 */

type NoticeRef = { noticeKey: number; attempt: number };

export type ClaimedNotice = NoticeRef & {
  /** The same for all attempts: the shop's idempotency key. */
  id: string;
  reference: string;
  type: NoticeType;
  /** JSON. */
  body: string;
  createdAtMs: number;
  /** The time of this attempt, if it is the first. */
  firstTriedAtMs: number;
};

type FailedNotice = NoticeRef & { fault: FaultNote; answer: ShopAnswer | null; nowMs: number };

// Skips a row that another transaction has locked: its lease is just ending.
const LAPSE = statement(`
  UPDATE outbox SET status = 'pending', holder = NULL WHERE key IN
    (SELECT key FROM outbox WHERE status = 'leased' AND due_at_ms <= @nowMs FOR NO KEY UPDATE SKIP LOCKED)`);
const due = (attempts: '= 0' | '> 0') =>
  statement(
    `SELECT n.key AS noticeKey, n.attempt + 1 AS attempt, n.notice_id AS random,
       (SELECT reference FROM orders WHERE key = n.order_key) AS reference, n.type, n.body,
       n.created_at_ms AS createdAtMs, coalesce(n.first_tried_at_ms, @nowMs) AS firstTriedAtMs
     FROM outbox n
     WHERE n.status = 'pending' AND n.attempt ${attempts} AND n.due_at_ms IS NOT NULL AND n.due_at_ms <= @nowMs
     ORDER BY n.due_at_ms, n.key LIMIT @limit FOR NO KEY UPDATE OF n SKIP LOCKED`,
  );
const DUE_NEW = due('= 0');
const DUE_AGAIN = due('> 0');
// A replica of the release before sends a superseded notice again as it is.
const LEASE = statement(`
  UPDATE outbox SET status = 'leased', holder = @replica, attempt = attempt + 1, due_at_ms = @untilMs,
    superseded = CASE WHEN superseded IS NOT NULL THEN false END, ended_at_ms = NULL,
    first_tried_at_ms = coalesce(first_tried_at_ms, @nowMs) WHERE key = ANY(@keys::bigint[])`);

type DueNotice = Omit<ClaimedNotice, 'id'> & { random: string };

/**
 * Leases due notices, oldest first, each with its next attempt number: those never tried or, with `tried`, the
 * others. With `tried` it also raises `shop_refuses_notices` if an attempt failed two minutes ago and the shop has
 * accepted none since.
 */
export function* claimNotices(
  tx: Transaction,
  { tried, limit, nowMs, leaseMs }: Claim & { tried: boolean },
): Work<ClaimedNotice[]> {
  tx.send(LAPSE, { nowMs });
  const found = tx.all<DueNotice>(tried ? DUE_AGAIN : DUE_NEW, { nowMs, limit });
  if (tried) yield* raiseOldFailures(tx, nowMs);
  const rows = yield* found;
  if (tried) yield* noteUntoldMoney(tx, nowMs);
  const keys = rows.map(({ noticeKey }) => noticeKey);
  if (keys.length > 0) tx.send(LEASE, { keys, replica: tx.replica, nowMs, untilMs: nowMs + leaseMs });
  return rows.map(({ random, ...notice }) => ({ ...notice, id: noticeName(notice.noticeKey, random) }));
}

const LOCK_ORDER_OF_NOTICE = statement(`
  SELECT 1 FROM orders o JOIN outbox n ON n.order_key = o.key WHERE n.key = @noticeKey FOR NO KEY UPDATE OF o`);
/** Selects the notice if this process holds its lease for this attempt. A resent notice begins again at attempt 1. */
const IS_OURS = `key = @noticeKey AND attempt = @attempt AND holder = @replica AND status = 'leased'`;
const ENDED_WITH = `holder = NULL, fault_code = @code, fault_message = @message, answer_status = @answerStatus,
  answer_body = @answerBody`;
const end = (status: 'done' | 'dead') =>
  `UPDATE outbox SET status = '${status}', due_at_ms = NULL, ended_at_ms = @nowMs, ${ENDED_WITH} WHERE ${IS_OURS}`;
const FINISH = statement(`
  ${end('done')} RETURNING order_key AS orderKey, type,
    EXISTS (SELECT 1 FROM outbox earlier WHERE earlier.order_key = outbox.order_key AND earlier.key < outbox.key
      AND earlier.status = 'pending') AS hasEarlier, EXISTS (SELECT 1 FROM shop_failure) AS hasFailures`);
const GIVE_NEXT_ITS_TURN = statement(`
  UPDATE outbox SET due_at_ms = @nowMs WHERE key =
    (SELECT min(key) FROM outbox WHERE order_key = @orderKey AND status = 'pending')`);

type TakenNotice = { orderKey: number; type: string; hasEarlier: boolean; hasFailures: boolean };

/** Records that the shop accepted a notice, which ends `shop_refuses_notices`. `lost`: the lease expired. */
export function* finishNotice(
  tx: Transaction,
  told: NoticeRef & { answer: ShopAnswer; nowMs: number },
): Work<'done' | 'lost'> {
  const { noticeKey, attempt, answer, nowMs } = told;
  const { replica } = tx;
  // Without the order's lock, a notice that is just being written would miss its turn.
  tx.lock(LOCK_ORDER_OF_NOTICE, { noticeKey });
  const values = { noticeKey, attempt, replica, nowMs, ...attemptColumns({ fault: null, answer }) };
  const taken = yield* tx.one<TakenNotice>(FINISH, values);
  if (taken === undefined) return 'lost';
  // Before it raises a matter, as an attempt that fails locks them.
  if (taken.hasFailures) endFailures(tx, nowMs);
  if (taken.hasEarlier && isAboutMoney(taken.type)) yield* supersede(tx, { orderKey: taken.orderKey, nowMs });
  tx.send(GIVE_NEXT_ITS_TURN, { orderKey: taken.orderKey, nowMs });
  return 'done';
}

const LOCK_CLAIMED = statement(`
  SELECT order_key AS orderKey, notice_id AS random, attempt > 1 AND fault_code IS NOT NULL AS hasFailedBefore
  FROM outbox WHERE ${IS_OURS} FOR NO KEY UPDATE`);
const RETRY = statement(`
  UPDATE outbox SET status = 'pending', due_at_ms = @dueAtMs, ${ENDED_WITH} WHERE ${IS_OURS}`);

type LockedNotice = { orderKey: number; random: string; hasFailedBefore: boolean };

/**
 * Returns a claimed notice to the queue, due at `dueAtMs`. Counts the failed attempt: the third in a row, or one two
 * minutes after the first, raises `shop_refuses_notices`. If the shop has accepted another notice since, a notice
 * that failed before begins no new count: it may be the only one that the shop refuses.
 */
export function* retryNotice(tx: Transaction, failed: FailedNotice & { dueAtMs: number }): Work<'pending' | 'lost'> {
  const { noticeKey, attempt, dueAtMs, ...ended } = failed;
  const { nowMs } = ended;
  const ours = { noticeKey, attempt, replica: tx.replica };
  tx.lock(LOCK_ORDER_OF_NOTICE, { noticeKey });
  const locked = yield* tx.one<LockedNotice>(LOCK_CLAIMED, ours);
  if (locked === undefined) return 'lost';
  tx.send(RETRY, { ...ours, dueAtMs, ...attemptColumns(ended) });
  const inARow = yield* countFailure(tx, { ...ended, hasFailedBefore: locked.hasFailedBefore });
  const { orderKey } = locked;
  // A replica of the release before may have been told that the shop took a later notice, and not have acted on it.
  yield* supersede(tx, { orderKey, nowMs });
  const isPassed = mayBePassed({ answer: ended.answer, attempt, inARow });
  tx.send(isPassed ? PASS_ON : START_AGAIN, { orderKey, noticeKey, nowMs, dueAtMs });
  return 'pending';
}

const BURY = statement(end('dead'));

/** Gives a claimed notice up, and raises `notices_dead`. A person may send it again. Counts as `retryNotice` does. */
export function* buryNotice(tx: Transaction, { noticeKey, attempt, ...ended }: FailedNotice): Work<'dead' | 'lost'> {
  const { fault, nowMs } = ended;
  const ours = { noticeKey, attempt, replica: tx.replica };
  tx.lock(LOCK_ORDER_OF_NOTICE, { noticeKey });
  const locked = yield* tx.one<LockedNotice>(LOCK_CLAIMED, ours);
  if (locked === undefined) return 'lost';
  const { orderKey, random, hasFailedBefore } = locked;
  tx.send(BURY, { ...ours, nowMs, ...attemptColumns(ended) });
  tx.send(GIVE_NEXT_ITS_TURN, { orderKey, nowMs });
  yield* countFailure(tx, { ...ended, hasFailedBefore });
  const params = { notice: noticeName(noticeKey, random), message: fault.message };
  attention.raiseForNoOrder(tx, DEAD.kind, { subject: DEAD.subject, params, atMs: nowMs });
  return 'dead';
}

const FIND = statement(`
  SELECT status, due_at_ms AS dueAtMs FROM outbox WHERE key = @noticeKey AND notice_id = @random FOR NO KEY UPDATE`);
const FIND_TURN = statement(`
  SELECT key, notice_id AS random FROM outbox WHERE status IN ('pending', 'leased') AND due_at_ms IS NOT NULL
    AND order_key = (SELECT order_key FROM outbox WHERE key = @noticeKey)`);
const REQUEUE = statement(`
  UPDATE outbox SET status = 'pending', attempt = 0, first_tried_at_ms = NULL, ended_at_ms = NULL,
    due_at_ms = @dueAtMs, superseded = false WHERE key = @noticeKey`);
const HASTEN = statement('UPDATE outbox SET due_at_ms = @nowMs WHERE key = @noticeKey');
// Locked before END_MATTER looks for dead notices: a notice that dies now raises the matter again afterwards.
const LOCK_MATTER = statement(`
  SELECT 1 FROM attention WHERE kind = @kind AND subject = @subject AND ended_at_ms IS NULL FOR UPDATE`);
const END_MATTER = statement(`
  UPDATE attention SET ended_at_ms = @nowMs WHERE kind = @kind AND subject = @subject AND ended_at_ms IS NULL
    AND NOT EXISTS (SELECT 1 FROM outbox WHERE status = 'dead' AND superseded IS NOT TRUE)`);

/** When the notice is due; or the id of the notice of its order that comes first. */
type Resent = { dueAtMs: number; waitsFor: null } | { dueAtMs: null; waitsFor: string };

/**
 * Makes a done or dead notice pending again, with the same id. A notice that waits for its next attempt becomes due
 * now. `in_work`: it is being sent, is due, or waits for another notice of its order.
 */
export function* resendNotice(
  tx: Transaction,
  { id, by, nowMs }: { id: string; by: Author | null; nowMs: number },
): Work<Resent | 'in_work' | 'unknown'> {
  const name = readNoticeName(id);
  if (name === null) return 'unknown';
  const { key: noticeKey, random } = name;
  tx.lock(LOCK_ORDER_OF_NOTICE, { noticeKey });
  const found = tx.one<{ status: RowStatus; dueAtMs: number | null }>(FIND, { noticeKey, random });
  const first = tx.one<{ key: number; random: string }>(FIND_TURN, { noticeKey });
  const row = yield* found;
  const turn = yield* first;
  if (row === undefined) return 'unknown';
  if (row.status === 'leased') return 'in_work';
  const change = { action: 'resend_notice', subject: id, before: { status: row.status } } as const;
  if (row.status === 'pending') {
    if (row.dueAtMs === null || row.dueAtMs <= nowMs) return 'in_work';
    tx.send(HASTEN, { noticeKey, nowMs });
    yield* writeAudit(tx, by, change, nowMs);
    return { dueAtMs: nowMs, waitsFor: null };
  }
  const resent: Resent =
    turn === undefined
      ? { dueAtMs: nowMs, waitsFor: null }
      : { dueAtMs: null, waitsFor: noticeName(turn.key, turn.random) };
  tx.send(REQUEUE, { noticeKey, dueAtMs: resent.dueAtMs });
  tx.lock(LOCK_MATTER, DEAD);
  tx.send(END_MATTER, { ...DEAD, nowMs });
  yield* writeAudit(tx, by, change, nowMs);
  return resent;
}

/**
 * Ends `shop_refuses_notices` because the shop no longer has a callback. The count of attempts stays: if the shop has
 * a callback again, the next failed attempt raises the matter.
 */
export function* stopTelling(tx: Transaction, { nowMs }: { nowMs: number }): Work<void> {
  endRefusal(tx, nowMs);
  endUntoldMoney(tx, nowMs);
}
