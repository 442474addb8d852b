import type { Reported } from '../../domain/comparison.ts';
import {
  type AttentionKind,
  compareKinds,
  concernOf,
  MATTER_KINDS,
  type MatterKind,
  MONEY_KINDS,
} from '../../domain/matter.ts';
import {
  type CountedMatters,
  inOrder,
  type MatterGroup,
  type MatterMoney,
  SUMMED_MAX,
  type SummedMoney,
  totalMoney,
  withSums,
} from '../../domain/matter_money.ts';
import type { HoldReason, Order, OrderState } from '../../domain/order.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';
import type { AttentionSummary } from './attention.ts';
import { loadOrder } from './orders.ts';
import { readReported } from './payments.ts';

export type MatterPage = {
  limit: number;
  /** The place of the last row of the previous page. */
  after: MatterPlace | null;
  kind: MatterKind | null;
  /** Only matters of orders in this state. */
  state: OrderState | null;
  /** Only orders whose oldest hold has this reason. */
  reason?: HoldReason | null;
};

/** A matter's place in the list: by kind, then by its beginning, then by its key (for a hold, its order's key). */
export type MatterPlace = { kind: MatterKind; openedAtMs: number; key: number };

export type Matters = {
  /** All that match the filters, in the order of the list. */
  groups: MatterGroup[];
  money: MatterMoney;
  rows: ListedMatter[];
};

/** `reason`: the reason of the order's oldest hold. A hold's `params` are empty: its order explains it. */
export type ListedMatter = MatterPlace &
  Pick<AttentionSummary, 'subject' | 'params' | 'lastAtMs'> & {
    reason: HoldReason | null;
    /** How often it was raised; for a hold, how many of its order are open. */
    count: number;
    order: Order | null;
    /** What a webhook reported as paid, if its order is held because the service did not confirm it. */
    reported: Reported | null;
  };

type Filter = Pick<MatterPage, 'kind' | 'state' | 'reason'>;

/** Everything that needs a person, as one list: held orders and open attention. */
export function* listMatters(tx: Transaction, page: MatterPage): Work<Matters> {
  const groups = yield* matterGroups(tx, page);
  const sums = groups.some(({ kind }) => MONEY_KINDS.includes(kind)) ? yield* readSums(tx, page) : [];
  const rows: ListedMatter[] = [];
  for (const kind of kindsFrom(groups, page)) {
    const limit = page.limit - rows.length;
    if (limit > 0) rows.push(...(yield* readRows(tx, kind, { ...page, limit })));
  }
  return { groups: withSums(groups, sums), money: totalMoney(groups, sums), rows };
}

const TROUBLE_KINDS = MATTER_KINDS.filter((kind) => ['service', 'shop'].includes(concernOf(kind) ?? ''));
const TROUBLES = statement(`
  SELECT key, kind, subject, params, opened_at_ms AS openedAtMs FROM attention
  WHERE kind IN ('${TROUBLE_KINDS.join("', '")}') AND ended_at_ms IS NULL AND order_key IS NULL
  ORDER BY opened_at_ms, key LIMIT 50`);

/** A matter about the whole installation. At most one of a kind and subject is open. */
export type Trouble = Pick<AttentionSummary, 'key' | 'subject' | 'params' | 'openedAtMs'> & { kind: AttentionKind };

/** Open matters about the service or the shop as a whole, in the order of the list. */
export function* openTroubles(tx: Transaction): Work<Trouble[]> {
  const rows = yield* tx.all<Omit<Trouble, 'params'> & { params: string }>(TROUBLES);
  const read = rows.map((row) => ({ ...row, params: JSON.parse(row.params) }));
  return read.toSorted((a, b) => compareKinds(a.kind, b.kind));
}

/** The kinds that a page may hold, in the order of the list, from the last kind of the previous page on. */
function kindsFrom(groups: readonly CountedMatters[], { after }: MatterPage): MatterKind[] {
  const kinds = [...new Set(groups.map(({ kind }) => kind))];
  return after === null ? kinds : kinds.filter((kind) => compareKinds(kind, after.kind) >= 0);
}

/** Selects each held order once, by its oldest hold. */
const HELD = `h.ended_at_ms IS NULL AND NOT EXISTS (
  SELECT 1 FROM hold e WHERE e.order_key = h.order_key AND e.ended_at_ms IS NULL
    AND (e.opened_at_ms, length(e.id), e.id) < (h.opened_at_ms, length(h.id), h.id))`;
