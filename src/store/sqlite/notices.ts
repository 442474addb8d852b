import type { Database } from 'better-sqlite3';
import { noticeName, readNoticeName } from '../../domain/notice.ts';
import { KEY_MAX } from '../lists.ts';
import {
  attemptColumns,
  type ClaimedRow,
  claimedNotice,
  DEAD,
  deadDetail,
  type Ended,
  type FeedRow,
  failureOf,
  feedNotice,
  type NoticeRow,
  noticeDetail,
  noticeSummary,
  type ResentRow,
  resending,
  resent,
  upToBytes,
} from '../notices.ts';
import type { NoticeDetail, NoticeSummary, Queries } from '../queries.ts';
import type { Telling } from '../telling.ts';
import { attentionVerbs } from './matters.ts';
import { firstKeySince } from './rows.ts';
import { shopFailuresQuery, shopFailureVerbs } from './shop_failures.ts';
import type { Synchronous } from './synchronous.ts';

export function tellingVerbs(db: Database): Synchronous<Telling> {
  const giveBack = db.prepare(
    `UPDATE outbox SET status = 'pending', due_at_ms = @dueAtMs, fault_code = @code, fault_message = @message,
       answer_status = @answerStatus, answer_body = @answerBody
     WHERE key = @noticeKey AND attempt = +@attempt AND status = 'leased'`,
  );
  const endNotice = noticeEnder(db);
  const attention = attentionVerbs(db);
  const failures = shopFailureVerbs(db);
  return {
    claimNotices: claimer(db, failures.raiseOld),
    finishNotice: (told) => {
      if (endNotice('done', { ...told, fault: null }) === null) return 'lost';
      failures.end(told.nowMs);
      return 'done';
    },
    retryNotice: ({ noticeKey, attempt, dueAtMs, ...ended }) => {
      const failedBefore = failures.failedBefore(noticeKey);
      const { changes } = giveBack.run({ noticeKey, attempt, dueAtMs, ...attemptColumns(ended) });
      if (changes === 0) return 'lost';
      failures.count({ ...ended, failedBefore });
      return 'pending';
    },
    buryNotice: (failed) => {
      const failedBefore = failures.failedBefore(failed.noticeKey);
      const id = endNotice('dead', failed);
      if (id === null) return 'lost';
      failures.count({ ...failed, failedBefore });
      const detail = deadDetail(id, failed.fault);
      attention.raiseForNoOrder(DEAD.kind, { subject: DEAD.subject, detail, atMs: failed.nowMs });
      return 'dead';
    },
    resendNotice: resender(db),
  };
}

function claimer(db: Database, raiseOld: (nowMs: number) => void): Synchronous<Telling>['claimNotices'] {
  const lapse = db.prepare(`UPDATE outbox SET status = 'pending' WHERE status = 'leased' AND due_at_ms <= +?`);
  const due = (attempts: string) =>
    db.prepare(
      `SELECT n.key AS noticeKey, n.attempt + 1 AS attempt, n.notice_id AS random, o.reference, n.type, n.body,
         n.created_at_ms AS createdAtMs, coalesce(n.first_tried_at_ms, @nowMs) AS firstTriedAtMs
       FROM outbox n JOIN orders o ON o.key = n.order_key
       WHERE n.status = 'pending' AND n.attempt ${attempts} AND n.due_at_ms IS NOT NULL AND n.due_at_ms <= +@nowMs
       ORDER BY n.due_at_ms LIMIT +@limit`,
    );
  const dueNew = due('= 0');
  const dueAgain = due('> 0');
  const lease = db.prepare(
    `UPDATE outbox SET status = 'leased', attempt = attempt + 1, due_at_ms = @untilMs, ended_at_ms = NULL,
       first_tried_at_ms = coalesce(first_tried_at_ms, @nowMs) WHERE key = @noticeKey`,
  );
  return ({ tried, limit, nowMs, leaseMs }) => {
    lapse.run(nowMs);
    if (tried) raiseOld(nowMs);
    const rows = (tried ? dueAgain : dueNew).all({ nowMs, limit }) as ClaimedRow[];
    for (const { noticeKey } of rows) lease.run({ noticeKey, nowMs, untilMs: nowMs + leaseMs });
    return rows.map(claimedNotice);
  };
}

