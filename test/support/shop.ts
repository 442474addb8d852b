import { expect, onTestFinished } from 'vitest';
import type { Log } from '../../src/observe/log.ts';
import { startTestApp, type TestApp } from './app.ts';
import { freePort } from './network.ts';
import { type ServiceProxy, startServiceProxy } from './proxies.ts';
import { act, createLink, plan, startTestSandbox, type TestSandbox } from './sandbox.ts';
import { eventuallyAfter } from './timing.ts';

const eventually = eventuallyAfter('two programs on one clock settle what a turn brings');

/** Longer than settled takes to stop, by its clock. */
const STOPPING_MS = 60_000;

/** How often settled looks for work. */
const POLL_MS = 1_000;
/** What happens at all mostly happens within this time. */
const SOON_MS = 15_000;
/** Less than two minutes: settled takes a longer pause without a heartbeat for an outage of its own. */
const AWAKE_MS = 100_000;

export type Shop = { sandbox: TestSandbox; settled: TestApp };

type SandboxOptions = NonNullable<Parameters<typeof startTestSandbox>[0]>;

export type ShopOptions = Omit<SandboxOptions, 'environment'> & {
  /** The sandbox's environment. */
  service?: 'production' | 'sandbox';
  /** Whether settled knows the sandbox's API; default true. */
  api?: boolean;
  /** The address of the API for settled; default the sandbox's own. */
  apiUrl?: string;
  /** Further settings of settled. */
  environment?: Record<string, string>;
  storePath?: string;
  /** Whether settled's database has threads of its own. */
  threads?: boolean;
  log?: Log;
};

/** The sandbox, and settled on its clock: both in this process, over real HTTP, settled with a real store. */
export async function startShop(options: ShopOptions = {}): Promise<Shop> {
  const { service = 'production', api = true, apiUrl, environment, storePath, threads, log, ...rest } = options;
  const { atEnd = onTestFinished } = options;
  const sandbox = await startTestSandbox({ rateLimit: null, ...rest, environment: service });
  const known = { SETTLED_API_URL: apiUrl ?? sandbox.url, SETTLED_API_KEY: sandbox.apiKey };
  const settled = await startSettled(sandbox, { ...(api ? known : {}), ...environment }, { storePath, threads, log });
  atEnd(() => stopSettled({ sandbox, settled }));
  return { sandbox, settled };
}

/** No event says that a link was created. */
export async function dropFirstEvents({ sandbox }: Shop): Promise<void> {
  const match = { event: 'payment_link.created' };
  await plan(sandbox, { fault: 'drop', count: null, match, with: { forGood: true } });
}

/** Starts settled beside a running sandbox. The caller stops it. */
export async function startSettled(
  { clock }: TestSandbox,
  environment: Record<string, string>,
  { storePath, threads = false, log }: { [K in 'storePath' | 'threads' | 'log']?: ShopOptions[K] | undefined } = {},
): Promise<TestApp> {
  const port = await freePort();
  return startTestApp({
    clock,
    threads,
    ...(storePath === undefined ? {} : { storePath }),
    ...(log === undefined ? {} : { log }),
    environment: {
      SETTLED_HOOKS_LISTEN: `127.0.0.1:${port}`,
      SETTLED_PUBLIC_URL: `http://127.0.0.1:${port}`,
      ...environment,
    },
    // `stopSettled` stops it, because its time must pass while the sandbox's clock still runs.
    atEnd: () => {},
  });
}

/** Stops settled by its own clock. Stopping twice is stopping once. */
export async function stopSettled({ sandbox, settled }: Shop): Promise<void> {
  const stopped = settled.app.stop();
  await sandbox.clock.advance(STOPPING_MS);
  await stopped;
}

