import { type Answer, type Statement, statement, type Transaction, type Work } from '../transaction.ts';

/**
 * How lists find the rows of a page, under any filter, without reading a whole table.
 * The conditions of a list are one text, in which a null value matches everything. List, count and bulk runs use the
 * same text, so they agree. They differ in how they find rows:
 * - `few`: a condition that few rows match finds their keys by an index, and the other conditions are tested on those
 *   rows
 * - `ordered`: the only condition has an index in the order of keys
 * - `range`: rows are tested from the newest on, a bounded number for each page
 */

/** A page of a list, newest first. `after`: the `next` of the previous page; null or absent to begin. */
export type RowPage = { limit: number; after?: number | null; isCounted?: boolean };

/**
 * `next` is null on the last page. A page may have fewer rows than requested although more follow: settled examines a
 * bounded number of rows for each page.
 */
export type Listed<Row> = { rows: Row[]; next: number | null; count: Count | null };

/**
 * The number of rows that match a filter. `isMore`: there are more than `n` or, if `n` is below 1 000, there may be,
 * because settled counts a bounded number of rows.
 */
export type Count = { n: number; isMore: boolean };

/** Lists run from the newest key down. This key is above them all. */
export const KEY_MAX = Number.MAX_SAFE_INTEGER;

/** A condition that more rows match is broad. */
export const FEW = 2_000;
/** The limit if several conditions find keys together. */
const FEW_OF_EACH = 5 * FEW;

/** The most keys that one statement tests: on columns of their own rows, or on other tables, which is far slower. */
const WINDOW = { own: 15_000, others: 4_000 };
/** The most statements to find a page, or to count. */
const WINDOWS = 3;

const COUNTED_MAX = 1_000;

/** A way to find keys: `page` finds those of a page, `count` counts them up to a limit. */
type Way = { page: Statement; count: Statement };

type Table = 'orders' | 'inbox' | 'outbox' | 'rejection';

/** The statements of a list. */
export type List = {
  few: Way;
  range: Way;
  ordered: Readonly<Record<string, Way>>;
  /** The first key, and the one after the last, that a filter's times may match. */
  bounds: Statement;
};

/** Finds the keys of the rows that match one condition; null if they are more than `FEW`. */
export type Finder = (tx: Transaction) => Work<number[] | null>;

/** A list's filter: the values of its conditions, and the finders that may find its rows. */
export type Narrowed = {
  values: object;
  finders: readonly Finder[];
  /** The name of a way in `ordered` that finds rows in the order of their keys; null if these conditions have none. */
  ordered: string | null;
  /** Whether a condition tests rows of other tables. */
  looksElsewhere?: boolean;
};

/** The SQL parts of a list. `ordered`: by name, a source and a condition whose index is in the order of keys. */
type Words = {
  table: Table;
  alias: string;
  matches: string;
  ordered?: Readonly<Record<string, { from: string; condition: string }>>;
};

export function defineList({ table, alias, matches, ordered = {} }: Words): List {
  const key = `${alias}.key`;
  const way = (from: string, condition: string, order = key): Way => {
    const text = `SELECT ${key} FROM ${from} WHERE ${condition} AND ${matches} ORDER BY ${order} DESC LIMIT @limit`;
    return { page: statement(text), count: statement(`SELECT count(*) AS n FROM (${text}) AS found`) };
  };
  const all = `${table} ${alias}`;
  const named = Object.entries(ordered).map(([name, { from, condition }]) => {
    return [name, way(from, `${key} < @before AND ${condition}`)] as const;
  });
  return {
    // `+ 0` keeps both engines from walking all rows in the order of their keys.
    few: way(all, `${key} = ANY(@keys::bigint[]) AND ${key} + 0 < @before`, `${key} + 0`),
    range: way(all, `${key} >= @floor AND ${key} < @before`),
    ordered: Object.fromEntries(named),
    bounds: boundsOf(table),
  };
}

/** How to find the rows of a filtered list. */
type Found = { way: Way; keys: readonly number[]; first: number; end: number; isWhole: boolean; window: number };

type Bounds = { firstKey: number; endKey: number };
type Page = { keys: number[]; next: number | null; count: Count | null };

/** The keys of a page, newest first. */
export function* readKeys(tx: Transaction, list: List, narrowed: Narrowed, page: RowPage): Work<Page> {
  const found = yield* findWay(tx, list, narrowed);
  const before = Math.min(page.after ?? KEY_MAX, found.end);
  const counting = page.isCounted ? countRows(tx, found, narrowed) : null;
  const { keys, next } = yield* pageOf(tx, found, { narrowed, before, limit: page.limit });
  return { keys, next, count: counting === null ? null : yield* counting };
}

/** Every key that matches a filter, newest first, at most `limit`. Tests all rows if it must. */
export function* readAllKeys(tx: Transaction, list: List, narrowed: Narrowed, limit: number): Work<number[]> {
  const found = yield* findWay(tx, list, narrowed);
  const keys: number[] = [];
  for (let before: number | null = found.end; before !== null && keys.length < limit; ) {
    const page: { keys: number[]; next: number | null } = yield* pageOf(tx, found, {
      narrowed,
      before,
      limit: limit - keys.length,
    });
    keys.push(...page.keys);
    before = page.next;
  }
  return keys;
}

