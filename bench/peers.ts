import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { some } from '../prove/harness/proof.ts';
import { askOnce } from '../test/support/cluster.ts';
import { AMOUNT_MINOR, CURRENCY } from './deliveries.ts';
import { enoughFor, type Figures, inRounds, planOf, type RunOptions, sustained } from './measure.ts';
import { type MeasuredPostgres, moveInto, startMeasuredPostgres, startOnPostgres } from './postgres.ts';
import { assertRedisIsThere, type Fresh, startRedis } from './redis.ts';
import { atLeast, CPU, type Found, figuresTable, LAG, P50, P99, perSecond, RATE, ratio, usual } from './report.ts';
import { compare } from './run.ts';
import { type Server, startReceiver, startSettled, withServer } from './servers.ts';
import { registerLinks, TEXTBOOK_SCHEMA } from './stores.ts';

/**
 * `npm run bench:peers`: the whole job by settled, and by a textbook receiver on the queues that people would take. What
 * each does is in docs/bench.md.
 */

const NAMES = ['settled-sqlite', 'bullmq', 'settled-postgres', 'pg-boss', 'graphile-worker'] as const;
type Name = (typeof NAMES)[number];

/** PostgreSQL learns of new rows in a minute otherwise, and plans as for empty tables until then. */
const SETTINGS = { autovacuum_naptime: '1s' };

async function runPeers(names: readonly Name[], run: RunOptions): Promise<Found> {
  if (names.includes('bullmq')) assertRedisIsThere();
  if (names.some((name) => !name.startsWith('settled'))) installPeers();
  const { workspace, measureWith, onProgress } = run;
  const range = { from: 0, count: enoughFor(run) };
  onProgress(`signing ${range.count} deliveries and registering their links`);
  const plan = planOf(run, range);
  registerLinks(workspace.path('template.db'), range);
  const moved = workspace.freshCopy('template.db', 'moved.db');
  const templates = {
    settled: (url: string) => moveInto(url, moved),
    textbook: (url: string) => makeTextbookDatabase(url, range.count),
  };
  const needsPostgres = names.some((name) => name !== 'settled-sqlite' && name !== 'bullmq');
  const postgres = needsPostgres ? await startMeasuredPostgres(templates, { settings: SETTINGS }) : null;

  const makeFresh = async (name: Name): Promise<Fresh> => {
    if (name === 'bullmq') return startRedis(workspace, range.count);
    if (name === 'settled-sqlite') return freshFile(workspace.freshCopy('template.db', 'settled.db'));
    return freshDatabase(postgres as MeasuredPostgres, name === 'settled-postgres' ? 'settled' : 'textbook');
  };
  const start = (name: Name, address: string): Promise<Server> => {
    if (name === 'settled-sqlite') return startSettled(workspace.log, address);
    if (name === 'settled-postgres') return startOnPostgres(workspace.log, address);
    return startReceiver(workspace.log, './peers/receiver.mjs', [name, address, String(range.count)]);
  };
  const measure = async (name: Name): Promise<Figures> => {
    const { address, cpuSeconds: storeCpuSeconds, count, dispose } = await makeFresh(name);
    try {
      return await withServer(start(name, address), async (server) => {
        const warmCredentials = name.startsWith('settled');
        const figures = await sustained({ ...server, storeCpuSeconds }, { ...plan, warmCredentials });
        const recorded = (await server.progress?.())?.recorded;
        const { paid, notices } = await count();
        // Each delivery is of another order.
        if (Number(paid) === recorded && Number(notices) === recorded) return figures;
        throw new Error(`${recorded} were recorded, ${paid} orders are paid, and ${notices} notices written`);
      });
    } finally {
      await dispose();
    }
  };

  try {
    return foundIn(await inRounds(run, names, (name) => measureWith(() => measure(name))));
  } finally {
    await postgres?.dispose();
  }
}

const FOLDER = fileURLToPath(new URL('./peers/', import.meta.url));

/** They are no dependency of settled, and have a lockfile of their own. */
function installPeers(): void {
  if (existsSync(`${FOLDER}node_modules`)) return;
  process.stderr.write('installing BullMQ, pg-boss and graphile-worker into bench/peers/node_modules\n');
  if (spawnSync('npm', ['ci'], { cwd: FOLDER, stdio: ['ignore', 2, 2] }).status !== 0) {
    throw new Error('they were not installed: run `npm ci` in bench/peers');
  }
}

/** The textbook's schema in PostgreSQL's words, with an order for each link. */
async function makeTextbookDatabase(url: string, links: number): Promise<void> {
  const schema = TEXTBOOK_SCHEMA.replaceAll(' STRICT', '')
    .replaceAll('INTEGER PRIMARY KEY', 'BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY')
    .replaceAll('INTEGER', 'BIGINT')
    .replaceAll('BLOB', 'BYTEA');
  const orders = `INSERT INTO orders (reference, amount_minor, currency)
    SELECT 'order-' || n, ${AMOUNT_MINOR}, '${CURRENCY}' FROM generate_series(0, ${links - 1}) n`;
  await askOnce(url, `${schema};${orders}`);
}

const COUNT = `SELECT (SELECT count(*) FROM orders WHERE state = 'paid') AS paid,
  (SELECT count(*) FROM outbox WHERE type = 'order.paid') AS notices`;

function freshFile(address: string): Fresh {
  const db = new Database(address, { readonly: true });
  const count = async () => db.prepare(COUNT).get() as Awaited<ReturnType<Fresh['count']>>;
  return { address, cpuSeconds: () => 0, count, dispose: async () => void db.close() };
}

async function freshDatabase(postgres: MeasuredPostgres, template: string): Promise<Fresh> {
  const address = await postgres.freshDatabase(template);
  const count = async () => (await askOnce(address, COUNT)).rows[0];
  return { address, cpuSeconds: () => postgres.cpuSeconds().primary, count, dispose: async () => {} };
}

function foundIn(rounds: Readonly<Record<Name, Figures[]>>): Found {
  const columns = [RATE, P50, P99, CPU, usual('store µs', 'storeMicros', 0), LAG];
  const title = 'Acknowledged durably, paid once, the notice written; medians of the rounds';
  const { 'settled-sqlite': onSqlite, 'settled-postgres': onPostgres, bullmq } = rounds;
  return {
    part: 'peers',
    tables: [figuresTable(title, columns, rounds)],
    verdicts: [
      atLeast('settled on SQLite ÷ BullMQ', ratio(onSqlite, bullmq, perSecond), 4.5),
      atLeast('settled on PostgreSQL ÷ pg-boss', ratio(onPostgres, rounds['pg-boss'], perSecond), 6),
      atLeast('settled on PostgreSQL ÷ graphile-worker', ratio(onPostgres, rounds['graphile-worker'], perSecond), 10),
    ],
    rounds,
    measured: Object.values(rounds).flat(),
  };
}

const OPTIONS = { only: some('NAME', `${NAMES.join(', ')}; may be repeated`, NAMES) };

await compare('bench:peers', OPTIONS, async ({ only }, run) => [await runPeers(only, run)]);