const FOR_REASON = '(@reason::text IS NULL OR h.reason = @reason)';
const HOLD_GROUPS = statement(`
  SELECT 'hold' AS kind, h.reason, count(*) AS count, min(h.opened_at_ms) AS oldestAtMs
  FROM hold h WHERE ${HELD} AND ${FOR_REASON} GROUP BY h.reason`);
const IN_STATE = '(@state::text IS NULL OR (SELECT s.state FROM orders s WHERE s.key = a.order_key) = @state)';
const OPEN = `a.ended_at_ms IS NULL AND (@kind::text IS NULL OR a.kind = @kind) AND ${IN_STATE}`;
const ATTENTION_GROUPS = statement(`
  SELECT a.kind, NULL AS reason, count(*) AS count, min(a.opened_at_ms) AS oldestAtMs
  FROM attention a WHERE ${OPEN} GROUP BY a.kind`);

export function* matterGroups(tx: Transaction, filter: Filter): Work<CountedMatters[]> {
  const { reason = null } = filter;
  const holds = wantsHolds(filter) ? tx.all<CountedMatters>(HOLD_GROUPS, { reason }) : null;
  const attention = reason === null ? tx.all<CountedMatters>(ATTENTION_GROUPS, filter) : null;
  return inOrder([...(holds === null ? [] : yield* holds), ...(attention === null ? [] : yield* attention)]);
}

/** Whether held orders match the filter; they all have the state `held`. */
function wantsHolds({ kind, state }: Filter): boolean {
  return (kind === null || kind === 'hold') && (state === null || state === 'held');
}

/** Kinds of attention about money, as an SQL list. */
const MONEY_ATTENTION = `('${MONEY_KINDS.filter((kind) => kind !== 'hold').join("', '")}')`;
/** The service fixes a link's amount, so a payment of a held order that is more than the order asks was misread. */
const IS_MISREAD = "o.state = 'held' AND g.currency = o.currency AND abs(g.amount_minor) > o.amount_minor";
/** A payment without any money that settled could read. */
const IS_UNREAD = `g.amount_minor = 0 AND NOT EXISTS (SELECT 1 FROM ledger e
  WHERE e.order_key = ANY(ARRAY[g.order_key]) AND e.payment_key = g.payment_key AND e.amount_minor <> 0)`;
// `= ANY(ARRAY[…])` rules out a hash join: PostgreSQL then looks each order up by its key, whatever its estimates.
const SUMS = statement(
  `WITH found AS (
       SELECT kind, reason, order_key FROM (
         SELECT 'hold' AS kind, h.reason, h.order_key FROM hold h WHERE @holds::boolean AND ${HELD} AND ${FOR_REASON}
         ORDER BY h.opened_at_ms LIMIT ${SUMMED_MAX}) AS held_order
       UNION ALL
       SELECT kind, reason, order_key FROM (
         SELECT a.kind, NULL AS reason, a.order_key FROM attention a
         WHERE @reason::text IS NULL AND a.kind IN ${MONEY_ATTENTION} AND ${OPEN}
         ORDER BY a.opened_at_ms LIMIT ${SUMMED_MAX}) AS matter
     ), counted AS MATERIALIZED (
       SELECT kind, reason, order_key, row_number() OVER (PARTITION BY order_key) = 1 AS is_first FROM found
     ), line AS MATERIALIZED (
       SELECT c.kind, c.reason, c.is_first, c.order_key, o.currency, o.amount_minor AS asked,
         NULL::bigint AS balance, NULL::bigint AS misread, NULL::bigint AS unread, NULL::bigint AS reported
       FROM counted c CROSS JOIN orders o WHERE o.key = ANY(ARRAY[c.order_key])
       UNION ALL
       SELECT c.kind, c.reason, c.is_first, c.order_key, g.currency, NULL,
         CASE WHEN ${IS_MISREAD} THEN 0 ELSE g.amount_minor END, CASE WHEN ${IS_MISREAD} THEN 1 END,
         CASE WHEN ${IS_UNREAD} THEN 1 END, NULL
       FROM counted c CROSS JOIN orders o CROSS JOIN ledger g
       WHERE o.key = ANY(ARRAY[c.order_key]) AND g.order_key = ANY(ARRAY[c.order_key])
       UNION ALL
       SELECT c.kind, c.reason, c.is_first, c.order_key, i.reported_currency, NULL, NULL, NULL, NULL, i.reported_minor
       FROM counted c CROSS JOIN link l CROSS JOIN inbox i
       WHERE c.reason = 'unconfirmed' AND l.order_key = ANY(ARRAY[c.order_key]) AND i.link_key = ANY(ARRAY[l.key])
         AND i.reported_currency IS NOT NULL AND NOT EXISTS (SELECT 1 FROM inbox n
           WHERE n.link_key = ANY(ARRAY[l.key]) AND n.reported_currency IS NOT NULL AND n.key > i.key)
     ), balanced AS (
       SELECT order_key FROM line WHERE is_first GROUP BY order_key, currency
       HAVING coalesce(sum(balance / 1000000) * 1000000 + sum(balance % 1000000), 0) <> 0
     )
     SELECT kind, reason, is_first AS isFirst, currency, count(asked) AS orders,
       sum(asked / 1000000) AS askedMillions, sum(asked % 1000000) AS askedRest,
       sum(balance / 1000000) AS balanceMillions, sum(balance % 1000000) AS balanceRest,
       count(misread) AS misread, count(unread) AS unread,
       sum(reported / 1000000) AS reportedMillions, sum(reported % 1000000) AS reportedRest,
       (SELECT count(DISTINCT order_key) FROM balanced) AS withBalance
     FROM line GROUP BY kind, reason, is_first, currency ORDER BY currency`,
);

