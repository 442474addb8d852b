import { describe, expect, it } from 'vitest';
import { act, plan } from '../support/sandbox.ts';
import {
  dropFirstEvents,
  expectPaid,
  openOrder,
  pass,
  passUntil,
  payLink,
  requestsOf,
  type Shop,
  type ShopOptions,
  startShop,
} from '../support/shop.ts';

const CREATION = { method: 'POST', path: '/api/v1/payment-links' };

async function linksOf({ sandbox }: Shop): Promise<{ id: string; externalReference: string }[]> {
  return (await sandbox.control('/links')).body.links;
}

async function attentionOf({ settled }: Shop): Promise<{ kind: string; detail: string }[]> {
  return (await settled.api('/v1/attention')).body.attention;
}

/** A shop whose first creation has no answer, and whose service tells of a link by an event, or not. */
async function startUnanswered({ when = 'after', tells = true, ...options }: ShopOptions & Unanswered = {}) {
  const shop = await startShop(options);
  if (!tells) await dropFirstEvents(shop);
  await plan(shop.sandbox, { fault: 'lose-response', match: CREATION, with: { when } });
  return { shop, answer: await openWhilePassing(shop, 'order-1') };
}

type Unanswered = { when?: string; tells?: boolean };

async function answersOf({ sandbox }: Shop): Promise<string[]> {
  return (await requestsOf(sandbox)).map(({ method, status }) => `${method} ${status}`);
}

/** Opens an order, and lets time pass until the call is answered. */
async function openWhilePassing(shop: Shop, reference: string, fields: object = {}) {
  const answered = openOrder(shop, reference, fields);
  let isAnswered = false;
  void answered.finally(() => {
    isAnswered = true;
  });
  await passUntil(shop, () => isAnswered, { withinMs: 60_000 });
  return answered;
}

/** One link at the service, which is the order's, and whose events are believed. */
async function expectOneLink(shop: Shop, reference: string): Promise<void> {
  const [link, ...others] = await linksOf(shop);
  expect(others).toEqual([]);
  expect((await shop.settled.order(reference)).link).toMatchObject({ id: link?.id });
  const again = await openOrder(shop, reference);
  expect(again.status).toBe(200);
  expect(again.body.order.link.id).toBe(link?.id);
  await payLink(shop, link as { id: string });
  await expectPaid(shop, reference);
}

describe('opening a link over a bad network', () => {
  it.each([
    ['before it was made', { when: 'before', tells: false }, ['POST null', 'POST 201']],
    // By the token in the webhookUrl of the link that has the reference.
    ['after it was made', { tells: false }, ['POST null', 'POST 409', 'GET 200', 'GET 200']],
    ['after it was made, and an event tells of it', {}, ['POST null', 'GET 200']],
  ])('makes one link if the answer is lost %s', async (_when, options, answers) => {
    const { shop, answer } = await startUnanswered(options);
    expect(answer.status).toBe(201);
    expect(await answersOf(shop)).toEqual(answers);
    await expectOneLink(shop, 'order-1');
  });

  it('is answered 202 if the link takes more than 10 s, and continues in the background', async () => {
    const shop = await startShop();
    await plan(shop.sandbox, { fault: 'server-error', match: CREATION, count: 8 });
    const answer = await openWhilePassing(shop, 'order-1');
    expect(answer.status).toBe(202);
    expect(answer.body.order).toMatchObject({ reference: 'order-1', state: 'awaiting_payment', link: null });
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(answer.body.opening.detail).toMatch(/503.*next tries|is trying/);
    await passUntil(shop, async () => (await shop.settled.order('order-1')).link !== null);
    await expectOneLink(shop, 'order-1');
  });

  it('takes an event that comes before the answer to the creation', async () => {
    const shop = await startShop();
    await plan(shop.sandbox, { fault: 'early-event', match: CREATION });
    expect((await openOrder(shop, 'order-1')).status).toBe(201);
    const { events } = (await shop.settled.api('/v1/events')).body;
    expect(events).toMatchObject([{ type: 'payment_link.created', reference: 'order-1' }]);
    expect((await shop.settled.api('/v1/rejections')).body.rejections).toEqual([]);
    await expectOneLink(shop, 'order-1');
  });

  it.each([
    ['creation-status=200'],
    ['creation-envelope=beside-link'],
    ['creation-envelope=bare'],
    ['error-body=message'],
  ])('makes one link whatever the spec leaves open: %s', async (silence) => {
    const shop = await startShop({ switches: [silence] });
    expect((await openOrder(shop, 'order-1')).status).toBe(201);
    await expectOneLink(shop, 'order-1');
  });

  it('makes one link of every order of a crowd, half of whose answers are lost', async () => {
    const shop = await startShop();
    await dropFirstEvents(shop);
    for (let skip = 0; skip < 6; skip++) {
      await plan(shop.sandbox, { fault: 'lose-response', match: CREATION, skip, with: { when: 'after' } });
    }
    const references = Array.from({ length: 12 }, (_, index) => `order-${index}`);
    const opened = Promise.all(references.map((reference) => openOrder(shop, reference)));
    await pass(shop, 15_000);
    for (const { status } of await opened) expect([201, 202]).toContain(status);
    await passUntil(shop, async () => {
      const orders = await Promise.all(references.map((reference) => shop.settled.order(reference)));
      return orders.every(({ link }) => link !== null);
    });
    const links = await linksOf(shop);
    expect(links.map(({ externalReference }) => externalReference).sort()).toEqual([...references].sort());
  });
});

