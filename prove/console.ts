import { get } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { type SettledServer, signIn, startSettled, withServer } from '../bench/servers.ts';
import { openWorkspace } from '../bench/workspace.ts';
import type { MatterPage } from '../src/store/verbs/attention_list.ts';
import { askOnce } from '../test/support/cluster.ts';
import { fillingLists, LISTED_TABLES, LISTS, scansOfLists } from '../test/support/many_lists.ts';
import { fillingStatements, type Many } from '../test/support/many_matters.ts';
import { ENGINES, type Engine, type FilledStore, proveQuestions, tooSlow, withFilledStore } from './filled_stores.ts';
import { command, say, some, text, whole } from './harness/proof.ts';

/** `npm run prove:console`: how long each list and each page takes on a large store, on both engines, and in which memory. */

const OPTIONS = {
  orders: whole('orders in the store, with as many events and notices', 1_000_000),
  matters: whole('open matters', 10_000),
  rounds: whole('repetitions of each list and page', 50),
  only: some('ENGINE', 'sqlite or postgres', ENGINES),
  lists: text('TEXT', 'only lists and pages whose names hold the text', ''),
};

/** The slowest answer but for one in a hundred, of a page with its count. */
const P99_MS_MAX = 200;
const TIMED = { share: 0.99, msMax: P99_MS_MAX, isFirstOne: true } as const;
/** The median of a question about what needs a person. */
const MEDIAN_MS_MAX = 100;
const MATTERS: Readonly<Record<string, Partial<MatterPage>>> = {
  'the first page': {},
  'the question of doctor': { limit: 0 },
  'due refunds': { kind: 'refund_due' },
  'of cancelled orders': { state: 'cancelled' },
};
/** A page that was loaded again sooner would be made of the same documents. */
const FORGOTTEN_AFTER_MS = 600;
const FIRST_PAGE_BYTES_MAX = 40_000;
/** Loads of pages: the server's memory after all is compared with that after the first. */
const LOADS = { first: 100, all: 1_000 };
const GROWTH_MIB_MAX = 32;

/** All but doctor's, which sends requests and counts what it finds anew. */
const PAGES: readonly string[] = [
  '/',
  '/attention',
  '/orders',
  '/orders?q=ana%2077',
  '/orders?q=order-',
  '/orders?flag=underpaid',
  '/orders?attention=hold',
  '/orders/order-77',
  '/events/77',
  '/notices/msg_77_n77',
  '/deliveries',
  '/deliveries?status=dead',
  '/deliveries/rejections',
  '/deliveries/stale',
  '/bulk',
  '/shop',
  '/service',
  '/service/readings',
  '/service/drift',
  '/audit',
  '/audit/verification',
  '/system',
  '/system/people',
];

type Asked = { many: Many; rounds: number; named: string };

/** What is wrong of an engine, in words. */
async function proveEngine(filled: FilledStore, asked: Asked): Promise<string[]> {
  const wrong = await proveMatters(filled, asked);
  const counted = await scansOf(filled, asked.many);
  wrong.push(...(await proveLists(filled, asked)));
  await putOffWork(filled);
  const log = openWorkspace().log;
  const settings = { SETTLED_STORE: filled.address };
  wrong.push(
    ...(await withServer(startSettled(log, '', settings), (server) => provePages(filled.engine, server, asked))),
  );
  return [...wrong, ...(await counted())];
}

async function proveLists(filled: FilledStore, asked: Asked): Promise<string[]> {
  return proveQuestions(filled, asked, (store) =>
    LISTS.map(({ name, ask }) => ({ ...TIMED, name, ask: () => ask(store, { limit: 50, isCounted: true }) })),
  );
}

async function proveMatters(filled: FilledStore, asked: Asked): Promise<string[]> {
  return proveQuestions(filled, asked, async (store) => {
    const list = (page: Partial<MatterPage>) =>
      store.listMatters({ limit: 51, after: null, kind: null, state: null, ...page });
    const after = (await list({ limit: 1_000 })).rows.at(-1) ?? null;
    const pages = Object.entries({ ...MATTERS, 'a page in the middle': { after } });
    const timed = { share: 0.5, msMax: MEDIAN_MS_MAX, isFirstOne: true };
    return pages.map(([name, page]) => ({ ...timed, name: `matters: ${name}`, ask: () => list(page) }));
  });
}

async function provePages(engine: Engine, server: SettledServer, { rounds, named }: Asked): Promise<string[]> {
  const { operator } = server;
  const cookie = await signIn(operator);
  const load = (path: string) => loadPage(operator.url + path, cookie);
  const paths = PAGES.filter((path) => `page ${path}`.includes(named));
  if (paths.length === 0) return [];
  const pages = paths.map((path) => ({ ...TIMED, isFirstOne: false, name: `page ${path}`, ask: () => load(path) }));
  const wrong = await tooSlow(engine, pages, rounds, FORGOTTEN_AFTER_MS);
  const bytes = await load('/');
  say(`${engine}: the first page has ${bytes} bytes compressed`);
  if (bytes > FIRST_PAGE_BYTES_MAX) wrong.push(`the first page has more than ${FIRST_PAGE_BYTES_MAX} bytes`);
  const memory: Memory[] = [];
  for (let n = 0; n <= LOADS.all; n++) {
    if (n === LOADS.first || n === LOADS.all) memory.push(await memoryOf(server));
    await load(paths[n % paths.length] as string);
  }
  const [before, after] = memory as [Memory, Memory];
  const grown = after.rssMiB - before.rssMiB;
  const words = ({ heapMiB, rssMiB }: Memory) => `${rssMiB.toFixed(0)} MiB (heap ${heapMiB.toFixed(0)})`;
  const said = `${words(before)} after ${LOADS.first} loads of pages, ${words(after)} after ${LOADS.all}`;
  say(`${engine}: ${said}`);
  if (grown > GROWTH_MIB_MAX) wrong.push(`memory grew: ${said}`);
  return wrong;
}

