import type { Database } from 'better-sqlite3';
import type { Order } from '../../domain/order.ts';
import { containing, KEY_MAX } from '../lists.ts';
import type { OrderRow } from '../orders.ts';
import type { AttentionSummary, Keyed, Queries, RejectionSummary } from '../queries.ts';
import { eventQueries } from './events.ts';
import { noticeQueries, shopStateQuery } from './notices.ts';
import { orderCompleter, orderLoader } from './orders.ts';
import { ATTENTION } from './rows.ts';
import { countUnopenable } from './secrets.ts';
import { statsQuery } from './stats.ts';
import type { Synchronous } from './synchronous.ts';
import { timelineQuery } from './timeline.ts';

export function queryVerbs(db: Database): Synchronous<Queries> {
  const orders = orderLoader(db);
  return {
    findOrder: (reference) => orders.byReference(reference)?.order ?? null,
    listOrders: orderLister(db),
    timeline: timelineQuery(db),
    ...eventQueries(db),
    ...noticeQueries(db),
    listRejections: ({ limit, after, reference }) =>
      db
        .prepare(
          `SELECT r.key, o.reference, r.reason, r.count, r.diagnosis, r.first_at_ms AS firstAtMs, r.last_at_ms AS lastAtMs
           FROM rejection r JOIN link l ON l.key = r.link_key JOIN orders o ON o.key = l.order_key
           WHERE r.key < @after AND (@reference IS NULL OR o.reference = @reference) ORDER BY r.key DESC LIMIT @limit`,
        )
        .all({ after: after ?? KEY_MAX, reference, limit }) as RejectionSummary[],
    listAttention: ({ limit, after }) =>
      db
        .prepare(`${ATTENTION} WHERE a.ended_at_ms IS NULL AND a.key < ? ORDER BY a.key DESC LIMIT ?`)
        .all(after ?? KEY_MAX, limit) as AttentionSummary[],
    stats: statsQuery(db),
    shopState: shopStateQuery(db),
    countUnopenable: (keyIds) => countUnopenable(db, keyIds),
  };
}

function orderLister(db: Database): Synchronous<Queries>['listOrders'] {
  const complete = orderCompleter(db);
  return ({ limit, after, state, search }) => {
    const byState = state === null ? '' : ' AND o.state = @state';
    const bySearch =
      search === null
        ? ''
        : ` AND (o.reference LIKE @search ESCAPE '\\'
             OR EXISTS (SELECT 1 FROM link l WHERE l.order_key = o.key AND l.link_id = @exact)
             OR EXISTS (SELECT 1 FROM ledger g WHERE g.order_key = o.key AND g.payment_key = @exact))`;
    const sql = `SELECT * FROM orders o WHERE o.key < @after${byState}${bySearch} ORDER BY o.key DESC LIMIT @limit`;
    const rows = db.prepare(sql).all({
      after: after ?? KEY_MAX,
      limit,
      ...(state === null ? {} : { state }),
      ...(search === null ? {} : { search: containing(search), exact: search }),
    }) as OrderRow[];
    return rows.map((row): Keyed<Order> => ({ key: row.key, value: complete(row) }));
  };
}
