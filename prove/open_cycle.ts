import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { PRIVATE_SANDBOX } from '../sandbox/options.ts';
import { type Sandbox, startSandbox } from '../sandbox/sandbox.ts';
import { numbered } from './harness/load.ts';
import { inFolder } from './harness/proof.ts';
import { dyingAt, type Serving, serveEnvironment, startSettled, whenServing } from './harness/settled.ts';
import { lookFor } from './harness/wait.ts';
import { type ServiceProxy, startServiceProxy } from './service_proxy.ts';

/** The points at which the process is killed while it opens links. */
export const POINTS = [
  'before the intent is committed',
  'after the intent is committed',
  'during the request',
  'after the service made the link',
  'after the answer, before it is stored',
] as const;
export type Point = (typeof POINTS)[number];

/** Openings in flight when the process is killed. */
export const ORDERS = 10;
const REFERENCES = numbered('order', ORDERS);
const DEADLINE_MS = 30_000;

const INTENT_SQL = 'INSERT INTO opening';
const STORED_SQL = "UPDATE opening SET status = 'done'";

/** The state at the moment of the kill. */
export type Moment = {
  /** Intents that were committed. */
  intents: number;
  /** Links at the service. */
  links: number;
  /** Links that settled had stored. */
  stored: number;
};

export type Cycle = {
  point: Point;
  /** Which of the ten openings was at the point. */
  occurrence: number;
  moment: Moment;
  /** What is wrong; empty if nothing is. */
  broken: string[];
};

/** Opens ten links, kills settled at the point, restarts it on the same files, and examines the result. */
export function runCycle(point: Point, occurrence: number): Promise<Cycle> {
  return inFolder('open', (folder) => runCycleIn(join(folder, 'settled.db'), point, occurrence));
}

async function runCycleIn(storePath: string, point: Point, occurrence: number): Promise<Cycle> {
  const sandbox = await startSandbox(PRIVATE_SANDBOX);
  const proxy = await startServiceProxy(sandbox.url);
  const environment = {
    ...serveEnvironment(storePath),
    SETTLED_PUBLIC_URL: proxy.url,
    SETTLED_API_URL: proxy.url,
    SETTLED_API_KEY: sandbox.apiKey,
    SETTLED_LOG_LEVEL: 'info',
  };
  const lives: Serving[] = [];
  const live = async (death: Record<string, string>) => {
    const served = await whenServing(startSettled({ ...environment, ...death }));
    lives.push(served);
    proxy.hooksPort = served.hooksPort;
    return served;
  };
  try {
    const first = await live(deathAt(point, occurrence));
    const { signal, arriveLate } = await openAndDie(first, proxy, point, occurrence);
    const moment = { ...readStore(storePath), links: (await linksOf(sandbox)).length };
    await arriveLate();
    const broken = signal === 'SIGKILL' ? missed(point, occurrence, moment) : [`it ended with ${signal}`];
    broken.push(...(await examine(await live({}), sandbox)));
    return { point, occurrence, moment, broken };
  } finally {
    await Promise.all(lives.map((served) => served.end('SIGKILL')));
    proxy.close();
    await sandbox.stop();
  }
}

/** What makes the process kill itself; at the other points it is killed. */
function deathAt(point: Point, occurrence: number): Record<string, string> {
  if (point === 'before the intent is committed') return dyingAt(`before:${occurrence}:${INTENT_SQL}`);
  if (point === 'after the intent is committed') return dyingAt(`after:${occurrence}:${INTENT_SQL}`);
  if (point === 'after the answer, before it is stored') return dyingAt(`before:${occurrence}:${STORED_SQL}`);
  return {};
}

type Death = {
  signal: NodeJS.Signals | null;
  /** Carries out a request that outlived its process; half of them are. */
  arriveLate: () => Promise<void>;
};

