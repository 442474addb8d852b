import type { Order } from '../../domain/order.ts';
import { containing, firstMsAfter, KEY_MAX } from '../lists.ts';
import type { OrderRow } from '../orders.ts';
import type { ListedOrder, Queries, RejectionSummary } from '../queries.ts';
import { statement } from '../statement.ts';
import type { READ } from '../verbs/table.ts';
import { eventQueries } from './events.ts';
import { orders } from './orders.ts';
import { firstKeySince, ORDER_COLUMNS } from './rows.ts';
import { countUnopenable } from './secrets.ts';
import { timeline } from './timeline.ts';
import type { InTransaction, Transaction } from './transaction.ts';

const rejectionList = (condition: string) =>
  statement(
    `SELECT r.key, o.reference, r.reason, r.count, r.diagnosis, r.first_at_ms AS firstAtMs, r.last_at_ms AS lastAtMs
     FROM rejection r JOIN link l ON l.key = r.link_key JOIN orders o ON o.key = l.order_key
     WHERE r.key < @after${condition} ORDER BY r.key DESC LIMIT @limit`,
  );
const REJECTIONS = rejectionList('');
const REJECTIONS_OF = rejectionList(' AND o.reference = @reference');
export const queryVerbs: InTransaction<Omit<Queries, 'readFeed' | 'findFeedEnd' | 'stats' | keyof typeof READ>> = {
  findOrder: async (tx, reference) => (await orders.byReference(tx, reference))?.order ?? null,
  listOrders,
  timeline,
  ...eventQueries,
  listRejections: (tx, { limit, after, reference }) => {
    const page = { limit, after: after ?? KEY_MAX, reference };
    return tx.all<RejectionSummary>(reference === null ? REJECTIONS : REJECTIONS_OF, page);
  },
  countUnopenable,
};

// Like the other engine's: letters that ASCII knows are found in either case.
const BY_SEARCH = `(o.reference ILIKE @pattern ESCAPE '\\'
  OR EXISTS (SELECT 1 FROM link l WHERE l.order_key = o.key AND l.link_id = @search)
  OR EXISTS (SELECT 1 FROM ledger g WHERE g.order_key = o.key AND g.payment_key = @search))`;
const OPEN_KINDS = statement(
  'SELECT order_key AS orderKey, kind FROM attention WHERE order_key = ANY(@keys::bigint[]) AND ended_at_ms IS NULL ORDER BY key',
);

async function listOrders(
  tx: Transaction,
  { limit, after, state, search, sinceMs, untilMs }: Parameters<Queries['listOrders']>[0],
): Promise<ListedOrder[]> {
  const conditions = [
    'o.key < @before',
    ...(state === null ? [] : ['o.state = @state']),
    ...(search === null ? [] : [BY_SEARCH]),
    ...(sinceMs === null
      ? []
      : [`o.key >= ${firstKeySince('orders', 'created_at_ms')}`, 'o.created_at_ms >= @sinceMs']),
    ...(untilMs === null
      ? []
      : [`o.key < ${firstKeySince('orders', 'created_at_ms', '@afterMs')}`, 'o.created_at_ms <= @untilMs']),
  ];
  const list = statement(
    `SELECT ${ORDER_COLUMNS} FROM orders o WHERE ${conditions.join(' AND ')} ORDER BY o.key DESC LIMIT @limit`,
  );
  const pattern = search === null ? null : containing(search);
  const times = { sinceMs, untilMs, afterMs: untilMs === null ? null : firstMsAfter(untilMs) };
  const values = { limit, before: after ?? KEY_MAX, state, search, pattern, ...times };
  const rows = await tx.all<OrderRow>(list, values);
  const [whole, open] = await Promise.all([
    orders.completeAll(tx, rows),
    tx.all<{ orderKey: number; kind: string }>(OPEN_KINDS, { keys: rows.map(({ key }) => key) }),
  ]);
  return rows.map(({ key }, index) => ({
    key,
    value: whole[index] as Order,
    attention: open.filter(({ orderKey }) => orderKey === key).map(({ kind }) => kind),
  }));
}
