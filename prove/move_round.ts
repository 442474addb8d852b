import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { paymentEvent, signedHeaders } from '../test/support/deliveries.ts';
import { compareRows } from '../test/support/moved_rows.ts';
import type { PostgresServer } from '../test/support/postgres.ts';
import { startShop } from './failover/client.ts';
import { begin, type Link, ROOT, type Served, TOKEN } from './settled_process.ts';

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
type Base = { folder: string; links: readonly Link[]; events: number; server: PostgresServer };
type Environment = Record<string, string>;

export const LINKS = 40;
const PAID_BEFORE = 20;
const TRIES_MAX = 8;
const WAIT_MAX_MS = 60_000;

/** The settings of a settled on a SQLite file, with a shop that notes what it was told. */
async function openPlace(folder: string) {
  const { environment: shop, told, close } = await startShop();
  const environment: Environment = {
    SETTLED_STORE: `sqlite:${join(folder, 'settled.db')}`,
    SETTLED_SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
    SETTLED_OPERATOR_TOKEN: TOKEN,
    SETTLED_LOG_FORMAT: 'json',
    ...shop,
  };
  return { environment, close, told, notices: () => new Set(told.map(({ id }) => id)).size };
}

type MoveEnd = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string };

/** `settled move` as a process. */
function move(environment: Environment, to: string, preload: Environment = {}): Promise<MoveEnd> {
  const child = spawn(process.execPath, [join(ROOT, 'src/cli/main.ts'), 'move', '--to', to, '--json'], {
    env: { PATH: process.env.PATH ?? '', ...environment, ...preload },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  return new Promise((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
}

/** A store with links, of which some are paid and the shop was told. */
export async function seed(folder: string): Promise<Link[]> {
  mkdirSync(folder);
  const { environment, notices, close } = await openPlace(folder);
  try {
    return await whileServed(environment, async (served) => {
      const links: Link[] = [];
      for (let n = 0; n < LINKS; n++) links.push(await reserve(served, `order-${n}`));
      await pay(served, links.slice(0, PAID_BEFORE));
      await waitFor(async () => notices() === PAID_BEFORE);
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
      await waitFor(async () => notices() >= links.length - PAID_BEFORE);
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
  const client = new pg.Client(to);
  await client.connect();
  try {
    const { rows } = await client.query("SELECT to_regclass('instance') IS NOT NULL AS made");
    return rows[0].made === true && (await client.query('SELECT 1 FROM instance')).rowCount === 1;
  } finally {
    await client.end();
  }
}

/** Serves until it serves, and stops it: 0. Otherwise the exit code. */
async function exitOf(environment: Environment): Promise<number | null> {
  const { child, serving, ended } = begin(environment, '');
  serving.then(
    () => child.kill('SIGTERM'),
    () => {},
  );
  await ended;
  return child.exitCode;
}

async function whileServed<T>(environment: Environment, work: (served: Served) => Promise<T>): Promise<T> {
  const { child, serving, ended } = begin(environment, '');
  try {
    return await work(await serving);
  } finally {
    child.kill('SIGTERM');
    await ended;
  }
}

async function reserve(served: Served, reference: string): Promise<Link> {
  const answer = await served.api('/v1/links', { reference, amount: '100.00' });
  if (answer?.status !== 201) throw new Error(`no link for ${reference}: ${JSON.stringify(answer)}`);
  const { webhookUrl, webhookSecret } = answer.body.link;
  return { reference, path: new URL(webhookUrl).pathname, secret: webhookSecret };
}

/** Delivers that these links were paid, some of them once more, and waits until their orders are paid. */
async function pay(served: Served, links: readonly Link[]): Promise<void> {
  for (const { reference, path, secret } of links) {
    const money = { linkId: `pl_${reference}`, amount: '100.00' };
    const body = paymentEvent({ id: `evt_${reference}`, paymentId: `pay_${reference}`, ...money });
    const url = `http://127.0.0.1:${served.hooksPort}${path}`;
    const { status } = await fetch(url, { method: 'POST', headers: signedHeaders(secret, body), body });
    if (status !== 200) throw new Error(`the payment of ${reference} was answered ${status}`);
  }
  for (const { reference } of links) {
    await waitFor(async () => (await served.api(`/v1/orders/${reference}`))?.body?.order?.state === 'paid');
  }
}

/** Looks again and again, a minute at most. */
async function waitFor(look: () => Promise<boolean>): Promise<void> {
  const untilMs = performance.now() + WAIT_MAX_MS;
  while (!(await look())) {
    if (performance.now() > untilMs) throw new Error(`waited for a minute: ${look}`);
    await new Promise((resume) => setTimeout(resume, 20));
  }
}

/** Every order was paid once, by the one event that was acknowledged. */
async function examine(to: string, orders: number): Promise<string[]> {
  const client = new pg.Client(to);
  await client.connect();
  try {
    const { rows } = await client.query(`SELECT o.reference,
      (SELECT count(*)::int FROM settlement s WHERE s.order_key = o.key) AS settlements,
      (SELECT count(*)::int FROM inbox i JOIN link l ON l.key = i.link_key WHERE l.order_key = o.key) AS events,
      (SELECT count(*)::int FROM outbox n WHERE n.order_key = o.key) AS notices FROM orders o`);
    const wrong = rows.filter(({ settlements, events, notices }) => settlements !== 1 || events !== 1 || notices !== 1);
    return [
      ...(rows.length === orders ? [] : [`there are ${rows.length} orders of ${orders}`]),
      ...wrong.map((row) => JSON.stringify(row)),
    ];
  } finally {
    await client.end();
  }
}
