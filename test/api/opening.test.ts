import { describe, expect, it } from 'vitest';
import { startTestApp } from '../support/app.ts';
import { act, createLink, plan } from '../support/sandbox.ts';
import { freshReference, sharedApp, sharedShop } from '../support/shared.ts';
import {
  check,
  expectPaid,
  type LoggedRequest,
  openOrder,
  passUntil,
  payLink,
  quiet,
  requestsOf,
  type Shop,
  startProxiedShop,
  startShop,
} from '../support/shop.ts';
import { get, orderPath, post, postText, problem } from './client.ts';

const DAY_MS = 86_400_000;
const inDays = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString();

/** Its links live for an hour and a half unless the shop says otherwise. */
const anyShop = sharedShop({ environment: { SETTLED_LINK_LIFETIME: '90m' } });

/** What the service was asked of this so far, and all that it was asked to make. Others may be asked about meanwhile. */
async function askedOf({ sandbox }: Shop, ...names: string[]): Promise<LoggedRequest[]> {
  const isMine = (path: string) => names.some((name) => path.endsWith(name));
  return (await requestsOf(sandbox)).filter(({ method, path }) => method === 'POST' || isMine(path));
}

describe('api: opening a link', () => {
  it('answers 201 with the order and the address of its link', async () => {
    const { sandbox, settled } = anyShop();
    const reference = freshReference();
    const answer = await openOrder({ sandbox, settled }, reference, { amount: '100.50' });
    expect(answer.status).toBe(201);
    const { link } = answer.body.order;
    expect(answer.body).toEqual({
      order: {
        reference,
        state: 'awaiting_payment',
        flags: [],
        amount: '100.50',
        currency: 'BRL',
        title: 'A chair',
        metadata: null,
        customer: null,
        createdAt: expect.any(String),
        paidAt: null,
        learnedBy: null,
        payment: null,
        payments: [],
        paymentsTotal: { count: 0, sums: [] },
        holds: [],
        hold: null,
        link: { id: link.id, url: link.url, shortUrl: link.shortUrl, status: 'ACTIVE', expiresAt: expect.any(String) },
        version: expect.any(Number),
      },
    });
    expect((await fetch(link.url)).status).toBe(200);
    expect(await settled.order(reference)).toEqual(answer.body.order);
  });

  it('takes a customer, by whom every surface finds the order and whom the service never gets', async () => {
    const shop = anyShop();
    const reference = freshReference();
    const customer = { name: 'Zoé Quintão', email: `zoe@${reference}.example` };
    const { status, body } = await openOrder(shop, reference, { customer });
    expect([status, body.order.customer]).toEqual([201, customer]);
    const made = (await shop.sandbox.call(`/payment-links/${body.order.link.id}`)).body;
    expect(JSON.stringify(made)).not.toMatch(/Zoé|zoe@/);
    for (const q of ['quintao', 'ZOÉ', customer.email]) {
      const query = new URLSearchParams({ q: `${q} ${reference}` });
      const listed = (await get(shop.settled, `/v1/orders?${query}&count=true`)).body;
      expect([q, listed.orders, listed.count.n]).toEqual([q, [expect.objectContaining({ reference, customer })], 1]);
      const lines = (await get(shop.settled, `/v1/orders.csv?${query}`)).text.trim().split('\r\n');
      expect(lines).toEqual([
        expect.stringContaining('shopCustomerName,shopCustomerEmail'),
        expect.stringContaining(`,${customer.name},${customer.email},`),
      ]);
    }
    const { answer } = (await get(shop.settled, `${orderPath(reference)}/timeline`)).body;
    expect(answer).toContain(`The shop said that the customer is ${customer.name} <${customer.email}>.`);
  });

  it.each([[{}], [null], [{ name: '', email: ' ' }], [{ name: null }]])(
    'takes %j for no customer',
    async (customer) => {
      const { status, body } = await openOrder(anyShop(), freshReference(), { customer });
      expect([status, body.order.customer]).toEqual([201, null]);
    },
  );

  it('gives the service everything that the shop said, our own address with a token, and an expiry', async () => {
    const { sandbox, settled } = anyShop();
    const reference = freshReference();
    const fields = {
      title: 'Two chairs, “oak”',
      description: 'First line\nsecond line',
      metadata: { cart: [1, { of: 'x' }], empty: {} },
      callbackUrl: 'https://shop.example.com/thanks?a=1',
    };
    const expiresAt = inDays(2);
    const { body } = await openOrder({ sandbox, settled }, reference, {
      ...fields,
      amount: 1234.56,
      expiresAt: expiresAt.replace('Z', '+00:00'),
    });
    const { paymentLink } = (await sandbox.call(`/payment-links/${body.order.link.id}`)).body;
    expect(paymentLink).toMatchObject({
      externalReference: reference,
      amount: 1234.56,
      title: fields.title,
      description: fields.description,
      metadata: { cart: [1, { of: 'x' }], empty: {} },
      callbackUrl: fields.callbackUrl,
      expiresAt,
    });
    expect(paymentLink.webhookUrl).toMatch(new RegExp(`^${settled.hooksUrl}/hooks/[A-Za-z0-9_-]{32}$`));
  });

  it('may be asked for by the shop; lets a link expire after its usual lifetime if the shop says nothing', async () => {
    const asked = { reference: freshReference(), title: 'A chair', amount: 100 };
    const { status, body } = await post(anyShop().settled, '/v1/orders', asked, 'shop');
    expect(status).toBe(201);
    const { paymentLink } = (await anyShop().sandbox.call(`/payment-links/${body.order.link.id}`)).body;
    const lifetimeMs = Date.parse(paymentLink.expiresAt) - Date.parse(body.order.createdAt);
    expect(lifetimeMs).toBe(90 * 60_000);
  });

  it('keeps a path prefix of the public address', async () => {
    const shop = await startShop({ environment: { SETTLED_PUBLIC_URL: 'http://127.0.0.1:9/behind/proxy/' } });
    const { body } = await openOrder(shop, 'order-1');
    const { paymentLink } = (await shop.sandbox.call(`/payment-links/${body.order.link.id}`)).body;
    expect(paymentLink.webhookUrl).toMatch(/^http:\/\/127\.0\.0\.1:9\/behind\/proxy\/hooks\/[A-Za-z0-9_-]{32}$/);
  });

  it('has a separate secret and token for every link', async () => {
    const shop = anyShop();
    const urls = new Set<string>();
    const references = [1, 2, 3].map(freshReference);
    for (const reference of references) {
      const { body } = await openOrder(shop, reference);
      const { paymentLink } = (await shop.sandbox.call(`/payment-links/${body.order.link.id}`)).body;
      urls.add(paymentLink.webhookUrl);
      await act(shop.sandbox, body.order.link, 'pay');
    }
    expect(urls.size).toBe(3);
    await shop.sandbox.idle();
    for (const reference of references) await expectPaid(shop, reference);
    expect((await shop.settled.api('/v1/rejections')).body.rejections).toEqual([]);
  });
});

