import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { PRIVATE_SANDBOX } from '../sandbox/options.ts';
import { type Sandbox, startSandbox } from '../sandbox/sandbox.ts';
import { freePort } from '../test/support/network.ts';
import {
  type FeedProxy,
  type GivenPage,
  type KilledShop,
  killedShop,
  type Left,
  startFeedProxy,
} from './client_shop.ts';
import type { Chance } from './harness/chance.ts';
import { AMOUNT, eventOf, outcomeOf, readReserved } from './harness/send.ts';
import { type Serving, serveEnvironment, startSettled, whenServing } from './harness/settled.ts';
import { readFeed, SHOP_SECRET, shopEnvironment } from './harness/shop.ts';
import { lookFor } from './harness/wait.ts';

/** How the shop learns of its orders: by the feed alone, or by the callback as well. */
export const WAYS = ['feed', 'feed-and-callback'] as const;
type Way = (typeof WAYS)[number];

export type Round = { way: Way; kills: number; shop: string; chance: Chance; folder: string };

/** `broken`: what is wrong; empty if nothing is. */
export type Outcome = { counts: Record<string, number>; broken: string[] };

const SHOP_TOKEN = 'shop-token-of-the-proof';
/** Orders that are paid at the same time, beside those that customers open in the shop. */
const PAYING_AT_ONCE = 3;
/** A life ends with one of its first pages in its hands, so many milliseconds after it was given. */
const PAGES_MAX = 6;
const IN_HAND_MS_MAX = 8;
/** One life in so many ends at any moment of its start instead. */
const ENDS_EARLY = 8;
const START_MS = 600;
const PAGE_MS_MAX = 10_000;
const END_MS_MAX = 120_000;
/** settled opens at most 55 links a minute. */
const CUSTOMER_EVERY_MS = 1_500;
const AGAIN_MS = 50;

/** Kills a shop so often while its orders are paid, and holds its database against the feed after each kill. */
export async function runRound({ way, kills, shop: file, chance, folder }: Round): Promise<Outcome> {
  const sandbox = await startSandbox({ ...PRIVATE_SANDBOX, rateLimit: null });
  const [hooks, api, listen] = await Promise.all([freePort(), freePort(), freePort()]);
  const settled = await whenServing(
    startSettled({
      ...serveEnvironment(join(folder, 'settled.db')),
      SETTLED_HOOKS_LISTEN: `127.0.0.1:${hooks}`,
      SETTLED_OPERATOR_LISTEN: `127.0.0.1:${api}`,
      SETTLED_PUBLIC_URL: `http://127.0.0.1:${hooks}`,
      SETTLED_API_URL: sandbox.url,
      SETTLED_API_KEY: sandbox.apiKey,
      SETTLED_SHOP_TOKEN: SHOP_TOKEN,
      ...(way === 'feed' ? {} : shopEnvironment(`http://127.0.0.1:${listen}/settled`)),
    }),
  );
  const proxy = await startFeedProxy(`http://127.0.0.1:${api}`);
  const url = `http://127.0.0.1:${listen}`;
  const environment = { SHOP_TOKEN, SHOP_SECRET, SHOP_SETTLED: proxy.url, SHOP_LISTEN: `127.0.0.1:${listen}` };
  const shop = killedShop({ file, storePath: join(folder, 'shop.db'), environment });
  const book = new Book(way, settled, shop);
  try {
    await shop.start();
    const load = startLoad({ settled, sandbox, shopUrl: url, chance, book });
    for (let kill = 0; kill < kills; kill++) {
      const page = await dieWith(shop, proxy, chance);
      await book.examine(page);
      // The next life starts, and ends in its time: what it began is what the next kill examines.
      void shop.start();
    }
    await load.stop();
    await book.close(kills);
    return { counts: book.counts, broken: book.broken };
  } finally {
    await shop.kill();
    await settled.end('SIGKILL');
    proxy.close();
    await sandbox.stop();
  }
}

