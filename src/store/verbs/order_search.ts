import {
  afterPrefix,
  minorsAnywhere,
  minorsOf,
  type Search,
  type SearchedAmount,
  WORDS_ASKED_MAX,
  type WordRange,
} from '../../domain/search.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';
import { FEW, type Finder, fewOf, findKeys } from './list_pages.ts';

/** Finds the orders that a person means by a text that may be several things. */

/**
 * Ids from the service have no order. An index of all of them would write another page for each delivery, and doubled
 * its cost. These indexes are grouped by 1 024 consecutive rows, whose pages are written anyway. A search looks into
 * every group: for a million rows 1 000 groups, which takes some milliseconds.
 */
const GROUP = '>> 10';
const groupsOf = (table: string, key: string) =>
  `WITH RECURSIVE newest (n) AS (
    SELECT coalesce((SELECT max(${key}) FROM ${table}), 0) ${GROUP} UNION ALL SELECT n - 1 FROM newest WHERE n > 0)`;

/** Statements that find keys of orders by exact text. For a further kind of text, add its statement. */
const EXACT = [
  'SELECT key FROM orders WHERE reference = @text LIMIT @few',
  'SELECT order_key AS key FROM link WHERE link_id = @text LIMIT @few',
  'SELECT order_key AS key FROM link WHERE url = ANY(@addresses::text[]) LIMIT @few',
  'SELECT order_key AS key FROM link WHERE short_url = ANY(@addresses::text[]) LIMIT @few',
  `${groupsOf('ledger', 'order_key')} SELECT g.order_key AS key FROM newest CROSS JOIN ledger g
   WHERE (g.order_key ${GROUP}) = newest.n AND g.payment_key = @text LIMIT @few`,
  'SELECT order_key AS key FROM reported_payment WHERE payment_key = @text LIMIT @few',
  `${groupsOf('inbox', 'key')} SELECT l.order_key AS key FROM newest CROSS JOIN inbox i JOIN link l ON l.key = i.link_key
   WHERE (i.key ${GROUP}) = newest.n AND i.event_id = @text LIMIT @few`,
  'SELECT l.order_key AS key FROM inbox i JOIN link l ON l.key = i.link_key WHERE i.key = @eventKey LIMIT @few',
  'SELECT order_key AS key FROM outbox WHERE key = @noticeKey AND notice_id = @noticeRandom LIMIT @few',
].map(statement);

const inReference = (column: string) =>
  `${column} COLLATE "C" >= @prefix::text AND ${column} COLLATE "C" < @prefixEnd::text`;
const BEGINNING = statement(
  `SELECT key FROM orders WHERE ${inReference('reference')} ORDER BY reference COLLATE "C" LIMIT @few`,
);

// Customers have no order either, so their names are indexed in groups too.
const beginning = (column: string) => `p.${column} >= @wordsFrom::text AND p.${column} < @wordsTo::text`;
const CUSTOMERS = ['name_search', 'email_search'].map((column) =>
  statement(`
    ${groupsOf('payment', 'order_key')} SELECT p.order_key AS key FROM newest CROSS JOIN payment p
    WHERE (p.order_key ${GROUP}) = newest.n AND ${beginning(column)} LIMIT @few`),
);
/** No index has the later words of names. settled searches for them in this many orders, the newest. */
const NAMES_READ = 65_536;
// The inner limit tells PostgreSQL that these are few, which the comparison with a maximum does not.
const INSIDE_NAME = statement(`
  SELECT order_key AS key FROM (
    SELECT order_key, name_search FROM payment WHERE order_key > (SELECT max(order_key) FROM payment) - ${NAMES_READ}
    ORDER BY order_key DESC LIMIT ${NAMES_READ}) AS known
  WHERE name_search LIKE @inside ESCAPE '!' ORDER BY order_key DESC LIMIT @few`);
const CUSTOMER = `(SELECT 1 FROM payment p WHERE p.order_key = o.key
  AND (${beginning('name_search')} OR ${beginning('email_search')}) LIMIT 1)`;

// The words of orders as well.
const inWord = (from: string, to: string) => `w.word >= @${from}::text AND w.word < @${to}::text`;
const WITH_WORD = statement(`
  ${groupsOf('orders', 'key')} SELECT w.order_key AS key FROM newest CROSS JOIN order_word w
  WHERE (w.order_key ${GROUP}) = newest.n AND ${inWord('from', 'to')} LIMIT @few`);
