import { describe, expect, it, onTestFinished } from 'vitest';
import { testFolder } from '../support/app.ts';
import { readableLog } from '../support/observe.ts';
import { peek } from '../support/rows.ts';
import { act, createLink, HOUR_MS, MINUTE_MS, plan } from '../support/sandbox.ts';
import {
  check,
  openLink,
  pass,
  passUntil,
  quiet,
  requestsOf,
  reserveLink,
  type Shop,
  sleep,
  startDeafShop,
  startProxiedShop,
  startSettled,
  startShop,
  stopSettled,
} from '../support/shop.ts';

const DAY_MS = 24 * HOUR_MS;

const stateOf = async ({ settled }: Shop, reference = 'order-1') => (await settled.order(reference)).state;

async function attentionOf({ settled }: Shop): Promise<string[]> {
  const { attention } = (await settled.api('/v1/attention')).body;
  return attention.map(({ kind }: { kind: string }) => kind);
}

/** Minutes after the link was made at which the service was asked about it. */
async function askedAfter(shop: Shop, link: { id: string }, sinceMs: number): Promise<number[]> {
  const requests = await requestsOf(shop.sandbox);
  const asked = requests.filter(({ path }) => path === `/api/v1/payment-links/${link.id}`);
  return asked.map(({ epochMs }) => Math.round((epochMs - sinceMs) / MINUTE_MS));
}

describe('the schedule of an open link', () => {
  it('asks after 2 min, 10 min, 1 h and 6 h, daily, just after it expires, and daily for a week', async () => {
    const shop = await startDeafShop({ environment: { SETTLED_LINK_LIFETIME: '3d' } });
    const createdMs = shop.sandbox.clock.nowMs();
    const link = await openLink(shop, 'order-1');
    await pass(shop, 15 * MINUTE_MS, MINUTE_MS);
    await pass(shop, 7 * HOUR_MS, 30 * MINUTE_MS);
    await pass(shop, 12 * DAY_MS, 6 * HOUR_MS);
    const minutes = await askedAfter(shop, link, createdMs);
    expect(minutes.slice(0, 2)).toEqual([2, 10]);
    const hours = minutes.slice(2).map((minute) => Math.floor(minute / 60));
    expect(hours.slice(0, 2)).toEqual([1, 6]);
    const days = hours.slice(2).map((hour) => Math.floor(hour / 24));
    // On the third day it expires, and is asked about once more.
    expect(days).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(await stateOf(shop)).toBe('expired');
  });
});

describe('an outage of our own', () => {
  it('of more than two minutes makes every open link due', async () => {
    const shop = await startDeafShop();
    const sinceMs = shop.sandbox.clock.nowMs();
    const link = await openLink(shop, 'order-1');
    await pass(shop, 7 * HOUR_MS, HOUR_MS);
    const scheduled = (await askedAfter(shop, link, sinceMs)).length;
    /** With the first sign of life after it. */
    const beAway = async (minutes: number) => {
      await sleep(shop, minutes * MINUTE_MS);
      await pass(shop, 4_000);
    };
    // Real time counts too, of which a busy machine takes seconds.
    await beAway(1.5);
    expect(await askedAfter(shop, link, sinceMs)).toHaveLength(scheduled);
    await beAway(4);
    expect(await askedAfter(shop, link, sinceMs)).toHaveLength(scheduled + 1);
  });
});

describe('a check that finds no slot left', () => {
  it('is not a failure, which would delay later ones', async () => {
    const shop = await startDeafShop({ environment: { SETTLED_API_BUDGET_PER_MINUTE: '5' } });
    const reserved = [await reserveLink(shop, 'order-1'), await reserveLink(shop, 'order-2')];
    await pass(shop, 10_000);
    for (const fields of reserved) await createLink(shop.sandbox, fields);
    const before = (await requestsOf(shop.sandbox)).length;
    const count = async () => (await requestsOf(shop.sandbox)).length - before;
    // The schedule may have two slots of five: both links are looked up, and neither can be asked about.
    await passUntil(shop, async () => (await count()) === 2, { withinMs: 3 * MINUTE_MS });
    await pass(shop, 2_000);
    expect(await count()).toBe(2);
    const failures = peek(shop.settled.storePath, 'SELECT check_failures AS n FROM link');
    expect(failures).toEqual([{ n: 0 }, { n: 0 }]);
  });
});