/** Kills the shop a moment after it got a page, or at any moment of its start. Returns the last page that it got. */
async function dieWith(shop: KilledShop, proxy: FeedProxy, chance: Chance): Promise<GivenPage | null> {
  let last: GivenPage | null = null;
  const [pages, inHandMs] = [chance.between(1, PAGES_MAX), chance.below(IN_HAND_MS_MAX * 10) / 10];
  const isTime = Promise.withResolvers<void>();
  let given = 0;
  proxy.onPage = (page) => {
    last = page;
    if (++given === pages) isTime.resolve();
  };
  if (chance.oneIn(ENDS_EARLY)) await after(chance.below(START_MS));
  else {
    await Promise.race([isTime.promise, after(PAGE_MS_MAX, null, { ref: false })]);
    const untilMs = performance.now() + inHandMs;
    // A timer would not tell tenths of a millisecond.
    while (performance.now() < untilMs) await new Promise((resolve) => setImmediate(resolve));
  }
  await shop.kill();
  proxy.onPage = () => {};
  return last;
}

type LoadOptions = { settled: Serving; sandbox: Sandbox; shopUrl: string; chance: Chance; book: Book };

/** Customers who buy in the shop, and orders beside theirs; most are paid. `stop` ends what was begun. */
function startLoad({ settled, sandbox, shopUrl, chance, book }: LoadOptions): { stop(): Promise<void> } {
  let isOver = false;
  let last = 0;
  const pay = async () => {
    while (!isOver) await payNew(settled, `order-${++last}`, chance, book);
  };
  const buy = async () => {
    while (!isOver) {
      const nextMs = performance.now() + CUSTOMER_EVERY_MS;
      const reference = `lamp-${randomBytes(8).toString('hex')}`;
      const page = await buyInShop(shopUrl, reference);
      book.bought++;
      if (!chance.oneIn(4)) {
        const pay = `${sandbox.url}/_control/links/${page.split('/pay/')[1]}/pay`;
        await fetch(pay, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } });
        book.paid.add(reference);
      }
      while (!isOver && performance.now() < nextMs) await after(AGAIN_MS);
    }
  };
  const all = [buy(), ...Array.from({ length: PAYING_AT_ONCE }, pay)];
  return {
    stop: async () => {
      isOver = true;
      await Promise.all(all);
    },
  };
}

/** Presses the button until the shop sends the customer to pay: it is away now and then. Returns the page to pay on. */
async function buyInShop(shopUrl: string, reference: string): Promise<string> {
  for (;;) {
    const body = new URLSearchParams({ reference });
    const answer = await fetch(`${shopUrl}/buy`, { method: 'POST', body, redirect: 'manual' }).catch(() => null);
    const to = answer?.headers.get('location');
    if (to?.includes('/pay/')) return to;
    await after(AGAIN_MS);
  }
}

/** Reserves a link and delivers what the service says of it: pending first, paid, and refunded again, each now and then. */
async function payNew(settled: Serving, reference: string, chance: Chance, book: Book): Promise<void> {
  const answer = await settled.ask('/v1/links', { reference, amount: AMOUNT });
  if (answer?.status !== 201) throw new Error(`reserving answered ${answer?.status}`);
  const link = readReserved(answer.body);
  const isRefunded = chance.oneIn(10);
  const statuses = [...(chance.oneIn(4) ? ['PENDING'] : []), 'COMPLETED', ...(isRefunded ? ['REFUNDED'] : [])];
  for (const status of statuses) {
    const outcome = await outcomeOf(settled.hooksPort, link, eventOf(link, `evt_${reference}_${status}`, status));
    if (outcome !== '200') throw new Error(`a delivery was answered ${outcome}`);
  }
  if (!isRefunded) book.paid.add(reference);
}

type Told = { cursor: string; type: string; reference: string; state: string; version: number };

/** What settled told so far, and what the shop made of it. */
class Book {
  /** Orders that are paid, and stay so. */
  readonly paid = new Set<string>();
  readonly broken: string[] = [];
  bought = 0;
  counts: Record<string, number> = {};
  readonly #kills = { early: 0, before: 0, after: 0 };
  readonly #told: Told[] = [];
  readonly #saidPaid = new Set<string>();
  readonly #way: Way;
  readonly #settled: Serving;
  readonly #shop: KilledShop;

  constructor(way: Way, settled: Serving, shop: KilledShop) {
    this.#way = way;
    this.#settled = settled;
    this.#shop = shop;
  }

