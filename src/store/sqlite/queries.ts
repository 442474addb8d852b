import type { Database } from 'better-sqlite3';
import { containing, firstMsAfter, KEY_MAX } from '../lists.ts';
import type { OrderRow } from '../orders.ts';
import type { ListedOrder, Queries, RejectionSummary } from '../queries.ts';
import type { READ } from '../verbs/table.ts';
import { eventQueries } from './events.ts';
import { orderCompleter, orderLoader } from './orders.ts';
import { firstKeySince } from './rows.ts';
import { countUnopenable } from './secrets.ts';
import type { Synchronous } from './synchronous.ts';
import { timelineQuery } from './timeline.ts';

export function queryVerbs(
  db: Database,
): Synchronous<Omit<Queries, 'readFeed' | 'findFeedEnd' | 'stats' | keyof typeof READ>> {
  const orders = orderLoader(db);
  return {
    findOrder: (reference) => orders.byReference(reference)?.order ?? null,
    listOrders: orderLister(db),
    timeline: timelineQuery(db),
    ...eventQueries(db),
    listRejections: ({ limit, after, reference }) =>
      db
        .prepare(
          `SELECT r.key, o.reference, r.reason, r.count, r.diagnosis, r.first_at_ms AS firstAtMs, r.last_at_ms AS lastAtMs
           FROM rejection r JOIN link l ON l.key = r.link_key JOIN orders o ON o.key = l.order_key
           WHERE r.key < @after AND (@reference IS NULL OR o.reference = @reference) ORDER BY r.key DESC LIMIT @limit`,
        )
        .all({ after: after ?? KEY_MAX, reference, limit }) as RejectionSummary[],
    countUnopenable: (keyIds) => countUnopenable(db, keyIds),
  };
}

function orderLister(db: Database): Synchronous<Queries>['listOrders'] {
  const complete = orderCompleter(db);
  const firstSince = firstKeySince(db, 'orders', 'created_at_ms');
  const openKinds = db
    .prepare('SELECT kind FROM attention WHERE order_key = ? AND ended_at_ms IS NULL ORDER BY key')
    .pluck();
  return ({ limit, after, state, search, sinceMs, untilMs }) => {
    const conditions = [
      'o.key < @before',
      ...(state === null ? [] : ['o.state = @state']),
      ...(search === null ? [] : [BY_SEARCH]),
      ...(sinceMs === null ? [] : ['o.key >= @from AND o.created_at_ms >= @sinceMs']),
      ...(untilMs === null ? [] : ['o.created_at_ms <= @untilMs']),
    ];
    const sql = `SELECT * FROM orders o WHERE ${conditions.join(' AND ')} ORDER BY o.key DESC LIMIT @limit`;
    const until = untilMs === null ? KEY_MAX : firstSince(firstMsAfter(untilMs));
    const rows = db
      .prepare(sql)
      .all({
        limit,
        before: Math.min(after ?? KEY_MAX, until),
        ...(state === null ? {} : { state }),
        ...(search === null ? {} : { search: containing(search), exact: search }),
        ...(sinceMs === null ? {} : { sinceMs, from: firstSince(sinceMs) }),
        ...(untilMs === null ? {} : { untilMs }),
      }) as OrderRow[];
    return rows.map((row): ListedOrder => {
      const { key } = row;
      return { key, value: complete(row), attention: openKinds.all(key) as string[] };
    });
  };
}

const BY_SEARCH = `(o.reference LIKE @search ESCAPE '\\'
  OR EXISTS (SELECT 1 FROM link l WHERE l.order_key = o.key AND l.link_id = @exact)
  OR EXISTS (SELECT 1 FROM ledger g WHERE g.order_key = o.key AND g.payment_key = @exact))`;
