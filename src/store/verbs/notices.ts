import { isAboutMoney } from '../../domain/decision.ts';
import { noticeName, readNoticeName } from '../../domain/notice.ts';
import type { NoticeFilter } from '../contract_lists.ts';
import type {
  ClaimedNotice,
  FeedPage,
  NoticeDetail,
  NoticeQueries,
  NoticeSummary,
  Resent,
  ShopState,
  Telling,
} from '../contract_notices.ts';
import { type InTransaction, statement, type Transaction, type Work } from '../transaction.ts';
import { attention } from './attention.ts';
import { writeAudit } from './audit.ts';
import { defineList, finder, inTime, type Narrowed, readKeys } from './list_pages.ts';
import {
  ATTEMPT,
  type AttemptRow,
  attemptColumns,
  countFailure,
  endFailures,
  endRefusal,
  raiseOldFailures,
  readAttempt,
  readShopFailures,
} from './shop_failures.ts';
import { DEAD, endUntoldMoney, mayBePassed, noteUntoldMoney, PASS_ON, START_AGAIN, supersede } from './superseding.ts';

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
const LEASE = statement(`
  UPDATE outbox SET status = 'leased', holder = @replica, attempt = attempt + 1, due_at_ms = @untilMs,
    ended_at_ms = NULL, first_tried_at_ms = coalesce(first_tried_at_ms, @nowMs) WHERE key = ANY(@keys::bigint[])`);

const LOCK_ORDER_OF_NOTICE = statement(`
  SELECT 1 FROM orders o JOIN outbox n ON n.order_key = o.key WHERE n.key = @noticeKey FOR NO KEY UPDATE OF o`);
/** Selects the notice if this process holds its lease for this attempt. A resent notice begins again at attempt 1. */
const IS_OURS = `key = @noticeKey AND attempt = @attempt AND holder = @replica AND status = 'leased'`;
const LOCK_CLAIMED = statement(`
  SELECT order_key AS orderKey, notice_id AS random, attempt > 1 AND fault_code IS NOT NULL AS hasFailedBefore
  FROM outbox WHERE ${IS_OURS} FOR NO KEY UPDATE`);
const ENDED_WITH = `holder = NULL, fault_code = @code, fault_message = @message, answer_status = @answerStatus,
  answer_body = @answerBody`;
const end = (status: 'done' | 'dead') =>
  `UPDATE outbox SET status = '${status}', due_at_ms = NULL, ended_at_ms = @nowMs, ${ENDED_WITH} WHERE ${IS_OURS}`;
const FINISH = statement(`
  ${end('done')} RETURNING order_key AS orderKey, type,
    EXISTS (SELECT 1 FROM outbox earlier WHERE earlier.order_key = outbox.order_key AND earlier.key < outbox.key
      AND earlier.status = 'pending') AS hasEarlier, EXISTS (SELECT 1 FROM shop_failure) AS hasFailures`);
const BURY = statement(end('dead'));
const GIVE_BACK = statement(`
  UPDATE outbox SET status = 'pending', due_at_ms = @dueAtMs, ${ENDED_WITH} WHERE ${IS_OURS}`);
const GIVE_NEXT_ITS_TURN = statement(`
  UPDATE outbox SET due_at_ms = @nowMs WHERE key =
    (SELECT min(key) FROM outbox WHERE order_key = @orderKey AND status = 'pending')`);

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

