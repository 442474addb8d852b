import { Agent } from 'node:http';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Chance, chanceOf } from '../../prove/harness/chance.ts';
import { AMOUNT, deliver, eventOf, type Reserved, readReserved } from '../../prove/harness/send.ts';
import { dyingAt, type Serving, serveEnvironment, whenServing } from '../../prove/harness/settled.ts';
import { eachAtOnce } from '../../prove/harness/wait.ts';
import { startTestApp, testFolder } from '../support/app.ts';
import { type CallbackShop, type ReceivedNotice, startCallback } from '../support/callback.ts';
import { spawnSettled } from '../support/process.ts';
import { eventuallyAfter, times } from '../support/timing.ts';
import { startServing } from './serving.ts';

const eventually = eventuallyAfter('processes start, end and take over');

const SEED = Number(process.env.KILL_SEED ?? Date.now() % 2_147_483_647);
/** Databases, each with lives of its own, beside each other. */
const CHAINS = times(1, 2);
/** Orders that are paid in each life, so many of them at the same time. */
const ORDERS_OF_A_LIFE = 16;
const AT_ONCE = 8;
/** A process dies when it does for the n-th time what its point names; n at most so many. */
const OCCURRENCES_MAX = 8;

const INSERTED = 'INSERT INTO outbox';
const CLAIMED = "UPDATE outbox SET status = 'leased'";
/** The last statement of the transaction that ends a notice. */
const ENDED = 'UPDATE outbox SET due_at_ms = +? WHERE key =';
const AFTER_THE_SHOP_TOOK_IT = `before:${ENDED}`;

/** The commits between an event's settlement and the end of its notice: see prove/kill_point.ts. */
const POINTS = [
  `before:${INSERTED}`,
  `after:${INSERTED}`,
  `after:${CLAIMED}`,
  AFTER_THE_SHOP_TOOK_IT,
  `after:${ENDED}`,
] as const;
const CYCLES = Number(process.env.KILL_CYCLES ?? times(POINTS.length, 50));

describe('a process killed between settlement and notice', () => {
  it(`tells the shop of each paid order, under one id, and of none before it is paid, over ${CYCLES} kills`, async () => {
    console.log(`kill -9 of telling: seed ${SEED} (KILL_SEED=${SEED} repeats it)`);
    const points = Array.from({ length: CYCLES }, (_, n) => POINTS[n % POINTS.length] as string);
    const books = await Promise.all(
      Array.from({ length: CHAINS }, (_, n) =>
        live(
          points.filter((_, index) => index % CHAINS === n),
          chanceOf(SEED, n),
        ),
      ),
    );
    const repeated = books.reduce((sum, book) => sum + book.repeated, 0);
    console.log(`kill -9 of telling: ${repeated} notices came more than once`);
    // Otherwise the kills missed the moment at which only the shop knows.
    expect(repeated).toBeGreaterThanOrEqual(points.filter((point) => point === AFTER_THE_SHOP_TOOK_IT).length);
  });
});

/** Runs and is killed at each point in turn, then runs until all notices are sent. */
async function live(points: readonly string[], chance: Chance): Promise<Book> {
  const storePath = join(testFolder(), 'settled.db');
  const shop = await startCallback();
  const unpaid = await reserve(storePath, points.length * ORDERS_OF_A_LIFE);
  const references = unpaid.map(({ reference }) => reference);
  const book = new Book(storePath, shop);
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  for (const point of points) {
    const [when, sql] = point.split(':') as [string, string];
    // One statement claims all notices that are due.
    const occurrence = sql === CLAIMED ? 1 : chance.between(1, OCCURRENCES_MAX);
    const killed = spawnSettled(['serve'], {
      ...serveEnvironment(storePath),
      ...shop.environment,
      ...dyingAt(`${when}:${occurrence}:${sql}`),
    });
    // What is owed from the life before may kill it before it serves.
    const serving = await whenServing(killed).catch(() => null);
    if (serving !== null) await pay(serving, unpaid, ORDERS_OF_A_LIFE, agent);
    expect(await killed.finished).toMatchObject({ signal: 'SIGKILL' });
  }
  const serving = await startServing(storePath, shop.environment);
  await pay(serving, unpaid, unpaid.length, agent);
  expect(unpaid).toEqual([]);
  await eventually(async () => {
    const { stats } = (await serving.api('/v1/stats')).body;
    expect(stats).toMatchObject({ orders: { paid: references.length }, notices: { done: references.length } });
  });
  agent.destroy();
  book.check(references);
  return book;
}

/** Orders with their links, made before anything is killed. */
async function reserve(storePath: string, count: number): Promise<Reserved[]> {
  const { app, api } = await startTestApp({ engine: 'sqlite', storePath });
  const reserved: Reserved[] = [];
  await eachAtOnce(AT_ONCE, [...Array(count).keys()], async (n) => {
    reserved.push(readReserved((await api('/v1/links', { body: { reference: `order-${n}`, amount: AMOUNT } })).body));
  });
  await app.stop();
  return reserved;
}

/** Delivers that some of the orders are paid. What was acknowledged is not owed any more. */
async function pay(serving: Serving, unpaid: Reserved[], count: number, agent: Agent): Promise<void> {
  await eachAtOnce(AT_ONCE, unpaid.splice(0, count), async (link) => {
    const answer = await deliver(serving, link, eventOf(link), agent).catch(() => null);
    if (answer?.status !== 200) unpaid.push(link);
  });
}

/** What the shop was told, held against the database at the moment at which it came. */
class Book {
  repeated = 0;
  readonly #ids = new Map<string, string>();
  readonly #wrong: string[] = [];
  readonly #db: Database.Database;

  constructor(storePath: string, shop: CallbackShop) {
    this.#db = new Database(storePath, { readonly: true });
    onTestFinished(() => void this.#db.close());
    const find = this.#db.prepare(
      `SELECT o.state, o.version, s.paid_at_ms AS paidAtMs FROM orders o JOIN settlement s ON s.order_key = o.key
       JOIN outbox n ON n.order_key = o.key WHERE o.reference = ? AND 'msg_' || n.key || '_' || n.notice_id = ?`,
    );
    shop.answerWith((notice) => {
      const { order, version } = JSON.parse(notice.body).data;
      const committed = find.get(order.reference, notice.id) as { state: string; version: number } | undefined;
      if (committed?.state !== 'paid' || committed.version < version) {
        this.#wrong.push(`${order.reference} was told before it was committed as paid`);
      }
      this.#note(order.reference, notice);
      return 204;
    });
  }

  #note(reference: string, { id }: ReceivedNotice): void {
    const before = this.#ids.get(reference);
    if (before === id) this.repeated++;
    else if (before !== undefined) this.#wrong.push(`${reference} was told as ${before} and as ${id}`);
    this.#ids.set(reference, id);
  }

  check(references: readonly string[]): void {
    expect(this.#wrong).toEqual([]);
    expect(references.filter((reference) => !this.#ids.has(reference))).toEqual([]);
    expect(this.#ids.size).toBe(references.length);
  }
}
