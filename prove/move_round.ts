import type { ChildProcess } from 'node:child_process';
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import pg from 'pg';
import type { PostgresServer } from '../test/support/postgres.ts';
import {
  keepDelivering,
  type Link,
  type MoveEnd,
  type Place,
  paid,
  placeOf,
  reserve,
  serveAt,
  startMove,
  startShop,
  waitFor,
} from './move_stores.ts';

/** Kills the mover, the settled that serves the file, or PostgreSQL, at points of a move, and lets the move be completed. */

export const WHO = ['mover', 'settled', 'postgres'] as const;
export type Who = (typeof WHO)[number];
/** `from`: where steps are counted from. See move_point.ts. */
export type Point = { who: Who; from: 'start' | 'stop' | 'mark'; at: number };
export type Steps = Record<Point['from'], number>;

export const LINKS = 80;
const DELIVERED_BEFORE = 20;
const PRELOAD = new URL('move_point.ts', import.meta.url).href;
const TRIES_MAX = 8;

export type Round = {
  point: Point;
  wasHit: boolean;
  served: string;
  tries: number;
  toldTwice: number;
  broken: string[];
};
type Base = { folder: string; links: readonly Link[]; server: PostgresServer };

/** A store with links, of which some are paid and the shop was told. */
export async function seed(folder: string): Promise<Link[]> {
  mkdirSync(folder);
  const shop = await startShop();
  const place = await placeOf(folder, shop);
  const begun = serveAt(place);
  try {
    const served = await begun.serving;
    const links: Link[] = [];
    for (let n = 0; n < LINKS; n++) links.push(await reserve(served, `order-${n}`));
    const delivering = keepDelivering(links.slice(0, DELIVERED_BEFORE), place.hooksPort);
    await delivering.done;
    await paid(served, links.slice(0, DELIVERED_BEFORE));
    await waitFor(() => shop.told.size === DELIVERED_BEFORE);
    return links;
  } finally {
    begun.child.kill('SIGTERM');
    await begun.ended;
    shop.close();
  }
}

export async function countSteps(base: Base): Promise<Steps> {
  const folder = `${base.folder}-counted`;
  cpSync(base.folder, folder, { recursive: true });
  const shop = await startShop();
  const place = await placeOf(folder, shop);
  const begun = serveAt(place);
  try {
    await begun.serving;
    const end = await startMove(place, await base.server.create('counted'), preload('count:start:0')).ended;
    const [, steps] = /steps: (\{.*\})/.exec(end.stderr) ?? [];
    if (end.code !== 0 || steps === undefined) throw new Error(`the move ended with ${end.code}: ${end.stderr}`);
    return JSON.parse(steps) as Steps;
  } finally {
    begun.child.kill('SIGKILL');
    shop.close();
  }
}

function preload(
  point: string,
  pids: { settled?: number | undefined; postgres?: number } = {},
): Record<string, string> {
  const { settled = 0, postgres = 0 } = pids;
  return {
    NODE_OPTIONS: `--import ${PRELOAD}`,
    MOVE_POINT: point,
    MOVE_SETTLED: String(settled),
    MOVE_POSTGRES: String(postgres),
  };
}

export async function runRound(base: Base, point: Point, folder: string): Promise<Round> {
  const { server, links } = base;
  cpSync(base.folder, folder, { recursive: true });
  const shop = await startShop();
  const place = await placeOf(folder, shop);
  const database = `round_${folder.split('-').pop()}`;
  const to = await server.create(database);
  const children: ChildProcess[] = [];
  const broken: string[] = [];
  const begin = (at: Place) => {
    const begun = serveAt(at);
    begun.serving.catch(() => {});
    children.push(begun.child);
    return begun;
  };
  try {
    let source = begin(place);
    await source.serving;
    const delivering = keepDelivering(links.slice(DELIVERED_BEFORE), place.hooksPort);
    const pids = { settled: source.child.pid, postgres: server.pid };
    let isOver = false;
    const revived = revive(server, () => isOver);
    const first = await startMove(place, to, preload(wordsOf(point).replaceAll(' ', ':'), pids)).ended;
    isOver = true;
    await revived;
    const isKilled = point.who === 'settled' && source.child.signalCode !== null;
    const replica = { ...place, environment: { ...place.environment, SETTLED_STORE: to } };
    const before = await stateOf(place, replica, { begin, isKilled, end: first, to });
    if (before.source !== null) source = before.source;
    broken.push(...before.broken);
    const tries = first.code === 0 ? 0 : await completeMove(place, to);
    if (tries > TRIES_MAX) broken.push('the move was not completed');
    source.child.kill('SIGTERM');
    await source.ended;
    if ((await exitOf(begin(place))) !== 78) broken.push('the file is served after the move');
    const served = await begin(replica).serving;
    await delivering.done;
    await paid(served, links);
    await waitFor(() => shop.told.size >= links.length - DELIVERED_BEFORE);
    broken.push(...(await examine(to, links)));
    const toldTwice = [...shop.told.values()].filter((times) => times > 1).length;
    // A process that is killed may have told the shop, and not known that it had.
    if (toldTwice > 0 && point.who !== 'settled') broken.push(`the shop was told ${toldTwice} notices twice`);
    const wasHit =
      point.who === 'mover'
        ? first.signal === 'SIGKILL'
        : point.who === 'settled'
          ? isKilled
          : server.pid !== pids.postgres;
    return { point, wasHit, served: before.served, tries, toldTwice, broken };
  } finally {
    for (const child of children) child.kill('SIGKILL');
    shop.close();
    await server.drop(database);
    rmSync(folder, { recursive: true, force: true });
  }
}

