import { noticeName, readNoticeName } from '../../domain/notice.ts';
import { KEY_MAX } from '../lists.ts';
import {
  attemptColumns,
  type ClaimedRow,
  claimedNotice,
  DEAD,
  deadDetail,
  type Ended,
  failureOf,
  type NoticeRow,
  noticeDetail,
  noticeSummary,
  type ResentRow,
  resending,
  resent,
} from '../notices.ts';
import type { NoticeDetail, Queries, ShopState } from '../queries.ts';
import { type Statement, statement } from '../statement.ts';
import type { Telling } from '../telling.ts';
import { attention } from './matters.ts';
import { firstKeySince } from './rows.ts';
import {
  countFailure,
  endRefusal,
  FAILED_BEFORE,
  FORGET_FAILURES,
  raiseOldFailures,
  readShopFailures,
} from './shop_failures.ts';
import type { InTransaction, Transaction } from './transaction.ts';

// Whoever ends a lease at this moment need not be waited for.
const LAPSE = statement(
  `UPDATE outbox SET status = 'pending', holder = NULL WHERE key IN
     (SELECT key FROM outbox WHERE status = 'leased' AND due_at_ms <= @nowMs FOR UPDATE SKIP LOCKED)`,
);
const claim = (attempts: string) =>
  statement(
    `WITH due AS (
       SELECT key, due_at_ms FROM outbox
       WHERE status = 'pending' AND attempt ${attempts} AND due_at_ms IS NOT NULL AND due_at_ms <= @nowMs
       ORDER BY due_at_ms, key LIMIT @limit FOR UPDATE SKIP LOCKED
     ), claimed AS (
       UPDATE outbox n SET status = 'leased', holder = @replica, attempt = n.attempt + 1, due_at_ms = @untilMs,
         ended_at_ms = NULL, first_tried_at_ms = coalesce(n.first_tried_at_ms, @nowMs)
       FROM due WHERE n.key = due.key RETURNING n.*, due.due_at_ms AS was_due_at_ms
     )
     SELECT n.key AS noticeKey, n.attempt, n.notice_id AS random, o.reference, n.type, n.body,
       n.created_at_ms AS createdAtMs, n.first_tried_at_ms AS firstTriedAtMs
     FROM claimed n JOIN orders o ON o.key = n.order_key ORDER BY n.was_due_at_ms, n.key`,
  );
const CLAIM_NEW = claim('= 0');
const CLAIM_AGAIN = claim('> 0');

/** Whether a notice is leased here, for the attempt that is meant. A notice that is sent again begins anew with attempt 1. */
const IS_OURS = `key = @noticeKey AND attempt = @attempt AND holder = @replica AND status = 'leased'`;
const ENDED_WITH = `holder = NULL, fault_code = @code, fault_message = @message, answer_status = @answerStatus,
  answer_body = @answerBody`;

const GIVE_BACK = statement(
  `WITH given AS (
     UPDATE outbox SET status = 'pending', due_at_ms = @dueAtMs, ${ENDED_WITH} WHERE ${IS_OURS} RETURNING 1
   )
   SELECT ${FAILED_BEFORE} AS failedBefore FROM given`,
);

export const tellingVerbs: InTransaction<Telling> = {
  claimNotices: async (tx, { tried, limit, nowMs, leaseMs }) => {
    const { replica } = tx;
    tx.send(LAPSE, { nowMs });
    const asked = { limit, nowMs, untilMs: nowMs + leaseMs, replica };
    const [claimed] = await Promise.all([
      tx.all<ClaimedRow>(tried ? CLAIM_AGAIN : CLAIM_NEW, asked),
      tried ? raiseOldFailures(tx, nowMs) : null,
    ]);
    return claimed.map(claimedNotice);
  },
  finishNotice: async (tx, told) => {
    const ended = await endNotice(tx, END_TAKEN, { ...told, fault: null });
    if (ended === null) return 'lost';
    if (ended.failed) endRefusal(tx, told.nowMs);
    return 'done';
  },
  retryNotice: async (tx, { noticeKey, attempt, dueAtMs, ...ended }) => {
    const row = { noticeKey, attempt, replica: tx.replica, dueAtMs };
    const given = await tx.one<{ failedBefore: boolean }>(GIVE_BACK, { ...row, ...attemptColumns(ended) });
    if (given === undefined) return 'lost';
    await countFailure(tx, { ...ended, ...given });
    return 'pending';
  },
  buryNotice: async (tx, failed) => {
    const ended = await endNotice(tx, END_DEAD, failed);
    if (ended === null) return 'lost';
    const { id, failed: failedBefore } = ended;
    await countFailure(tx, { ...failed, failedBefore });
    const { kind, subject } = DEAD;
    attention.raiseForNoOrder(tx, kind, { subject, detail: deadDetail(id, failed.fault), atMs: failed.nowMs });
    return 'dead';
  },
  resendNotice,
};

