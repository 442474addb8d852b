import type { LedgerEntry, Stated } from '../../domain/ledger.ts';
import type { Money } from '../../domain/money.ts';
import {
  type Flag,
  type Hold,
  isOpen,
  type Order,
  type OrderLink,
  type OrderState,
  type Settlement,
} from '../../domain/order.ts';
import type { Customer, KnownDetails } from '../../domain/payment_details.ts';
import { parseJsonText } from '../../json.ts';
import { type Answer, type Statement, statement, type Transaction, type Work } from '../transaction.ts';
import { type Findable, noteFindable } from './customers.ts';
import { DETAIL_COLUMNS, HAS_DETAILS } from './payments.ts';

/**
 * The lock order on PostgreSQL (decision 0021). A verb that changes an order or its rows (links, checks and openings,
 * ledger, holds, notices) locks the order's row before it reads what it decides by. Then come rows of no order:
 * `api_state`, then `attention`. Transactions that lock in another order may deadlock; PostgreSQL then aborts one,
 * which is run again.
 * `catchUp` needs no order: it locks links alone, by their keys. It waits for no order, and an unnecessary check does
 * no harm.
 */
const LOCK_ORDER = statement('SELECT 1 FROM orders WHERE key = @orderKey FOR NO KEY UPDATE');
const LOCK_REFERENCE = statement('SELECT 1 FROM orders WHERE reference = @reference FOR NO KEY UPDATE');
const LOCK_ORDER_OF_LINK = statement(`
  SELECT 1 FROM orders o JOIN link l ON l.order_key = o.key WHERE l.key = @linkKey FOR NO KEY UPDATE OF o`);

const LOCK_ORDER_OF_EVENT = statement(`
  SELECT 1 FROM orders
  WHERE key = (SELECT l.order_key FROM inbox i JOIN link l ON l.key = i.link_key WHERE i.key = @eventKey)
  FOR NO KEY UPDATE`);

export function lockOrder(tx: Transaction, orderKey: number): void {
  tx.lock(LOCK_ORDER, { orderKey });
}

/** Locks the order with this reference, if it exists. */
export function lockReference(tx: Transaction, reference: string): void {
  tx.lock(LOCK_REFERENCE, { reference });
}

/** Locks the order of a link, if the link exists. */
export function lockOrderOfLink(tx: Transaction, linkKey: number): void {
  tx.lock(LOCK_ORDER_OF_LINK, { linkKey });
}

/** Locks the order of an event or a reading. */
export function lockOrderOfEvent(tx: Transaction, eventKey: number): void {
  tx.lock(LOCK_ORDER_OF_EVENT, { eventKey });
}

/**
 * A loaded order and the key of its row. `hasMatters`: whether it has open attention. `hasUnplanned`: whether the
 * schedule of checks of one of its links has ended, or has not begun.
 */
export type LoadedOrder = { orderKey: number; order: Order; hasMatters: boolean; hasUnplanned: boolean };

/** A row of `ORDER`. */
export type OrderRow = {
  key: number;
  reference: string;
  amountMinor: number;
  currency: string;
  state: OrderState;
  flags: string;
  version: number;
  adoptedPaymentId: string | null;
  resolution: 'accept' | 'reject' | null;
  lastReading: number | null;
  createdAtMs: number;
  generation: number;
  hasMatters: boolean;
  hasUnplanned: boolean;
  hasDetails: boolean;
  customerName: string | null;
  customerEmail: string | null;
  /** The shop's request as JSON, if settled opened the order. */
  request: string | null;
  /** Of the newest link that is shown; all null if there is none. */
  shownKey: number | null;
  shownId: string | null;
  shownUrl: string | null;
  shownShortUrl: string | null;
  shownStatus: string | null;
  shownExpiresAtMs: number | null;
};

// A link that settled opened is shown once its address is known, unless it is withheld.
const SHOWN = '(NOT k.opened OR (k.url IS NOT NULL AND k.withheld IS NULL))';

/** Joins to `orders` what `ORDER_COLUMNS` names: the link that is shown, and the customer. */
export const BESIDE_ORDER = `LEFT JOIN link shown ON shown.key =
    (SELECT k.key FROM link k WHERE k.order_key = orders.key AND ${SHOWN} ORDER BY k.key DESC LIMIT 1)
  LEFT JOIN order_customer ON order_customer.order_key = orders.key`;

