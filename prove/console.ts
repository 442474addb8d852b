import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import Database from 'better-sqlite3';
import pg from 'pg';
import type { Store } from '../src/store/contract.ts';
import { openPostgresStore } from '../src/store/postgres/store.ts';
import { openSqliteStore } from '../src/store/sqlite/client.ts';
import { systemClock } from '../src/work/clock.ts';
import { fillingLists, LISTED_TABLES, LISTS } from '../test/support/many_lists.ts';
import { fillingStatements, type Many } from '../test/support/many_matters.ts';
import { startPostgres } from '../test/support/postgres.ts';

/** `npm run prove:console`: how long each list, filter and search takes on a large store, on both engines. */

const HELP = `npm run prove:console -- [options]

  --orders N      orders in the store, with as many events and notices (1000000)
  --rounds N      repetitions of each list (50)
  --only ENGINE   sqlite or postgres
  --lists TEXT    only lists whose names hold the text
`;

/** The slowest answer but for one in a hundred, of a page with its count. */
const P99_MS_MAX = 200;
/** All lists of all pages may grow the heap by this. */
const GROWTH_MB_MAX = 64;
const PAGES = 1_000;

const OPENED = {
  secretsKeyId: 'key-1',
  newInstanceId: 'prove',
  clock: systemClock,
  callTimeoutMs: 60_000,
  onBatch: () => {},
} as const;

type Asked = { rounds: number; lists: string };

async function measure(engine: string, store: Store, { rounds, lists }: Asked): Promise<boolean> {
  const slow: string[] = [];
  for (const { name, ask } of LISTS.filter((one) => one.name.includes(lists))) {
    const times: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const startedMs = performance.now();
      await ask(store, { limit: 50, isCounted: true });
      times.push(performance.now() - startedMs);
    }
    const [first = 0] = times;
    times.sort((a, b) => a - b);
    const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
    const shown = [at(0.5), at(0.99), first].map((ms) => `${ms.toFixed(1).padStart(7)} ms`);
    process.stdout.write(`${engine.padEnd(10)}  ${name.padEnd(48)} ${shown.join(' ')}\n`);
    if (at(0.99) > P99_MS_MAX) slow.push(name);
  }
  if (slow.length > 0) process.stdout.write(`${engine}: slower than ${P99_MS_MAX} ms: ${slow.join('; ')}\n`);
  return (await isFlat(engine, store)) && slow.length === 0;
}

/** Reads many pages one after the other, as a CSV does, and looks at the heap. */
async function isFlat(engine: string, store: Store): Promise<boolean> {
  const heap = () => process.memoryUsage().heapUsed / 2 ** 20;
  const before = heap();
  const startedMs = performance.now();
  let rows = 0;
  let peak = before;
  let after: number | null = null;
  for (let n = 0; n < PAGES; n++) {
    const page: { rows: unknown[]; next: number | null } = await store.listOrders({ limit: 200, after });
    rows += page.rows.length;
    peak = Math.max(peak, heap());
    after = page.next;
    if (after === null) break;
  }
  const seconds = (performance.now() - startedMs) / 1000;
  const grown = peak - before;
  process.stdout.write(
    `${engine}: ${rows} orders page by page in ${seconds.toFixed(1)} s; heap +${grown.toFixed(0)} MB\n`,
  );
  return grown <= GROWTH_MB_MAX;
}

async function onSqlite(many: Many, asked: Asked): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'settled-console-'));
  const path = join(folder, 'settled.db');
  const open = () => openSqliteStore({ ...OPENED, path, onFailed: () => {} });
  try {
    await (await open()).store.close();
    const db = new Database(path);
    const series = (n: number) =>
      `(WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ${n}) SELECT n FROM c)`;
    const bytes = "x'00'";
    db.pragma('synchronous = OFF');
    for (const sql of [...fillingStatements(many, { series, bytes }), ...fillingLists({ ...many, bytes })])
      db.exec(sql);
    db.close();
    const { store } = await open();
    const isProved = await measure('SQLite', store, asked);
    await store.close();
    return isProved;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function onPostgres(many: Many, asked: Asked): Promise<boolean> {
  const server = await startPostgres();
  try {
    const url = await server.create('console');
    const name = 'the database of the proof';
    const settings = () => ({});
    const replica = randomUUID();
    const options = { ...OPENED, url, name, replica, version: '0', settings, newId: randomUUID, random: Math.random };
    await (await openPostgresStore(options)).store.close();
    const client = new pg.Client(url);
    await client.connect();
    const series = (n: number) => `(SELECT generate_series(1, ${n}) AS n)`;
    const bytes = "'x'::bytea";
    await client.query('ALTER TABLE orders ALTER COLUMN key DROP IDENTITY');
    await client.query('ALTER TABLE link ALTER COLUMN key DROP IDENTITY');
    for (const sql of [...fillingStatements(many, { series, bytes }), ...fillingLists({ ...many, bytes })]) {
      await client.query(sql);
    }
    await client.query('VACUUM ANALYZE');
    const before = await rowsScanned(client);
    const { store } = await openPostgresStore({ ...options, replica: randomUUID() });
    const isProved = await measure('PostgreSQL', store, asked);
    await store.close();
    const after = await rowsScanned(client);
    await client.end();
    const scanned = [...after].map(([table, rows]) => [table, rows - (before.get(table) ?? 0)] as const);
    const whole = scanned.filter(([table, rows]) => LISTED_TABLES.includes(table) && rows >= many.orders);
    process.stdout.write(
      `PostgreSQL: rows of tables that were read from end to end: ${scanned.map((one) => one.join(' ')).join(', ')}\n`,
    );
    return isProved && whole.length === 0;
  } finally {
    await server.dispose();
  }
}

/** How many rows the server has read by scans of whole tables, by table. It counts within a second. */
async function rowsScanned(client: pg.Client): Promise<Map<string, number>> {
  await wait(2_000);
  const { rows } = await client.query('SELECT relname, seq_tup_read FROM pg_stat_user_tables WHERE seq_tup_read > 0');
  return new Map(rows.map(({ relname, seq_tup_read }) => [String(relname), Number(seq_tup_read)]));
}

const { values } = parseArgs({
  options: {
    orders: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '50' },
    only: { type: 'string', default: '' },
    lists: { type: 'string', default: '' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) process.stdout.write(HELP);
else {
  const many = { orders: Number(values.orders), matters: 20_000, ended: 100_000 };
  const asked = { rounds: Number(values.rounds), lists: values.lists };
  process.stdout.write(`${many.orders} orders; a page of 50 and its count: median, p99 and first of ${asked.rounds}\n`);
  const proved: boolean[] = [];
  if (values.only !== 'postgres') proved.push(await onSqlite(many, asked));
  if (values.only !== 'sqlite') proved.push(await onPostgres(many, asked));
  const isProved = proved.every((one) => one);
  process.stdout.write(isProved ? `proved: every p99 is at most ${P99_MS_MAX} ms\n` : 'NOT proved\n');
  process.exitCode = isProved ? 0 : 1;
}
