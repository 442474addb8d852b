import Database from 'better-sqlite3';
import { readSearch } from '../../src/domain/search.ts';
import type { Store } from '../../src/store/contract.ts';
import { connection, finish, SqliteTransaction } from '../../src/store/sqlite/transaction.ts';
import type { Transaction, Work } from '../../src/store/transaction.ts';
import type { RowPage } from '../../src/store/verbs/list_pages.ts';
import { type EventFilter, listVerbs, type RejectionFilter } from '../../src/store/verbs/lists.ts';
import { type NoticeFilter, noticeQueries } from '../../src/store/verbs/notice_lists.ts';
import { listOrders, type OrderFilter } from '../../src/store/verbs/orders_list.ts';
import type { Filling, Many } from './many_matters.ts';

/** Every search and filter of the lists, on a store in which most conditions let more rows through than a few. */

const DAY_MS = 86_400_000;
const FROM_MS = 1_700_000_000_000;

/** Statements that fill a store that `fillingStatements` of many_matters.ts filled, with events, notices and refusals. */
export function fillingLists({ orders }: Many, { bytes }: Filling): string[] {
  return [
    `UPDATE link SET url = 'https://pay.example.com/l/' || key, short_url = 'https://p.example/' || key`,
    `INSERT INTO payment (order_key, payment_key, name_search, email_search, said_at_ms)
     SELECT key, 'pay_' || key, 'ana ' || key, 'ana' || key || '@example.com', ${FROM_MS} FROM orders`,
    ...["'order'", "'' || key", "'ana'", "'n' || key"].map(
      (word) => `INSERT INTO order_word (order_key, word, personal) SELECT key, ${word}, key < 0 FROM orders`,
    ),
    `INSERT INTO reported_payment (order_key, payment_key, currency, amount_minor)
     SELECT key, 'other_' || key, 'BRL', 7777 FROM orders`,
    `INSERT INTO inbox (link_key, event_id, body_sha256, timestamp, mac, type, status, attempt, received_at_ms, due_at_ms,
       ended_at_ms, outcome)
     SELECT key, 'evt_' || key, ${bytes}, '1', ${bytes}, 'payment_link.payment_status_changed',
       CASE WHEN key % 5 = 0 THEN 'dead' WHEN key % 5 = 1 THEN 'pending' WHEN key % 1000 = 2 THEN 'leased' ELSE 'done' END,
       1, ${FROM_MS} + key, ${FROM_MS} + key, ${FROM_MS} + key, 'applied' FROM link ORDER BY key`,
    `INSERT INTO outbox (notice_id, order_key, type, version, body, status, created_at_ms)
     SELECT 'n' || key, key, 'order.paid', 2, '{}',
       CASE WHEN key % 5 = 0 THEN 'dead' WHEN key % 5 = 1 THEN 'pending' WHEN key % 1000 = 2 THEN 'leased' ELSE 'done' END,
       ${FROM_MS} + key FROM orders ORDER BY key`,
    `INSERT INTO rejection (link_key, reason, count, first_at_ms, last_at_ms)
     SELECT key, CASE WHEN key % 100 = 0 THEN 'timestamp_missing' ELSE 'signature_wrong' END, 1, ${FROM_MS}, ${FROM_MS}
     FROM link WHERE key <= ${orders / 2}`,
  ];
}

const SEARCHES = [
  ['a reference', 'order-77'],
  ['the beginning of few references', 'order-39'],
  ['the beginning of all', 'o'],
  ['the id of a link', 'pl_77'],
  ['the address of a link', 'https://pay.example.com/l/77'],
  ['the short address', 'p.example/77'],
  ['the id of a payment', 'pay_77'],
  ['the id of a payment that was not counted', 'other_77'],
  ['an amount that was reported alone', '77,77'],
  ['a later word of a name', 'Souza'],
  ['the id of an event', 'evt_77'],
  ['the number of an event', '77'],
  ['the id of a notice', 'msg_77_n77'],
  ['an amount of few', 'R$ 60,00'],
  ['an amount of all', 'BRL 100'],
  ['the name of a customer', 'Ana 77'],
  ['the e-mail address of a customer', 'ANA77@example.com'],
  ['the beginning of all names', 'ana'],
  ['a word of few', '7777'],
  ['the beginning of words of few', 'n777'],
  ['words of all, and of one', 'ana order n777'],
  ['words of all', 'Ana, order'],
  ['nothing', 'nowhere'],
] as const;