/** Statements name their columns: PostgreSQL refuses a prepared `*` once a newer replica adds a column. */
export const ORDER_COLUMNS = `orders.key, reference, amount_minor AS amountMinor, currency, state, flags, version,
  adopted_payment_id AS adoptedPaymentId, resolution, last_reading AS lastReading, orders.created_at_ms AS createdAtMs,
  (SELECT generation FROM instance) AS generation,
  EXISTS (SELECT 1 FROM attention a WHERE a.order_key = orders.key AND a.ended_at_ms IS NULL) AS hasMatters,
  EXISTS (SELECT 1 FROM link k WHERE k.order_key = orders.key AND k.next_check_at_ms IS NULL) AS hasUnplanned,
  ${HAS_DETAILS}, (SELECT p.request FROM link k JOIN opening p ON p.link_key = k.key WHERE k.order_key = orders.key
    ORDER BY k.key DESC LIMIT 1) AS request,
  order_customer.name AS customerName, order_customer.email AS customerEmail,
  shown.key AS shownKey, shown.link_id AS shownId, shown.url AS shownUrl, shown.short_url AS shownShortUrl,
  shown.status AS shownStatus, shown.expires_at_ms AS shownExpiresAtMs`;

const ORDER = `SELECT ${ORDER_COLUMNS} FROM orders ${BESIDE_ORDER}`;

const BY_REFERENCE = statement(`${ORDER} WHERE reference = @reference`);
const BY_KEY = statement(`${ORDER} WHERE orders.key = @orderKey`);
const BY_KEYS = statement(`${ORDER} WHERE orders.key = ANY(@keys::bigint[])`);

/** Loads whole orders: row and newest link, settlement, ledger and open holds. */
export const loadOrder = {
  *byReference(tx: Transaction, reference: string): Work<LoadedOrder | null> {
    const row = yield* tx.one<OrderRow>(BY_REFERENCE, { reference });
    return row === undefined ? null : yield* complete(tx, row);
  },
  *byKey(tx: Transaction, orderKey: number): Work<LoadedOrder> {
    const row = (yield* tx.one<OrderRow>(BY_KEY, { orderKey })) as OrderRow;
    return yield* complete(tx, row);
  },
  *byKeys(tx: Transaction, keys: ReadonlySet<number>): Work<Map<number, Order>> {
    const rows = keys.size === 0 ? [] : yield* tx.all<OrderRow>(BY_KEYS, { keys: [...keys] });
    const orders = yield* completeAll(tx, rows);
    return new Map(rows.map(({ key }, index) => [key, orders[index] as Order]));
  },
};

type Beside = { one: Statement; many: Statement };

/** Selects rows that stand beside one order, and beside many. `rest`: further conditions, and the order. */
function beside(table: string, columns: string, rest: string): Beside {
  const rows = `SELECT order_key AS orderKey, ${columns} FROM ${table} WHERE`;
  return {
    one: statement(`${rows} order_key = @key ${rest}`),
    many: statement(`${rows} order_key = ANY(@keys::bigint[]) ${rest}`),
  };
}

const SETTLEMENTS = beside(
  'settlement',
  'paid_at_ms AS paidAtMs, payment_key AS paymentKey, learned_by AS learnedBy',
  '',
);
const ENTRIES = beside(
  'ledger',
  `payment_key AS paymentKey, kind, occurrence, amount_minor AS amountMinor, currency, is_assumed AS isAssumed,
   customer_amount AS customerAmount, customer_currency AS customerCurrency, stated_amount AS statedAmount,
   stated_currency AS statedCurrency`,
  'ORDER BY number',
);
const HOLDS = beside('hold', 'id, reason', 'AND ended_at_ms IS NULL ORDER BY opened_at_ms, length(id), id');
const DETAILS = beside('payment', DETAIL_COLUMNS, 'ORDER BY payment_key');

export function* complete(tx: Transaction, row: OrderRow): Work<LoadedOrder> {
  const [order] = yield* completeAll(tx, [row]);
  const { key: orderKey, hasMatters, hasUnplanned } = row;
  return { orderKey, order: order as Order, hasMatters, hasUnplanned };
}

/** Loads what stands beside the rows of orders: with one statement for each kind, however many orders they are. */
function* completeAll(tx: Transaction, rows: readonly OrderRow[]): Work<Order[]> {
  // Counting or settling money ends the open states, so an open order has no ledger and no settlement.
  const counted = rows.filter(({ state }) => !isOpen(state));
  const held = rows.filter(({ state }) => state === 'held');
  const detailed = rows.filter(({ hasDetails }) => hasDetails);
  const settlements = ask<Settlement>(tx, SETTLEMENTS, counted);
  const entries = ask<EntryRow>(tx, ENTRIES, counted);
  const holds = ask<Hold>(tx, HOLDS, held);
  const details = ask<KnownDetails>(tx, DETAILS, detailed);
  const settlementOf = yield* byOrder(settlements);
  const entriesOf = yield* byOrder(entries);
  const holdsOf = yield* byOrder(holds);
  const detailsOf = yield* byOrder(details);
  return rows.map((row) =>
    assembleOrder(row, {
      settlement: settlementOf(row.key)[0] ?? null,
      entries: entriesOf(row.key).map(readEntry),
      holds: holdsOf(row.key),
      details: detailsOf(row.key),
    }),
  );
}

