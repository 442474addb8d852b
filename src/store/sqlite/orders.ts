import type { Database } from 'better-sqlite3';
import type { LedgerEntry } from '../../domain/ledger.ts';
import type { Flag, Hold, LearnedBy, Order, OrderState } from '../../domain/order.ts';

/** An order as loaded, with the key of its row. */
export type LoadedOrder = { orderKey: number; order: Order };

export type OrderRow = {
  key: number;
  reference: string;
  amount_minor: number;
  currency: string;
  state: string;
  flags: string;
  version: number;
  adopted_payment_id: string | null;
  resolution: 'accept' | 'reject' | null;
  last_reading: number | null;
  created_at_ms: number;
  paid_at_ms: number | null;
  payment_key: string | null;
  learned_by: string | null;
  link_key: number | null;
  link_id: string | null;
  url: string | null;
  short_url: string | null;
  status: string | null;
};

/** An order's row with its settlement and its newest link. */
export const ORDER_COLUMNS = `o.key, o.reference, o.amount_minor, o.currency, o.state, o.flags, o.version,
  o.adopted_payment_id, o.resolution, o.last_reading, o.created_at_ms, s.paid_at_ms, s.payment_key, s.learned_by,
  l.key AS link_key, l.link_id, l.url, l.short_url, l.status`;
export const ORDER_TABLES = `orders o LEFT JOIN settlement s ON s.order_key = o.key
  LEFT JOIN link l ON l.key = (SELECT max(key) FROM link WHERE order_key = o.key)`;

/** Loads orders whole: row, settlement, ledger, open holds, newest link. */
export function orderLoader(db: Database) {
  const byReference = db.prepare(`SELECT ${ORDER_COLUMNS} FROM ${ORDER_TABLES} WHERE o.reference = ?`);
  const byLink = db.prepare(
    `SELECT ${ORDER_COLUMNS} FROM link mine JOIN orders o ON o.key = mine.order_key
     LEFT JOIN settlement s ON s.order_key = o.key
     LEFT JOIN link l ON l.key = (SELECT max(key) FROM link WHERE order_key = o.key) WHERE mine.key = ?`,
  );
  const whole = wholeOrder(db);
  return {
    byReference: (reference: string): LoadedOrder | null =>
      whole(byReference.get(reference) as OrderRow | undefined),
    byLink: (linkKey: number): LoadedOrder | null => whole(byLink.get(linkKey) as OrderRow | undefined),
  };
}

/** Completes order rows from the tables beside them. */
export function wholeOrder(db: Database) {
  const entries = db.prepare(
    `SELECT payment_key AS paymentKey, kind, occurrence, amount_minor AS amountMinor, currency
     FROM ledger WHERE order_key = ? ORDER BY key`,
  );
  const holds = db.prepare(
    'SELECT id, reason FROM hold WHERE order_key = ? AND ended_at_ms IS NULL ORDER BY opened_at_ms, id',
  );
  return (row: OrderRow | undefined): LoadedOrder | null => {
    if (row === undefined) return null;
    const order: Order = {
      reference: row.reference,
      amount: { amountMinor: row.amount_minor, currency: row.currency },
      state: row.state as OrderState,
      flags: row.flags === '' ? [] : (row.flags.split(',') as Flag[]),
      version: row.version,
      createdAtMs: row.created_at_ms,
      settlement:
        row.paid_at_ms === null
          ? null
          : { paidAtMs: row.paid_at_ms, paymentKey: row.payment_key, learnedBy: row.learned_by as LearnedBy },
      entries: entries.all(row.key) as LedgerEntry[],
      adoptedPaymentId: row.adopted_payment_id,
      holds: row.state === 'held' ? (holds.all(row.key) as Hold[]) : [],
      resolution: row.resolution,
      lastReading: row.last_reading,
      link:
        row.link_key === null
          ? null
          : { id: row.link_id, url: row.url, shortUrl: row.short_url, status: row.status },
    };
    return { orderKey: row.key, order };
  };
}