describe('opening a link whose reference is taken', () => {
  const TAKEN = { title: 'A chair', amount: 100, externalReference: 'order-1' };

  it('adopts nothing, tells a person, and keeps answering the shop', async () => {
    const shop = await startShop();
    await shop.sandbox.call('/payment-links', { body: TAKEN });
    for (let n = 0; n < 2; n++) {
      const answer = await openOrder(shop, 'order-1');
      expect(answer.status).toBe(409);
      expect(answer.body.title).toBe('reference_taken');
      expect(answer.body.detail).toMatch(/settled orders adopt order-1 --id pl_\w+$/);
    }
    expect((await shop.settled.order('order-1')).link).toBeNull();
    expect((await attentionOf(shop)).map(({ kind }) => kind)).toEqual(['reference_taken']);
    const requests = await requestsOf(shop.sandbox);
    expect(requests.map(({ method }) => method)).toEqual(['POST', 'POST', 'GET', 'GET']);
  });
});

describe('opening a link if the service lists none', () => {
  const SAID =
    /let the service send an event for it, or give the link to the order: settled orders adopt order-1 --id ID\./;

  it('says what a person can do, to the shop, in why, and as a matter; an event of the link heals it', async () => {
    const { shop, answer } = await startUnanswered({ service: 'sandbox' });
    expect(answer.status).toBe(202);
    const { opening } = answer.body;
    expect(opening).toEqual({ detail: expect.stringMatching(SAID), nextAttemptAt: expect.stringMatching(/^20/) });
    const waitsMs = Date.parse(opening.nextAttemptAt) - shop.sandbox.clock.nowMs();
    const retryAfter = Number(answer.headers.get('retry-after'));
    expect(retryAfter).toBeGreaterThan(3_000);
    expect(retryAfter).toBeLessThanOrEqual(3_600);
    expect(Math.abs(retryAfter - waitsMs / 1_000)).toBeLessThan(120);
    const { body } = await shop.settled.api('/v1/orders/order-1/timeline');
    expect(body.answer).toMatch(SAID);
    expect(body.next.join()).toMatch(/tries again to open the link at 20/);

    await pass(shop, 1_800_000, 300_000);
    expect((await shop.settled.order('order-1')).link).toBeNull();
    expect(await attentionOf(shop)).toMatchObject([{ kind: 'link_not_opened', detail: expect.stringMatching(SAID) }]);
    const requests = (await requestsOf(shop.sandbox)).filter(({ path }) => !path.endsWith('?page=1'));
    expect(requests.map(({ method, status }) => `${method} ${status}`)).toEqual(['POST null', 'POST 409', 'GET 403']);

    const [link] = await linksOf(shop);
    await act(shop.sandbox, link as { id: string }, 'events', { kind: 'payment_link.created' });
    await passUntil(shop, async () => (await shop.settled.order('order-1')).link !== null, { withinMs: 5_000 });
    expect((await shop.settled.order('order-1')).link).toMatchObject({ id: link?.id, status: 'ACTIVE' });
    expect(await attentionOf(shop)).toEqual([]);
    expect((await openOrder(shop, 'order-1')).status).toBe(200);
  });

  it('is healed by its id: the link is its own, and its webhooks are taken', async () => {
    const { shop } = await startUnanswered({ service: 'sandbox' });
    const [link] = (await linksOf(shop)) as { id: string }[];
    const adopted = await shop.settled.api('/v1/orders/order-1/adopt', { body: { id: link?.id } });
    expect(adopted).toMatchObject({
      status: 200,
      body: { order: { link: { id: link?.id } }, note: expect.stringMatching(/its webhooks verify/) },
    });
    expect(await attentionOf(shop)).toEqual([]);
    expect((await openOrder(shop, 'order-1')).status).toBe(200);
    await act(shop.sandbox, link as { id: string }, 'events', { kind: 'payment_link.created' });
    await pass(shop, 2_000);
    const { events } = (await shop.settled.api('/v1/events?reference=order-1')).body;
    expect(events).toContainEqual(expect.objectContaining({ type: 'payment_link.created', status: 'done' }));
    expect((await shop.settled.api('/v1/rejections')).body.rejections).toEqual([]);
  });
});