type Of<Row> = Row & { orderKey: number };

/** Sends a statement at once; its answer is read later. Null if it is about no order. */
function ask<Row>(tx: Transaction, { one, many }: Beside, of: readonly OrderRow[]): Answer<Of<Row>[]> | null {
  const [key, ...others] = of.map((row) => row.key);
  if (key === undefined) return null;
  return others.length === 0 ? tx.all(one, { key }) : tx.all(many, { keys: [key, ...others] });
}

function* byOrder<Row extends object>(answer: Answer<Of<Row>[]> | null): Work<(orderKey: number) => Row[]> {
  if (answer === null) return () => [];
  const found = Map.groupBy(yield* answer, ({ orderKey }) => orderKey);
  return (key) => (found.get(key) ?? []).map(({ orderKey: _, ...row }) => row as unknown as Row);
}

type EntryRow = Omit<LedgerEntry, 'customerPaid' | 'stated'> &
  Record<'customerAmount' | 'customerCurrency' | 'statedAmount' | 'statedCurrency', string | null>;

function readEntry(row: EntryRow): LedgerEntry {
  const { customerAmount, customerCurrency, statedAmount, statedCurrency, ...entry } = row;
  const customerPaid = readStated(customerAmount, customerCurrency);
  return { ...entry, customerPaid, stated: readStated(statedAmount, statedCurrency) };
}

function readStated(amount: string | null, currency: string | null): Stated | null {
  return amount === null || currency === null ? null : { amount, currency };
}

function assembleOrder(row: OrderRow, beside: Pick<Order, 'settlement' | 'entries' | 'holds' | 'details'>): Order {
  return {
    reference: row.reference,
    amount: { amountMinor: row.amountMinor, currency: row.currency },
    ...readContent(row.request),
    customer: readCustomer(row),
    state: row.state,
    flags: row.flags === '' ? [] : (row.flags.split(',') as Flag[]),
    version: Math.max(row.version, versionFloor(row.generation)),
    createdAtMs: row.createdAtMs,
    adoptedPaymentId: row.adoptedPaymentId,
    resolution: row.resolution,
    lastReading: row.lastReading,
    link: readLink(row),
    ...beside,
  };
}

function readLink(row: OrderRow): OrderLink | null {
  const { shownId: id, shownUrl: url, shownShortUrl: shortUrl, shownStatus: status, shownExpiresAtMs } = row;
  return row.shownKey === null ? null : { id, url, shortUrl, status, expiresAtMs: shownExpiresAtMs };
}

/** Reads title and metadata from the shop's request, which is kept as long as the order. */
export function readContent(request: string | null): Pick<Order, 'title' | 'metadata'> {
  if (request === null) return { title: null, metadata: null };
  const { title = null, metadata = null } = parseJsonText(request) as Partial<Pick<Order, 'title' | 'metadata'>>;
  return { title, metadata };
}

function readCustomer({ customerName: name, customerEmail: email }: OrderRow): Customer | null {
  return name === null && email === null ? null : { name, email };
}

/**
 * The lower bound of an order's version: 0, or after a restore a number above all versions given before. A generation
 * is a time in seconds, and no order changes every second between two restores.
 */
function versionFloor(generation: number): number {
  return generation === 1 ? 0 : generation;
}

const INSERT_ORDER = statement(`
  INSERT INTO orders (reference, amount_minor, currency, state, version, created_at_ms, updated_at_ms)
  SELECT @reference, @amountMinor, @currency, 'awaiting_payment',
    1 + CASE WHEN generation = 1 THEN 0 ELSE generation END, @atMs, @atMs FROM instance WHERE true
  ON CONFLICT (reference) DO NOTHING RETURNING key`);

/** Inserts an unpaid order and returns its key. Null if its reference is in use, once that is committed. */
export function* insertOrder(
  tx: Transaction,
  { amount, atMs, ...order }: Findable & { amount: Money; atMs: number },
): Work<number | null> {
  const row = yield* tx.one<{ key: number }>(INSERT_ORDER, { reference: order.reference, ...amount, atMs });
  if (row === undefined) return null;
  noteFindable(tx, row.key, order, atMs);
  return row.key;
}

const NOTE_HISTORY = statement(`
  INSERT INTO history (order_key, at_ms, what, cause_kind, cause_id) VALUES (@orderKey, @atMs, @what, @by, @reason)`);

/** Adds a line to an order's history that is no decision, for example about its link. `reason`: in a person's words. */
export function noteHistory(
  tx: Transaction,
  note: { orderKey: number; atMs: number; what: string; by?: 'person' | 'reading'; reason?: string | null },
): void {
  tx.send(NOTE_HISTORY, { by: 'person', reason: null, ...note });
}
