import { uncounted } from '../../domain/completion.ts';
import type { Decision } from '../../domain/decision.ts';
import type { PaymentFact } from '../../domain/fact.ts';
import { UNNAMED } from '../../domain/ledger.ts';
import { isSameMoney } from '../../domain/money.ts';
import { withoutCustomers } from '../../domain/notice.ts';
import type { Order } from '../../domain/order.ts';
import {
  idsOfKeys,
  type KnownDetails,
  learnDetails,
  type SaidDetails,
  searchWords,
  TOTAL_CURRENCY,
} from '../../domain/payment_details.ts';
import type { RowStatus } from '../../domain/retry.ts';
import type { Keeping } from '../contract.ts';
import { type InTransaction, statement, type Transaction } from '../transaction.ts';

/** What the service says about payments besides status and money: stored for people, with customers erased in time. */

const COLUMNS = `payment_key AS key, method, installments, total_brl_minor AS totalBrlMinor, customer_name AS customerName,
  customer_email AS customerEmail, created_at_ms AS createdAtMs, completed_at_ms AS completedAtMs,
  available_at_ms AS availableAtMs, said_at_ms AS saidAtMs, forgotten AS isForgotten`;

/** The details of an order's payments. */
export const DETAILS = statement(`SELECT ${COLUMNS} FROM payment WHERE order_key = @key ORDER BY payment_key`);
/** The same for many orders. */
export const ALL_DETAILS = statement(`
  SELECT order_key AS orderKey, ${COLUMNS} FROM payment WHERE order_key = ANY(@keys::bigint[]) ORDER BY payment_key`);
/** Whether an order has any, as a column of its row. */
export const HAS_DETAILS = 'EXISTS (SELECT 1 FROM payment WHERE payment.order_key = orders.key) AS hasDetails';

const WRITE = statement(`
  INSERT INTO payment (order_key, payment_key, method, installments, total_brl_minor, customer_name, customer_email,
    name_search, email_search, created_at_ms, completed_at_ms, available_at_ms, said_at_ms, personal_since_ms)
  VALUES (@orderKey, @key, @method, @installments, @totalBrlMinor, @customerName, @customerEmail,
    @nameSearch, @emailSearch, @createdAtMs, @completedAtMs, @availableAtMs, @saidAtMs, @personalSinceMs)
  ON CONFLICT (order_key, payment_key) DO UPDATE SET method = excluded.method, installments = excluded.installments,
    total_brl_minor = excluded.total_brl_minor, customer_name = excluded.customer_name,
    customer_email = excluded.customer_email, name_search = excluded.name_search, email_search = excluded.email_search,
    created_at_ms = excluded.created_at_ms, completed_at_ms = excluded.completed_at_ms,
    available_at_ms = excluded.available_at_ms, said_at_ms = excluded.said_at_ms,
    personal_since_ms = coalesce(payment.personal_since_ms, excluded.personal_since_ms)`);

/**
 * Stores what was said about an order's payments, with one statement for each payment that changes. Returns the order
 * with it. The caller has locked the order.
 * @param said.atMs when it was said
 */
export function noteDetails(
  tx: Transaction,
  { orderKey, order }: { orderKey: number; order: Order },
  { details, atMs, nowMs }: { details: readonly SaidDetails[]; atMs: number; nowMs: number },
): Order {
  let known = order.details;
  for (const said of details) {
    const after = learnDetails(known, said, atMs);
    if (after === null) continue;
    writeDetails(tx, orderKey, after, nowMs);
    writeTotal(tx, orderKey, order, after);
    known = [...known.filter(({ key }) => key !== after.key), after];
  }
  return known === order.details ? order : { ...order, details: known };
}

function writeDetails(tx: Transaction, orderKey: number, details: KnownDetails, nowMs: number): void {
  const { customerName: name, customerEmail: email } = details;
  tx.send(WRITE, {
    ...details,
    orderKey,
    nameSearch: name === null ? null : searchWords(name),
    emailSearch: email === null ? null : searchWords(email),
    personalSinceMs: name === null && email === null ? null : nowMs,
  });
}

const REPORT = statement(`
  INSERT INTO reported_payment (order_key, payment_key, currency, amount_minor)
  VALUES (@orderKey, @paymentKey, @currency, @amountMinor) ON CONFLICT DO NOTHING`);

/** Stores the money of a payment that a decision did not count, or counted otherwise, so that people find it. */
export function noteReported(
  tx: Transaction,
  { orderKey, order, fact, made }: { orderKey: number; order: Order; fact: PaymentFact; made: Decision },
): void {
  if (made.effects.some((effect) => effect.do === 'entry' && effect.entry.kind === 'captured')) return;
  const money = uncounted(order, fact);
  if (money !== null) tx.send(REPORT, { orderKey, paymentKey: fact.paymentId ?? UNNAMED, ...money });
}

