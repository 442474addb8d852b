import type { MatterKind } from '../../domain/matter.ts';
import type { Flag, HoldReason, Order, OrderState } from '../../domain/order.ts';
import type { Search } from '../../domain/search.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';
import {
  defineList,
  type Finder,
  finder,
  finderOfEach,
  inTime,
  KEY_MAX,
  type Listed,
  type Narrowed,
  type RowPage,
  readKeys,
} from './list_pages.ts';
import { FOUND, findOrders, NOT_SEARCHED } from './order_search.ts';
import { loadOrder } from './orders.ts';

export type OrderFilter = {
  states?: readonly OrderState[] | null;
  flag?: Flag | null;
  /** Orders with more captured money left, in their currency, than they ask for. */
  isOverpaid?: boolean;
  /** Orders with an open matter of this kind; for `hold`, those with an open hold. */
  matter?: MatterKind | null;
  /** Orders with an open hold for this reason. */
  hold?: HoldReason | null;
  /** Created within this time. */
  sinceMs?: number | null;
  untilMs?: number | null;
  paidSinceMs?: number | null;
  paidUntilMs?: number | null;
  /** The amount that they ask for, in minor units of the currency; both bounds are inclusive. */
  currency?: string | null;
  fromMinor?: number | null;
  toMinor?: number | null;
  search?: Search | null;
};

export type ListedOrder = {
  key: number;
  value: Order;
  /** The kinds of its open attention. */
  attention: string[];
};

// Scalar subqueries instead of EXISTS: behind an OR, PostgreSQL may build a table of all rows of an EXISTS.
const PAID_AT = '(SELECT s.paid_at_ms FROM settlement s WHERE s.order_key = o.key)';
const OPEN_HOLD = `(SELECT 1 FROM hold h WHERE h.order_key = o.key AND h.ended_at_ms IS NULL
  AND (@hold::text IS NULL OR h.reason = @hold) LIMIT 1)`;
const OPEN_MATTER = `(SELECT 1 FROM attention a INDEXED BY attention_by_order WHERE a.order_key = o.key AND a.kind = @matter AND a.ended_at_ms IS NULL
  LIMIT 1)`;
const OWN_BALANCE = `coalesce((SELECT sum(g.amount_minor) FROM ledger g
  WHERE g.order_key = o.key AND g.currency = o.currency), 0)`;

const MATCHES = `(@states::text[] IS NULL OR o.state = ANY(@states::text[]))
  AND (@flag::text IS NULL OR ',' || o.flags || ',' LIKE '%,' || @flag || ',%')
  AND (NOT @isUnderpaid::boolean OR (o.state = 'paid' AND ${OWN_BALANCE} < o.amount_minor))
  AND (NOT @isOverpaid::boolean OR ${OWN_BALANCE} > o.amount_minor)
  AND (NOT @isOnHold::boolean OR ${OPEN_HOLD} IS NOT NULL)
  AND (@matter::text IS NULL OR ${OPEN_MATTER} IS NOT NULL)
  AND (@paidSinceMs::bigint IS NULL OR ${PAID_AT} >= @paidSinceMs)
  AND (@paidUntilMs::bigint IS NULL OR ${PAID_AT} <= @paidUntilMs)
  AND (@currency::text IS NULL OR o.currency = @currency)
  AND (@fromMinor::bigint IS NULL OR o.amount_minor >= @fromMinor)
  AND (@toMinor::bigint IS NULL OR o.amount_minor <= @toMinor)
  AND ${inTime('orders', 'o')} AND ${FOUND}`;

export const ORDER_LIST = defineList({
  table: 'orders',
  alias: 'o',
  matches: MATCHES,
  ordered: { state: { from: 'orders o', condition: 'o.state = @state' } },
});

const OPEN_KINDS = statement(`
  SELECT order_key AS orderKey, kind FROM attention WHERE order_key = ANY(@keys::bigint[]) AND ended_at_ms IS NULL
  ORDER BY key`);

export function* listOrders(tx: Transaction, page: RowPage & OrderFilter): Work<Listed<ListedOrder>> {
  const { keys, ...more } = yield* readKeys(tx, ORDER_LIST, yield* narrowOrders(tx, page), page);
  if (keys.length === 0) return { rows: [], ...more };
  const kinds = tx.all<{ orderKey: number; kind: string }>(OPEN_KINDS, { keys });
  const orders = yield* loadOrder.byKeys(tx, new Set(keys));
  const kindsOf = Map.groupBy(yield* kinds, ({ orderKey }) => orderKey);
  const rows = keys.map((key) => {
    return { key, value: orders.get(key) as Order, attention: (kindsOf.get(key) ?? []).map(({ kind }) => kind) };
  });
  return { rows, ...more };
}