/** Opens ten links at once. Resolves when the process is dead, and none of its requests is in flight. */
async function openAndDie(served: Serving, proxy: ServiceProxy, point: Point, occurrence: number): Promise<Death> {
  const usual = proxy.onCreation;
  let arriveLate = async () => {};
  const kill = async () => {
    await served.end('SIGKILL');
    proxy.hooksPort = null;
  };
  proxy.onCreation = async (creation) => {
    if (creation.number !== occurrence) return usual(creation);
    if (point === 'during the request') {
      await kill();
      if (occurrence % 2 === 0) arriveLate = () => creation.carryOut();
    } else if (point === 'after the service made the link') {
      await creation.carryOut();
      await kill();
    } else await usual(creation);
  };
  const openings = REFERENCES.map((reference) => served.ask('/v1/orders', requestOf(reference)));
  const ended = served.finished.then(({ signal }) => signal);
  const signal = await Promise.race([ended, after(DEADLINE_MS, null, { ref: false })]);
  proxy.hooksPort = null;
  if (signal === null) served.child.kill('SIGKILL');
  await Promise.all(openings);
  await proxy.idle();
  proxy.onCreation = usual;
  return { signal, arriveLate };
}

function requestOf(reference: string): object {
  return { reference, title: 'A chair', amount: '100.00', metadata: { of: reference } };
}

function readStore(storePath: string): Omit<Moment, 'links'> {
  const db = new Database(storePath, { readonly: true });
  const count = (where: string) => db.prepare(`SELECT count(*) FROM opening WHERE ${where}`).pluck().get() as number;
  const found = { intents: count('true'), stored: count("status = 'done'") };
  db.close();
  return found;
}

/** Whether the kill missed its point; then the rest of the cycle proves nothing. */
function missed(point: Point, occurrence: number, { intents, links, stored }: Moment): string[] {
  const expected: Record<Point, boolean> = {
    'before the intent is committed': intents < occurrence && links <= intents,
    'after the intent is committed': intents >= occurrence && links < intents,
    'during the request': intents >= occurrence && links < intents,
    'after the service made the link': links >= occurrence && stored < links,
    'after the answer, before it is stored': links >= occurrence && stored < occurrence,
  };
  if (expected[point]) return [];
  return [`the kill missed its point: ${intents} intents, ${links} links, ${stored} stored`];
}

type Link = { id: string; externalReference: string };

async function linksOf(sandbox: Sandbox): Promise<Link[]> {
  const answer = await fetch(`${sandbox.url}/_control/links?pageSize=100`);
  return ((await answer.json()) as { links: Link[] }).links;
}

/** Repeats every call until it returns a link, then pays every link. A webhook must make each order paid. */
async function examine(served: Serving, sandbox: Sandbox): Promise<string[]> {
  const broken: string[] = [];
  const opened = await Promise.all(REFERENCES.map((reference) => openAgain(served, reference)));
  const links = await linksOf(sandbox);
  if (links.length !== ORDERS) broken.push(`the service has ${links.length} links`);
  for (const [index, reference] of REFERENCES.entries()) {
    const own = links.filter((link) => link.externalReference === reference);
    const id = opened[index]?.link?.id;
    if (own.length !== 1 || own[0]?.id !== id) {
      broken.push(
        `${reference}: answered ${id}, and the service has ${own.map((link) => link.id).join(', ') || 'none'}`,
      );
    }
  }
  for (const { id } of links) await fetch(`${sandbox.url}/_control/links/${id}/pay`, { method: 'POST' });
  await sandbox.idle();
  for (const [index, reference] of REFERENCES.entries()) {
    const order = await whenPaid(served, reference);
    if (order?.state !== 'paid' || order.learnedBy !== 'webhook') {
      broken.push(`${reference} is ${order?.state}, learned by ${order?.learnedBy}`);
    }
    const again = await served.ask('/v1/orders', requestOf(reference));
    if (again?.status !== 200 || again.body.order.link.id !== opened[index]?.link?.id) {
      broken.push(`${reference}: repeated after it was paid, it is answered ${again?.status}`);
    }
  }
  return broken;
}

// biome-ignore lint/suspicious/noExplicitAny: an order as the API shows it
type Order = any;

function openAgain(served: Serving, reference: string): Promise<Order> {
  return lookFor(DEADLINE_MS, async () => {
    const answer = await served.ask('/v1/orders', requestOf(reference));
    return (answer?.status === 200 || answer?.status === 201) && answer.body.order;
  });
}

/** The order as it is in the end. */
async function whenPaid(served: Serving, reference: string): Promise<Order> {
  let order: Order = null;
  await lookFor(DEADLINE_MS, async () => {
    order = (await served.ask(`/v1/orders/${reference}`))?.body.order;
    return order?.state === 'paid';
  });
  return order;
}