const ORDERS: Readonly<Record<string, OrderFilter>> = {
  none: {},
  ...Object.fromEntries(SEARCHES.map(([what, text]) => [`a search by ${what}`, { search: readSearch(text) }])),
  'a state': { states: ['paid'] },
  'a rare state': { states: ['held'] },
  'several states': { states: ['paid', 'held'] },
  'several rare states': { states: ['held', 'cancelled'] },
  'a flag': { flag: 'refund_due' },
  'a flag of none': { flag: 'late' },
  'less than is asked': { flag: 'underpaid' },
  'more than is asked': { isOverpaid: true },
  'an open hold': { matter: 'hold' },
  'a reason of a hold': { hold: 'amount_mismatch' },
  'an open matter': { matter: 'link_missing' },
  'created since': { sinceMs: FROM_MS + 1_000 },
  'created until': { untilMs: FROM_MS + 1_000 },
  'paid since': { paidSinceMs: FROM_MS + 1_000 },
  'paid in a moment': { paidSinceMs: FROM_MS + 1_000, paidUntilMs: FROM_MS + 1_100 },
  'paid until': { paidUntilMs: FROM_MS + DAY_MS },
  'a currency': { currency: 'BRL' },
  'a currency of none': { currency: 'USD' },
  'a range of amounts': { currency: 'BRL', fromMinor: 1_000, toMinor: 20_000 },
  'a range of none': { currency: 'BRL', toMinor: 1_000 },
  'many conditions': { states: ['paid'], currency: 'BRL', sinceMs: FROM_MS, flag: 'late', search: readSearch('o') },
};

const BY_STATUS = Object.fromEntries(
  (['pending', 'leased', 'done', 'dead'] as const).map((status) => [status, { status }]),
);
const TIMES = { since: { sinceMs: FROM_MS + 1_000 }, until: { untilMs: FROM_MS + 1_000 } };
const EVENTS: Readonly<Record<string, EventFilter>> = {
  none: {},
  ...BY_STATUS,
  ...TIMES,
  'dead of a type': { status: 'dead', type: 'other' },
  'a type': { type: 'other' },
  'an outcome': { outcome: 'held' },
  'an order': { reference: 'order-77', status: 'done' },
};
const NOTICES: Readonly<Record<string, NoticeFilter>> = {
  none: {},
  ...BY_STATUS,
  ...TIMES,
  'dead of a type': { status: 'dead', type: 'order.held' },
  'a type': { type: 'order.held' },
  'an order': { reference: 'order-77', status: 'done' },
};
const REJECTIONS: Readonly<Record<string, RejectionFilter>> = {
  none: {},
  'a reason': { reason: 'signature_wrong' },
  'a rare reason': { reason: 'timestamp_missing' },
  'an order': { reference: 'order-77' },
};

type Lists = Pick<Store, 'listOrders' | 'listEvents' | 'listNotices' | 'listRejections'>;
type Asked = { next: number | null };
type Case = {
  name: string;
  /** The verb in a transaction, and as it is called from outside. */
  list: (tx: Transaction, page: RowPage) => Work<Asked>;
  ask: (store: Lists, page: RowPage) => Promise<Asked>;
};

/** One list with each of its filters. */
function casesOf<Filter>(
  noun: string,
  filters: Readonly<Record<string, Filter>>,
  list: (tx: Transaction, page: RowPage & Filter) => Work<Asked>,
  ask: (store: Lists, page: RowPage & Filter) => Promise<Asked>,
): Case[] {
  return Object.entries(filters).map(([name, filter]) => ({
    name: `${noun}: ${name}`,
    list: (tx, page) => list(tx, { ...page, ...filter }),
    ask: (store, page) => ask(store, { ...page, ...filter }),
  }));
}

/** Every list with each of its filters. */
export const LISTS: readonly Case[] = [
  ...casesOf('orders', ORDERS, listOrders, (store, page) => store.listOrders(page)),
  ...casesOf('events', EVENTS, listVerbs.listEvents, (store, page) => store.listEvents(page)),
  ...casesOf('notices', NOTICES, noticeQueries.listNotices, (store, page) => store.listNotices(page)),
  ...casesOf('rejections', REJECTIONS, listVerbs.listRejections, (store, page) => store.listRejections(page)),
];

/** The tables that no list may read as a whole. */
export const LISTED_TABLES = [
  'orders',
  'link',
  'ledger',
  'settlement',
  'payment',
  'order_word',
  'reported_payment',
  'inbox',
  'outbox',
  'rejection',
  'attention',
  'hold',
];

/** What plans of lists read from end to end: lists of values, tables that a statement makes, and indexes of what is unusual. */
const SQLITE_SCANS_ALLOWED =
  /^SCAN (newest|known|halving|found|json_each|instance|\(subquery-\d+\)|\d+ CONSTANT ROWS?|CONSTANT)\b|INDEX (orders_flagged|hold_by_age|inbox_due|inbox_leased|inbox_dead|outbox_dead)$/;

/** What else the lists of a store of SQLite read from end to end, by its plans: each list, and the page after its first. */
export function scansOfLists(path: string): string[] {
  const statements = new Set<string>();
  const db = new Database(path, { verbose: (sql) => void statements.add(String(sql)) });
  const of = connection(db, { replica: '', newId: () => '' });
  const planOf = (sql: string) => db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[];
  const scans = LISTS.flatMap(({ name, list }) => {
    statements.clear();
    const { next } = finish(list(new SqliteTransaction(of), { limit: 50, isCounted: true }));
    if (next !== null) finish(list(new SqliteTransaction(of), { limit: 50, after: next }));
    const read = [...statements].filter((sql) => /^\s*(SELECT|WITH)/.test(sql));
    return read
      .flatMap(planOf)
      .filter(({ detail }) => detail.startsWith('SCAN') && !SQLITE_SCANS_ALLOWED.test(detail))
      .map(({ detail }) => `${name}: ${detail}`);
  });
  db.close();
  return scans;
}
