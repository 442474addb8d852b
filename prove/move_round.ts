import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { SECRETS_KEY } from '../bench/stores.ts';
import { askOnce } from '../test/support/cluster.ts';
import { compareRows } from '../test/support/moved_rows.ts';
import type { PostgresServer } from '../test/support/postgres.ts';
import { type Finished, startProgram } from './harness/program.ts';
import { eventOf, outcomeOf, type Reserved } from './harness/send.ts';
import { MAIN, type Serving, serveEnvironment, startSettled, whenServing } from './harness/settled.ts';
import { startShop } from './harness/shop.ts';
import { until } from './harness/wait.ts';

/** Kills the mover or PostgreSQL at a point of a move, sees which store could be served, and completes the move. */

export const WHO = ['mover', 'postgres'] as const;
/** `from`: where steps are counted from. See move_point.ts. */
export type Point = { who: (typeof WHO)[number]; from: 'start' | 'mark'; at: number };
export type Steps = Record<Point['from'], number>;
/** `tries`: how often the move was called again. */
export type Round = {
  point: Point;
  wasHit: boolean;
  served: 'the file' | 'the database' | 'nothing';
  tries: number;
  broken: string[];
};

/** A store that is copied for each round. `events`: of orders that were added to those of the links. */
type Base = { folder: string; links: readonly Reserved[]; events: number; server: PostgresServer };
type Environment = Record<string, string>;

export const LINKS = 40;
const PAID_BEFORE = 20;
const TRIES_MAX = 8;
const WAIT_MAX_MS = 60_000;

/** The settings of a settled on a SQLite file, with a shop that notes what it was told. */
async function openPlace(folder: string) {
  const { environment: shop, told, close } = await startShop();
  const environment: Environment = {
    ...serveEnvironment(join(folder, 'settled.db')),
    SETTLED_SECRETS_KEY: SECRETS_KEY.toString('base64'),
    ...shop,
  };
  return { environment, close, told, notices: () => new Set(told.map(({ id }) => id)).size };
}

/** `settled move` as a process. */
function move(environment: Environment, to: string, preload: Environment = {}): Promise<Finished> {
  const command = [process.execPath, MAIN, 'move', '--to', to, '--json'];
  return startProgram(command, { ...environment, ...preload }).finished;
}

/** A store with links, of which some are paid and the shop was told. */
export async function seed(folder: string): Promise<Reserved[]> {
  mkdirSync(folder);
  const { environment, notices, close } = await openPlace(folder);
  try {
    return await whileServed(environment, async (served) => {
      const links: Reserved[] = [];
      for (let n = 0; n < LINKS; n++) links.push(await served.reserve(`order-${n}`));
      await pay(served, links.slice(0, PAID_BEFORE));
      await until('telling the shop', WAIT_MAX_MS, async () => notices() === PAID_BEFORE);
      return links;
    });
  } finally {
    close();
  }
}

/** A move in which nothing is killed: its steps, how long it takes, and what differs afterwards. */
export async function moveOnce({ folder: base, server }: Base) {
  const folder = `${base}-once`;
  cpSync(base, folder, { recursive: true });
  const { environment, close } = await openPlace(folder);
  const to = await server.create('once');
  const startedMs = performance.now();
  const { code, stdout, stderr } = await move(environment, to, preload('count:start:0', 0));
  const seconds = (performance.now() - startedMs) / 1000;
  close();
  const [, steps] = /steps: (\{.*\})/.exec(stderr) ?? [];
  if (code !== 0 || steps === undefined) throw new Error(`the move ended with ${code}: ${stderr}`);
  let compared = 0;
  const broken = await compareRows(join(folder, 'settled.db'), to, (_table, rows) => (compared += rows));
  const { rows } = JSON.parse(stdout) as { rows: number };
  if (rows !== compared) broken.push(`${rows} rows were moved, and ${compared} compared`);
  await server.drop('once');
  rmSync(folder, { recursive: true, force: true });
  return { rows, seconds, steps: JSON.parse(steps) as Steps, broken };
}

function preload(point: string, postgres: number): Environment {
  const program = new URL('move_point.ts', import.meta.url).href;
  return { NODE_OPTIONS: `--import ${program}`, MOVE_POINT: point, MOVE_POSTGRES: String(postgres) };
}