/** Ends a notice and gives the next of its order its turn. Returns its id; null where the lease is somebody else's. */
function noticeEnder(db: Database): (status: 'done' | 'dead', ended: Ended) => string | null {
  const end = db.prepare(
    `UPDATE outbox SET status = @status, due_at_ms = NULL, ended_at_ms = @nowMs, fault_code = @code,
       fault_message = @message, answer_status = @answerStatus, answer_body = @answerBody
     WHERE key = @noticeKey AND attempt = +@attempt AND status = 'leased'
     RETURNING order_key AS orderKey, notice_id AS random`,
  );
  const next = db.prepare(
    `UPDATE outbox SET due_at_ms = +@nowMs WHERE key =
       (SELECT min(key) FROM outbox WHERE order_key = +@orderKey AND status = 'pending')`,
  );
  return (status, { noticeKey, attempt, nowMs, ...ended }) => {
    const row = end.get({ status, noticeKey, attempt, nowMs, ...attemptColumns(ended) }) as
      | { orderKey: number; random: string }
      | undefined;
    if (row === undefined) return null;
    next.run({ nowMs, orderKey: row.orderKey });
    return noticeName(noticeKey, row.random);
  };
}

function resender(db: Database): Synchronous<Telling>['resendNotice'] {
  const find = db.prepare(
    'SELECT status, order_key AS orderKey, due_at_ms AS dueAtMs FROM outbox WHERE key = ? AND notice_id = ?',
  );
  const findTurn = db.prepare(
    `SELECT key, notice_id AS random FROM outbox
     WHERE order_key = +? AND status IN ('pending', 'leased') AND due_at_ms IS NOT NULL`,
  );
  const requeue = db.prepare(
    `UPDATE outbox SET status = 'pending', attempt = 0, first_tried_at_ms = NULL, ended_at_ms = NULL,
       due_at_ms = ? WHERE key = ?`,
  );
  const hasten = db.prepare('UPDATE outbox SET due_at_ms = ? WHERE key = ?');
  const anyDead = db.prepare(`SELECT 1 FROM outbox WHERE status = 'dead' LIMIT 1`);
  const attention = attentionVerbs(db);
  return ({ id, nowMs }) => {
    const name = readNoticeName(id);
    if (name === null) return 'unknown';
    const row = find.get(name.key, name.random) as ResentRow | undefined;
    if (row === undefined) return 'unknown';
    const what = resending(row, nowMs);
    if (what === 'in_work') return what;
    if (what === 'hasten') {
      hasten.run(nowMs, name.key);
      return resent(undefined, nowMs);
    }
    const turn = findTurn.get(row.orderKey) as { key: number; random: string } | undefined;
    requeue.run(turn === undefined ? nowMs : null, name.key);
    if (anyDead.get() === undefined) attention.end(DEAD.kind, DEAD.subject, nowMs);
    return resent(turn, nowMs);
  };
}

export const NOTICE_COLUMNS = `n.key, n.notice_id AS random, o.reference, n.type, n.version, n.status, n.attempt,
  n.created_at_ms AS createdAtMs, iif(n.status = 'pending', n.due_at_ms, NULL) AS dueAtMs, n.ended_at_ms AS endedAtMs,
  n.fault_code AS faultCode, n.fault_message AS faultMessage, n.answer_status AS answerStatus,
  n.answer_body AS answerBody`;
export const NOTICE_TABLES = 'outbox n JOIN orders o ON o.key = n.order_key';

