import { statSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import Database from 'better-sqlite3';
import { fixed, median, table } from '../prove/harness/proof.ts';
import { askOnce } from '../test/support/cluster.ts';
import { enoughFor, type Figures, inRounds, planOf, type RunOptions, sustained } from './measure.ts';
import { multiplyDatabase, multiplyFile, type Seed } from './multiply.ts';
import { moveInto, startMeasuredPostgres, startOnPostgres } from './postgres.ts';
import { atMost, CPU, type Found, figuresTable, LAG, P99, RATE, ratio, usual } from './report.ts';
import { type SettledServer, signIn, startSettled, withServer } from './servers.ts';
import { endNotices, fillStore, registerLinks } from './stores.ts';

type FilledOptions = RunOptions & {
  engine: 'sqlite' | 'postgres';
  /** Settled events in the fullest store. Another has a tenth. */
  events: number;
};

/** The orders that are really settled, and then copied. */
const SETTLED = 1_000;
const FILL_FROM = 100_000_000;
const LATER_MS = 30 * 24 * 3_600_000;
/** More than a server settles in a second here: each round of a store delivers to links of its own. */
const PER_SECOND_MAX = 5_000;

/** A store under measurement. */
type Filled = { start: () => Promise<SettledServer>; bytes: () => Promise<number>; cpuSeconds: () => number };

/** Measures deliveries until they are settled on an empty store and on filled ones in turns, and then what else grows. */
export async function runFilled(options: FilledOptions): Promise<Found> {
  const { workspace, engine, events, rounds: count, measureWith, onProgress } = options;
  const perRound = enoughFor(options, PER_SECOND_MAX);
  const seed = { settled: SETTLED, open: perRound * count };
  onProgress('settling a few orders, and registering links');
  makeSeed(workspace.path('seed.db'), seed);
  const sizes: Sizes = [0, Math.round(events / 10), events].map((size) => [`${size} events`, size]);
  const opened = await { sqlite: openFiles, postgres: openDatabases }[engine](options, seed, sizes);
  try {
    const names = sizes.map(([name]): string => name);
    const done = new Map<string, number>();
    const rounds = await inRounds(options, names, (name) => {
      const from = (done.get(name) ?? 0) * perRound;
      done.set(name, (done.get(name) ?? 0) + 1);
      const { start, cpuSeconds: storeCpuSeconds } = opened.of(name);
      return measureWith(() =>
        withServer(start(), (server) =>
          sustained({ ...server, storeCpuSeconds }, planOf(options, { from, count: perRound })),
        ),
      );
    });
    const rows: string[][] = [];
    for (const name of names) rows.push([name, ...(await lookAt(opened.of(name), engine, onProgress))]);
    const [empty, , filled] = names.map((name) => rounds[name]);
    const cost = ({ cpuMicros, storeMicros }: Figures) => cpuMicros + storeMicros;
    const head = ['', 'GiB', 'start s', 'backup s', ...Object.keys(PAGES).map((page) => `${page} ms`)];
    return {
      part: 'filled',
      tables: [
        figuresTable('Sustained, in turns', [RATE, P99, CPU, usual('store µs', 'storeMicros', 0), LAG], rounds),
        table('The same stores', head, rows),
      ],
      verdicts: [atMost('filled: CPU per delivery ÷ empty', ratio(filled, empty, cost), 1.15)],
      rounds,
      measured: Object.values(rounds).flat(),
    };
  } finally {
    await opened.dispose();
  }
}

/** A few orders that were settled and told, and links that deliveries are to pay. Nothing waits to be asked or told. */
function makeSeed(path: string, { settled, open }: Seed): void {
  fillStore(path, { from: FILL_FROM, count: settled }, () => {});
  registerLinks(path, { from: 0, count: open });
  endNotices(path);
  const db = new Database(path);
  db.exec('DELETE FROM check_reason; DELETE FROM link_check');
  db.prepare('UPDATE link SET next_check_at_ms = ?').run(Date.now() + LATER_MS);
  db.close();
}

type Opened = { of(name: string): Filled; dispose(): Promise<void> };
type Sizes = readonly (readonly [name: string, events: number])[];

async function openFiles({ workspace, onProgress }: RunOptions, seed: Seed, sizes: Sizes): Promise<Opened> {
  for (const [name, events] of sizes) {
    onProgress(`filling a store: ${name}`);
    multiplyFile(workspace.freshCopy('seed.db', `${name}.db`), seed, events / seed.settled);
  }
  const of = (name: string) => {
    const path = workspace.path(`${name}.db`);
    const bytes = async () => statSync(path).size;
    return { start: () => startSettled(workspace.log, path), bytes, cpuSeconds: () => 0 };
  };
  return { of, dispose: async () => {} };
}

async function openDatabases({ workspace, onProgress }: RunOptions, seed: Seed, sizes: Sizes): Promise<Opened> {
  const fill = async (url: string, name: string, events: number) => {
    onProgress(`filling a store: ${name}`);
    await moveInto(url, workspace.freshCopy('seed.db', 'moved.db'));
    await multiplyDatabase(url, seed, events / seed.settled);
  };
  const urls = new Map<string, string>();
  const fills = sizes.map(([name, events]) => [
    `events_${events}`,
    async (url: string) => {
      urls.set(name, url);
      await fill(url, name, events);
    },
  ]);
  const postgres = await startMeasuredPostgres(Object.fromEntries(fills));
  const of = (name: string) => {
    const url = urls.get(name) as string;
    const bytes = async () =>
      (await askOnce(url, 'SELECT pg_database_size(current_database())::float8 AS n')).rows[0].n;
    const cpuSeconds = () => postgres.cpuSeconds().primary;
    return { start: () => startOnPostgres(workspace.log, url), bytes, cpuSeconds };
  };
  return { of, dispose: () => postgres.dispose() };
}

/** Pages that people and shops open, by what the address asks for. */
const PAGES = {
  console: '/',
  orders: '/v1/orders',
  paid: '/v1/orders?state=paid',
  name: '/v1/orders?q=maria',
  reference: '/v1/orders?q=order-1000',
  events: '/v1/events',
  notices: '/v1/notices',
  why: '/v1/orders/order-1/timeline',
} as const;
const ASKED = 10;

/** The size of a store, and how long it takes to start on it, to copy it, and to give pages: medians without the first. */
async function lookAt({ start, bytes }: Filled, engine: string, onProgress: (text: string) => void): Promise<string[]> {
  onProgress('asking for pages');
  return withServer(start(), async ({ operator, readySeconds }) => {
    const authorization = `Bearer ${operator.token}`;
    const cookie = await signIn(operator);
    const ask = async (path: string, method = 'GET'): Promise<number> => {
      const startMs = performance.now();
      const headers: Record<string, string> = path === '/' ? { cookie } : { authorization };
      const response = await fetch(`${operator.url}${path}`, { method, headers });
      const text = await response.text();
      if (!response.ok) throw new Error(`${path} answers ${response.status}: ${text}`);
      return performance.now() - startMs;
    };
    const pages: string[] = [];
    for (const path of Object.values(PAGES)) {
      const took: number[] = [];
      for (let asked = 0; asked <= ASKED; asked++) took.push(await ask(path));
      pages.push(fixed(median(took.slice(1)), 1));
    }
    const backupMs = engine === 'sqlite' ? await ask('/v1/admin/backup', 'POST') : null;
    return [
      fixed((await bytes()) / 2 ** 30, 2),
      fixed(readySeconds, 2),
      fixed(backupMs && backupMs / 1000, 1),
      ...pages,
    ];
  });
}