/** Starts settled again on the same store and address. The previous one must have ended. */
export async function startAgain({ sandbox, settled }: Shop): Promise<Shop> {
  const environment = {
    SETTLED_API_URL: sandbox.url,
    SETTLED_API_KEY: sandbox.apiKey,
    SETTLED_HOOKS_LISTEN: settled.hooksUrl.slice('http://'.length),
    SETTLED_PUBLIC_URL: settled.hooksUrl,
  };
  const next = { sandbox, settled: await startSettled(sandbox, environment, { storePath: settled.storePath }) };
  onTestFinished(() => stopSettled(next));
  return next;
}

/** Lets time pass in small steps, and waits after each until settled and the sandbox are idle. */
export async function pass(shop: Shop, byMs: number, stepMs = POLL_MS): Promise<void> {
  await quiet(shop);
  for (let leftMs = byMs; leftMs > 0; leftMs -= stepMs) await step(shop, Math.min(stepMs, leftMs));
}

/** Lets time pass in steps, longer ones after a while, until `isSo`. Throws after `withinMs`. */
export async function passUntil(
  shop: Shop,
  isSo: () => boolean | Promise<boolean>,
  { withinMs = 3_600_000, stepMs }: { withinMs?: number; stepMs?: number } = {},
): Promise<void> {
  await quiet(shop);
  for (let passedMs = 0; !(await isSo()); ) {
    if (passedMs >= withinMs) throw new Error(`it did not happen within ${withinMs} ms of the sandbox`);
    const byMs = stepMs ?? (passedMs < SOON_MS ? POLL_MS : 5 * POLL_MS);
    await step(shop, byMs);
    passedMs += byMs;
  }
}

/** A long step ends with a short one: what settled polled for during it was not due yet. */
async function step(shop: Shop, byMs: number): Promise<void> {
  const lastMs = byMs > 2 * POLL_MS ? POLL_MS : byMs;
  const { clock } = shop.sandbox;
  if (byMs > lastMs) {
    for (let leftMs = byMs - lastMs; leftMs > 0; leftMs -= AWAKE_MS) await clock.advance(Math.min(AWAKE_MS, leftMs));
    await quiet(shop);
  }
  await clock.advance(lastMs);
  await quiet(shop);
}

/** Lets time pass without settled, as on a computer that sleeps. */
export async function sleep(shop: Shop, byMs: number): Promise<void> {
  await quiet(shop);
  await shop.sandbox.clock.advance(byMs);
  await quiet(shop);
  await step(shop, POLL_MS);
}

/**
 * Waits until settled has nothing in hand: no request to the service, no event to settle, no notice that the shop is to
 * answer, no call of its store.
 */
export async function quiet({ sandbox, settled: { app, calls } }: Shop): Promise<void> {
  for (;;) {
    await sandbox.idle();
    await Promise.allSettled(calls.underWay);
    // What follows from an answer is begun by then.
    await new Promise(setImmediate);
    const before = calls.made;
    // As `/metrics` shows it, which takes many times as long. An event that was recorded at this very moment waits too.
    const { events, notices, lagMs } = await calls.stats(sandbox.clock.nowMs() + 1);
    const inHand = [app.apiWaitedFor(), calls.underWay.size, events.leased, notices.leased, lagMs];
    if (inHand.every((n) => n === 0) && calls.made === before) return;
  }
}

/** The requests that the sandbox's API answered or refused, oldest first. */
export async function requestsOf({ control }: TestSandbox): Promise<LoggedRequest[]> {
  const all: LoggedRequest[] = [];
  for (;;) {
    const { requests } = (await control(`/requests?after=${all.at(-1)?.number ?? 0}`)).body;
    if (requests.length === 0) return all;
    all.push(...requests);
  }
}

export type LoggedRequest = { number: number; epochMs: number; method: string; path: string; status: number | null };

/** Opens an order's link with settled's API. */
export function openOrder({ settled }: Shop, reference: string, fields: object = {}) {
  return settled.api('/v1/orders', { body: { reference, title: 'A chair', amount: 100, ...fields } });
}

