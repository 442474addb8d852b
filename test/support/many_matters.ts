/** A store of any size in which some orders need a person, as SQL for either engine. */

export type Many = {
  orders: number;
  /** Open matters: a quarter holds, a quarter due refunds, the others missing links. */
  matters: number;
  /** Ended matters, and the same number of ended holds. */
  ended: number;
};

/** An engine's words for what fills a store. */
export type Filling = {
  /** The table with the numbers from 1 to n in a column `n`. */
  series: (n: number) => string;
  /** A value of bytes. */
  bytes: string;
  /** The id of the key that the secrets of links are said to be sealed under. */
  keyId: string;
};

export const SQLITE_FILLING: Filling = {
  series: (n) => `(WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ${n}) SELECT n FROM c)`,
  bytes: "x'00'",
  keyId: 'key-1',
};
export const POSTGRES_FILLING: Filling = {
  series: (n) => `(SELECT generate_series(1, ${n}) AS n)`,
  bytes: "'x'::bytea",
  keyId: 'key-1',
};

/** Statements that fill an empty store. */
export function fillingStatements({ orders, matters, ended }: Many, { series, bytes, keyId }: Filling): string[] {
  const each = Math.floor(orders / matters);
  const quarter = Math.floor(matters / 4);
  // Spread evenly, so that each order that needs a person is on another page.
  const state = `CASE WHEN n % ${each} <> 0 THEN 'paid' WHEN n / ${each} <= ${quarter} THEN 'held'
    WHEN n / ${each} <= ${2 * quarter} THEN 'cancelled' ELSE 'awaiting_payment' END`;
  const openAtMs = '1700000000000 + key * 7919 % 86400000';
  return [
    `INSERT INTO orders (key, reference, amount_minor, currency, state, flags, created_at_ms, updated_at_ms)
     SELECT n, 'order-' || n, 10000, 'BRL', ${state}, CASE WHEN ${state} = 'cancelled' THEN 'refund_due' ELSE '' END,
       1700000000000 + n, 1700000000000 + n FROM ${series(orders)} AS s`,
    `INSERT INTO link (key, order_key, link_id, token, sealed_secret, secrets_key_id, secret_fingerprint, created_at_ms)
     SELECT n, n, 'pl_' || n, 'token-' || n, ${bytes}, '${keyId}', ${bytes}, 1700000000000 + n FROM ${series(orders)} AS s`,
    `INSERT INTO ledger (order_key, payment_key, kind, occurrence, number, amount_minor, currency, at_ms)
     SELECT key, 'pay_' || key, 'captured', 1, 1, CASE WHEN state = 'held' THEN 6000 ELSE 10000 END, 'BRL', created_at_ms
     FROM orders WHERE state <> 'awaiting_payment'`,
    `INSERT INTO settlement (order_key, paid_at_ms, payment_key, learned_by)
     SELECT key, created_at_ms, 'pay_' || key, 'webhook' FROM orders WHERE state = 'paid'`,
    `INSERT INTO hold (order_key, id, reason, opened_at_ms)
     SELECT key, 'hold_2', CASE WHEN key % 3 = 0 THEN 'amount_mismatch' ELSE 'status_unclear' END, ${openAtMs}
     FROM orders WHERE state = 'held'`,
    `INSERT INTO attention (kind, subject, order_key, detail, opened_at_ms, last_at_ms)
     SELECT CASE WHEN state = 'cancelled' THEN 'refund_due' ELSE 'link_missing' END, reference, key, 'Look at it.',
       ${openAtMs}, created_at_ms FROM orders WHERE state IN ('cancelled', 'awaiting_payment')`,
    `INSERT INTO attention (kind, subject, order_key, detail, opened_at_ms, last_at_ms, ended_at_ms)
     SELECT 'service_disagrees', 'order-' || n, n, 'It was looked at.', 1600000000000 + n, 1600000000000 + n, 1600000000000 + n
     FROM ${series(ended)} AS s`,
    `INSERT INTO hold (order_key, id, reason, opened_at_ms, ended_at_ms)
     SELECT n, 'hold_1', 'amount_mismatch', 1600000000000 + n, 1600000000000 + n FROM ${series(ended)} AS s`,
  ];
}

/** The tables that no statement of the list may read as a whole. */
export const LARGE_TABLES = ['orders', 'ledger', 'hold', 'attention', 'link', 'settlement'];