const LOCK_ORDER_OF_NOTICE = statement(
  `SELECT 1 FROM orders o JOIN outbox n ON n.order_key = o.key WHERE n.key = @noticeKey FOR NO KEY UPDATE OF o`,
);
/** The row is as it was before the statement, which is what is asked of a notice that died. */
const end = (status: 'done' | 'dead', failed: string, also = '') =>
  statement(
    `WITH ended AS (
       UPDATE outbox SET status = '${status}', due_at_ms = NULL, ended_at_ms = @nowMs, ${ENDED_WITH} WHERE ${IS_OURS}
       RETURNING order_key, notice_id
     ), next AS (
       UPDATE outbox SET due_at_ms = @nowMs WHERE key = (SELECT min(n.key) FROM outbox n JOIN ended USING (order_key)
         WHERE n.status = 'pending')
     )${also}
     SELECT notice_id AS random, ${failed} AS failed FROM ended`,
  );
const END_TAKEN = end('done', 'EXISTS (SELECT 1 FROM failures)', `, failures AS (${FORGET_FAILURES})`);
const END_DEAD = end('dead', FAILED_BEFORE);

/** `failed`: whether attempts had failed in a row until this one was taken; of a dead one, whether it failed before. */
type NoticeEnded = { id: string; failed: boolean };

/** Ends a notice and gives the next of its order its turn. Null if the lease is somebody else's. */
async function endNotice(tx: Transaction, how: Statement, ended: Ended): Promise<NoticeEnded | null> {
  const { noticeKey, attempt, nowMs } = ended;
  const row = { noticeKey, attempt, nowMs, replica: tx.replica };
  // A notice that is written meanwhile waits for its turn, which only its order's holder can give it.
  const [, found] = await Promise.all([
    tx.run(LOCK_ORDER_OF_NOTICE, { noticeKey }),
    tx.one<{ random: string; failed: boolean }>(how, { ...row, ...attemptColumns(ended) }),
  ]);
  return found === undefined ? null : { id: noticeName(noticeKey, found.random), failed: found.failed };
}

const FIND = statement(
  `SELECT status, order_key AS orderKey, due_at_ms AS dueAtMs FROM outbox
   WHERE key = @noticeKey AND notice_id = @random FOR NO KEY UPDATE`,
);
const FIND_TURN = statement(
  `SELECT key, notice_id AS random FROM outbox WHERE status IN ('pending', 'leased') AND due_at_ms IS NOT NULL
     AND order_key = (SELECT order_key FROM outbox WHERE key = @noticeKey)`,
);
const REQUEUE = statement(
  `UPDATE outbox SET status = 'pending', attempt = 0, first_tried_at_ms = NULL, ended_at_ms = NULL,
     due_at_ms = @dueAtMs WHERE key = @noticeKey`,
);
const HASTEN = statement('UPDATE outbox SET due_at_ms = @nowMs WHERE key = @noticeKey');
// Held before it is looked whether a notice is dead: one that dies at this moment raises the matter after it.
const HOLD_MATTER = statement(
  'SELECT 1 FROM attention WHERE kind = @kind AND subject = @subject AND ended_at_ms IS NULL FOR UPDATE',
);
const END_MATTER = statement(
  `UPDATE attention SET ended_at_ms = @nowMs WHERE kind = @kind AND subject = @subject AND ended_at_ms IS NULL
     AND NOT EXISTS (SELECT 1 FROM outbox WHERE status = 'dead')`,
);