describe('what the janitor learns', () => {
  it('that a link expired, within minutes of it', async () => {
    const shop = await startDeafShop({ environment: { SETTLED_LINK_LIFETIME: '1h' } });
    await openLink(shop, 'order-1');
    await pass(shop, 59 * MINUTE_MS, 10 * MINUTE_MS);
    expect(await stateOf(shop)).toBe('awaiting_payment');
    await pass(shop, 3 * MINUTE_MS, 20_000);
    expect(await stateOf(shop)).toBe('expired');
  });

  it('that the service knows no such link, and tells a person', async () => {
    const shop = await startShop();
    const body = { reference: 'order-1', amount: '100', id: 'pl_wrong', webhookSecret: 'a secret of this link' };
    expect((await shop.settled.api('/v1/links', { body })).status).toBe(201);
    await pass(shop, 2_000);
    expect(await attentionOf(shop)).toEqual(['link_missing']);
    await pass(shop, HOUR_MS, 5 * MINUTE_MS);
    const asked = (await requestsOf(shop.sandbox)).filter(({ path }) => path.endsWith('pl_wrong'));
    expect(asked.length).toBeLessThanOrEqual(4);
  });

  it('little of a reserved link that the shop never made, and asks for it no oftener than for others', async () => {
    const shop = await startShop();
    await shop.settled.reserve('order-1');
    await pass(shop, 5 * HOUR_MS, 10 * MINUTE_MS);
    const asked = (await requestsOf(shop.sandbox)).filter(({ path }) => path.includes('externalReference'));
    expect(asked).toHaveLength(4);
  });
});

describe('a service that does not take our key', () => {
  it.each([
    ['api_key_refused', 401, 1],
    ['merchant_inactive', 403, 10],
  ] as const)('%s: the janitor pauses and tells a person, until all is well', async (kind, status, pauseMinutes) => {
    const { shop, proxy } = await startProxiedShop(startDeafShop);
    for (let n = 1; n <= 5; n++) await act(shop.sandbox, await openLink(shop, `order-${n}`), 'pay');
    const refusedMs: number[] = [];
    proxy.answerWith(async ({ path }) => {
      // The list alone may be forbidden.
      if (!path.includes('?page=')) refusedMs.push(shop.sandbox.clock.nowMs());
      return { status, headers: { 'content-type': 'application/json' }, text: '{}' };
    });
    await pass(shop, 125_000, 5_000);
    expect(await attentionOf(shop)).toEqual([kind]);
    await pass(shop, 6 * pauseMinutes * MINUTE_MS, pauseMinutes * 15_000);
    expect(await attentionOf(shop)).toEqual([kind]);
    // What is claimed together is refused together; then nothing is sent for the length of the pause. The clock runs on
    // meanwhile, so on a busy machine seconds lie between those that were claimed together.
    const firstsMs = refusedMs.filter((ms, index) => index === 0 || ms - (refusedMs[index - 1] as number) > 10_000);
    const pausesMs = firstsMs.slice(1).map((ms, index) => ms - (firstsMs[index] as number));
    expect(pausesMs.length).toBeGreaterThan(0);
    expect(Math.min(...pausesMs)).toBeGreaterThan(pauseMinutes * MINUTE_MS - 2_000);
    proxy.passAll();
    const allPaid = async () => (await shop.settled.api('/v1/stats')).body.stats.orders.paid === 5;
    await passUntil(shop, allPaid, { withinMs: 90 * MINUTE_MS, stepMs: MINUTE_MS });
    expect(await attentionOf(shop)).toEqual([]);
  });
});