export function wordsOf({ who, from, at }: Point): string {
  return `${who} ${from} ${at}`;
}

/** Starts PostgreSQL again when it was killed. */
async function revive(server: PostgresServer, isOver: () => boolean): Promise<void> {
  await waitFor(() => isOver() || !isAlive(server.pid));
  if (!isAlive(server.pid)) await server.start();
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

type Started = ReturnType<typeof serveAt>;
type Beginning = { begin: (at: Place) => Started; isKilled: boolean; end: MoveEnd; to: string };

/** After the first attempt: who serves, and whether the other is refused. */
async function stateOf(
  place: Place,
  replica: Place,
  { begin, isKilled, end, to }: Beginning,
): Promise<{ source: Started | null; served: string; broken: string[] }> {
  if (end.code === 0) return { source: null, served: 'the database', broken: [] };
  const broken: string[] = [];
  const source = isKilled ? begin(place) : null;
  const isServed =
    source === null
      ? await isTaken(place)
      : await source.serving.then(
          () => true,
          () => false,
        );
  if (await isClaimed(to)) {
    const exit = await exitOf(
      begin({
        ...replica,
        environment: {
          ...replica.environment,
          SETTLED_HOOKS_LISTEN: '127.0.0.1:0',
          SETTLED_OPERATOR_LISTEN: '127.0.0.1:0',
        },
      }),
    );
    if (exit !== 73) broken.push(`a replica on the incomplete database ended with ${exit}`);
  }
  return { source, served: isServed ? 'the file' : 'nothing, until the move was completed', broken };
}

/** Whether the process that served the file does so again; false if it answers 503 for longer than a mover may need. */
async function isTaken({ environment }: Place): Promise<boolean> {
  const url = `http://${environment.SETTLED_HOOKS_LISTEN}/readyz`;
  const untilMs = performance.now() + 15_000;
  while (performance.now() < untilMs) {
    const status = await fetch(url).then(
      (answer) => answer.status,
      () => 0,
    );
    if (status === 200) return true;
    await new Promise((resume) => setTimeout(resume, 50));
  }
  return false;
}

async function isClaimed(to: string): Promise<boolean> {
  const client = new pg.Client(to);
  await client.connect();
  try {
    const { rows } = await client.query("SELECT to_regclass('instance') IS NOT NULL AS made");
    if (rows[0].made !== true) return false;
    return (await client.query('SELECT 1 FROM instance')).rowCount === 1;
  } finally {
    await client.end();
  }
}

/** Gives the command again until it is done. Returns how often. */
async function completeMove(place: Place, to: string): Promise<number> {
  for (let tries = 1; tries <= TRIES_MAX; tries++) {
    const { code } = await startMove(place, to).ended;
    if (code === 0) return tries;
  }
  return TRIES_MAX + 1;
}

async function exitOf(begun: Started): Promise<number | null> {
  await begun.ended;
  return begun.child.exitCode;
}

/** Every order was paid once, by the one event that was acknowledged. */
async function examine(to: string, links: readonly Link[]): Promise<string[]> {
  const client = new pg.Client(to);
  await client.connect();
  try {
    const { rows } = await client.query(`SELECT o.reference,
      (SELECT count(*)::int FROM settlement s WHERE s.order_key = o.key) AS settlements,
      (SELECT count(*)::int FROM inbox i JOIN link l ON l.key = i.link_key WHERE l.order_key = o.key) AS events,
      (SELECT count(*)::int FROM outbox n WHERE n.order_key = o.key) AS notices FROM orders o`);
    const wrong = rows.filter(({ settlements, events, notices }) => settlements !== 1 || events !== 1 || notices !== 1);
    return [
      ...(rows.length === links.length ? [] : [`there are ${rows.length} orders of ${links.length}`]),
      ...wrong.map((row) => JSON.stringify(row)),
    ];
  } finally {
    await client.end();
  }
}
