import { parseJsonText } from '../json.ts';
import { NOTICE_WORDS, namesOf } from '../vocabulary.ts';
import { isReadable, listed, type Payment, payments, type Sum, sums, sumWords } from './ledger.ts';
import { formatAmount } from './money.ts';
import type { Flag, Order, OrderLink } from './order.ts';
import { detailsDocument, detailsOf } from './payment_details.ts';
import type { FaultNote } from './retry.ts';

export type NoticeType = keyof typeof NOTICE_WORDS;
export const NOTICE_TYPES = namesOf(NOTICE_WORDS);

/** Notices about money. The others inform, and a later one of these makes them needless to a shop that refused them. */
export const MONEY_NOTICES = [
  'order.paid',
  'order.held',
  'order.refunded',
  'order.disputed',
  'payment.duplicate',
] as const satisfies readonly NoticeType[];

export function isAboutMoney(type: string): boolean {
  return MONEY_NOTICES.some((name) => name === type);
}

/** An order as the shop and people see it, in API answers and in notices. */
export type OrderDocument = ReturnType<typeof orderDocument>;
type PaymentDocument = ReturnType<typeof paymentDocument>;

/** Far more than any shop accepts. The order's own currency comes first. */
const CURRENCIES_MAX = 20;

/** Writes an order as JSON-ready data: amounts as decimal strings, times in ISO 8601 UTC. */
export function orderDocument(order: Order) {
  const counted = payments(order);
  const first = counted.find((payment) => payment.key === order.settlement?.paymentKey) ?? counted[0];
  const shown = listed(counted, first);
  const documents = shown.map((payment) => paymentDocument(order, payment));
  const [hold] = order.holds;
  const totals = sums(counted, order.amount.currency);
  return {
    reference: order.reference,
    state: order.state,
    flags: shownFlags(order, totals),
    amount: formatAmount(order.amount),
    currency: order.amount.currency,
    title: order.title,
    metadata: order.metadata,
    /** As the shop said when it opened the order. */
    customer: order.customer,
    createdAt: new Date(order.createdAtMs).toISOString(),
    paidAt: order.settlement === null ? null : new Date(order.settlement.paidAtMs).toISOString(),
    learnedBy: order.settlement?.learnedBy ?? null,
    /** The payment that made the order paid, or the first that was counted. */
    payment: first === undefined ? null : (documents[shown.indexOf(first)] ?? null),
    /** At most 20: that of `payment`, and the newest. */
    payments: documents,
    paymentsTotal: totalOf(counted.length, totals),
    holds: order.holds.map(({ id, reason }) => ({ id, reason })),
    /** The oldest open hold. */
    hold: hold === undefined ? null : { reason: hold.reason },
    link: linkDocument(order.link),
    version: order.version,
  };
}

function paymentDocument(order: Order, payment: Payment) {
  const { id, status, captured, customerPaid, stated } = payment;
  return {
    id,
    status,
    /** Null if settled cannot read what the service named. */
    amount: isReadable(captured) ? formatAmount(captured) : null,
    currency: captured.currency,
    customerPaid,
    stated,
    ...detailsDocument(detailsOf(order, payment)),
  };
}

/** What stands in the place of each amount that is not readable, in words: no sum has it. */
export function unreadWords(payments: readonly Pick<PaymentDocument, 'amount' | 'stated'>[]): string[] {
  return payments.filter(({ amount }) => amount === null).map(({ stated }) => sumWords(null, stated));
}

/** A link as JSON-ready data. */
export function linkDocument(link: OrderLink | null) {
  if (link === null) return null;
  const { expiresAtMs, ...shown } = link;
  return { ...shown, expiresAt: expiresAtMs === null ? null : new Date(expiresAtMs).toISOString() };
}

/** An order's flags, with `underpaid` if it is paid because a person accepted less of its currency than it asks for. */
export function shownFlags(order: Order, totals?: readonly Sum[]): readonly Flag[] {
  if (order.state !== 'paid') return order.flags;
  const { amountMinor, currency } = order.amount;
  const own = (totals ?? sums(payments(order), currency)).find((sum) => sum.currency === currency);
  const isLess = own === undefined || own.balance < amountMinor;
  return isLess ? [...order.flags, 'underpaid'] : order.flags;
}

