import {
  type NoticeType,
  noticeName,
  readNoticeName,
  type ShopAnswer,
  type ShopFailures,
  type ShopRefusal,
} from '../../domain/notice.ts';
import type { FaultNote, RowStatus } from '../../domain/retry.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';
import { defineList, finder, inTime, type Listed, type Narrowed, type RowPage, readKeys } from './list_pages.ts';
import { ATTEMPT, type AttemptRow, readAttempt, readShopFailures } from './shop_failures.ts';

/** Notices as people see them, and as the shop reads them. */

export type NoticeFilter = {
  status?: RowStatus | null | undefined;
  type?: NoticeType | null | undefined;
  reference?: string | null | undefined;
  /** Made within this time. */
  sinceMs?: number | null | undefined;
  untilMs?: number | null | undefined;
};

export type NoticeSummary = {
  key: number;
  /** The shop's idempotency key: `webhook-id`. */
  id: string;
  reference: string;
  type: string;
  version: number;
  status: RowStatus;
  /** Of a dead notice: whether the shop took a later one that makes it needless, so that it needs no attention. */
  isSuperseded: boolean;
  attempt: number;
  createdAtMs: number;
  /** When a pending notice is sent next; null while another notice of its order comes first. */
  dueAtMs: number | null;
  endedAtMs: number | null;
  fault: FaultNote | null;
  /** The shop's last answer. */
  answer: ShopAnswer | null;
};
export type NoticeDetail = NoticeSummary & { body: string };

/** How the shop accepts notices. */
export type ShopState = {
  /** When the oldest notice that the shop has not accepted was made, dead ones included; null if it accepted all. */
  untakenSinceMs: number | null;
  /** The failure of the oldest waiting notice, or else of the oldest dead one; null if none failed. */
  failure: ShopRefusal | null;
  /** When the shop last accepted one of the newest thousand notices; null if it accepted none of them. */
  takenAtMs: number | null;
  /** Failed attempts since the shop last accepted a notice; null if none failed. */
  failures: ShopFailures | null;
};

/** A row of `NOTICE`. */
export type NoticeRow = Omit<NoticeSummary, 'id' | 'fault' | 'answer'> & AttemptRow & { random: string };

const NOTICE_COLUMNS = `n.key, n.notice_id AS random, o.reference, n.type, n.version, n.status, n.attempt,
  coalesce(n.superseded AND n.status = 'dead', false) AS isSuperseded,
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

export const noticeQueries = {
  *listNotices(tx: Transaction, page: RowPage & NoticeFilter): Work<Listed<NoticeSummary>> {
    const { keys, ...more } = yield* readKeys(tx, NOTICE_LIST, narrowNotices(page), page);
    const rows = keys.length === 0 ? [] : yield* tx.all<NoticeRow>(NOTICES_OF_KEYS, { keys });
    return { rows: rows.map(noticeSummary), ...more };
  },
  *findNotice(tx: Transaction, id: string): Work<NoticeDetail | null> {
    const name = readNoticeName(id);
    if (name === null) return null;
    const row = yield* tx.one<NoticeRow & Pick<NoticeDetail, 'body'>>(FIND_WHOLE, name);
    if (row === undefined) return null;
    const { body, ...summary } = row;
    return { ...noticeSummary(summary), body };
  },
  *shopState(tx: Transaction): Work<ShopState> {
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

export type FeedPage = {
  /** Rises when a copy replaces the store. */
  generation: number;
  newest: number;
  /** Each with its position. */
  notices: { position: number; id: string; body: string }[];
};

export type FeedEnd = { generation: number; position: number };

/** A notice as the feed shows it. */
export type FeedRow = { key: number; random: string; position: number; body: string };

export function feedNotice({ key, random, position, body }: FeedRow): FeedPage['notices'][number] {
  return { position, id: noticeName(key, random), body };
}