export function noticeQueries(
  db: Database,
): Pick<Synchronous<Queries>, 'listNotices' | 'findNotice' | 'readFeed' | 'findFeedEnd'> {
  const find = db.prepare(`SELECT ${NOTICE_COLUMNS}, n.body FROM ${NOTICE_TABLES} WHERE n.key = ? AND n.notice_id = ?`);
  const generation = db.prepare('SELECT generation FROM instance').pluck();
  const newest = db.prepare('SELECT coalesce(max(key), 0) FROM outbox').pluck();
  const after = db.prepare(
    'SELECT key, key AS position, notice_id AS random, body FROM outbox WHERE key > ? ORDER BY key LIMIT ?',
  );
  return {
    listNotices: noticeLister(db),
    findNotice: (id) => {
      const name = readNoticeName(id);
      const row =
        name === null
          ? undefined
          : (find.get(name.key, name.random) as (NoticeRow & Pick<NoticeDetail, 'body'>) | undefined);
      return row === undefined ? null : noticeDetail(row);
    },
    readFeed: ({ after: position, limit, bytesMax }) => ({
      generation: generation.get() as number,
      newest: newest.get() as number,
      notices: upToBytes(after.iterate(position, limit) as Iterable<FeedRow>, bytesMax).map(feedNotice),
    }),
    // One thread writes, so keys are in the order of commits.
    findFeedEnd: () => ({ generation: generation.get() as number, position: newest.get() as number }),
  };
}

function noticeLister(db: Database): Synchronous<Queries>['listNotices'] {
  const firstSince = firstKeySince(db, 'outbox', 'created_at_ms');
  return ({ limit, after: before, status, reference, sinceMs }) => {
    const conditions = [
      'n.key < @before',
      // Written out, because a partial index is used only for its own literal.
      ...(status === null ? [] : [`n.status = '${status}'`]),
      ...(reference === null ? [] : ['o.reference = @reference']),
      ...(sinceMs === null ? [] : ['n.key >= @from', 'n.created_at_ms >= @sinceMs']),
    ];
    const sql = `SELECT ${NOTICE_COLUMNS} FROM outbox n ${narrowest(status, reference)}
      JOIN orders o ON o.key = n.order_key WHERE ${conditions.join(' AND ')} ORDER BY n.key DESC LIMIT @limit`;
    const values = {
      before: before ?? KEY_MAX,
      limit,
      ...(reference === null ? {} : { reference }),
      ...(sinceMs === null ? {} : { sinceMs, from: firstSince(sinceMs) }),
    };
    return (db.prepare(sql).all(values) as NoticeRow[]).map(noticeSummary);
  };
}

export function shopStateQuery(db: Database): Synchronous<Queries>['shopState'] {
  const of = (status: string) => `FROM outbox n JOIN orders o ON o.key = n.order_key WHERE n.status = '${status}'`;
  const oldest = ['pending', 'leased', 'dead'].map((status) =>
    db.prepare(`SELECT created_at_ms FROM outbox WHERE status = '${status}' ORDER BY key LIMIT 1`).pluck(),
  );
  const failed = ['pending', 'dead'].map((status) =>
    db.prepare(`SELECT ${NOTICE_COLUMNS} ${of(status)} AND n.fault_code IS NOT NULL ORDER BY n.key LIMIT 1`),
  );
  const taken = db
    .prepare(
      `SELECT max(ended_at_ms) FROM (SELECT status, ended_at_ms FROM outbox ORDER BY key DESC LIMIT 1000)
       WHERE status = 'done'`,
    )
    .pluck();
  const failures = shopFailuresQuery(db);
  return () => {
    const times = oldest.map((query) => query.get() as number | undefined).filter((ms) => ms !== undefined);
    const row = failed.map((query) => query.get() as NoticeRow | undefined).find((found) => found !== undefined);
    return {
      untakenSinceMs: times.length === 0 ? null : Math.min(...times),
      failure: failureOf(row),
      takenAtMs: taken.get() as number | null,
      failures: failures(),
    };
  };
}

/** The notices of one order are few, and so are those that are not done; SQLite does not know it, and would read all. */
function narrowest(status: NoticeSummary['status'] | null, reference: string | null): string {
  if (reference !== null) return 'INDEXED BY outbox_by_order';
  return status === null || status === 'done' ? '' : `INDEXED BY outbox_${status}`;
}