  /** Holds what a kill left against the feed. `page`: the last one that the shop got in that life. */
  async examine(page: GivenPage | null): Promise<void> {
    const left = this.#shop.examine();
    this.#kills[page === null ? 'early' : page.cursor === left.cursor ? 'after' : 'before']++;
    await this.#readOn();
    this.#compare(left);
  }

  /** Lets the shop read to the end, and holds everything against everything. */
  async close(kills: number): Promise<void> {
    await lookFor(END_MS_MAX, async () => {
      await this.#readOn();
      // The service's webhook of the last payment may still be on its way to settled.
      const isAllSaid = [...this.paid].every((reference) => this.#saidPaid.has(reference));
      return isAllSaid && this.#shop.examine().cursor === this.#told.at(-1)?.cursor;
    });
    await this.#shop.kill();
    const left = this.#shop.examine();
    const unsaid = [...this.paid].filter((reference) => !this.#saidPaid.has(reference));
    for (const reference of unsaid) this.broken.push(`settled never said that ${reference} is paid`);
    if (left.cursor !== this.#told.at(-1)?.cursor) this.broken.push('the shop did not reach the end of the feed');
    this.#compare(left);
    const forgotten = [...this.paid].filter((reference) => left.told.get(reference)?.packed !== true);
    for (const reference of forgotten) this.broken.push(`${reference} is paid, and was not packed`);
    const saidTwice = this.#shop.said().filter((reference, at, all) => all.indexOf(reference) !== at);
    for (const reference of saidTwice) this.broken.push(`${reference} was said to be packed a second time`);
    if (this.#kills.before + this.#kills.after === 0)
      this.broken.push("no kill met a page in the shop's hands: this proves nothing");
    if (this.paid.size <= kills) this.broken.push('no more orders were paid than kills: this proves nothing');
    this.counts = {
      'kills of the shop': kills,
      '  before it committed the page in its hands': this.#kills.before,
      '  after that, before the next page': this.#kills.after,
      '  before its first page': this.#kills.early,
      'notices in the feed': this.#told.length,
      'orders that stay paid': this.paid.size,
      '  bought in the shop, paid or not': this.bought,
      'orders packed': left.packings.size,
      'paid and not packed': forgotten.length,
      'packed twice': [...left.packings.values()].filter((times) => times > 1).length + saidTwice.length,
    };
  }

  async #readOn(): Promise<void> {
    const { notices } = await readFeed(() => this.#settled, this.#told.at(-1)?.cursor);
    for (const { cursor, type, data } of notices) {
      this.#told.push({ cursor, type, ...data.order });
      if (type === 'order.paid') this.#saidPaid.add(data.order.reference);
    }
  }

  /** By the feed alone, the orders are exactly what it says up to the cursor; by the callback as well, no less. */
  #compare({ told, cursor, packings, untold }: Left): void {
    const end = this.#told.findIndex((one) => one.cursor === cursor) + 1;
    const read = this.#told.slice(0, end);
    const expected = new Map(read.map((one) => [one.reference, one]));
    for (const [reference, { state, version }] of expected) {
      const found = told.get(reference);
      const isExact = found?.version === version && found.state === state;
      const isLater = this.#way === 'feed-and-callback' && found !== undefined && found.version > version;
      if (!isExact && !isLater)
        this.broken.push(`${reference} is ${found?.state} ${found?.version}, not ${state} ${version}`);
    }
    const known = this.#way === 'feed' ? expected : new Map(this.#told.map((one) => [one.reference, one]));
    for (const reference of told.keys()) {
      if (!known.has(reference)) this.broken.push(`${reference} is ahead of the cursor`);
    }
    const early = untold.filter((reference) => expected.has(reference));
    for (const reference of early) this.broken.push(`${reference} was read, and nothing is known of it`);
    const wasPaid = new Set(
      (this.#way === 'feed' ? read : this.#told).flatMap(({ type, reference }) =>
        type === 'order.paid' ? [reference] : [],
      ),
    );
    for (const [reference, times] of packings) {
      if (times > 1) this.broken.push(`${reference} was packed ${times} times`);
      if (!wasPaid.has(reference)) this.broken.push(`${reference} was packed before it was paid`);
    }
  }
}
