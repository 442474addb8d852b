import { type Reported, reportedMoney } from '../../domain/comparison.ts';
import { uncounted } from '../../domain/completion.ts';
import type { Decided } from '../../domain/decision.ts';
import { UNNAMED } from '../../domain/ledger.ts';
import { isSameMoney, type Money } from '../../domain/money.ts';
import type { Order } from '../../domain/order.ts';
import {
  type KnownDetails,
  learnDetails,
  type SaidDetails,
  searchWords,
  TOTAL_CURRENCY,
} from '../../domain/payment_details.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';

/** What the service says about payments besides status and money: stored for people. `customers.ts` erases customers in time. */

/** The columns of `KnownDetails`. */
export const DETAIL_COLUMNS = `payment_key AS key, method, installments, total_brl_minor AS totalBrlMinor,
  customer_name AS customerName, customer_email AS customerEmail, created_at_ms AS createdAtMs,
  completed_at_ms AS completedAtMs, available_at_ms AS availableAtMs, said_at_ms AS saidAtMs, forgotten AS isForgotten`;
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
export function noteReported(tx: Transaction, orderKey: number, { order, fact, made }: Decided): void {
  if (made.effects.some((effect) => effect.do === 'entry' && effect.entry.kind === 'captured')) return;
  const money = uncounted(order, fact);
  if (money !== null) tx.send(REPORT, { orderKey, paymentKey: fact.paymentId ?? UNNAMED, ...money });
}

const NOTE_ASKED = statement(`
  UPDATE inbox SET reported_minor = @amountMinor, reported_currency = @currency, reported_text = @text WHERE key = @eventKey`);

/** Stores with an event what it reported as paid, before settled asks the service about it. */
export function noteAsked(tx: Transaction, eventKey: number, { order, fact }: Decided): void {
  const reported = reportedMoney(order, fact);
  if (reported !== null) tx.send(NOTE_ASKED, { ...reported.captured, text: reported.stated?.amount ?? null, eventKey });
}

const REPORTED = statement(`
  SELECT l.order_key AS orderKey, i.reported_minor AS amountMinor, i.reported_currency AS currency, i.reported_text AS amount
  FROM link l CROSS JOIN inbox i
  WHERE l.order_key = ANY(@keys::bigint[]) AND i.link_key = l.key AND i.reported_currency IS NOT NULL ORDER BY i.key + 0`);

/** What the newest event that settled asked about reported as paid, by the keys of the orders. */
export function* readReported(tx: Transaction, keys: readonly number[]): Work<Map<number, Reported>> {
  const rows =
    keys.length === 0 ? [] : yield* tx.all<Money & { orderKey: number; amount: string | null }>(REPORTED, { keys });
  return new Map(
    rows.map(({ orderKey, amount, amountMinor, currency }) => {
      return [orderKey, { captured: { amountMinor, currency }, stated: amount === null ? null : { amount, currency } }];
    }),
  );
}

/** With interest the customer pays more than the order asks for, and finds that amount on their bill. */
function writeTotal(tx: Transaction, orderKey: number, { amount }: Order, { key, totalBrlMinor }: KnownDetails): void {
  if (totalBrlMinor === null) return;
  const total = { amountMinor: totalBrlMinor, currency: TOTAL_CURRENCY };
  if (!isSameMoney(total, amount)) tx.send(REPORT, { orderKey, paymentKey: key, ...total });
}
