/** What a store says of its orders, and what it must say of one that was paid once. */

export type OrderRow = {
  reference: string;
  state: string;
  settlements: number;
  /** Kind, payment and minor units of each entry of its ledger, by payment. */
  entries: string | null;
  timesPaid: number;
  paidNotices: number;
  duplicateNotices: number;
};

const count = (rows: string) => `(SELECT CAST(count(*) AS INTEGER) FROM ${rows})`;

/** In words that both engines understand. */
export const ORDERS = `SELECT o.reference, o.state,
    ${count('settlement s WHERE s.order_key = o.key')} AS settlements,
    (SELECT string_agg(kind || ' ' || payment_key || ' ' || amount_minor, ', ' ORDER BY payment_key)
      FROM ledger e WHERE e.order_key = o.key) AS entries,
    ${count("history h WHERE h.order_key = o.key AND h.to_state = 'paid' AND h.from_state IS DISTINCT FROM 'paid'")}
      AS "timesPaid",
    ${count("outbox n WHERE n.order_key = o.key AND n.type = 'order.paid'")} AS "paidNotices",
    ${count("outbox n WHERE n.order_key = o.key AND n.type = 'payment.duplicate'")} AS "duplicateNotices"
  FROM orders o`;

/** What an order must be that was never paid. */
export function unpaid(reference: string, state: string): OrderRow {
  const nothing = { settlements: 0, entries: null, timesPaid: 0, paidNotices: 0, duplicateNotices: 0 };
  return { reference, state, ...nothing };
}

/** What an order must be that was paid once, by the first of these payments. */
export function paidOnce(
  reference: string,
  amountMinor: number,
  payments: readonly string[] = [`pay_${reference}`],
): OrderRow {
  return {
    ...unpaid(reference, 'paid'),
    settlements: 1,
    entries: payments.map((id) => `captured ${id} ${amountMinor}`).join(', '),
    timesPaid: 1,
    paidNotices: 1,
    duplicateNotices: payments.length - 1,
  };
}