/** With interest the customer pays more than the order asks for, and finds that amount on their bill. */
function writeTotal(tx: Transaction, orderKey: number, { amount }: Order, { key, totalBrlMinor }: KnownDetails): void {
  if (totalBrlMinor === null) return;
  const total = { amountMinor: totalBrlMinor, currency: TOTAL_CURRENCY };
  if (!isSameMoney(total, amount)) tx.send(REPORT, { orderKey, paymentKey: key, ...total });
}

const DUE = statement(`
  SELECT order_key AS orderKey FROM payment WHERE personal_since_ms <= @untilMs ORDER BY personal_since_ms LIMIT @limit`);
// Skips an order that another transaction has locked; a later call examines it.
const LOCK_ORDERS = statement(`
  SELECT key AS orderKey, adopted_payment_id AS adoptedPaymentId FROM orders WHERE key = ANY(@keys::bigint[]) ORDER BY key
  FOR NO KEY UPDATE SKIP LOCKED`);
const DUE_OF_ORDERS = statement(`
  SELECT order_key AS orderKey, payment_key AS key, NOT forgotten AS isNamed FROM payment
  WHERE order_key = ANY(@keys::bigint[]) AND personal_since_ms <= @untilMs`);
// CROSS JOIN fixes the order: first the few orders, then each one's notices from where the last call ended.
const NOTICES = statement(`
  SELECT n.order_key AS orderKey, n.key, n.status, n.body FROM (
    SELECT order_key, min(dropped_to) AS dropped_to FROM payment
    WHERE order_key = ANY(@keys::bigint[]) AND personal_since_ms <= @untilMs GROUP BY order_key) d
  CROSS JOIN outbox n WHERE n.order_key = d.order_key AND n.key > d.dropped_to
  ORDER BY n.order_key, n.key LIMIT @most`);
const REWRITE = statement('UPDATE outbox SET body = @body WHERE key = @key');
const FORGET = statement(`
  UPDATE payment SET customer_name = NULL, customer_email = NULL, name_search = NULL, email_search = NULL,
    forgotten = true, personal_since_ms = @sinceMs, dropped_to = greatest(dropped_to, @droppedTo::bigint)
  WHERE order_key = @orderKey AND personal_since_ms <= @untilMs`);

/** The most notices that one call reads: a few of each payment, or this many of an order with many payments. */
const NOTICES_MAX = 256;
/** settled examines a notice that is still owed again after this time. */
const OWED_AGAIN_MS = 3_600_000;

type LockedOrder = Pick<Order, 'adoptedPaymentId'> & { orderKey: number };
type NoticeBody = { orderKey: number; key: number; status: RowStatus; body: string };

export const dropCustomers: InTransaction<Keeping>['dropCustomers'] = function* (tx, drop) {
  const { untilMs, limit, sendsNotices } = drop;
  const due = yield* tx.all<{ orderKey: number }>(DUE, { untilMs, limit });
  if (due.length === 0) return { dropped: 0, isMore: false };
  const asked = [...new Set(due.map(({ orderKey }) => orderKey))];
  const locked = yield* tx.all<LockedOrder>(LOCK_ORDERS, { keys: asked });
  const at = { keys: locked.map(({ orderKey }) => orderKey), untilMs };
  const payments = tx.all<{ orderKey: number; key: string; isNamed: boolean }>(DUE_OF_ORDERS, at);
  const notices = yield* tx.all<NoticeBody>(NOTICES, { ...at, most: NOTICES_MAX });
  const paymentsOf = Map.groupBy(yield* payments, ({ orderKey }) => orderKey);
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
    const { bodies, droppedTo, isOwed } = rewrite(noticesOf.get(orderKey) ?? [], ids, sendsNotices);
    const sinceMs = isOwed ? untilMs + OWED_AGAIN_MS : orderKey === cutAt ? untilMs : null;
    tx.send(FORGET, { orderKey, untilMs, droppedTo, sinceMs });
    rewritten.push(...bodies);
    dropped += forgotten.filter(({ isNamed }) => isNamed).length;
  }
  // In the order in which the feed locks notices.
  for (const notice of rewritten.sort((one, other) => one.key - other.key)) tx.send(REWRITE, notice);
  return { dropped, isMore: locked.length > 0 && (due.length === limit || cutAt !== null) };
};

/** The notices of an order without those customers, up to the first notice that is still owed. */
function rewrite(notices: readonly NoticeBody[], ids: ReadonlySet<string | null>, sendsNotices: boolean) {
  const isOwed = ({ status }: NoticeBody) => status === 'leased' || (status === 'pending' && sendsNotices);
  const owedFrom = notices.findIndex(isOwed);
  const free = owedFrom === -1 ? notices : notices.slice(0, owedFrom);
  const bodies = free.flatMap(({ key, body }) => {
    const without = withoutCustomers(body, ids);
    return without === null ? [] : [{ key, body: without }];
  });
  return { bodies, droppedTo: free.at(-1)?.key ?? 0, isOwed: owedFrom !== -1 };
}
