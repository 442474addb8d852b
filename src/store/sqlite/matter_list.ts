import type { Database } from 'better-sqlite3';
import { inOrder, type MatterKind, MONEY_KINDS } from '../../domain/matter.ts';
import type { Order } from '../../domain/order.ts';
import {
  type AttentionRow,
  type GroupRow,
  type HoldRow,
  heldMatter,
  kindsFrom,
  MONEY_ATTENTION,
  openMatter,
  placeWithin,
  SUMMED_MAX,
  type SumRow,
  totalMoney,
  wantsHolds,
  withSums,
} from '../matter_list.ts';
import type { OrderRow } from '../orders.ts';
import type { ListedMatter, MatterPage, Queries } from '../queries.ts';
import { orderCompleter } from './orders.ts';
import type { Synchronous } from './synchronous.ts';

/** A held order once, by its oldest hold. */
const HELD = `h.ended_at_ms IS NULL AND NOT EXISTS (
  SELECT 1 FROM hold e WHERE e.order_key = h.order_key AND e.ended_at_ms IS NULL
    AND (e.opened_at_ms, length(e.id), e.id) < (h.opened_at_ms, length(h.id), h.id))`;
const HOLD_GROUPS = `SELECT 'hold' AS kind, h.reason, count(*) AS count, min(h.opened_at_ms) AS oldestAtMs
  FROM hold h WHERE ${HELD} GROUP BY h.reason`;
const OPEN = 'a.ended_at_ms IS NULL AND (@kind IS NULL OR a.kind = @kind)';
const IN_STATE = ' AND EXISTS (SELECT 1 FROM orders s WHERE s.key = a.order_key AND s.state = @state)';
const attentionGroups = (condition: string) =>
  `SELECT a.kind, NULL AS reason, count(*) AS count, min(a.opened_at_ms) AS oldestAtMs
   FROM attention a WHERE ${OPEN}${condition} GROUP BY a.kind`;

type Filter = Pick<MatterPage, 'kind' | 'state'>;
type GroupReader = (filter: Filter) => GroupRow[];

/** What needs a person, by kind. */
export function matterGroups(db: Database): GroupReader {
  const held = db.prepare(HOLD_GROUPS);
  const open = db.prepare(attentionGroups(''));
  const openInState = db.prepare(attentionGroups(IN_STATE));
  return (filter) => {
    const ofAttention = filter.state === null ? open : openInState;
    const holds = wantsHolds(filter) ? (held.all() as GroupRow[]) : [];
    return inOrder([...holds, ...(ofAttention.all(filter) as GroupRow[])]);
  };
}

/** See `Queries.listMatters` in queries.ts. */
export function matterLister(db: Database): Synchronous<Queries>['listMatters'] {
  const groupsOf = matterGroups(db);
  const moneyOf = moneyReader(db);
  const rowsOf = rowReader(db);
  return db.transaction((page: MatterPage) => {
    const groups = groupsOf(page);
    const sums = groups.some(({ kind }) => MONEY_KINDS.includes(kind)) ? moneyOf(page) : [];
    const rows: ListedMatter[] = [];
    for (const kind of kindsFrom(groups, page.after)) {
      if (rows.length < page.limit) rows.push(...rowsOf(kind, { ...page, limit: page.limit - rows.length }));
    }
    return { groups: withSums(groups, sums), money: totalMoney(groups, sums), rows };
  });
}

/** Sums the money of the orders that the filter lets through, kind by kind and in all. */
function moneyReader(db: Database): (filter: Filter) => SumRow[] {
  // The order of the joins is fixed: each order is looked up by its key.
  const sumsIn = (condition: string) =>
    db.prepare(
      `WITH found AS (
         SELECT * FROM (SELECT 'hold' AS kind, h.reason, h.order_key FROM hold h WHERE @holds AND ${HELD}
           ORDER BY h.opened_at_ms LIMIT ${SUMMED_MAX})
         UNION ALL
         SELECT * FROM (SELECT a.kind, NULL, a.order_key FROM attention a
           WHERE a.kind IN ${MONEY_ATTENTION} AND ${OPEN}${condition} ORDER BY a.opened_at_ms LIMIT ${SUMMED_MAX})
       ), counted AS MATERIALIZED (
         SELECT *, row_number() OVER (PARTITION BY order_key) = 1 AS is_first FROM found
       ), line AS (
         SELECT c.kind, c.reason, c.is_first, o.currency, o.amount_minor AS asked, NULL AS balance
         FROM counted c CROSS JOIN orders o WHERE o.key = c.order_key
         UNION ALL
         SELECT c.kind, c.reason, c.is_first, g.currency, NULL, g.amount_minor
         FROM counted c CROSS JOIN ledger g WHERE g.order_key = c.order_key
       )
       SELECT kind, reason, is_first AS isFirst, currency, count(asked) AS orders,
         sum(asked / 1000000) AS askedMillions, sum(asked % 1000000) AS askedRest,
         sum(balance / 1000000) AS balanceMillions, sum(balance % 1000000) AS balanceRest
       FROM line GROUP BY kind, reason, is_first, currency ORDER BY currency`,
    );
  const all = sumsIn('');
  const inState = sumsIn(IN_STATE);
  return (filter) => {
    const sums = filter.state === null ? all : inState;
    return sums.all({ ...filter, holds: wantsHolds(filter) ? 1 : 0 }) as SumRow[];
  };
}

/** Reads a page of one kind, the oldest first. */
function rowReader(db: Database): (kind: MatterKind, page: MatterPage) => ListedMatter[] {
  const complete = orderCompleter(db);
  const held = db.prepare(
    `SELECT o.*, h.reason, h.opened_at_ms AS openedAtMs,
       (SELECT max(n.opened_at_ms) FROM hold n WHERE n.order_key = h.order_key AND n.ended_at_ms IS NULL) AS lastAtMs
     FROM hold h CROSS JOIN orders o ON o.key = h.order_key
     WHERE ${HELD} AND (h.opened_at_ms, h.order_key) > (@openedAtMs, @key) ORDER BY h.opened_at_ms, h.order_key LIMIT @limit`,
  );
  const openIn = (condition: string) =>
    db.prepare(
      `SELECT a.key, a.subject, a.order_key AS orderKey, a.detail, a.count, a.opened_at_ms AS openedAtMs,
         a.last_at_ms AS lastAtMs FROM attention a
       WHERE a.kind = @kind AND a.ended_at_ms IS NULL AND (a.opened_at_ms, a.key) > (@openedAtMs, @key)${condition}
       ORDER BY a.opened_at_ms, a.key LIMIT @limit`,
    );
  const open = openIn('');
  const openInState = openIn(IN_STATE);
  const orderRow = db.prepare('SELECT * FROM orders WHERE key = ?');
  const orderOf = (key: number | null): Order | null => (key === null ? null : complete(orderRow.get(key) as OrderRow));
  return (kind, page) => {
    const values = { ...placeWithin(kind, page), kind, limit: page.limit };
    if (kind === 'hold') return (held.all(values) as HoldRow[]).map((row) => heldMatter(row, complete(row)));
    const rows = page.state === null ? open.all(values) : openInState.all({ ...values, state: page.state });
    return (rows as AttentionRow[]).map((row) => openMatter(kind, row, orderOf(row.orderKey)));
  };
}