type Memory = { heapMiB: number; rssMiB: number };

/** What the server holds: its objects, and the bytes beside them. */
async function memoryOf({ operator: { url, token }, rssMiB }: SettledServer): Promise<Memory> {
  const text = await (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text();
  const bytes = (name: string) => Number(new RegExp(`^${name} (\\S+)`, 'm').exec(text)?.[1]);
  const held = bytes('nodejs_heap_size_used_bytes') + bytes('nodejs_external_memory_bytes');
  return { heapMiB: held / 2 ** 20, rssMiB: rssMiB() };
}

/** Loads a page as a browser does; returns the bytes of its body as they travelled. */
function loadPage(url: string, cookie: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const asking = get(url, { headers: { cookie, accept: 'text/html', 'accept-encoding': 'gzip' } }, (answer) => {
    let bytes = 0;
    answer.on('data', (chunk: Buffer) => (bytes += chunk.length));
    answer.on('end', () =>
      answer.statusCode === 200 ? resolve(bytes) : reject(new Error(`${url} answers ${answer.statusCode}`)),
    );
  });
  asking.on('error', reject);
  return promise;
}

/** What is due later than this is made due at the start: a clock that was ahead may have delayed it. */
const PUT_OFF_MS = 100 * 60_000;

/** What waits to be settled would be worked at meanwhile: it has no bytes. */
async function putOffWork({ engine, address }: FilledStore): Promise<void> {
  const putOff = (status: string) =>
    `UPDATE inbox SET status = 'pending', due_at_ms = ${Date.now() + PUT_OFF_MS} WHERE status = '${status}'`;
  const later = `${putOff('pending')}; ${putOff('leased')}`;
  if (engine === 'sqlite') {
    const db = new Database(address.slice('sqlite:'.length));
    db.exec(later);
    db.close();
    return;
  }
  // A scan of its own would count as one of a page. Each status has an index.
  await askOnce(address, `SET enable_seqscan = off; ${later}`);
  await askOnce(address, 'VACUUM ANALYZE inbox');
}

/** What pages show as the last count is counted in the background, by reading its whole table so often at most. */
const COUNTED_A_MINUTE: Record<string, number> = { orders: 2, rejection: 2, link: 1 };

/** Looks for tables that are read from end to end: of SQLite by the plans of lists, of PostgreSQL by what it has counted. */
async function scansOf(filled: FilledStore, many: Many): Promise<() => Promise<string[]>> {
  if (filled.engine === 'sqlite') return async () => scansOfLists(filled.address.slice('sqlite:'.length));
  const before = await rowsScanned(filled.address);
  const sinceMs = performance.now();
  return async () => {
    const after = await rowsScanned(filled.address);
    const scanned = [...after].map(([table, rows]) => [table, rows - (before.get(table) ?? 0)] as const);
    const minutes = (performance.now() - sinceMs) / 60_000;
    const whole = scanned.filter(([table, rows]) => {
      const counted = ((COUNTED_A_MINUTE[table] ?? 0) * minutes + 1) * many.orders;
      return LISTED_TABLES.includes(table) && rows >= many.orders / 2 + (table in COUNTED_A_MINUTE ? counted : 0);
    });
    return whole.map(([table, rows]) => `${rows} rows of ${table} were read by scans of the whole table`);
  };
}

/** How many rows the server has read by scans of whole tables, by table. It counts within a second. */
async function rowsScanned(url: string): Promise<Map<string, number>> {
  await wait(2_000);
  const { rows } = await askOnce(url, 'SELECT relname, seq_tup_read FROM pg_stat_user_tables WHERE seq_tup_read > 0');
  return new Map(rows.map(({ relname, seq_tup_read }) => [String(relname), Number(seq_tup_read)]));
}

await command('prove:console', OPTIONS, async ({ orders, matters, rounds, only: engines, lists: named }) => {
  const many: Many = { orders, matters, ended: 10 * matters };
  const asked: Asked = { many, rounds, named };
  say(`${orders} orders; lists with their counts, and pages: median, p99, first of ${rounds}`);
  const wrong: string[] = [];
  for (const engine of engines) {
    const found = await withFilledStore(
      engine,
      (filling) => [...fillingStatements(many, filling), ...fillingLists(many, filling)],
      (filled) => proveEngine(filled, asked),
    );
    wrong.push(...found.map((one) => `${engine}: ${one}`));
  }
  const flat = PAGES.some((path) => `page ${path}`.includes(named)) ? ', memory stays flat' : '';
  say(
    `must be: every p99 at most ${P99_MS_MAX} ms (of matters the median ${MEDIAN_MS_MAX} ms), no list reads a table as a whole${flat}`,
  );
  return wrong;
});
