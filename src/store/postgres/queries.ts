import type { Order } from '../../domain/order.ts';
import { containing, KEY_MAX } from '../lists.ts';
import type { OrderRow } from '../orders.ts';
import type { AttentionSummary, Keyed, Queries, RejectionSummary } from '../queries.ts';
import { eventQueries } from './events.ts';
import { noticeQueries, shopState } from './notices.ts';
import { orders } from './orders.ts';
import { ATTENTION, ORDER_COLUMNS } from './rows.ts';
import { countUnopenable } from './secrets.ts';
import { statement } from './statement.ts';
import { stats } from './stats.ts';
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
const ATTENTION_LIST = statement(
  `${ATTENTION} WHERE a.ended_at_ms IS NULL AND a.key < @after ORDER BY a.key DESC LIMIT @limit`,
);
export const queryVerbs: InTransaction<Omit<Queries, 'readFeed' | 'findFeedEnd'>> = {
  findOrder: async (tx, reference) => (await orders.byReference(tx, reference))?.order ?? null,
  listOrders,
  timeline,
  ...eventQueries,
  ...noticeQueries,
  listRejections: (tx, { limit, after, reference }) => {
    const page = { limit, after: after ?? KEY_MAX, reference };
    return tx.all<RejectionSummary>(reference === null ? REJECTIONS : REJECTIONS_OF, page);
  },
  listAttention: (tx, { limit, after }) =>
    tx.all<AttentionSummary>(ATTENTION_LIST, { limit, after: after ?? KEY_MAX }),
  stats,
  shopState,
  countUnopenable,
};

const orderList = (conditions: string) =>
  statement(
    `SELECT ${ORDER_COLUMNS} FROM orders o WHERE o.key < @after${conditions} ORDER BY o.key DESC LIMIT @limit`,
  );
const BY_STATE = ' AND o.state = @state';
// Like the other engine's: letters that ASCII knows are found in either case.
const BY_SEARCH = ` AND (o.reference ILIKE @pattern ESCAPE '\\'
  OR EXISTS (SELECT 1 FROM link l WHERE l.order_key = o.key AND l.link_id = @search)
  OR EXISTS (SELECT 1 FROM ledger g WHERE g.order_key = o.key AND g.payment_key = @search))`;
const ORDERS = {
  all: orderList(''),
  ofState: orderList(BY_STATE),
  found: orderList(BY_SEARCH),
  foundOfState: orderList(BY_STATE + BY_SEARCH),
};

async function listOrders(
  tx: Transaction,
  { limit, after, state, search }: Parameters<Queries['listOrders']>[0],
): Promise<Keyed<Order>[]> {
  const list =
    search === null
      ? ORDERS[state === null ? 'all' : 'ofState']
      : ORDERS[state === null ? 'found' : 'foundOfState'];
  const pattern = search === null ? null : containing(search);
  const rows = await tx.all<OrderRow>(list, { limit, after: after ?? KEY_MAX, state, search, pattern });
  return Promise.all(rows.map(async (row) => ({ key: row.key, value: await orders.complete(tx, row) })));
}
