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
import { HAS_MATTERS, ORDER_COLUMNS } from './rows.ts';
import { statement } from './statement.ts';
import type { Transaction } from './transaction.ts';

const BY_REFERENCE = statement(
  `SELECT ${ORDER_COLUMNS}, ${HAS_MATTERS} FROM orders WHERE reference = @reference`,
);
const BY_KEY = statement(`SELECT ${ORDER_COLUMNS}, ${HAS_MATTERS} FROM orders WHERE key = @orderKey`);
// A link that settled opened itself is shown once its address is known, and not while it is withheld.
const LINK = statement(
  `SELECT link_id AS id, url, short_url AS shortUrl, status FROM link
   WHERE order_key = @key AND (NOT opened OR (url IS NOT NULL AND withheld IS NULL)) ORDER BY key DESC LIMIT 1`,
);
const SETTLEMENT = statement(
  `SELECT paid_at_ms AS paidAtMs, payment_key AS paymentKey, learned_by AS learnedBy
   FROM settlement WHERE order_key = @key`,
);
const ENTRIES = statement(
  `SELECT payment_key AS paymentKey, kind, occurrence, amount_minor AS amountMinor, currency,
    is_assumed AS isAssumed, customer_amount AS customerAmount, customer_currency AS customerCurrency
   FROM ledger WHERE order_key = @key ORDER BY number`,
);
const HOLDS = statement(
  'SELECT id, reason FROM hold WHERE order_key = @key AND ended_at_ms IS NULL ORDER BY opened_at_ms, length(id), id',
);

/** Loads orders whole: row, newest link, settlement, ledger and open holds. */
export const orders = {
  async byReference(tx: Transaction, reference: string): Promise<LoadedOrder | null> {
    const row = await tx.one<LoadedRow>(BY_REFERENCE, { reference });
    return row === undefined ? null : loadedOrder(row, await complete(tx, row));
  },
  async byKey(tx: Transaction, orderKey: number): Promise<LoadedOrder> {
    const row = (await tx.one<LoadedRow>(BY_KEY, { orderKey })) as LoadedRow;
    return loadedOrder(row, await complete(tx, row));
  },
  complete,
};

/** Completes an order's row from the tables beside it. */
async function complete(tx: Transaction, row: OrderRow): Promise<Order> {
  const { key, state } = row;
  // Money is counted and settled only by leaving the open states, so an open order has neither.
  const open = isOpen(state);
  const [settlement, entries, holds, link, floor] = await Promise.all([
    open ? null : tx.one<Settlement>(SETTLEMENT, { key }),
    open ? [] : tx.all<EntryRow>(ENTRIES, { key }),
    state === 'held' ? tx.all<Hold>(HOLDS, { key }) : [],
    tx.one<OrderLink>(LINK, { key }),
    versionFloor(tx),
  ]);
  const beside = {
    settlement: settlement ?? null,
    entries: entries.map(readEntry),
    holds,
    link: link ?? null,
  };
  return completeOrder(row, beside, floor);
}