/** The number of all counted payments, listed or not, and their sum in each currency. */
function totalOf(count: number, totals: readonly Sum[]) {
  return {
    count,
    sums: totals
      .slice(0, CURRENCIES_MAX)
      .map(({ currency, captured, balance }) => ({
        currency,
        captured: formatAmount({ amountMinor: captured, currency }),
        balance: formatAmount({ amountMinor: balance, currency }),
      })),
  };
}

/** The body of a notice: its type, its time, and the order right after the change. */
export function noticeBody(type: NoticeType, order: Order, atMs: number): string {
  return JSON.stringify({
    type,
    timestamp: new Date(atMs).toISOString(),
    data: { order: orderDocument(order), version: order.version },
  });
}

/**
 * The body of a notice without the customers of the payments with these ids, and without the shop's, if that is `dueToo`.
 * Null if it names none of them.
 */
export function withoutCustomers(body: string, ids: ReadonlySet<string | null>, dueToo?: 'shop'): string | null {
  // Most bodies name no customer, so parsing them is not needed.
  if (!body.includes('"customer":{')) return null;
  type Named = Pick<OrderDocument, 'payment' | 'payments'> & Partial<Pick<OrderDocument, 'customer'>>;
  const notice = parseJsonText(body) as { data: { order: Named } };
  const { payment, payments, customer } = notice.data.order;
  let isChanged = dueToo === 'shop' && customer != null;
  if (isChanged) notice.data.order.customer = null;
  for (const one of [payment, ...payments]) {
    if (one === null || one.customer == null || !ids.has(one.id)) continue;
    one.customer = null;
    isChanged = true;
  }
  return isChanged ? JSON.stringify(notice) : null;
}

/**
 * The id of a notice, the same for all its attempts. It holds the key of the row, by which settled finds it, and a
 * random part, because a restored store gives out the same keys again.
 */
export function noticeName(key: number, random: string): string {
  return `msg_${key}_${random}`;
}

export function readNoticeName(id: string): { key: number; random: string } | null {
  const match = /^msg_([1-9][0-9]{0,14})_(.{1,64})$/.exec(id);
  return match === null ? null : { key: Number(match[1]), random: match[2] as string };
}

/** Failed attempts to send notices to the shop, in a row and over all notices, without a success between them. */
export type ShopFailures = ShopRefusal & { attempts: number; sinceMs: number; lastAtMs: number };

/** The result of a failed attempt; `answer` is null if the shop did not answer. */
export type ShopRefusal = { fault: FaultNote; answer: ShopAnswer | null };

/** The shop's answer: its status, and the beginning of its body as text. */
export type ShopAnswer = { status: number; body: string };

/** Statuses by which a shop asks for another attempt of the same notice, rather than refuse it. */
const ASKS_AGAIN: readonly number[] = [408, 425, 429];

/** Whether the shop refuses this very notice, so that sending it again is of little use. */
export function isDefiniteRefusal(answer: ShopAnswer | null): boolean {
  return answer !== null && answer.status >= 400 && answer.status < 500 && !ASKS_AGAIN.includes(answer.status);
}

/** settled tells a person after this many failed attempts in a row, or this long after the first of them. */
export const REFUSES_AFTER = { attempts: 3, ageMs: 120_000 } as const;

/** Whether the shop refuses notices, rather than having failed once. */
export function refusesNotices(failures: ShopFailures, nowMs: number): boolean {
  const { attempts, sinceMs } = failures;
  return attempts >= REFUSES_AFTER.attempts || nowMs - sinceMs >= REFUSES_AFTER.ageMs;
}

const ANSWER_SHOWN = 120;

/** The beginning of a shop's answer, on one line. */
export function shortAnswer(body: string): string {
  return body.replace(/\s+/g, ' ').trim().slice(0, ANSWER_SHOWN);
}
