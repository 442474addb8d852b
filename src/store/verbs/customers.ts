import { withoutCustomers } from '../../domain/notice.ts';
import type { Order } from '../../domain/order.ts';
import { idsOfKeys } from '../../domain/payment_details.ts';
import type { RowStatus } from '../../domain/retry.ts';
import { wordsOfOrder } from '../../domain/search.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';

/** Customers as the shop and the service name them: stored for people, found by their words, and erased in time. */

const INSERT_CUSTOMER = statement(`
  INSERT INTO order_customer (order_key, name, email, since_ms) VALUES (@orderKey, @name, @email, @atMs)`);
const INSERT_WORD = statement(`
  INSERT INTO order_word (order_key, word, personal) VALUES (@orderKey, @word, @isPersonal)`);

/** What an order is found by besides its exact reference. */
export type Findable = Pick<Order, 'reference' | 'title' | 'customer'>;

/** Writes the customer and the words of a new order. */
export function noteFindable(tx: Transaction, orderKey: number, order: Findable, atMs: number): void {
  if (order.customer !== null) tx.send(INSERT_CUSTOMER, { ...order.customer, orderKey, atMs });
  for (const word of wordsOfOrder(order)) tx.send(INSERT_WORD, { ...word, orderKey });
}

const DUE = statement(`
  SELECT order_key AS orderKey FROM payment WHERE personal_since_ms <= @untilMs ORDER BY personal_since_ms LIMIT @limit`);
const DUE_OF_SHOP = statement(`
  SELECT order_key AS orderKey FROM order_customer WHERE since_ms <= @untilMs ORDER BY since_ms LIMIT @limit`);
// Skips an order that another transaction has locked; a later call examines it.
const LOCK_ORDERS = statement(`
  SELECT key AS orderKey, adopted_payment_id AS adoptedPaymentId FROM orders WHERE key = ANY(@keys::bigint[]) ORDER BY key
  FOR NO KEY UPDATE SKIP LOCKED`);
const DUE_OF_ORDERS = statement(`
  SELECT order_key AS orderKey, payment_key AS key, NOT forgotten AS isNamed FROM payment
  WHERE order_key = ANY(@keys::bigint[]) AND personal_since_ms <= @untilMs`);
const SHOPS_OF_ORDERS = statement(`
  SELECT order_key AS orderKey, coalesce(name, email) IS NOT NULL AS isNamed FROM order_customer
  WHERE order_key = ANY(@keys::bigint[]) AND since_ms <= @untilMs`);
// CROSS JOIN fixes the order: first the few orders, then each one's notices from where the last call ended.
const NOTICES = statement(`
  SELECT n.order_key AS orderKey, n.key, n.status, n.body FROM (
    SELECT order_key, min(dropped_to) AS dropped_to FROM (
      SELECT order_key, dropped_to FROM payment
      WHERE order_key = ANY(@keys::bigint[]) AND personal_since_ms <= @untilMs
      UNION ALL
      SELECT order_key, dropped_to FROM order_customer
      WHERE order_key = ANY(@keys::bigint[]) AND since_ms <= @untilMs) AS due GROUP BY order_key) d
  CROSS JOIN outbox n WHERE n.order_key = d.order_key AND n.key > d.dropped_to
  ORDER BY n.order_key, n.key LIMIT @most`);
const REWRITE = statement('UPDATE outbox SET body = @body WHERE key = @key');
const FORGET = statement(`
  UPDATE payment SET customer_name = NULL, customer_email = NULL, name_search = NULL, email_search = NULL,
    forgotten = true, personal_since_ms = @sinceMs, dropped_to = greatest(dropped_to, @droppedTo::bigint)
  WHERE order_key = @orderKey AND personal_since_ms <= @untilMs`);
const FORGET_SHOPS = statement(`
  UPDATE order_customer SET name = NULL, email = NULL, since_ms = @sinceMs,
    dropped_to = greatest(dropped_to, @droppedTo::bigint)
  WHERE order_key = @orderKey AND since_ms <= @untilMs`);
const FORGET_WORDS = statement('DELETE FROM order_word WHERE order_key = @orderKey AND personal');

/** The most notices that one call reads: a few of each payment, or this many of an order with many payments. */
const NOTICES_MAX = 256;
/** settled examines a notice that is still owed again after this time. */
const OWED_AGAIN_MS = 3_600_000;

