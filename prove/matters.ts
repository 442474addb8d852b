import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import Database from 'better-sqlite3';
import pg from 'pg';
import type { Store } from '../src/store/contract.ts';
import type { MatterPage } from '../src/store/contract_queries.ts';
import { openPostgresStore } from '../src/store/postgres/store.ts';
import { openSqliteStore } from '../src/store/sqlite/client.ts';
import { systemClock } from '../src/work/clock.ts';
import { fillingStatements, type Many } from '../test/support/many_matters.ts';
import { startPostgres } from '../test/support/postgres.ts';

/** `npm run prove:matters`: how long the list of what needs a person takes on a large store, on both engines. */

const HELP = `npm run prove:matters -- [options]

  --orders N    orders in the store (1000000)
  --matters N   open matters (10000)
  --rounds N    repetitions of each question (40)
`;

/** The longest median of a question's rounds. */
const ANSWER_MS_MAX = 100;

const QUESTIONS: Readonly<Record<string, Partial<MatterPage>>> = {
  'the first page': {},
  'the question of doctor': { limit: 0 },
  'due refunds': { kind: 'refund_due' },
  'of cancelled orders': { state: 'cancelled' },
};

const OPENED = {
  secretsKeyId: 'key-1',
  newInstanceId: 'prove',
  clock: systemClock,
  callTimeoutMs: 60_000,
  onBatch: () => {},
} as const;

async function measure(engine: string, store: Store, rounds: number): Promise<boolean> {
  let isProved = true;
  const { rows } = await store.listMatters(asking({ limit: 1_000 }));
  const questions = { ...QUESTIONS, 'a page in the middle': { after: rows.at(-1) ?? null } };
  for (const [name, page] of Object.entries(questions)) {
    const times: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const startedMs = performance.now();
      await store.listMatters(asking(page));
      times.push(performance.now() - startedMs);
    }
    const [first = 0] = times;
    times.sort((a, b) => a - b);
    const median = times[Math.floor(times.length / 2)] ?? 0;
    const shown = [median, times.at(-1) ?? 0, first].map((ms) => `${ms.toFixed(1).padStart(7)} ms`);
    process.stdout.write(`${engine.padEnd(10)}  ${name.padEnd(22)} ${shown.join(' ')}\n`);
    isProved &&= median <= ANSWER_MS_MAX;
  }
  return isProved;
}

function asking(page: Partial<MatterPage>): MatterPage {
  return { limit: 51, after: null, kind: null, state: null, ...page };
}

async function onSqlite(many: Many, rounds: number): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'settled-matters-'));
  const path = join(folder, 'settled.db');
  const open = () => openSqliteStore({ ...OPENED, path, onFailed: () => {} });
  try {
    await (await open()).store.close();
    const db = new Database(path);
    const series = (n: number) =>
      `(WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ${n}) SELECT n FROM c)`;
    db.pragma('synchronous = OFF');
    for (const sql of fillingStatements(many, { series, bytes: "x'00'" })) db.exec(sql);
    db.close();
    const { store } = await open();
    const isProved = await measure('SQLite', store, rounds);
    await store.close();
    return isProved;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function onPostgres(many: Many, rounds: number): Promise<boolean> {
  const server = await startPostgres();
  try {
    const url = await server.create('matters');
    const name = 'the database of the proof';
    const settings = () => ({});
    const replica = randomUUID();
    const options = { ...OPENED, url, name, replica, version: '0', settings, newId: randomUUID, random: Math.random };
    await (await openPostgresStore(options)).store.close();
    const client = new pg.Client(url);
    await client.connect();
    const series = (n: number) => `(SELECT generate_series(1, ${n}) AS n)`;
    await client.query('ALTER TABLE orders ALTER COLUMN key DROP IDENTITY');
    await client.query('ALTER TABLE link ALTER COLUMN key DROP IDENTITY');
    for (const sql of fillingStatements(many, { series, bytes: "'x'::bytea" })) await client.query(sql);
    await client.query('VACUUM ANALYZE');
    await client.end();
    const { store } = await openPostgresStore({ ...options, replica: randomUUID() });
    const isProved = await measure('PostgreSQL', store, rounds);
    await store.close();
    return isProved;
  } finally {
    await server.dispose();
  }
}

const { values } = parseArgs({
  options: {
    orders: { type: 'string', default: '1000000' },
    matters: { type: 'string', default: '10000' },
    rounds: { type: 'string', default: '40' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) process.stdout.write(HELP);
else {
  const matters = Number(values.matters);
  const many = { orders: Number(values.orders), matters, ended: 10 * matters };
  const rounds = Number(values.rounds);
  process.stdout.write(`${many.orders} orders, ${matters} open matters; median, slowest and first of ${rounds}\n`);
  const proved = [await onSqlite(many, rounds), await onPostgres(many, rounds)];
  const isProved = proved.every((one) => one);
  process.stdout.write(isProved ? `proved: every median is at most ${ANSWER_MS_MAX} ms\n` : 'NOT proved\n');
  process.exitCode = isProved ? 0 : 1;
}
