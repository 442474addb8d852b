import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { busiestMinute } from '../../prove/harness/proof.ts';
import { type Creation, type ServiceProxy, startServiceProxy } from '../../prove/service_proxy.ts';
import { testFolder } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { tamper } from '../support/rows.ts';
import { plan, startTestSandbox } from '../support/sandbox.ts';
import {
  cancel,
  dropFirstEvents,
  openOrder,
  pass,
  passUntil,
  requestsOf,
  type Shop,
  type ShopOptions,
  startShop,
} from '../support/shop.ts';

const CREATION = { method: 'POST', path: '/api/v1/payment-links' };

/** A shop whose requests to the service pass through a proxy, and that hears of no creation by an event. */
async function startBehindProxy(options: ShopOptions = {}): Promise<{ shop: Shop; proxy: ServiceProxy }> {
  const proxy = await startServiceProxy();
  onTestFinished(() => proxy.close());
  const environment = { SETTLED_API_URL: proxy.url, ...options.environment };
  const shop = await startShop({ ...options, environment });
  proxy.serviceUrl = shop.sandbox.url;
  await dropFirstEvents(shop);
  return { shop, proxy };
}

/** Another answer than the first creation deserves, after it was carried out or without that. */
type Mischief = (creation: Creation) => Promise<void> | void;

function spoilFirst(proxy: ServiceProxy, mischief: Mischief): void {
  const { onCreation } = proxy;
  proxy.onCreation = async (creation) => {
    if (creation.number === 1) await mischief(creation);
    else await onCreation(creation);
  };
}

/** Every link is made as asked, and told otherwise. */
function retell(proxy: ServiceProxy, change: (body: string) => string): void {
  proxy.onCreation = async (creation) => {
    await creation.carryOut(change);
    creation.answer();
  };
}

/** Why the order has no link so far, as attention says it. */
async function waitsFor({ settled }: Shop, reference: string): Promise<string> {
  const { body } = await settled.api(`/v1/orders/${reference}/timeline`);
  return JSON.stringify(body);
}

async function whenOpened(shop: Shop, reference: string): Promise<void> {
  await passUntil(shop, async () => (await shop.settled.order(reference)).link !== null);
}

async function expectLinks({ sandbox }: Shop, references: string[]): Promise<void> {
  const { links } = (await sandbox.control('/links')).body;
  const found = links.map((link: { externalReference: string }) => link.externalReference);
  expect(found.sort()).toEqual([...references].sort());
}

const PAGE = { status: 200, headers: { 'content-type': 'text/html' }, body: '<html>Welcome</html>' };

describe('a service that answers the creation with what cannot be used', () => {
  const made =
    (other: Parameters<Creation['answerWith']>[0]): Mischief =>
    async (creation) => {
      await creation.carryOut();
      creation.answerWith(other);
    };
  const unmade =
    (other: Parameters<Creation['answerWith']>[0]): Mischief =>
    (creation) =>
      creation.answerWith(other);

  it.each<[string, string, Mischief]>([
    ['500', 'service_failed', unmade({ status: 500 })],
    ['500 after it made the link', 'service_failed', made({ status: 500 })],
    ['a page', 'service_answer_unusable', unmade(PAGE)],
    ['a page after it made the link', 'service_answer_unusable', made(PAGE)],
    ['a redirect', 'service_answer_unusable', unmade({ status: 302, headers: { location: '/' } })],
    ['10 MB', 'service_answer_too_large', made({ status: 201, body: Buffer.alloc(10_000_000, ' ') })],
    ['half a body', 'service_unreachable', made({ status: 201, body: '{', isCut: true })],
    ['nothing: the connection breaks', 'service_unreachable', made(null)],
    ['no link', 'service_answer_unusable', made({ status: 201, body: '{"success":true}' })],
  ])('%s: names the fault %s, continues, and delays no other order', async (_name, code, mischief) => {
    const { shop, proxy } = await startBehindProxy();
    spoilFirst(proxy, mischief);
    const first = openOrder(shop, 'order-1');
    await expect.poll(() => waitsFor(shop, 'order-1')).toContain(code);
    expect((await openOrder(shop, 'order-2')).status).toBe(201);
    await whenOpened(shop, 'order-1');
    expect([201, 202]).toContain((await first).status);
    await expectLinks(shop, ['order-1', 'order-2']);
  });

  it('nothing at all: the shop is answered 202 within 10 s, and gets the link that was made', async () => {
    const { shop, proxy } = await startBehindProxy();
    const { onCreation } = proxy;
    proxy.onCreation = async (creation) => {
      await creation.carryOut();
      if (creation.number > 1) await onCreation(creation);
    };
    const answer = await openOrder(shop, 'order-1');
    expect(answer.status).toBe(202);
    await expect.poll(() => waitsFor(shop, 'order-1')).toContain('service_timeout');
    await whenOpened(shop, 'order-1');
    await expectLinks(shop, ['order-1']);
  });

  it('429: is not asked again before its Retry-After', async () => {
    const shop = await startShop();
    await plan(shop.sandbox, { fault: 'rate-limit', match: CREATION, with: { retryAfterSeconds: 600 } });
    const answered = openOrder(shop, 'order-1');
    // The sandbox's clock also runs in real time: there is room for a slow machine.
    await pass(shop, 300_000, 30_000);
    expect((await answered).status).toBe(202);
    expect(await waitsFor(shop, 'order-1')).toContain('service_rate_limited');
    expect(await requestsOf(shop.sandbox)).toHaveLength(1);
    await whenOpened(shop, 'order-1');
    await expectLinks(shop, ['order-1']);
  });
});