/** Opens an order's link, and expects it in the answer. */
export async function openLink(shop: Shop, reference: string, fields: object = {}): Promise<{ id: string }> {
  const { status, body } = await openOrder(shop, reference, fields);
  expect([status, body.order?.link]).toEqual([201, expect.objectContaining({ id: expect.any(String) })]);
  return body.order.link;
}

/** A shop whose webhooks never arrive. */
export async function startDeafShop(options: ShopOptions = {}): Promise<Shop> {
  const shop = await startShop(options);
  await plan(shop.sandbox, { fault: 'drop', count: null });
  return shop;
}

/** A shop whose settled asks the service through a proxy. */
export async function startProxiedShop(
  start: (options: ShopOptions) => Promise<Shop>,
  options: ShopOptions = {},
): Promise<{ shop: Shop; proxy: ServiceProxy }> {
  let serviceUrl = '';
  const proxy = await startServiceProxy(() => serviceUrl);
  const shop = await start({ ...options, apiUrl: proxy.url });
  serviceUrl = shop.sandbox.url;
  return { shop, proxy };
}

/** Makes settled ask the service about an order now, as a person would. */
export function check({ settled }: Shop, reference: string) {
  return settled.api(`/v1/orders/${reference}/check`, { method: 'POST' });
}

export function cancel({ settled }: Shop, reference: string) {
  return settled.api(`/v1/orders/${reference}/cancel`, { method: 'POST' });
}

type LinkOptions = {
  amount?: number;
  /** Where events are sent; default settled's own address. */
  webhookUrl?: (settledsUrl: string) => string;
};

/** An order at settled with its link at the sandbox: reserved, created, bound. */
export async function sell(shop: Shop, reference: string, options: LinkOptions = {}): Promise<{ id: string }> {
  const fields = await reserveLink(shop, reference, options);
  const link = await createLink(shop.sandbox, fields);
  await bindLink(shop, reference, link, options);
  return link;
}

/** Reserves a link at settled. Returns the fields with which to create it at the service. */
export async function reserveLink(
  { settled }: Shop,
  reference: string,
  { amount = 100, webhookUrl = (url) => url }: LinkOptions = {},
) {
  const reserved = await settled.reserve(reference, String(amount));
  const { webhookSecret } = reserved;
  return { amount, externalReference: reference, webhookUrl: webhookUrl(reserved.webhookUrl), webhookSecret };
}

export async function bindLink(
  { settled }: Shop,
  reference: string,
  { id }: { id: string },
  { amount = 100 }: LinkOptions = {},
): Promise<void> {
  const { status } = await settled.api('/v1/links', { body: { reference, amount: String(amount), id } });
  expect(status).toBe(200);
}

/** Pays a link, and waits until its events are delivered. */
export async function payLink({ sandbox }: Shop, link: { id: string }): Promise<void> {
  await act(sandbox, link, 'pay');
  await sandbox.idle();
}

/** Waits until settled has settled every event. */
export async function allSettled({ settled }: Shop): Promise<void> {
  await eventually(async () => {
    const { events } = (await settled.api('/v1/stats')).body.stats;
    expect(events).toMatchObject({ pending: 0, leased: 0, dead: 0 });
  });
}

/** Waits until the order is paid, and expects exactly one payment of the right money and no holds. */
export async function expectPaid(
  shop: Shop,
  reference: string,
  {
    amount = '100.00',
    flags = [],
    learnedBy = 'webhook',
  }: { amount?: string; flags?: string[]; learnedBy?: 'webhook' | 'reconciliation' } = {},
): Promise<void> {
  await allSettled(shop);
  const order = await shop.settled.order(reference);
  expect(order).toMatchObject({
    state: 'paid',
    learnedBy,
    flags,
    holds: [],
    payment: { status: 'completed', amount, currency: 'BRL' },
  });
  expect(order.payments).toHaveLength(1);
}