export const tellingVerbs: InTransaction<Telling> = {
  *claimNotices(tx, { tried, limit, nowMs, leaseMs }) {
    tx.send(LAPSE, { nowMs });
    const found = tx.all<ClaimedRow>(tried ? DUE_AGAIN : DUE_NEW, { nowMs, limit });
    if (tried) yield* raiseOldFailures(tx, nowMs);
    const rows = yield* found;
    if (tried) yield* noteUntoldMoney(tx, nowMs);
    const keys = rows.map(({ noticeKey }) => noticeKey);
    if (keys.length > 0) tx.send(LEASE, { keys, replica: tx.replica, nowMs, untilMs: nowMs + leaseMs });
    return rows.map(({ random, ...notice }) => ({ ...notice, id: noticeName(notice.noticeKey, random) }));
  },
  *finishNotice(tx, { noticeKey, attempt, answer, nowMs }) {
    const { replica } = tx;
    // Without the order's lock, a notice that is just being written would miss its turn.
    tx.lock(LOCK_ORDER_OF_NOTICE, { noticeKey });
    const values = { noticeKey, attempt, replica, nowMs, ...attemptColumns({ fault: null, answer }) };
    const taken = yield* tx.one<TakenNotice>(FINISH, values);
    if (taken === undefined) return 'lost';
    if (taken.hasEarlier && isAboutMoney(taken.type)) yield* supersede(tx, { orderKey: taken.orderKey, nowMs });
    tx.send(GIVE_NEXT_ITS_TURN, { orderKey: taken.orderKey, nowMs });
    if (taken.hasFailures) endFailures(tx, nowMs);
    return 'done';
  },
  *retryNotice(tx, { noticeKey, attempt, dueAtMs, ...ended }) {
    const { nowMs } = ended;
    const ours = { noticeKey, attempt, replica: tx.replica };
    tx.lock(LOCK_ORDER_OF_NOTICE, { noticeKey });
    const locked = yield* tx.one<LockedNotice>(LOCK_CLAIMED, ours);
    if (locked === undefined) return 'lost';
    tx.send(GIVE_BACK, { ...ours, dueAtMs, ...attemptColumns(ended) });
    const inARow = yield* countFailure(tx, { ...ended, hasFailedBefore: locked.hasFailedBefore });
    const { orderKey } = locked;
    // A replica of the release before may have been told that the shop took a later notice, and not have acted on it.
    yield* supersede(tx, { orderKey, nowMs });
    const isPassed = mayBePassed({ answer: ended.answer, attempt, inARow });
    tx.send(isPassed ? PASS_ON : START_AGAIN, { orderKey, noticeKey, nowMs, dueAtMs });
    return 'pending';
  },
  *buryNotice(tx, { noticeKey, attempt, ...ended }) {
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
  },
  *resendNotice(tx, { id, by, nowMs }) {
    const name = readNoticeName(id);
    if (name === null) return 'unknown';
    const { key: noticeKey, random } = name;
    tx.lock(LOCK_ORDER_OF_NOTICE, { noticeKey });
    const found = tx.one<Pick<NoticeSummary, 'status' | 'dueAtMs'>>(FIND, { noticeKey, random });
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
  },
  *stopTelling(tx, { nowMs }) {
    endRefusal(tx, nowMs);
    endUntoldMoney(tx, nowMs);
  },
};

type ClaimedRow = Omit<ClaimedNotice, 'id'> & { random: string };
type TakenNotice = { orderKey: number; type: string; hasEarlier: boolean; hasFailures: boolean };
type LockedNotice = { orderKey: number; random: string; hasFailedBefore: boolean };

/** A row of `NOTICE`. */
export type NoticeRow = Omit<NoticeSummary, 'id' | 'fault' | 'answer'> & AttemptRow & { random: string };

const NOTICE_COLUMNS = `n.key, n.notice_id AS random, o.reference, n.type, n.version, n.status, n.attempt,
  coalesce(n.superseded, false) AS isSuperseded,
  n.created_at_ms AS createdAtMs, CASE WHEN n.status = 'pending' THEN n.due_at_ms END AS dueAtMs,
  n.ended_at_ms AS endedAtMs, ${ATTEMPT}`;
const TO_ITS_ORDER = 'JOIN orders o ON o.key = n.order_key';

/** Notices with the references of their orders: a statement without conditions. */
export const NOTICE = `SELECT ${NOTICE_COLUMNS} FROM outbox n ${TO_ITS_ORDER}`;

export function noticeSummary(row: NoticeRow): NoticeSummary {
  const { random, ...notice } = readAttempt(row);
  return { ...notice, id: noticeName(notice.key, random) };
}

const FIND_WHOLE = statement(`
  SELECT ${NOTICE_COLUMNS}, n.body FROM outbox n ${TO_ITS_ORDER} WHERE n.key = @key AND n.notice_id = @random`);

const RANDOM_OF = statement('SELECT notice_id AS random FROM outbox WHERE key = @key');

/** The id of the notice with this key; null if there is none. */
export function* noticeIdOf(tx: Transaction, key: number): Work<string | null> {
  const row = yield* tx.one<{ random: string }>(RANDOM_OF, { key });
  return row === undefined ? null : noticeName(key, row.random);
}

const oldest = (status: 'pending' | 'leased' | 'dead') =>
  `SELECT (SELECT created_at_ms FROM outbox WHERE status = '${status}' AND superseded IS NOT TRUE ORDER BY key LIMIT 1)
    AS ms`;