const OF_THESE_WITH_WORD = statement(`
  SELECT w.order_key AS key FROM order_word w WHERE w.order_key = ANY(@keys::bigint[]) AND ${inWord('from', 'to')}`);
const WORD_NUMBERS = Array.from({ length: WORDS_ASKED_MAX }, (_, n) => n);
const WORDS = WORD_NUMBERS.map(
  (n) => `(@word${n}From::text IS NULL OR (SELECT 1 FROM order_word w
    WHERE w.order_key = o.key AND ${inWord(`word${n}From`, `word${n}To`)} LIMIT 1) IS NOT NULL)`,
).join(' AND ');

/** The condition of a broad search, for rows that are tested one by one. */
export const FOUND = `(NOT @isSearched::boolean OR o.key = ANY(@found::bigint[]) OR (${inReference('o.reference')})
  OR o.currency || ' ' || o.amount_minor::text = ANY(@sums::text[])
  OR (@wordsFrom::text IS NOT NULL AND ${CUSTOMER} IS NOT NULL)
  OR (@isWorded::boolean AND ${WORDS}))`;

/** The values for a list without a search, or whose search found few keys. */
export const NOT_SEARCHED = {
  isSearched: false,
  found: [] as readonly number[],
  prefix: null as string | null,
  prefixEnd: null as string | null,
  wordsFrom: null as string | null,
  wordsTo: null as string | null,
  sums: [] as readonly string[],
  isWorded: false,
  ...wordValues([]),
};

type Searched = { values: typeof NOT_SEARCHED; finders: readonly Finder[] };

/** Finds orders by everything that a text may mean. A part with too many matches becomes a condition. */
export function* findOrders(tx: Transaction, search: Search): Work<Searched> {
  const named = yield* findNamed(tx, search);
  const { text: prefix } = search;
  const prefixEnd = afterPrefix(prefix);
  const beginning = yield* findBeginning(tx, search);
  const customers = yield* findCustomers(tx, search);
  const amount = search.amount === null ? NO_AMOUNT : yield* findAmount(tx, search.amount);
  const worded = yield* findByWords(tx, search.parts);
  const keys = [...new Set([...named, ...(beginning ?? []), ...(customers ?? []), ...amount.keys, ...(worded ?? [])])];
  // Thousands of references with this beginning would bury what was found exactly.
  const isBroad = beginning === null && named.length === 0;
  const isWordBroad = worded === null && named.length + amount.keys.length + amount.sums.length === 0;
  const found: Finder = function* () {
    return keys;
  };
  if (!isBroad && customers !== null && amount.sums.length === 0 && !isWordBroad)
    return { values: NOT_SEARCHED, finders: [found] };
  const values = {
    ...NOT_SEARCHED,
    ...{ isSearched: true, found: keys, sums: amount.sums, isWorded: isWordBroad },
    ...(isBroad ? { prefix, prefixEnd } : {}),
    ...(customers === null ? wordsOf(search) : {}),
    ...wordValues(isWordBroad ? search.parts : []),
  };
  return { values, finders: [] };
}

/** `word0From`, `word0To`, `word1From` and so on; null: no such word. */
function wordValues(parts: readonly WordRange[]): Record<string, string | null> {
  const valuesOf = (n: number) => [
    [`word${n}From`, parts[n]?.from ?? null],
    [`word${n}To`, parts[n]?.to ?? null],
  ];
  return Object.fromEntries(WORD_NUMBERS.flatMap(valuesOf));
}

function wordsOf({ words }: Search) {
  return { wordsFrom: words, wordsTo: afterPrefix(words) };
}

/** Orders whose reference begins with the text as typed or, if none does, in another case. Null if they are many. */
function* findBeginning(tx: Transaction, { text, cases }: Search): Work<number[] | null> {
  for (const prefix of [text, ...cases]) {
    const prefixEnd = afterPrefix(prefix);
    const found = prefixEnd === null ? [] : fewOf(yield* findKeys(tx, BEGINNING, { prefix, prefixEnd }));
    if (found === null || found.length > 0) return found;
  }
  return [];
}

/** Orders of customers whose name, a later word of it, or e-mail address begins with the words. Null if too many. */
function* findCustomers(tx: Transaction, search: Search): Work<number[] | null> {
  const asked = wordsOf(search);
  if (asked.wordsTo === null) return [];
  const answers = CUSTOMERS.map((find) => findKeys(tx, find, asked));
  const found: { key: number }[] = [];
  for (const answer of answers) found.push(...(yield* answer));
  const keys = fewOf(found);
  if (keys === null || !search.isName) return keys;
  const inside = `% ${search.words.replace(/[!%_]/g, '!$&')}%`;
  const others = yield* tx.all<{ key: number }>(INSIDE_NAME, { inside, few: FEW });
  return [...keys, ...others.map(({ key }) => key)];
}