describe('api: opening a link again', () => {
  const asked = {
    amount: '100.00',
    metadata: { a: 1, b: { c: 2, d: 3 } },
    callbackUrl: 'https://shop.example.com/thanks',
    customer: { name: 'Ana Souza', email: 'ana@example.com' },
  };

  it('answers 200 with the same order and link, and asks the service nothing', async () => {
    const shop = anyShop();
    const reference = freshReference();
    const first = await openOrder(shop, reference, asked);
    await quiet(shop);
    const askedSoFar = () => askedOf(shop, reference, first.body.order.link.id);
    const before = await askedSoFar();
    for (const same of [
      asked,
      { ...asked, amount: 100 },
      { ...asked, amount: '1e2', currency: 'BRL' },
      { ...asked, metadata: { b: { d: 3, c: 2 }, a: 1 } },
    ]) {
      const again = await openOrder(shop, reference, same);
      expect(again.status).toBe(200);
      expect(again.body).toEqual(first.body);
    }
    await quiet(shop);
    expect(await askedSoFar()).toEqual(before);
  });

  it.each([
    ['title', { title: 'Another' }],
    ['amount', { amount: '100.01' }],
    ['currency', { currency: 'USD' }],
    ['description', { description: 'more' }],
    ['expiresAt', { expiresAt: inDays(1) }],
    ['metadata', { metadata: { a: 1 } }],
    ['callbackUrl', { callbackUrl: 'https://shop.example.com/' }],
    ['customer', { customer: { name: 'Ana Souza', email: 'rui@example.com' } }],
  ])('answers 409 if %s is another, and names it', async (name, change) => {
    const shop = anyShop();
    const reference = freshReference();
    const first = await openOrder(shop, reference, asked);
    const other = await post(shop.settled, '/v1/orders', { reference, title: 'A chair', ...asked, ...change });
    const detail = problem(other, 409, 'reference_conflict');
    expect(detail).toMatch(new RegExp(`^Order ${reference} exists with other content: ${name}\\. Repeat`));
    expect((await openOrder(shop, reference, asked)).body).toEqual(first.body);
  });

  it('answers 200 if the customer of either is not known', async () => {
    const reference = freshReference();
    const customer = { name: 'Ana Souza', email: 'ana@example.com' };
    const first = await openOrder(anyShop(), reference, { customer });
    for (const same of [customer, { name: ' Ana Souza ' }, {}, null]) {
      expect(await openOrder(anyShop(), reference, { customer: same })).toMatchObject({
        status: 200,
        body: first.body,
      });
    }
  });

  it('answers 409 by the time alone, told by nobody that the link has expired, and opens no order until then', async () => {
    const { shop, proxy } = await startProxiedShop(startShop);
    const { sandbox, settled } = shop;
    const fields = { expiresAt: new Date(Date.now() + 3_600_000).toISOString() };
    await openOrder(shop, 'left', fields);
    const { body: begun } = await openOrder(shop, 'begun', fields);
    await act(sandbox, begun.order.link, 'pay', { complete: false });
    await passUntil(shop, async () => (await settled.order('begun')).state === 'payment_pending');
    const foreign = await createLink(sandbox, { amount: 100, externalReference: 'adopted', ...fields });
    expect((await openOrder(shop, 'adopted')).status).toBe(409);
    expect((await post(settled, `${orderPath('adopted')}/adopt`, { id: foreign.id })).status).toBe(200);
    // What settled asked before is answered before.
    await quiet(shop);
    await plan(sandbox, { fault: 'drop', count: null });
    proxy.answerWith(async () => ({ status: 503, headers: {}, text: '{}' }));
    await sandbox.clock.advance(2 * 3_600_000);
    await quiet(shop);
    for (const [reference, state, asked] of [
      ['left', 'awaiting_payment', fields],
      ['begun', 'payment_pending', fields],
      ['adopted', 'awaiting_payment', {}],
    ] as const) {
      expect([reference, (await settled.order(reference)).state]).toEqual([reference, state]);
      const again = await post(settled, '/v1/orders', { reference, title: 'A chair', amount: 100, ...asked });
      expect(problem(again, 409, 'link_expired'), reference).toContain('new reference');
      expect(JSON.stringify(again.body)).not.toContain('http');
    }
    expect((await openOrder(shop, 'new', fields)).status).toBe(422);
  });

  type Opened = Shop & { reference: string; link: { id: string } };
  async function opened(): Promise<Opened> {
    const reference = freshReference();
    const { body } = await openOrder(anyShop(), reference, asked);
    return { ...anyShop(), reference, link: body.order.link };
  }
  const inState = (shop: Opened, state: string) =>
    passUntil(shop, async () => (await shop.settled.order(shop.reference)).state === state);
  const cancelNow = ({ settled, reference }: Opened) => post(settled, `${orderPath(reference)}/cancel`, {});
  async function expire(shop: Opened): Promise<void> {
    await act(shop.sandbox, shop.link, 'expire');
    await inState(shop, 'expired');
  }
  async function beginAndExpire(shop: Opened): Promise<void> {
    await act(shop.sandbox, shop.link, 'pay', { complete: false });
    await inState(shop, 'payment_pending');
    await expire(shop);
  }
  async function disable(shop: Opened): Promise<void> {
    await act(shop.sandbox, shop.link, 'disable');
    await check(shop, shop.reference);
  }

  it.each([
    ['the order was cancelled', cancelNow, 'order_cancelled', 'was cancelled and cannot be paid. Use a new reference.'],
    ['the link has expired', expire, 'link_expired', 'new reference'],
    ['a begun payment was left until the link expired', beginAndExpire, 'link_expired', 'new reference'],
    ['the link is inactive and no payment known: it may have been paid', disable, 'link_expired', '/check'],
  ])('answers 409 without the address if %s', async (_name, become, code, words) => {
    const shop = await opened();
    const { reference } = shop;
    await become(shop);
    for (const same of [asked, { ...asked, amount: 50 }]) {
      const again = await post(shop.settled, '/v1/orders', { reference, title: 'A chair', ...same });
      expect(problem(again, 409, code)).toContain(words);
      expect(again.body.detail).toContain(reference);
      expect(JSON.stringify(again.body)).not.toMatch(/http|pay\//);
    }
  });

  it('has told the shop of a begun payment that was left until the link expired, and cancels its order', async () => {
    const shop = await opened();
    await beginAndExpire(shop);
    const { notices } = (await get(shop.settled, `/v1/notices?reference=${shop.reference}`)).body;
    const types = notices.map(({ type }: { type: string }) => type);
    expect(types).toEqual(['order.expired', 'order.payment_pending']);
    expect(await cancelNow(shop)).toMatchObject({ status: 200, body: { order: { state: 'cancelled' } } });
  });

  it('answers 200 if the order is paid: its state says so', async () => {
    const shop = anyShop();
    const reference = freshReference();
    const { body } = await openOrder(shop, reference, asked);
    await payLink(shop, body.order.link);
    await expectPaid(shop, reference);
    expect(await openOrder(shop, reference, asked)).toMatchObject({ status: 200, body: { order: { state: 'paid' } } });
  });

  it('makes one link of fifty identical requests at once', async () => {
    const shop = anyShop();
    const reference = freshReference();
    const creations = async () => (await askedOf(shop)).length;
    const before = await creations();
    const answers = await Promise.all(Array.from({ length: 50 }, () => openOrder(shop, reference, asked)));
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([...Array(49).fill(200), 201]);
    expect(new Set(answers.map(({ body }) => body.order.link.id)).size).toBe(1);
    expect(await creations()).toBe(before + 1);
  });

  it('answers 409 if the order was registered with a link of the shop', async () => {
    // No scheduled check falls due there.
    const shop = await startShop({ timeScale: 1e-6 });
    const { reference } = await shop.settled.reserve('order-1');
    const answer = await post(shop.settled, '/v1/orders', { reference, title: 'A', amount: 100 });
    const detail = problem(answer, 409, 'reference_conflict');
    expect(detail).toMatch(/POST \/v1\/links.*Use that link/);
    expect(detail).not.toContain('Repeat');
    expect(await requestsOf(shop.sandbox)).toEqual([]);
  });
});

describe('api: registering a link for an order that settled opens', () => {
  it.each([
    ['the same money', { amount: '100.00' }, 'ID'],
    ['other money, and an id', { amount: '1.00', id: 'pl 1', webhookSecret: 'x'.repeat(16) }, "'pl 1'"],
  ])('is refused with what can be done, for %s', async (_name, asked, id) => {
    const shop = anyShop();
    const reference = freshReference();
    const { body } = await openOrder(shop, reference, { amount: '100.00' });
    const answer = await post(shop.settled, '/v1/links', { reference, ...asked });
    const detail = problem(answer, 409, 'reference_conflict');
    expect(detail).toContain('settled creates its link');
    expect(detail).toContain(`settled orders adopt ${reference} --id ${id}`);
    expect(await shop.settled.order(reference)).toEqual(body.order);
  });
});

describe('api: a currency that ISO 4217 does not know', () => {
  it("is taken of an order if it is configured, and pays for the order's own money only", async () => {
    const { shop, proxy } = await startProxiedShop(startShop, { environment: { SETTLED_CURRENCY: 'BRL USDT:2' } });
    const inTheirs = (text: string) => text.replaceAll('"currency":"BRL"', '"currency":"USDT"');
    proxy.answerWith(async (_asked, pass) => {
      const answer = await pass();
      return { ...answer, text: inTheirs(answer.text) };
    });
    await plan(shop.sandbox, { fault: 'drop', count: null });
    const { status, body } = await openOrder(shop, 'order-1', { amount: '100.50', currency: 'USDT' });
    expect([status, body.order.amount, body.order.currency]).toEqual([201, '100.50', 'USDT']);
    for (const currency of ['USDC', 'usdt', 'USDT:2']) {
      expect((await openOrder(shop, 'order-2', { amount: '100.50', currency })).status).toBe(422);
    }
    expect((await openOrder(shop, 'order-2', { amount: '100.505', currency: 'USDT' })).status).toBe(422);
    const withheld = await openOrder(shop, 'order-3', { amount: '100.50' });
    expect([withheld.status, withheld.body.detail]).toEqual([422, expect.stringContaining('in USDT')]);
    await act(shop.sandbox, body.order.link, 'pay');
    expect((await check(shop, 'order-1')).status).toBe(200);
    expect(await shop.settled.order('order-1')).toMatchObject({ state: 'paid', currency: 'USDT', flags: [] });
  });
});

/** Without an API. */
const settled = sharedApp();

describe('api: what a request to open a link must be', () => {
  const usable = { title: 'A chair', amount: '100.00' };

  it.each([
    ['reference', { reference: '..' }],
    ['title', { title: '' }],
    ['title', { title: 'two\nlines' }],
    ['title', { title: 'x'.repeat(256) }],
    ['amount', { amount: true }],
    ['description', { description: 'x'.repeat(2_001) }],
    ['description', { description: 'a\u0000b' }],
    ['expiresAt', { expiresAt: '2030-01-31' }],
    ['expiresAt', { expiresAt: '2030-01-31T12:00:00' }],
    ['expiresAt', { expiresAt: 1_900_000_000_000 }],
    ['metadata', { metadata: [] }],
    ['metadata', { metadata: 'text' }],
    ['metadata', { metadata: null }],
    ['metadata', { metadata: { text: 'x'.repeat(8_192) } }],
    ['metadata', { metadata: { big: 9_007_199_254_740_992 } }],
    ['metadata', { metadata: JSON.parse(`${'{"a":'.repeat(9)}1${'}'.repeat(9)}`) }],
    ['customer', { customer: 'Ana Souza' }],
    ['customer.phone', { customer: { name: 'Ana', phone: '1' } }],
    ['customer.name', { customer: { name: 'x'.repeat(256) } }],
    ['customer.name', { customer: { name: 'two\nlines' } }],
    ['customer.name', { customer: { name: 1 } }],
    ['customer.email', { customer: { email: 'ana' } }],
    ['customer.email', { customer: { email: 'ana@a@example.com' } }],
    ['customer.email', { customer: { email: `${'x'.repeat(250)}@a.bc` } }],
    ['callbackUrl', { callbackUrl: 'javascript:alert(1)' }],
    ['callbackUrl', { callbackUrl: 'shop.example.com' }],
    ['callbackUrl', { callbackUrl: 'https:shop.example.com' }],
    ['callbackUrl', { callbackUrl: ' https://shop.example.com/' }],
    ['callbackUrl', { callbackUrl: 'https://shop.example.com/ ' }],
    ['callbackUrl', { callbackUrl: 'https://shop.example.com/two words' }],
    ['callbackUrl', { callbackUrl: 'https://user:password@shop.example.com/' }],
    ['callbackUrl', { callbackUrl: 'https://user@shop.example.com/' }],
    ['callbackUrl', { callbackUrl: `https://shop.example.com/${'x'.repeat(2_048)}` }],
  ])('a usable %s, not %j', async (name, change) => {
    const body = { reference: freshReference(), ...usable, ...change };
    const answer = await post(settled(), '/v1/orders', body);
    problem(answer, 400, 'invalid_request');
    expect(answer.body.errors.map(({ path }: { path: string }) => path)).toEqual([name]);
  });

  it.each([
    ['amount', { amount: '25' }, 'more than 25:'],
    ['amount', { amount: '25.00' }, 'more than 25:'],
    ['amount', { amount: '30.000' }, 'may mean thousands: write 30 or 30000'],
    ['amount', { amount: 25, currency: 'JPY' }, 'more than 25:'],
    ['amount', { amount: '25.000', currency: 'KWD' }, 'more than 25:'],
    ['amount', { amount: '24.99', currency: 'USD' }, 'more than 25:'],
    ['amount', { amount: 0 }, 'more than 25:'],
    ['amount', { amount: '-30' }, 'more than 25:'],
    ['amount', { amount: 'thirty' }, ''],
    ['amount', { amount: '30.005' }, ''],
    ['currency', { amount: '30', currency: 'brl' }, ''],
    ['currency', { amount: '30', currency: 'XXZ' }, ''],
    ['expiresAt', { expiresAt: '2020-01-31T12:00:00Z' }, 'must be in the future'],
    ['expiresAt', { expiresAt: inDays(366) }, 'must be within a year'],
  ])('a possible %s, not %j %s', async (path, change, words) => {
    const answer = await post(settled(), '/v1/orders', { reference: freshReference(), ...usable, ...change });
    expect(problem(answer, 422, 'invalid_request')).toContain(words);
    expect(answer.body.errors).toMatchObject([{ path }]);
  });

  it.each([
    [422, '"amount":33.3301', /^amount: .*more decimals than BRL has/],
    [422, '"amount":999999999999999.991', /^amount: .*(more decimals|counted exactly)/],
    [422, '"amount":1e400', /^amount: .*counted exactly/],
    [400, '"amount":30,"metadata":{"n":1e999}', /metadata/],
  ])('numbers that can be read as they are written, or it answers %i: %s', async (status, fields, words) => {
    const text = `{"reference":"${freshReference()}","title":"A",${fields}}`;
    expect(problem(await postText(settled(), '/v1/orders', text), status, 'invalid_request')).toMatch(words);
  });

  it('refused before the service is asked anything, and before an order is made', async () => {
    const shop = anyShop();
    const reference = freshReference();
    await quiet(shop);
    const before = await askedOf(shop, reference);
    const answer = await openOrder(shop, reference, { amount: '25.00' });
    expect(answer.status).toBe(422);
    await quiet(shop);
    expect(await askedOf(shop, reference)).toEqual(before);
    expect((await get(shop.settled, orderPath(reference))).status).toBe(404);
    expect((await openOrder(shop, reference, { amount: '25.01' })).status).toBe(201);
  });
});

describe('api: opening a link if that is not possible', () => {
  it('answers 503 without an API, and makes no order', async () => {
    const reference = freshReference();
    const answer = await post(settled(), '/v1/orders', { reference, title: 'A', amount: 100 });
    expect(problem(answer, 503, 'api_not_configured')).toContain('SETTLED_API_URL');
    // It takes a restart: coming again would not help.
    expect(answer.headers['retry-after']).toBeUndefined();
    expect((await get(settled(), orderPath(reference))).status).toBe(404);
  });

  // Which addresses the service reaches is the configuration's to say.
  it.each(['http://pay.example.com', 'https://10.0.0.1'])(
    'answers 503 if the public address is %s, and makes no order',
    async (publicUrl) => {
      const app = await startTestApp({
        environment: {
          SETTLED_PUBLIC_URL: publicUrl,
          SETTLED_API_URL: 'https://service.example.com',
          SETTLED_API_KEY: 'key',
        },
      });
      const answer = await post(app, '/v1/orders', { reference: 'order-1', title: 'A', amount: 100 });
      expect(problem(answer, 503, 'public_url_not_public')).toContain('SETTLED_PUBLIC_URL');
      expect(answer.headers['retry-after']).toBeUndefined();
      expect((await get(app, orderPath('order-1'))).status).toBe(404);
    },
  );
});