describe('one link that our key may not see', () => {
  it('is asked about again later, and holds up no other', async () => {
    const { shop, proxy } = await startProxiedShop(startDeafShop);
    const hidden = await openLink(shop, 'order-hidden');
    const links = [hidden, await openLink(shop, 'order-1'), await openLink(shop, 'order-2')];
    for (const link of links) await act(shop.sandbox, link, 'pay');
    proxy.answerWith(async ({ path }) =>
      path.endsWith(hidden.id)
        ? { status: 403, headers: { 'content-type': 'application/json' }, text: '{}' }
        : undefined,
    );
    const paid = async () => (await shop.settled.api('/v1/stats')).body.stats.orders.paid;
    await passUntil(shop, async () => (await paid()) === 2, { withinMs: 5 * MINUTE_MS });
    expect(await attentionOf(shop)).toEqual([]);
    expect((await check(shop, 'order-1')).status).toBe(200);
    proxy.passAll();
    await passUntil(shop, async () => (await paid()) === 3, { withinMs: 90 * MINUTE_MS, stepMs: MINUTE_MS });
  });
});

describe('an outage of our own', () => {
  it('is followed by asking about every open link, with how long that takes in the log', async () => {
    const storePath = `${testFolder()}/settled.db`;
    const first = await startShop({ storePath });
    const { sandbox } = first;
    const links = [];
    for (let n = 1; n <= 30; n++) links.push(await openLink(first, `order-${n}`));
    await pass(first, 7 * HOUR_MS, HOUR_MS);
    await stopSettled(first);
    await plan(sandbox, { fault: 'drop', count: null });
    for (const link of links) await act(sandbox, link, 'pay');
    await sandbox.clock.advance(10 * MINUTE_MS);
    const before = (await requestsOf(sandbox)).at(-1)?.number ?? 0;

    const { log, lines } = readableLog();
    const known = { SETTLED_API_URL: sandbox.url, SETTLED_API_KEY: sandbox.apiKey };
    const settled = await startSettled(sandbox, known, { storePath, log });
    const shop = { sandbox, settled };
    onTestFinished(() => stopSettled(shop));
    await quiet(shop);
    expect(lines.find(({ msg }) => msg.startsWith('asking the service about every link that'))).toMatchObject({
      level: 'info',
      links: 30,
      within: '2 min',
    });
    const allPaid = async () => (await settled.api('/v1/stats')).body.stats.orders.paid === 30;
    await passUntil(shop, allPaid, { withinMs: 2 * MINUTE_MS + 10_000, stepMs: 2_000 });
    const details = (await requestsOf(sandbox)).filter(({ number, path }) => number > before && !path.includes('?'));
    expect(details).toHaveLength(30);
    expect(peek(storePath, 'SELECT count(*) AS n FROM drift')).toEqual([{ n: 30 }]);
  });
});

describe('POST /v1/admin/reconcile', () => {
  it('makes every open link due, and says what that costs', async () => {
    const shop = await startDeafShop();
    for (const n of [1, 2, 3]) await openLink(shop, `order-${n}`);
    await pass(shop, 7 * HOUR_MS, HOUR_MS);
    await act(shop.sandbox, { id: 'order-2' }, 'pay');
    const reconcile = (body: object) => shop.settled.api('/v1/admin/reconcile', { body });
    const before = (await requestsOf(shop.sandbox)).length;
    expect((await reconcile({ dryRun: true })).body).toEqual({ dryRun: true, links: 3, etaSeconds: 60 });
    await pass(shop, 2_000);
    expect((await requestsOf(shop.sandbox)).length).toBe(before);
    expect((await reconcile({})).body).toEqual({ dryRun: false, links: 3, etaSeconds: 60 });
    await pass(shop, 1_000);
    expect(await stateOf(shop, 'order-2')).toBe('paid');
    expect((await reconcile({ dryRun: true })).body).toMatchObject({ links: 2 });
  });

  it('says that no service is configured', async () => {
    const shop = await startShop({ api: false });
    const answer = await shop.settled.api('/v1/admin/reconcile', { body: {} });
    expect(answer).toMatchObject({ status: 503, body: { title: 'api_not_configured' } });
  });
});