/** Sums the money of the orders that match the filter, by kind and in all. */
function* readSums(tx: Transaction, filter: Filter): Work<SummedMoney[]> {
  return yield* tx.all<SummedMoney>(SUMS, { ...filter, reason: filter.reason ?? null, holds: wantsHolds(filter) });
}

const HELD_ROWS = statement(`
  SELECT h.order_key AS orderKey, h.reason, h.opened_at_ms AS openedAtMs,
    (SELECT max(n.opened_at_ms) FROM hold n WHERE n.order_key = h.order_key AND n.ended_at_ms IS NULL) AS lastAtMs
  FROM hold h
  WHERE ${HELD} AND ${FOR_REASON} AND (h.opened_at_ms, h.order_key) > (@openedAtMs, @key) ORDER BY h.opened_at_ms, h.order_key LIMIT @limit`);
const ATTENTION_ROWS = statement(`
  SELECT a.key, a.subject, a.order_key AS orderKey, a.params, a.count, a.opened_at_ms AS openedAtMs, a.last_at_ms AS lastAtMs
  FROM attention a
  WHERE a.kind = @kind AND a.ended_at_ms IS NULL AND (a.opened_at_ms, a.key) > (@openedAtMs, @key) AND ${IN_STATE}
  ORDER BY a.opened_at_ms, a.key LIMIT @limit`);

type HeldRow = { orderKey: number; reason: HoldReason; openedAtMs: number; lastAtMs: number };
type AttentionRow = Omit<ListedMatter, 'kind' | 'reason' | 'order' | 'params' | 'reported'> & {
  orderKey: number | null;
  params: string;
};

/** Reads a page of one kind, oldest first. */
function* readRows(
  tx: Transaction,
  kind: MatterKind,
  { after, limit, state, reason = null }: MatterPage,
): Work<ListedMatter[]> {
  const { openedAtMs, key } = after?.kind === kind ? after : { openedAtMs: 0, key: 0 };
  const place = { openedAtMs, key, limit };
  if (kind === 'hold') {
    const held = yield* tx.all<HeldRow>(HELD_ROWS, { ...place, reason });
    const orders = yield* loadOrder.byKeys(tx, new Set(held.map(({ orderKey }) => orderKey)));
    const asked = held.flatMap(({ reason, orderKey }) => (reason === 'unconfirmed' ? orderKey : []));
    const reported = yield* readReported(tx, asked);
    return held.map(({ orderKey: key, ...row }) => {
      const order = orders.get(key) as Order;
      const about = { subject: order.reference, params: {}, count: order.holds.length };
      return { ...row, ...about, kind, key, order, reported: reported.get(key) ?? null };
    });
  }
  const open = yield* tx.all<AttentionRow>(ATTENTION_ROWS, { ...place, kind, state });
  const orders = yield* loadOrder.byKeys(tx, new Set(open.flatMap(({ orderKey }) => orderKey ?? [])));
  return open.map(({ orderKey, params, ...row }) => {
    const order = orders.get(orderKey ?? 0) ?? null;
    return { ...row, params: JSON.parse(params), kind, reason: null, order, reported: null };
  });
}