export async function runRound(
  { folder: base, links, events, server }: Base,
  point: Point,
  folder: string,
): Promise<Round> {
  cpSync(base, folder, { recursive: true });
  const { environment, told, notices, close } = await openPlace(folder);
  const database = `round_${folder.split('-').pop()}`;
  const to = await server.create(database);
  const replica = { ...environment, SETTLED_STORE: to };
  const broken: string[] = [];
  try {
    const first = await move(environment, to, preload(wordsOf(point).replaceAll(' ', ':'), server.pid));
    const wasKilled = first.stderr.includes('PostgreSQL was killed');
    if (wasKilled) {
      // Waits for the end of all its processes.
      await server.kill();
      await server.start();
    }
    const served = await whichServes({ environment, replica, to });
    if (served === 'both') broken.push('both stores can be served');
    let tries = 0;
    for (let { code } = first; code !== 0 && tries < TRIES_MAX; tries++) ({ code } = await move(environment, to));
    if (tries === TRIES_MAX) broken.push('the move was not completed');
    if ((await exitOf(environment)) !== 78) broken.push('the file is served after the move');
    // A replica that has served may have changed rows.
    if (served !== 'the database') broken.push(...(await compareRows(join(folder, 'settled.db'), to, () => {})));
    await whileServed(replica, async (serving) => {
      await pay(serving, links);
      await until('telling the shop', WAIT_MAX_MS, async () => notices() >= links.length - PAID_BEFORE);
    });
    broken.push(...(await examine(to, links.length + events)));
    if (told.length > notices()) broken.push(`the shop was told ${told.length - notices()} notices twice`);
    const wasHit = point.who === 'mover' ? first.signal === 'SIGKILL' : wasKilled;
    return { point, wasHit, served: served === 'both' ? 'nothing' : served, tries, broken };
  } finally {
    close();
    await server.drop(database);
    rmSync(folder, { recursive: true, force: true });
  }
}

export function wordsOf({ who, from, at }: Point): string {
  return `${who} ${from} ${at}`;
}

type Sides = { environment: Environment; replica: Environment; to: string };

/** Starts settled on both stores, one after the other. A database that the mover had not claimed yet is empty. */
async function whichServes({ environment, replica, to }: Sides): Promise<Round['served'] | 'both'> {
  const isFile = (await exitOf(environment)) === 0;
  const isDatabase = (await isClaimed(to)) && (await exitOf(replica)) === 0;
  if (isFile && isDatabase) return 'both';
  return isFile ? 'the file' : isDatabase ? 'the database' : 'nothing';
}

async function isClaimed(to: string): Promise<boolean> {
  const { rows } = await askOnce(to, "SELECT to_regclass('instance') IS NOT NULL AS made");
  return rows[0].made === true && (await askOnce(to, 'SELECT 1 FROM instance')).rowCount === 1;
}

/** Serves until it serves, and stops it: 0. Otherwise the exit code. */
async function exitOf(environment: Environment): Promise<number | null> {
  const running = startSettled(environment);
  whenServing(running).then(
    () => running.end('SIGTERM'),
    () => {},
  );
  return (await running.finished).code;
}

async function whileServed<T>(environment: Environment, work: (served: Serving) => Promise<T>): Promise<T> {
  const running = startSettled(environment);
  try {
    return await work(await whenServing(running));
  } finally {
    await running.end('SIGTERM');
  }
}

/** Delivers that these links were paid, some of them once more, and waits until their orders are paid. */
async function pay(served: Serving, links: readonly Reserved[]): Promise<void> {
  for (const link of links) {
    const outcome = await outcomeOf(served.hooksPort, link, eventOf(link));
    if (outcome !== '200') throw new Error(`the payment of ${link.reference} was answered ${outcome}`);
  }
  for (const { reference } of links) {
    const isPaid = async () => (await served.ask(`/v1/orders/${reference}`))?.body?.order?.state === 'paid';
    await until(`paying ${reference}`, WAIT_MAX_MS, isPaid);
  }
}

/** Every order was paid once, by the one event that was acknowledged. */
async function examine(to: string, orders: number): Promise<string[]> {
  const count = (rows: string) => `(SELECT count(*)::int FROM ${rows} = o.key)`;
  const { rows } = await askOnce(
    to,
    `SELECT o.reference, ${count('settlement s WHERE s.order_key')} AS settlements,
      ${count('inbox i JOIN link l ON l.key = i.link_key WHERE l.order_key')} AS events,
      ${count('outbox n WHERE n.order_key')} AS notices FROM orders o`,
  );
  const wrong = rows.filter(({ settlements, events, notices }) => settlements !== 1 || events !== 1 || notices !== 1);
  return [
    ...(rows.length === orders ? [] : [`there are ${rows.length} orders of ${orders}`]),
    ...wrong.map((row) => JSON.stringify(row)),
  ];
}