type LockedOrder = Pick<Order, 'adoptedPaymentId'> & { orderKey: number };
type NoticeBody = { orderKey: number; key: number; status: RowStatus; body: string };

type CustomerDrop = {
  /** Details that came later than this are kept. */
  untilMs: number;
  /** The most payments examined. */
  limit: number;
  /** Whether settled sends notices. Only then is a pending notice owed. */
  sendsNotices: boolean;
};

/** `dropped`: payments that lost a name or an address. `isMore`: whether another call would find more. */
type CustomersDropped = { dropped: number; isMore: boolean };

/**
 * Erases old customers' names and e-mail addresses, from payments and from their orders' notices. Each call does
 * little; repeat it while `isMore`. A notice that is still owed keeps its body and is examined again later.
 */
export function* dropCustomers(tx: Transaction, drop: CustomerDrop): Work<CustomersDropped> {
  const { untilMs, limit, sendsNotices } = drop;
  const ofPayments = tx.all<{ orderKey: number }>(DUE, { untilMs, limit });
  const ofShop = yield* tx.all<{ orderKey: number }>(DUE_OF_SHOP, { untilMs, limit });
  const due = [...(yield* ofPayments), ...ofShop];
  if (due.length === 0) return { dropped: 0, isMore: false };
  const asked = [...new Set(due.map(({ orderKey }) => orderKey))];
  const locked = yield* tx.all<LockedOrder>(LOCK_ORDERS, { keys: asked });
  const at = { keys: locked.map(({ orderKey }) => orderKey), untilMs };
  const payments = tx.all<{ orderKey: number; key: string; isNamed: boolean }>(DUE_OF_ORDERS, at);
  const shops = tx.all<{ orderKey: number; isNamed: boolean }>(SHOPS_OF_ORDERS, at);
  const notices = yield* tx.all<NoticeBody>(NOTICES, { ...at, most: NOTICES_MAX });
  const paymentsOf = Map.groupBy(yield* payments, ({ orderKey }) => orderKey);
  const shopOf = new Map((yield* shops).map((shop) => [shop.orderKey, shop]));
  const noticesOf = Map.groupBy(notices, ({ orderKey }) => orderKey);
  const cutAt = notices.length === NOTICES_MAX ? (notices.at(-1)?.orderKey ?? 0) : null;
  const rewritten: { key: number; body: string }[] = [];
  let dropped = 0;
  for (const order of locked) {
    const { orderKey } = order;
    if (cutAt !== null && orderKey > cutAt) break;
    const forgotten = paymentsOf.get(orderKey) ?? [];
    const ids = idsOfKeys(
      forgotten.map(({ key }) => key),
      order,
    );
    const shop = shopOf.get(orderKey);
    const without = (body: string) => withoutCustomers(body, ids, shop === undefined ? undefined : 'shop');
    const { bodies, droppedTo, isOwed } = rewrite(noticesOf.get(orderKey) ?? [], without, sendsNotices);
    const sinceMs = isOwed ? untilMs + OWED_AGAIN_MS : orderKey === cutAt ? untilMs : null;
    tx.send(FORGET, { orderKey, untilMs, droppedTo, sinceMs });
    if (shop !== undefined) {
      tx.send(FORGET_SHOPS, { orderKey, untilMs, droppedTo, sinceMs });
      tx.send(FORGET_WORDS, { orderKey });
    }
    rewritten.push(...bodies);
    dropped += [...forgotten, ...(shop === undefined ? [] : [shop])].filter(({ isNamed }) => isNamed).length;
  }
  // In the order in which the feed locks notices.
  for (const notice of rewritten.sort((one, other) => one.key - other.key)) tx.send(REWRITE, notice);
  return { dropped, isMore: locked.length > 0 && (due.length >= limit || cutAt !== null) };
}

/** The notices of an order without those customers, up to the first notice that is still owed. */
function rewrite(notices: readonly NoticeBody[], rewritten: (body: string) => string | null, sendsNotices: boolean) {
  const isOwed = ({ status }: NoticeBody) => status === 'leased' || (status === 'pending' && sendsNotices);
  const owedFrom = notices.findIndex(isOwed);
  const free = owedFrom === -1 ? notices : notices.slice(0, owedFrom);
  const bodies = free.flatMap(({ key, body }) => {
    const without = rewritten(body);
    return without === null ? [] : [{ key, body: without }];
  });
  return { bodies, droppedTo: free.at(-1)?.key ?? 0, isOwed: owedFrom !== -1 };
}