describe('a service that makes another link than was asked', () => {
  it('in another currency: settled withholds it and tells a person', async () => {
    const shop = await startShop();
    for (let n = 0; n < 2; n++) {
      const answer = await openOrder(shop, 'order-1', { currency: 'USD' });
      expect(answer.status).toBe(422);
      expect(answer.body).toMatchObject({
        title: 'link_withheld',
        detail: expect.stringMatching(
          /BRL.*USD.*panel.*with another reference.*settled keeps watching .*until it expires/,
        ),
      });
    }
    expect((await shop.settled.order('order-1')).link).toBeNull();
    const { attention } = (await shop.settled.api('/v1/attention')).body;
    expect(attention).toMatchObject([{ kind: 'link_withheld' }]);
  });

  it.each([
    ['a smaller amount', '"amount":100', '"amount":10'],
    ['a larger amount', '"amount":100', '"amount":1000'],
    ['a little more', '"amount":100', '"amount":100.01'],
    ['another reference', '"externalReference":"order-1"', '"externalReference":"order-2"'],
  ])('with %s: it is withheld', async (_name, from, to) => {
    const { shop, proxy } = await startBehindProxy();
    retell(proxy, (body) => body.replace(from, to));
    const answer = await openOrder(shop, 'order-1');
    expect(answer).toMatchObject({ status: 422, body: { title: 'link_withheld' } });
    expect((await shop.settled.order('order-1')).link).toBeNull();
  });

  it.each([
    ['', /"url":"[^"]*",/, ['POST', 'GET']],
    ['"url":"javascript:alert(1)",', /"url":"[^"]*",/, ['POST', 'GET']],
    ['', /"currency":"[^"]*",/, ['POST', 'GET']],
    ['', /"webhookUrl":"[^"]*",?/, ['POST']],
  ])('with %j in place of %s: is asked for what is missing, if it is needed: %j', async (to, from, methods) => {
    const { shop, proxy } = await startBehindProxy();
    retell(proxy, (body) => body.replace(from, to));
    const answer = await openOrder(shop, 'order-1');
    expect(answer.status).toBe(201);
    expect(answer.body.order.link.url).toMatch(/^http/);
    expect((await requestsOf(shop.sandbox)).map(({ method }) => method)).toEqual(methods);
  });
});

it('a store that fails after the request left: the link may be there, and the order cannot be cancelled', async () => {
  const { shop, proxy } = await startBehindProxy();
  const { storePath } = shop.settled;
  // No event names the link: only the answer does, and that cannot be written.
  spoilFirst(proxy, async (creation) => {
    tamper(
      storePath,
      `CREATE TRIGGER broken BEFORE UPDATE OF link_id ON link BEGIN SELECT RAISE(ABORT, 'it is broken'); END`,
    );
    await creation.carryOut();
    creation.answer();
  });
  await plan(shop.sandbox, { fault: 'drop', count: null });
  const answered = openOrder(shop, 'order-1');
  await pass(shop, 12_000);
  expect((await answered).status).toBe(202);
  expect(await cancel(shop, 'order-1')).toMatchObject({ status: 503, body: { title: 'link_unknown' } });
  tamper(storePath, 'DROP TRIGGER broken');
  await whenOpened(shop, 'order-1');
  await expectLinks(shop, ['order-1']);
});