/**
 * Orders that have every word, or one that begins with it. If too many have, those that have every word whole. Null if
 * these are too many as well, or none.
 */
function* findByWords(tx: Transaction, parts: readonly WordRange[]): Work<number[] | null> {
  if (parts.length === 0) return [];
  const found = yield* findAllOf(tx, parts);
  if (found !== null) return found;
  const whole = yield* findAllOf(
    tx,
    parts.map((part) => ({ ...part, to: part.whole })),
  );
  return whole === null || whole.length === 0 ? null : whole;
}

/** The first word that few orders have finds them; the other words are tested on those. Null if there is no such word. */
function* findAllOf(tx: Transaction, parts: readonly WordRange[]): Work<number[] | null> {
  for (const part of parts) {
    const first = fewOf(yield* findKeys(tx, WITH_WORD, part));
    if (first === null) continue;
    let keys: number[] = first;
    for (const other of parts.filter((one) => one !== part)) {
      const both: { key: number }[] = yield* tx.all(OF_THESE_WITH_WORD, { ...other, keys });
      keys = [...new Set(both.map(({ key }) => key))];
    }
    return keys;
  }
  return null;
}

function* findNamed(tx: Transaction, search: Search): Work<number[]> {
  const { text, addresses, eventKey, notice } = search;
  const values = { text, addresses, eventKey, noticeKey: notice?.key ?? null, noticeRandom: notice?.random ?? null };
  const answers = EXACT.map((find) => findKeys(tx, find, values));
  const found: number[] = [];
  for (const answer of answers) found.push(...(yield* answer).map(({ key }) => key));
  return [...new Set(found)];
}

// The currencies of all orders, each found by one step in the index.
const CURRENCIES = statement(`
  WITH RECURSIVE known (currency) AS (
    SELECT min(currency) FROM orders
    UNION ALL
    SELECT (SELECT min(o.currency) FROM orders o WHERE o.currency > known.currency) FROM known
    WHERE known.currency IS NOT NULL
  ) SELECT currency FROM known WHERE currency IS NOT NULL LIMIT 20`);
const ASKING = statement(`
  SELECT key FROM orders WHERE currency = @currency AND amount_minor = @minor ORDER BY key DESC LIMIT @few`);
// Most entries equal what their order asks for, so the index has only the others.
const CAPTURED = statement(`
  SELECT order_key AS key, currency, amount_minor AS amountMinor FROM ledger
  WHERE amount_minor = @minor AND kind = 'captured' AND is_asked IS NOT TRUE
  ORDER BY order_key DESC LIMIT @few`);

const REPORTED = statement(`
  SELECT order_key AS key, currency, amount_minor AS amountMinor FROM reported_payment WHERE amount_minor = @minor
  ORDER BY order_key DESC LIMIT @few`);

type Amount = { keys: readonly number[]; sums: readonly string[] };
type NamedMoney = { key: number; currency: string; amountMinor: number };

const NO_AMOUNT: Amount = { keys: [], sums: [] };

/**
 * Finds orders that ask for an amount, or that have a captured or reported payment of it; of payments, only the newest.
 * `sums`: amounts with currencies, if more than a few orders ask for them.
 */
function* findAmount(tx: Transaction, amount: SearchedAmount): Work<Amount> {
  const named = minorsAnywhere(amount).flatMap((minor) =>
    [CAPTURED, REPORTED].map((find) => tx.all<NamedMoney>(find, { minor, few: FEW })),
  );
  const currencies = yield* tx.all<{ currency: string }>(CURRENCIES);
  const keys: number[] = [];
  const sums: string[] = [];
  for (const { currency } of currencies) {
    for (const minor of minorsOf(amount, currency)) {
      const few = fewOf(yield* findKeys(tx, ASKING, { currency, minor }));
      if (few === null) sums.push(`${currency} ${minor}`);
      else keys.push(...few);
    }
  }
  for (const answer of named) {
    const meant = (yield* answer).filter((money) => minorsOf(amount, money.currency).includes(money.amountMinor));
    keys.push(...meant.map(({ key }) => key));
  }
  return { keys, sums };
}