async function resendNotice(
  tx: Transaction,
  { id, nowMs }: Parameters<Telling['resendNotice']>[0],
): ReturnType<Telling['resendNotice']> {
  const name = readNoticeName(id);
  if (name === null) return 'unknown';
  const { key: noticeKey, random } = name;
  const [, row, turn] = await Promise.all([
    tx.run(LOCK_ORDER_OF_NOTICE, { noticeKey }),
    tx.one<ResentRow>(FIND, { noticeKey, random }),
    tx.one<{ key: number; random: string }>(FIND_TURN, { noticeKey }),
  ]);
  if (row === undefined) return 'unknown';
  const what = resending(row, nowMs);
  if (what === 'in_work') return what;
  if (what === 'hasten') {
    tx.send(HASTEN, { noticeKey, nowMs });
    return resent(undefined, nowMs);
  }
  tx.send(REQUEUE, { noticeKey, dueAtMs: turn === undefined ? nowMs : null });
  tx.send(HOLD_MATTER, DEAD);
  tx.send(END_MATTER, { ...DEAD, nowMs });
  return resent(turn, nowMs);
}

export const NOTICE_COLUMNS = `n.key, n.notice_id AS random, o.reference, n.type, n.version, n.status, n.attempt,
  n.created_at_ms AS createdAtMs, CASE WHEN n.status = 'pending' THEN n.due_at_ms END AS dueAtMs,
  n.ended_at_ms AS endedAtMs, n.fault_code AS faultCode, n.fault_message AS faultMessage,
  n.answer_status AS answerStatus, n.answer_body AS answerBody`;
export const NOTICE_TABLES = 'outbox n JOIN orders o ON o.key = n.order_key';

const FIND_WHOLE = statement(
  `SELECT ${NOTICE_COLUMNS}, n.body FROM ${NOTICE_TABLES} WHERE n.key = @key AND n.notice_id = @random`,
);

export const noticeQueries: InTransaction<Pick<Queries, 'listNotices' | 'findNotice'>> = {
  listNotices: async (tx, { limit, after, status, reference, sinceMs }) => {
    const conditions = [
      'n.key < @before',
      // Written out, because a partial index is used only for its own literal.
      ...(status === null ? [] : [`n.status = '${status}'`]),
      ...(reference === null ? [] : ['o.reference = @reference']),
      ...(sinceMs === null
        ? []
        : [`n.key >= ${firstKeySince('outbox', 'created_at_ms')}`, 'n.created_at_ms >= @sinceMs']),
    ];
    const list = statement(
      `SELECT ${NOTICE_COLUMNS} FROM ${NOTICE_TABLES} WHERE ${conditions.join(' AND ')}
       ORDER BY n.key DESC LIMIT @limit`,
    );
    const values = { before: after ?? KEY_MAX, limit, reference, sinceMs };
    return (await tx.all<NoticeRow>(list, values)).map(noticeSummary);
  },
  findNotice: async (tx, id) => {
    const name = readNoticeName(id);
    const row = name === null ? undefined : await tx.one<NoticeRow & Pick<NoticeDetail, 'body'>>(FIND_WHOLE, name);
    return row === undefined ? null : noticeDetail(row);
  },
};

const oldest = (status: 'pending' | 'leased' | 'dead') =>
  `(SELECT created_at_ms FROM outbox WHERE status = '${status}' ORDER BY key LIMIT 1)`;
const UNTAKEN_SINCE = statement(
  `SELECT least(${oldest('pending')}, ${oldest('leased')}, ${oldest('dead')}) AS untakenSinceMs,
     (SELECT max(ended_at_ms) FROM (SELECT status, ended_at_ms FROM outbox ORDER BY key DESC LIMIT 1000) n
      WHERE status = 'done') AS takenAtMs`,
);
const failed = (status: 'pending' | 'dead') =>
  statement(
    `SELECT ${NOTICE_COLUMNS} FROM ${NOTICE_TABLES} WHERE n.status = '${status}' AND n.fault_code IS NOT NULL
     ORDER BY n.key LIMIT 1`,
  );
const FAILED_PENDING = failed('pending');
const FAILED_DEAD = failed('dead');

export const shopState: InTransaction<Queries>['shopState'] = async (tx) => {
  const [times, pending, dead, failures] = await Promise.all([
    tx.one<Pick<ShopState, 'untakenSinceMs' | 'takenAtMs'>>(UNTAKEN_SINCE),
    tx.one<NoticeRow>(FAILED_PENDING),
    tx.one<NoticeRow>(FAILED_DEAD),
    readShopFailures(tx),
  ]);
  const { untakenSinceMs = null, takenAtMs = null } = times ?? {};
  return { untakenSinceMs, takenAtMs, failure: failureOf(pending ?? dead), failures };
};