/** Chooses how to find the rows of a filtered list. */
function* findWay(tx: Transaction, list: List, narrowed: Narrowed): Work<Found> {
  const { values, finders, ordered, looksElsewhere = false } = narrowed;
  const whole = { first: 1, end: KEY_MAX, isWhole: true, window: KEY_MAX };
  if (ordered !== null) return { way: list.ordered[ordered] as Way, keys: [], ...whole };
  for (const find of finders) {
    const keys = yield* find(tx);
    if (keys !== null) return { way: list.few, keys, ...whole };
  }
  const { firstKey: first, endKey: end } = (yield* tx.one<Bounds>(list.bounds, values)) as Bounds;
  const window = looksElsewhere ? WINDOW.others : WINDOW.own;
  return { way: list.range, keys: [], first, end, isWhole: false, window };
}

type Asked = { narrowed: Narrowed; before: number; limit: number };

function* pageOf(tx: Transaction, found: Found, { narrowed, before, limit }: Asked) {
  const keys: number[] = [];
  for (const window of windowsOf(found, before)) {
    const asked = { ...narrowed.values, keys: found.keys, ...window, limit: limit + 1 - keys.length };
    const rows = yield* tx.all<{ key: number }>(found.way.page, asked);
    keys.push(...rows.map(({ key }) => key));
    if (keys.length > limit) return { keys: keys.slice(0, limit), next: keys[limit - 1] as number };
    if (window.floor <= found.first) return { keys, next: null };
    before = window.floor;
  }
  return { keys, next: before > found.first ? before : null };
}

function* countRows(tx: Transaction, found: Found, narrowed: Narrowed): Work<Count> {
  let n = 0;
  let floor = found.end;
  for (const window of windowsOf(found, found.end)) {
    const asked = { ...narrowed.values, keys: found.keys, ...window, limit: COUNTED_MAX + 1 - n };
    n += (yield* tx.one<{ n: number }>(found.way.count, asked))?.n ?? 0;
    if (n > COUNTED_MAX) return { n: COUNTED_MAX, isMore: true };
    ({ floor } = window);
  }
  return { n, isMore: floor > found.first };
}

/** Ranges of keys, newest first, to test one after the other. */
function windowsOf({ first, isWhole, window }: Found, before: number): { floor: number; before: number }[] {
  if (isWhole) return [{ floor: first, before }];
  const windows: { floor: number; before: number }[] = [];
  for (let end = before; end > first && windows.length < WINDOWS; end -= window) {
    windows.push({ floor: Math.max(first, end - window), before: end });
  }
  return windows;
}

/** Makes a finder of a statement. `few`: the number of keys at which the statement stops. */
export function finder(find: Statement, values: object): Finder {
  return function* (tx) {
    return fewOf(yield* findKeys(tx, find, values));
  };
}

/** Finds what any of several finders finds. Null if one of them is broad, or all together are. */
export function finderOfEach(finders: readonly Finder[]): Finder {
  return function* (tx) {
    const all = new Set<number>();
    for (const find of finders) {
      const keys = yield* find(tx);
      if (keys === null) return null;
      for (const key of keys) all.add(key);
      if (all.size > FEW_OF_EACH) return null;
    }
    return [...all];
  };
}

export function findKeys(tx: Transaction, find: Statement, values: object): Answer<{ key: number }[]> {
  return tx.all<{ key: number }>(find, { ...values, few: FEW + 1 });
}

export function fewOf(rows: readonly { key: number }[]): number[] | null {
  return rows.length > FEW ? null : [...new Set(rows.map(({ key }) => key))];
}

/** A list of rows within a time misses no row if the clock was set back by at most this. */
const CLOCK_STEP_MS = 3_600_000;

const TIME_COLUMN = { inbox: 'received_at_ms', outbox: 'created_at_ms', orders: 'created_at_ms' };

/** The condition that rows came within a time. Null matches everything. */
export function inTime(table: keyof typeof TIME_COLUMN, alias: string): string {
  const column = `${alias}.${TIME_COLUMN[table]}`;
  return `(@sinceMs::bigint IS NULL OR ${column} >= @sinceMs) AND (@untilMs::bigint IS NULL OR ${column} <= @untilMs)`;
}

function boundsOf(table: Table): Statement {
  const newest = `coalesce((SELECT max(key) FROM ${table}), 0) + 1`;
  if (table === 'rejection') return statement(`SELECT 1 AS firstKey, ${newest} AS endKey`);
  // Rows from this key on came after `@untilMs`, even if the clock was set back.
  const after = `(@untilMs::bigint + ${2 * CLOCK_STEP_MS + 1})`;
  return statement(`
    SELECT CASE WHEN @sinceMs::bigint IS NULL THEN 1 ELSE ${firstKeySince(table, '@sinceMs')} END AS firstKey,
      CASE WHEN @untilMs::bigint IS NULL THEN ${newest} ELSE least(${firstKeySince(table, after)}, ${newest}) END AS endKey`);
}

/**
 * An expression for a key below which every row is older than a time. Keys grow with time, so a binary search finds it
 * without an index; `step` starts at 2^40, more than the rows of any table.
 */
function firstKeySince(table: keyof typeof TIME_COLUMN, sinceMs: string): string {
  return `(WITH RECURSIVE halving (first, step) AS (
      SELECT 1::bigint, 1099511627776
      UNION ALL
      SELECT first + CASE WHEN (SELECT ${TIME_COLUMN[table]} < ${sinceMs}::bigint - ${CLOCK_STEP_MS} FROM ${table}
          WHERE key >= first + step - 1 ORDER BY key LIMIT 1) THEN step ELSE 0 END, step / 2
      FROM halving WHERE step > 0
    ) SELECT max(first) FROM halving)`;
}
