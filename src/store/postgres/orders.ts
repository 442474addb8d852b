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
import { statement } from '../statement.ts';
import { versionFloor } from './instance.ts';
import { HAS_MATTERS, ORDER_COLUMNS } from './rows.ts';
import type { Transaction } from './transaction.ts';

const BY_REFERENCE = statement(`SELECT ${ORDER_COLUMNS}, ${HAS_MATTERS} FROM orders WHERE reference = @reference`);
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

const BY_KEYS = statement(`SELECT ${ORDER_COLUMNS} FROM orders WHERE key = ANY(@keys::bigint[])`);
// As above, of many orders.
const LINKS = statement(
  `SELECT DISTINCT ON (order_key) order_key AS orderKey, link_id AS id, url, short_url AS shortUrl, status FROM link
   WHERE order_key = ANY(@keys::bigint[]) AND (NOT opened OR (url IS NOT NULL AND withheld IS NULL))
   ORDER BY order_key, key DESC`,
);
const SETTLEMENTS = statement(
  `SELECT order_key AS orderKey, paid_at_ms AS paidAtMs, payment_key AS paymentKey, learned_by AS learnedBy
   FROM settlement WHERE order_key = ANY(@keys::bigint[])`,
);
const ALL_ENTRIES = statement(
  `SELECT order_key AS orderKey, payment_key AS paymentKey, kind, occurrence, amount_minor AS amountMinor, currency,
     is_assumed AS isAssumed, customer_amount AS customerAmount, customer_currency AS customerCurrency
   FROM ledger WHERE order_key = ANY(@keys::bigint[]) ORDER BY number`,
);
const ALL_HOLDS = statement(
  `SELECT order_key AS orderKey, id, reason FROM hold WHERE order_key = ANY(@keys::bigint[]) AND ended_at_ms IS NULL
   ORDER BY opened_at_ms, length(id), id`,
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
  completeAll,
  /** Orders by their keys, each with its own. */
  async byKeys(tx: Transaction, keys: ReadonlySet<number>): Promise<Map<number, Order>> {
    const rows = keys.size === 0 ? [] : await tx.all<OrderRow>(BY_KEYS, { keys: [...keys] });
    const whole = await completeAll(tx, rows);
    return new Map(rows.map(({ key }, index) => [key, whole[index] as Order]));
  },
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
  const beside = { settlement: settlement ?? null, entries: entries.map(readEntry), holds, link: link ?? null };
  return completeOrder(row, beside, floor);
}

/** As `complete`, of many orders by as many statements as of one. */
async function completeAll(tx: Transaction, rows: readonly OrderRow[]): Promise<Order[]> {
  const keys = rows.map(({ key }) => key);
  const [settlements, entries, holds, links, floor] = await Promise.all([
    tx.all<Of<Settlement>>(SETTLEMENTS, { keys }),
    tx.all<Of<EntryRow>>(ALL_ENTRIES, { keys }),
    tx.all<Of<Hold>>(ALL_HOLDS, { keys }),
    tx.all<Of<OrderLink>>(LINKS, { keys }),
    versionFloor(tx),
  ]);
  const [settlementOf, entriesOf, holdsOf, linkOf] = [
    byOrder(settlements),
    byOrder(entries),
    byOrder(holds),
    byOrder(links),
  ];
  return rows.map((row) => {
    const { key, state } = row;
    const beside = {
      settlement: settlementOf(key)[0] ?? null,
      entries: isOpen(state) ? [] : entriesOf(key).map(readEntry),
      holds: state === 'held' ? holdsOf(key) : [],
      link: linkOf(key)[0] ?? null,
    };
    return completeOrder(row, beside, floor);
  });
}

type Of<Row> = Row & { orderKey: number };

function byOrder<Row>(rows: readonly Of<Row>[]): (orderKey: number) => Row[] {
  const found = new Map<number, Row[]>();
  for (const { orderKey, ...row } of rows) {
    const own = found.get(orderKey) ?? [];
    own.push(row as unknown as Row);
    found.set(orderKey, own);
  }
  return (orderKey) => found.get(orderKey) ?? [];
}
