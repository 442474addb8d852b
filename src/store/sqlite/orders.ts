import type { Database } from 'better-sqlite3';
import { type Hold, isOpen, type Order, type OrderLink, type Settlement } from '../../domain/order.ts';
import {
  completeOrder,
  type EntryRow,
  type LoadedOrder,
  type LoadedRow,
  loadedOrder,
  type OrderRow,
  readEntry,
} from '../orders.ts';
import { versionFloor } from './instance.ts';
import { HAS_MATTERS } from './rows.ts';

/** Loads orders whole: row, newest link, settlement, ledger and open holds. */
export function orderLoader(db: Database) {
  const byReference = db.prepare(`SELECT *, ${HAS_MATTERS} FROM orders WHERE reference = ?`);
  const byKey = db.prepare(`SELECT *, ${HAS_MATTERS} FROM orders WHERE key = ?`);
  const complete = orderCompleter(db);
  return {
    byReference: (reference: string): LoadedOrder | null => {
      const row = byReference.get(reference) as LoadedRow | undefined;
      return row === undefined ? null : loadedOrder(row, complete(row));
    },
    byKey: (orderKey: number): LoadedOrder => {
      const row = byKey.get(orderKey) as LoadedRow;
      return loadedOrder(row, complete(row));
    },
  };
}

/** Completes an order's row from the tables beside it. */
export function orderCompleter(db: Database): (row: OrderRow) => Order {
  // A link that settled opened itself is shown once its address is known, and not while it is withheld.
  const link = db.prepare(
    `SELECT link_id AS id, url, short_url AS shortUrl, status FROM link
     WHERE order_key = +? AND (opened = 0 OR (url IS NOT NULL AND withheld IS NULL)) ORDER BY key DESC LIMIT 1`,
  );
  const settlement = db.prepare(
    `SELECT paid_at_ms AS paidAtMs, payment_key AS paymentKey, learned_by AS learnedBy
     FROM settlement WHERE order_key = ?`,
  );
  const entries = db.prepare(
    `SELECT payment_key AS paymentKey, kind, occurrence, amount_minor AS amountMinor, currency,
    is_assumed AS isAssumed, customer_amount AS customerAmount, customer_currency AS customerCurrency
     FROM ledger WHERE order_key = +? ORDER BY number`,
  );
  const holds = db.prepare(
    'SELECT id, reason FROM hold WHERE order_key = +? AND ended_at_ms IS NULL ORDER BY opened_at_ms, length(id), id',
  );
  const floor = versionFloor(db);
  return (row) => {
    // Money is counted and settled only by leaving the open states, so an open order has neither; most orders are open
    // when they are loaded to be settled.
    const open = isOpen(row.state);
    const beside = {
      settlement: open ? null : ((settlement.get(row.key) as Settlement | undefined) ?? null),
      entries: open ? [] : (entries.all(row.key) as EntryRow[]).map(readEntry),
      holds: row.state === 'held' ? (holds.all(row.key) as Hold[]) : [],
      link: (link.get(row.key) as OrderLink | undefined) ?? null,
    };
    return completeOrder(row, beside, floor);
  };
}
