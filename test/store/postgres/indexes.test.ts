import { expect, it, onTestFinished } from 'vitest';
import { readSearch } from '../../../src/domain/search.ts';
import type { Store } from '../../../src/store/contract.ts';
import { readMigrations } from '../../../src/store/migrate.ts';
import { startTestApp } from '../../support/app.ts';
import { paymentEvent } from '../../support/deliveries.ts';
import { fillingLists } from '../../support/many_lists.ts';
import { fillingStatements, POSTGRES_FILLING } from '../../support/many_matters.ts';
import { eventuallyAfter } from '../../support/timing.ts';
import { runIn } from './contract_store.ts';
import { connectTo, databaseBefore, newDatabase, openTestPostgres, openUntilEnd } from './opening.ts';

const eventually = eventuallyAfter('servers of PostgreSQL start, stop and are asked again');

const LATE = readMigrations('postgres').flatMap(({ sql }) =>
  [...sql.matchAll(/CREATE INDEX CONCURRENTLY (\w+)/g)].map(([, name]) => String(name)),
);

/** Under which replicas take turns. */
const TURN = 0x1d8;

/** A database of the release before, with its orders. */
async function oldDatabase(): Promise<string> {
  const url = await databaseBefore(14);
  // Orders alone are soon written, and counted as those are that have more.
  const others = `INSERT INTO orders (key, reference, amount_minor, currency, state, created_at_ms, updated_at_ms)
    SELECT n, 'order-' || n, 10000, 'BRL', 'paid', 1, 1 FROM generate_series(2001, 100000) AS n`;
  await fill(url, [...fillingStatements({ orders: 2_000, matters: 400, ended: 400 }, POSTGRES_FILLING), others]);
  return url;
}

/** Fills a database, whose orders and links get keys after those. */
async function fill(url: string, filling: readonly string[]): Promise<void> {
  const keyed = filling.map((sql) => sql.replace(/\)\s+SELECT n,/, ') OVERRIDING SYSTEM VALUE SELECT n,'));
  const next = ['orders', 'link'].map((table) => {
    return `SELECT setval(pg_get_serial_sequence('${table}', 'key'), (SELECT max(key) FROM ${table}))`;
  });
  await runIn(url, [...keyed, ...next].join(';\n'));
}

/** What lists say that use the indexes, as keys of orders. */
async function listed(store: Store): Promise<unknown[]> {
  const texts = ['order-77', 'order-999', 'evt_77', 'pay_77', 'R$ 60,00', 'https://pay.example.com/l/77'];
  const filters = [...texts.map((text) => ({ search: readSearch(text) })), { flag: 'refund_due' } as const];
  const found: unknown[] = [];
  for (const filter of filters) {
    const { rows, count } = await store.listOrders({ limit: 50, isCounted: true, ...filter });
    found.push([rows.map(({ key }) => key), count]);
  }
  return found;
}

it('an old store takes deliveries at once, and has its indexes soon', async () => {
  const url = await oldDatabase();
  const site = await startTestApp({
    environment: { SETTLED_STORE: url, SETTLED_SECRETS_KEY: Buffer.alloc(32, 7).toString('base64') },
    engine: 'sqlite',
  });
  const link = await site.reserve('new-1');
  expect((await site.deliver(link, paymentEvent({ linkId: 'pl_new', amount: '100.00' }))).status).toBe(200);
  await eventually(async () => {
    const { body } = await site.api('/v1/admin/doctor?probe=false');
    expect(body.checks).toContainEqual({ name: 'indexes', status: 'ok', detail: 'all indexes are there' });
  });
  // As many as these are counted in the background.
  const counted = async () => {
    const { orders } = (await site.api('/v1/stats')).body.stats;
    return Object.values<number>(orders).reduce((sum, n) => sum + n);
  };
  expect(await counted()).toBe(100_001);
});

it('one replica builds what is missing, and until then lists answer the same', async () => {
  const url = await newDatabase();
  const many = { orders: 2_000, matters: 400, ended: 400 };
  await fill(url, [...fillingStatements(many, POSTGRES_FILLING), ...fillingLists(many, POSTGRES_FILLING)]);
  await runIn(url, `DROP INDEX ${LATE.join(', ')}`);
  const turn = await connectTo(url);
  await turn.query('SELECT pg_advisory_lock($1)', [TURN]);
  const [one, two] = await Promise.all([openTestPostgres(url), openTestPostgres(url)]);
  onTestFinished(async () => void (await Promise.all([one.store.close(), two.store.close()])));
  const { signal } = new AbortController();
  expect(await one.store.buildIndexes({ signal })).toEqual({ built: [], missing: LATE });
  expect((await two.store.storeState(0)).indexesMissing).toEqual(LATE);
  const before = await listed(one.store);
  expect(before).toContainEqual([[77], { n: 1, isMore: false }]);
  await turn.query('SELECT pg_advisory_unlock($1)', [TURN]);
  const both = await Promise.all([one.store.buildIndexes({ signal }), two.store.buildIndexes({ signal })]);
  expect(both.flatMap(({ built }) => built)).toEqual(LATE);
  expect((await two.store.storeState(0)).indexesMissing).toEqual([]);
  expect(await listed(two.store)).toEqual(before);
});

it('an index that a crash left is built again, and a process that stops waits for none', async () => {
  const url = await newDatabase();
  await runIn(url, "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'inbox_by_event'::regclass");
  const { store } = await openUntilEnd(url);
  const writer = await connectTo(url);
  await writer.query('BEGIN; LOCK TABLE inbox IN ROW EXCLUSIVE MODE');
  const stopping = new AbortController();
  const stopped = expect(store.buildIndexes({ signal: stopping.signal })).rejects.toThrow();
  // What a transaction sees of activity stays the same until its end.
  const watcher = await connectTo(url);
  await eventually(async () => {
    const waiting = "state = 'active' AND wait_event_type = 'Lock' AND query LIKE 'DROP INDEX%'";
    const { rows } = await watcher.query(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND ${waiting}`,
    );
    expect(rows).toHaveLength(1);
  });
  stopping.abort();
  await stopped;
  await writer.query('ROLLBACK');
  await eventually(async () => {
    await store.buildIndexes({ signal: new AbortController().signal });
    expect((await store.storeState(0)).indexesMissing).toEqual([]);
  });
});