describe('a service that refuses', () => {
  it('the request: the shop gets the words of the service, and can use the reference again', async () => {
    const { shop, proxy } = await startBehindProxy();
    const body = JSON.stringify({ error: { message: 'title must not rhyme' } });
    spoilFirst(proxy, (creation) => creation.answerWith({ status: 400, body }));
    const refused = await openOrder(shop, 'order-1', { title: 'Chair, where?' });
    expect(refused).toMatchObject({
      status: 422,
      body: { title: 'refused_by_service', detail: expect.stringContaining('title must not rhyme') },
    });
    expect((await shop.settled.api('/v1/orders/order-1')).status).toBe(404);
    expect((await openOrder(shop, 'order-1', { title: 'Another', amount: 50 })).status).toBe(201);
  });

  it('the request: nothing is believed of a link that it did not make', async () => {
    const { shop, proxy } = await startBehindProxy();
    const sent = Promise.withResolvers<{ webhookUrl: string; webhookSecret: string }>();
    proxy.onCreation = async (creation) => {
      sent.resolve(JSON.parse(creation.body));
      creation.answerWith({ status: 400, body: '{}' });
    };
    expect((await openOrder(shop, 'order-1')).status).toBe(422);
    const { webhookUrl, webhookSecret } = await sent.promise;
    const body = paymentEvent({ linkId: 'pl_1', amount: '100.00' });
    const headers = signedHeaders(webhookSecret, body, String(shop.sandbox.clock.nowMs()));
    expect((await fetch(webhookUrl, { method: 'POST', body, headers })).status).toBe(401);
  });

  it('the request after an answer was lost: the link that it made is found all the same', async () => {
    const { shop, proxy } = await startBehindProxy();
    proxy.onCreation = async (creation) => {
      if (creation.number === 1) {
        await creation.carryOut();
        creation.answerWith(null);
      } else creation.answerWith({ status: 400, body: '{}' });
    };
    const answered = openOrder(shop, 'order-1');
    await whenOpened(shop, 'order-1');
    expect((await answered).status).toBe(201);
    await expectLinks(shop, ['order-1']);
  });

  it('the merchant: the shop is answered 503, a person told, and the order opened later', async () => {
    const { shop, proxy } = await startBehindProxy();
    const inactive = await startTestSandbox({ merchantInactive: true, apiKey: shop.sandbox.apiKey });
    proxy.serviceUrl = inactive.url;
    const answer = await openOrder(shop, 'order-1');
    expect(answer).toMatchObject({ status: 503, body: { title: 'api_key_refused' } });
    const { attention } = (await shop.settled.api('/v1/attention')).body;
    expect(attention).toMatchObject([{ kind: 'merchant_inactive' }]);
    proxy.serviceUrl = shop.sandbox.url;
    await whenOpened(shop, 'order-1');
    expect((await shop.settled.api('/v1/attention')).body.attention).toEqual([]);
  });

  it('the key: the shop is answered 503 until it is repaired in its file', async () => {
    const file = join(testFolder(), 'key');
    writeFileSync(file, 'an-old-key\n');
    const { shop } = await startBehindProxy({ api: false, environment: { SETTLED_API_KEY_FILE: file } });
    const answer = await openOrder(shop, 'order-1');
    expect(answer).toMatchObject({ status: 503, body: { title: 'api_key_refused' } });
    expect(JSON.stringify(answer.body)).not.toContain('an-old-key');
    const { attention } = (await shop.settled.api('/v1/attention')).body;
    expect(attention).toMatchObject([{ kind: 'api_key_refused' }]);
    await pass(shop, 120_000, 30_000);
    const again = openOrder(shop, 'order-1');
    await pass(shop, 11_000);
    expect(await again).toMatchObject({ status: 503, body: { title: 'api_key_refused' } });
    writeFileSync(file, `${shop.sandbox.apiKey}\n`);
    await whenOpened(shop, 'order-1');
    expect((await openOrder(shop, 'order-1')).status).toBe(200);
  });
});

describe('opening more links than the budget allows', () => {
  it('answers 202 to the rest, and opens them later within the limit', async () => {
    const shop = await startShop({ rateLimit: 60, environment: { SETTLED_API_BUDGET_PER_MINUTE: '10' } });
    const references = Array.from({ length: 24 }, (_, index) => `order-${index}`);
    const opened = Promise.all(references.map((reference) => openOrder(shop, reference)));
    await pass(shop, 12_000);
    const statuses = (await opened).map(({ status }) => status);
    expect(statuses.filter((status) => status === 201)).toHaveLength(10);
    expect(statuses.filter((status) => status === 202)).toHaveLength(14);
    const isOpen = async () => (await shop.settled.api('/v1/stats')).body.stats.openings.pending === 0;
    await passUntil(shop, isOpen, { stepMs: 5_000 });
    await expectLinks(shop, references);
    const momentsMs = (await requestsOf(shop.sandbox)).map(({ epochMs }) => epochMs);
    expect(busiestMinute(momentsMs)).toBeLessThanOrEqual(10);
  });
});