const TIMES = statement(`
  SELECT (SELECT min(ms) FROM (${oldest('pending')} UNION ALL ${oldest('leased')} UNION ALL ${oldest('dead')}) AS oldest)
      AS untakenSinceMs,
    (SELECT max(ended_at_ms) FROM (SELECT status, ended_at_ms FROM outbox ORDER BY key DESC LIMIT 1000) AS newest
     WHERE status = 'done') AS takenAtMs`);
const failed = (status: 'pending' | 'dead') =>
  statement(`${NOTICE} WHERE n.status = '${status}' AND n.fault_code IS NOT NULL
    AND n.superseded IS NOT TRUE ORDER BY n.key LIMIT 1`);
const FAILED_PENDING = failed('pending');
const FAILED_DEAD = failed('dead');

export const noticeQueries: InTransaction<Omit<NoticeQueries, 'readFeed' | 'findFeedEnd'>> = {
  *listNotices(tx, page) {
    const { keys, ...more } = yield* readKeys(tx, NOTICE_LIST, narrowNotices(page), page);
    const rows = keys.length === 0 ? [] : yield* tx.all<NoticeRow>(NOTICES_OF_KEYS, { keys });
    return { rows: rows.map(noticeSummary), ...more };
  },
  *findNotice(tx, id) {
    const name = readNoticeName(id);
    if (name === null) return null;
    const row = yield* tx.one<NoticeRow & Pick<NoticeDetail, 'body'>>(FIND_WHOLE, name);
    if (row === undefined) return null;
    const { body, ...summary } = row;
    return { ...noticeSummary(summary), body };
  },
  *shopState(tx) {
    const times = tx.one<Pick<ShopState, 'untakenSinceMs' | 'takenAtMs'>>(TIMES);
    const pending = tx.one<NoticeRow>(FAILED_PENDING);
    const dead = tx.one<NoticeRow>(FAILED_DEAD);
    const failures = yield* readShopFailures(tx);
    const { untakenSinceMs = null, takenAtMs = null } = (yield* times) ?? {};
    const failed = (yield* pending) ?? (yield* dead);
    const { fault = null, answer = null } = failed === undefined ? {} : noticeSummary(failed);
    return { untakenSinceMs, takenAtMs, failure: fault === null ? null : { fault, answer }, failures };
  },
};

const NOTICES_OF_KEYS = statement(`${NOTICE} WHERE n.key = ANY(@keys::bigint[]) ORDER BY n.key DESC`);

/** A superseded notice is dead for the release before. In lists of dead ones, people look for what needs them. */
const NOT_SUPERSEDED = 'n.superseded IS NOT TRUE';

const waiting = (status: 'pending' | 'leased' | 'dead') => {
  // The status is a literal, because a partial index is used only for its own literal.
  return { from: `outbox n INDEXED BY outbox_${status}`, condition: `n.status = '${status}' AND ${NOT_SUPERSEDED}` };
};

export const NOTICE_LIST = defineList({
  table: 'outbox',
  alias: 'n',
  matches: `(@status::text IS NULL OR (n.status = @status AND ${NOT_SUPERSEDED})) AND (@type::text IS NULL OR n.type = @type)
    AND ${inTime('outbox', 'n')}`,
  ordered: {
    ofOrder: {
      from: 'outbox n INDEXED BY outbox_by_order',
      condition: 'n.order_key = (SELECT key FROM orders WHERE reference = @reference)',
    },
    pending: waiting('pending'),
    leased: waiting('leased'),
    dead: waiting('dead'),
  },
});

const withStatus = (status: 'pending' | 'leased' | 'dead') => {
  const { from, condition } = waiting(status);
  return statement(`SELECT n.key FROM ${from} WHERE ${condition} ORDER BY n.key LIMIT @few`);
};
const NOTICES_WITH = { pending: withStatus('pending'), leased: withStatus('leased'), dead: withStatus('dead') };

export function narrowNotices(filter: NoticeFilter): Narrowed {
  const { status = null, type = null, reference = null, sinceMs = null, untilMs = null } = filter;
  const values = { status, type, reference, sinceMs, untilMs };
  const isBare = [type, sinceMs, untilMs].every((value) => value === null);
  const waits = status === null || status === 'done' ? null : status;
  return {
    values,
    finders: waits === null ? [] : [finder(NOTICES_WITH[waits], {})],
    ordered: reference !== null ? 'ofOrder' : isBare ? waits : null,
  };
}

/** A notice as the feed shows it. */
export type FeedRow = { key: number; random: string; position: number; body: string };

export function feedNotice({ key, random, position, body }: FeedRow): FeedPage['notices'][number] {
  return { position, id: noticeName(key, random), body };
}