/** Narrows the list of orders to a filter. */
export function* narrowOrders(tx: Transaction, filter: OrderFilter): Work<Narrowed> {
  const { flag = null, isOverpaid = false, matter = null, hold = null, search = null } = filter;
  const { sinceMs = null, untilMs = null, paidSinceMs = null, paidUntilMs = null } = filter;
  const { currency = null, fromMinor = null, toMinor = null } = filter;
  const times = { sinceMs, untilMs, paidSinceMs, paidUntilMs };
  const money = { currency, fromMinor, toMinor };
  const found = search === null ? null : yield* findOrders(tx, search);
  const states = [...new Set(filter.states)];
  const [state = null, ...otherStates] = states;
  const values = {
    states: state === null ? null : states,
    state,
    // `underpaid` is not stored: it follows from the ledger.
    flag: flag === 'underpaid' ? null : flag,
    isUnderpaid: flag === 'underpaid',
    isOverpaid,
    hold,
    isOnHold: hold !== null || matter === 'hold',
    matter: matter === 'hold' ? null : matter,
    ...times,
    ...money,
    ...(found?.values ?? NOT_SEARCHED),
  };
  const others = [flag, matter, hold, search, ...Object.values(times), ...Object.values(money)];
  const isOneState =
    state !== null && !isOverpaid && otherStates.length === 0 && others.every((value) => value === null);
  const finders = [...(found?.finders ?? []), ...findersOf(values)];
  const { isUnderpaid, isOnHold, wordsFrom, isWorded } = values;
  const isOfOthers =
    isUnderpaid || isOverpaid || isOnHold || values.matter !== null || paidSinceMs !== null || paidUntilMs !== null;
  const looksElsewhere = isOfOthers || wordsFrom !== null || isWorded;
  return { values, finders, ordered: isOneState ? 'state' : null, looksElsewhere };
}

// Ordered like an index: PostgreSQL would read the whole table if it expected most rows to match.
const ON_HOLD = statement(`
  SELECT order_key AS key FROM hold WHERE ended_at_ms IS NULL AND (@hold::text IS NULL OR reason = @hold)
  ORDER BY opened_at_ms, order_key, id LIMIT @few`);
const WITH_MATTER = statement(`
  SELECT order_key AS key FROM attention WHERE kind = @matter AND ended_at_ms IS NULL AND order_key IS NOT NULL
  ORDER BY opened_at_ms, key LIMIT @few`);
const FLAGGED = statement(`
  SELECT key FROM orders WHERE flags <> '' AND ',' || flags || ',' LIKE '%,' || @flag || ',%'
  ORDER BY flags, key LIMIT @few`);
const ASKING = statement(`
  SELECT key FROM orders WHERE currency = @currency AND amount_minor >= @fromMinor AND amount_minor <= @toMinor
  ORDER BY amount_minor, key LIMIT @few`);
const PAID = statement(`
  SELECT order_key AS key FROM settlement WHERE paid_at_ms >= @sinceMs AND paid_at_ms <= @untilMs
  ORDER BY paid_at_ms LIMIT @few`);
const IN_STATE = statement('SELECT key FROM orders WHERE state = @state ORDER BY key DESC LIMIT @few');

type Values = Record<'flag' | 'hold' | 'matter' | 'currency', string | null> &
  Record<'paidSinceMs' | 'paidUntilMs' | 'fromMinor' | 'toMinor', number | null> & {
    states: readonly string[] | null;
    isOnHold: boolean;
  };

/** The finders of the conditions in use, usually the most selective first. */
function findersOf({ states, flag, hold, isOnHold, matter, ...values }: Values): Finder[] {
  const { paidSinceMs, paidUntilMs, currency, fromMinor, toMinor } = values;
  const money = { currency, fromMinor: fromMinor ?? 0, toMinor: toMinor ?? KEY_MAX };
  const paid = { sinceMs: paidSinceMs ?? 0, untilMs: paidUntilMs ?? KEY_MAX };
  return [
    ...(matter === null ? [] : [finder(WITH_MATTER, { matter })]),
    ...(isOnHold ? [finder(ON_HOLD, { hold })] : []),
    ...(flag === null ? [] : [finder(FLAGGED, { flag })]),
    ...(currency === null ? [] : [finder(ASKING, money)]),
    ...(paidSinceMs === null && paidUntilMs === null ? [] : [finder(PAID, paid)]),
    ...(states === null ? [] : [finderOfEach(states.map((state) => finder(IN_STATE, { state })))]),
  ];
}
