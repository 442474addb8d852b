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
import type { ListedMatter, MatterPage, Queries } from '../queries.ts';
import { statement } from '../statement.ts';
import { orders } from './orders.ts';
import { ORDER_COLUMNS } from './rows.ts';
import type { InTransaction, Transaction } from './transaction.ts';

/** A held order once, by its oldest hold. */
const HELD = `h.ended_at_ms IS NULL AND NOT EXISTS (
  SELECT 1 FROM hold e WHERE e.order_key = h.order_key AND e.ended_at_ms IS NULL
    AND (e.opened_at_ms, length(e.id), e.id) < (h.opened_at_ms, length(h.id), h.id))`;
const HOLD_GROUPS = statement(
  `SELECT 'hold' AS kind, h.reason, count(*) AS count, min(h.opened_at_ms) AS oldestAtMs
   FROM hold h WHERE ${HELD} GROUP BY h.reason`,
);
const OPEN = 'a.ended_at_ms IS NULL AND (@kind::text IS NULL OR a.kind = @kind)';
const IN_STATE = ' AND EXISTS (SELECT 1 FROM orders s WHERE s.key = a.order_key AND s.state = @state)';
const inAnyState = (make: (condition: string) => string) => ({
  any: statement(make('')),
  one: statement(make(IN_STATE)),
});
const ATTENTION_GROUPS = inAnyState(
  (condition) =>
    `SELECT a.kind, NULL AS reason, count(*) AS count, min(a.opened_at_ms) AS oldestAtMs
     FROM attention a WHERE ${OPEN}${condition} GROUP BY a.kind`,
);
// Each order is looked up by its key: whatever the server thinks of the number of matters, it does not read all orders.
const SUMS = inAnyState(
  (condition) =>
    `WITH found AS (
       (SELECT 'hold' AS kind, h.reason, h.order_key FROM hold h WHERE @holds::boolean AND ${HELD}
         ORDER BY h.opened_at_ms LIMIT ${SUMMED_MAX})
       UNION ALL
       (SELECT a.kind, NULL, a.order_key FROM attention a
         WHERE a.kind IN ${MONEY_ATTENTION} AND ${OPEN}${condition} ORDER BY a.opened_at_ms LIMIT ${SUMMED_MAX})
     ), counted AS MATERIALIZED (
       SELECT kind, reason, order_key, row_number() OVER (PARTITION BY order_key) = 1 AS is_first FROM found
     ), line AS (
       SELECT c.kind, c.reason, c.is_first, o.currency, o.amount_minor AS asked, NULL::bigint AS balance
       FROM counted c CROSS JOIN LATERAL (
         SELECT currency, amount_minor FROM orders WHERE key = c.order_key OFFSET 0) o
       UNION ALL
       SELECT c.kind, c.reason, c.is_first, g.currency, NULL, g.amount_minor
       FROM counted c CROSS JOIN LATERAL (
         SELECT currency, amount_minor FROM ledger WHERE order_key = c.order_key OFFSET 0) g
     )
     SELECT kind, reason, is_first AS isFirst, currency, count(asked) AS orders,
       sum(asked / 1000000) AS askedMillions, sum(asked % 1000000) AS askedRest,
       sum(balance / 1000000) AS balanceMillions, sum(balance % 1000000) AS balanceRest
     FROM line GROUP BY kind, reason, is_first, currency ORDER BY currency`,
);
const HELD_ROWS = statement(
  `SELECT ${ORDER_COLUMNS}, h.reason, h.opened_at_ms AS openedAtMs,
     (SELECT max(n.opened_at_ms) FROM hold n WHERE n.order_key = h.order_key AND n.ended_at_ms IS NULL) AS lastAtMs
   FROM hold h CROSS JOIN LATERAL (SELECT ${ORDER_COLUMNS} FROM orders WHERE key = h.order_key OFFSET 0) o
   WHERE ${HELD} AND (h.opened_at_ms, h.order_key) > (@openedAtMs, @key) ORDER BY h.opened_at_ms, h.order_key LIMIT @limit`,
);
const OPEN_ROWS = inAnyState(
  (condition) =>
    `SELECT a.key, a.subject, a.order_key AS orderKey, a.detail, a.count, a.opened_at_ms AS openedAtMs,
       a.last_at_ms AS lastAtMs FROM attention a
     WHERE a.kind = @kind AND a.ended_at_ms IS NULL AND (a.opened_at_ms, a.key) > (@openedAtMs, @key)${condition}
     ORDER BY a.opened_at_ms, a.key LIMIT @limit`,
);

type Filter = Pick<MatterPage, 'kind' | 'state'>;

/** What needs a person, by kind. */
export async function matterGroups(tx: Transaction, filter: Filter): Promise<GroupRow[]> {
  const [holds, attention] = await Promise.all([
    wantsHolds(filter) ? tx.all<GroupRow>(HOLD_GROUPS) : [],
    tx.all<GroupRow>(ATTENTION_GROUPS[filter.state === null ? 'any' : 'one'], filter),
  ]);
  return inOrder([...holds, ...attention]);
}

/** See `Queries.listMatters` in queries.ts. */
export const listMatters: InTransaction<Queries>['listMatters'] = async (tx, page) => {
  const groups = await matterGroups(tx, page);
  const sums = groups.some(({ kind }) => MONEY_KINDS.includes(kind)) ? await readSums(tx, page) : [];
  const rows: ListedMatter[] = [];
  for (const kind of kindsFrom(groups, page.after)) {
    const limit = page.limit - rows.length;
    if (limit > 0) rows.push(...(await readRows(tx, kind, { ...page, limit })));
  }
  return { groups: withSums(groups, sums), money: totalMoney(groups, sums), rows };
};

/** Sums the money of the orders that the filter lets through, kind by kind and in all. */
async function readSums(tx: Transaction, filter: Filter): Promise<SumRow[]> {
  return tx.all<SumRow>(SUMS[filter.state === null ? 'any' : 'one'], { ...filter, holds: wantsHolds(filter) });
}

/** Reads a page of one kind, the oldest first. */
async function readRows(tx: Transaction, kind: MatterKind, page: MatterPage): Promise<ListedMatter[]> {
  const values = { ...placeWithin(kind, page), kind, limit: page.limit, state: page.state };
  if (kind === 'hold') {
    const held = await tx.all<HoldRow>(HELD_ROWS, values);
    const whole = await orders.completeAll(tx, held);
    return held.map((row, index) => heldMatter(row, whole[index] as Order));
  }
  const open = await tx.all<AttentionRow>(OPEN_ROWS[page.state === null ? 'any' : 'one'], values);
  const whole = await orders.byKeys(tx, new Set(open.flatMap(({ orderKey }) => orderKey ?? [])));
  return open.map((row) => openMatter(kind, row, whole.get(row.orderKey ?? 0) ?? null));
}
