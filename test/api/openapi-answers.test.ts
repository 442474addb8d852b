import { afterAll, describe, expect, it } from 'vitest';
import { type CallersOptions, openCallers } from '../../src/access/identify.ts';
import type { ApiOptions } from '../../src/api/route.ts';
import { apiRoutes, ROUTES } from '../../src/api/router.ts';
import { Fault } from '../../src/fault.ts';
import { createApp } from '../../src/http/app.ts';
import { openLog } from '../../src/observe/log.ts';
import { openKeyring } from '../../src/secrets/keyring.ts';
import { sqliteAddress } from '../../src/store/address.ts';
import { systemClock } from '../../src/work/clock.ts';
import { signIn } from '../support/access.ts';
import { OPERATOR_TOKEN, SHOP_TOKEN, startTestApp, type TestApp } from '../support/app.ts';
import { SHOP_SECRET } from '../support/callback.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { DOCUMENTED, problemsOf, responseOf, SEEN } from '../support/document.ts';
import { serveHere } from '../support/http.ts';
import type { Passed } from '../support/network.ts';
import { startReceiver } from '../support/receiver.ts';
import { startEndlessRun, tamper } from '../support/rows.ts';
import { act, createLink } from '../support/sandbox.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import {
  allSettled,
  cancel,
  check,
  openLink,
  openOrder,
  pass,
  passUntil,
  payLink,
  requestsOf,
  type Shop,
  startProxiedShop,
  startShop,
} from '../support/shop.ts';
import { followTail } from '../support/tail.ts';
import { eventually } from '../support/timing.ts';
import { bySession, crossSite, deliverAndSee, get, heldOrder, orderPath, paidOrder, post, postText } from './client.ts';

/**
 * Every answer that the document has is provoked here, and held against it by what `api`, `get` and `post` expect of every
 * answer. At the end it is said what was not seen: nothing is left that could not be provoked.
 */

/** An id of the kind that the path wants, of nothing that is there; a body that the route takes. */
function pathOf(path: string): string {
  return path
    .replace(':reference', 'nobodys')
    .replace(/\/notices\/:id/, '/notices/msg_999_x')
    .replace(':id', '999');
}

const refused = (status: number, body: object = {}): Passed => ({
  status,
  headers: { 'content-type': 'application/json' },
  text: JSON.stringify(body),
});

describe('the answers of the document', () => {
  /** Not of some of the tests alone. */
  // biome-ignore lint/correctness/noEmptyPattern: the suite is the second argument
  afterAll(({}, { tasks }) => {
    if (tasks.some(({ mode }) => mode === 'skip')) return;
    const documented = DOCUMENTED.flatMap(({ method, path, operation }) => {
      const problems = problemsOf(operation).map(({ status, code }) => `${status} ${code}`);
      const answers = Object.keys(operation.responses).filter(
        (status) => !('application/problem+json' in (responseOf(operation, status)?.content ?? {})),
      );
      return [...answers, ...problems].map((answer) => `${method} ${path} ${answer}`);
    });
    expect(documented.length).toBeGreaterThan(200);
    expect(documented.filter((answer) => !SEEN.has(answer))).toEqual([]);
  });

  /** Without an API. */
  const alone = sharedApp();

  it('by rule: who may not, what is not there, what cannot be read', async () => {
    const { settled } = await startShop();
    const { cookie } = await signIn(settled);
    for (const { method, path, allowed, operation } of ROUTES) {
      const place = pathOf(path);
      const body = operation.example ?? {};
      const sent = { method: method.toUpperCase(), ...(method === 'post' ? { body } : {}) };
      await settled.api(place, { ...sent, token: 'nobodys' });
      await crossSite(settled, method, place, cookie);
      if (allowed !== null && !allowed.shop) await settled.api(place, { ...sent, token: SHOP_TOKEN });
      if (path.includes(':')) await settled.api(place, sent);
      if (method === 'post') {
        await settled.api(place, { body: { surprise: 1 } });
        await postText(settled, place, JSON.stringify({ text: 'x'.repeat(70_000) }));
        await postText(settled, place, 'text', { 'content-type': 'text/plain' });
      } else if (path.startsWith('/v1/')) await settled.api(`${place}?surprise=1`);
    }
  });

  it('by rule: a store that is busy, and a bug', async () => {
    for (const error of [new Fault('transient', 'store_busy', 'The store is busy.'), new Error('a bug')]) {
      const settled = await startBroken(error);
      for (const { method, path, operation } of ROUTES) {
        const example = { reference: 'order', amount: '30.00', ...operation.example };
        const body = Object.fromEntries(
          Object.entries(example).filter(([name]) => name in (operation.body?.shape ?? {})),
        );
        const place = pathOf(path);
        if (method === 'post') await post(settled, place, body);
        else await get(settled, place);
      }
    }
  });

  it('of opening, checking and cancelling', async () => {
    const { shop, proxy } = await startProxiedShop(startShop);
    const { sandbox, settled } = shop;
    await openLink(shop, 'order-1');
    await openOrder(shop, 'order-1');
    await openOrder(shop, 'order-1', { title: 'Another' });
    await openOrder(shop, 'order-2', { amount: 25 });
    await check(shop, 'order-1');
    await cancel(shop, 'order-1');
    await openOrder(shop, 'order-1');
    await openOrder(shop, 'order-usd', { currency: 'USD' });
    await settled.api('/v1/admin/reconcile', { body: {} });

    await act(sandbox, await openLink(shop, 'order-expired'), 'expire');
    await passUntil(shop, async () => (await settled.order('order-expired')).state === 'expired');
    await openOrder(shop, 'order-expired');

    await payLink(shop, await openLink(shop, 'order-paid'));
    await allSettled(shop);
    await cancel(shop, 'order-paid');

    const foreign = await createLink(sandbox, { amount: 100, externalReference: 'order-taken' });
    await openOrder(shop, 'order-taken');
    const adopt = () => settled.api(`${orderPath('order-taken')}/adopt`, { body: { id: foreign.id } });
    proxy.answerWith(async () => refused(500));
    await adopt();
    proxy.passAll();
    await adopt();
    await adopt();

    await settled.api('/v1/links', {
      body: { reference: 'order-none', amount: 100, id: 'pl_none', webhookSecret: 'x'.repeat(32) },
    });
    await askAbout(shop, 'order-none');

    proxy.answerWith(async ({ method }) => (method === 'POST' ? refused(400, { error: 'no' }) : undefined));
    await openOrder(shop, 'order-refused');
    await openLinkLate(shop, () => proxy.answerWith(async () => refused(500)));

    proxy.passAll();
    await openLink(shop, 'order-3');
    proxy.answerWith(async () => refused(500));
    await askAbout(shop, 'order-3');
  });

  it('of a key that the service refuses', async () => {
    const { shop, proxy } = await startProxiedShop(startShop);
    await openLink(shop, 'order-1');
    await createLink(shop.sandbox, { amount: 100, externalReference: 'order-taken' });
    await openOrder(shop, 'order-taken');
    const { settled } = shop;
    const asks = [
      () => openOrder(shop, 'order-2'),
      () => check(shop, 'order-1'),
      () => cancel(shop, 'order-1'),
      () => settled.api(`${orderPath('order-taken')}/adopt`, { body: { id: 'pl_1' } }),
    ];
    for (const [n, ask] of asks.entries()) {
      // An opening that succeeds ends the pause after a refusal.
      proxy.passAll();
      await openLink(shop, `order-between-${n}`);
      proxy.answerWith(async () => refused(401));
      await ask();
    }
  });

  it('without an API, or with an address that the service cannot reach', async () => {
    const app = alone();
    const reference = freshReference();
    const order = { reference, title: 'A', amount: 100 };
    await app.api('/v1/orders', { body: order });
    await app.reserve(reference);
    await askAbout({ settled: app }, reference);
    await app.api('/v1/admin/reconcile', { body: {} });
    await app.api(`${orderPath(reference)}/adopt`, { body: { id: 'pl_1' } });
    const environment = {
      SETTLED_PUBLIC_URL: 'http://pay.example.com',
      SETTLED_API_URL: 'https://service.example.com',
      SETTLED_API_KEY: 'key',
    };
    await (await startTestApp({ environment })).api('/v1/orders', { body: order });
  });

  it('of links, orders and events', async () => {
    const app = alone();
    const secret = { webhookSecret: 'a-secret-of-the-shop-0001' };
    const link = { reference: 'linked-1', amount: '100.00' };
    const send = (change: object, token = OPERATOR_TOKEN) =>
      app.api('/v1/links', { body: { ...link, ...change }, token });
    await send({ id: 'pl_1', ...secret });
    await send({ id: 'pl_1' });
    await send({ webhookSecret: 'another-secret-0002' }, SHOP_TOKEN);
    await send({ amount: '50.00' });
    await send({ amount: 'x' });
    await send({ reference: 'linked-2', id: 'pl_1', ...secret });

    const { reference } = await paidOrder(app, 'order-paid');
    await send({ reference, id: 'pl_other' });
    const held = await heldOrder(app, 'order-held');
    const resolve = (decision: string) =>
      app.api(`${orderPath(held.reference)}/resolve`, { body: { decision, reason: 'seen' } });
    const refund = paymentEvent({
      linkId: `pl_${held.reference}`,
      status: 'REFUNDED',
      paymentId: `pay_${held.reference}`,
      amount: '60.00',
    });
    await deliverAndSee(app, held.link, refund, 'held');
    await eventually(async () => {
      expect((await app.order(held.reference)).payment).toMatchObject({ status: 'refunded' });
    });
    await app.api(`${orderPath(held.reference)}/resolve`, { body: { decision: 'accept' } });
    await resolve('accept');
    await resolve('reject');
    await app.api(`${orderPath(reference)}/resolve`, { body: { decision: 'accept', reason: 'seen' } });
    await app.api('/v1/orders');
    for (const path of ['orders?amountTo=0.001', 'orders.csv?amountTo=0.001', 'orders.csv']) {
      await app.api(`/v1/${path}`);
    }
    await app.api(`${orderPath(reference)}/timeline`);

    const { id } = (await app.api('/v1/events')).body.events[0];
    await app.api(`/v1/events/${id}`);
    await app.api(`/v1/events/${id}/replay`, { body: {} });
    await eventually(async () => expect((await app.api(`/v1/events/${id}`)).body.event.status).toBe('done'));
    tamper(app.storePath, `UPDATE inbox SET status = 'pending', due_at_ms = 9999999999999 WHERE key = ?`, id);
    await app.api(`/v1/events/${id}/replay`, { body: {} });
    tamper(app.storePath, `UPDATE inbox SET status = 'done' WHERE key = ?`, id);
    tamper(app.storePath, 'DELETE FROM inbox_body WHERE inbox_key = ?', id);
    await app.api(`/v1/events/${id}/replay`, { body: {} });
    await app.api('/v1/rejections');
    const captured = { signature: 'ab'.repeat(32), timestamp: '1760000000000', bodyBase64: 'e30=' };
    await app.api(`${orderPath(reference)}/verify`, { body: captured });
  });

  it('of notices, the feed, and what a person does', async () => {
    const app = await startTestApp();
    const tail = await followTail(app);
    const { link } = await paidOrder(app, 'order-1');
    await app.deliver(link, 'not JSON');
    await eventually(async () => expect((await app.api('/v1/attention')).body.attention).toHaveLength(1));
    const [matter] = (await app.api('/v1/attention')).body.attention;
    await app.api(`/v1/attention/${matter.id}/end`, { body: { reason: 'seen' } });
    const [notice] = (await app.api('/v1/notices')).body.notices;
    await app.api(`/v1/notices/${notice.id}`);
    await app.api(`/v1/notices/${notice.id}/resend`, { body: {} });
    tamper(app.storePath, `UPDATE outbox SET status = 'done', due_at_ms = NULL, ended_at_ms = 1`);
    await app.api(`/v1/notices/${notice.id}/resend`, { body: {} });
    for (const preview of [true, false]) {
      await app.api('/v1/bulk', { body: { action: 'resend_notices', filter: { status: 'done' }, preview } });
    }
    await app.api('/v1/bulk', { body: { action: 'resend_notices', filter: {} } });
    await app.api('/v1/bulk', { body: { action: 'check_orders', filter: { state: 'paid' } } });
    await app.api('/v1/bulk');
    await app.api('/v1/bulk/1');
    startEndlessRun(app.storePath, 7);
    for (let n = 0; n < 2; n++) await app.api('/v1/bulk/7/cancel', { body: {} });
    await app.api('/v1/feed');
    await app.api(`/v1/feed?after=${Buffer.from('f99.1').toString('base64url')}`);
    await tail.first('settled');
    await app.api('/v1/tail', { method: 'HEAD' });
    await app.api('/v1/stats');
    for (const path of ['/v1/hints', '/v1/drift', '/v1/checks', '/v1/admin/installation']) await app.api(path);
    await app.api('/v1/admin/doctor');
    await app.api('/v1/admin/backup', { body: {} });
    await app.api('/v1/admin/rotate-key', { body: {} });
    await app.api('/v1/admin/test-alerts', { body: {} });
    const ana = { name: 'ana', role: 'viewer' };
    const { secret } = (await app.api('/v1/tokens', { body: ana })).body.token;
    await app.api('/v1/tokens', { body: ana });
    const { cookie, own } = await signIn(app, secret);
    await bySession(app, 'post', '/v1/sign-in-links', own);
    await crossSite(app, 'get', '/v1/orders', cookie);
    const [session] = (await app.api('/v1/sessions')).body.sessions;
    await app.api(`/v1/sessions/${session.id}/end`, { body: {} });
    await app.api('/v1/tokens/ana/revoke', { body: {} });
    await app.api('/v1/sign-in-links', { body: {} });
    for (const path of ['/v1/tokens', '/v1/audit', '/v1/audit/verification']) await app.api(path);
    for (const path of ['/metrics', '/livez', '/readyz', '/openapi.json']) await app.api(path);
    void app.app.stop();
    await app.api('/readyz');
    const given = { SETTLED_SECRETS_KEY: Buffer.alloc(32, 1).toString('base64') };
    const hook = await startReceiver();
    const alerts = {
      SETTLED_ALERT_URL: hook.url,
      SETTLED_ALERT_SECRET: SHOP_SECRET,
      SETTLED_ALERT_ALLOW_PRIVATE: 'true',
    };
    const ruled = await startTestApp({ environment: { ...given, ...alerts } });
    await ruled.api('/v1/admin/test-alerts', { body: {} });
    await ruled.api('/v1/admin/rotate-key', { body: {} });
    const shared = await startTestApp({ engine: 'postgres' });
    await shared.api('/v1/admin/backup', { body: {} });
  });
});

/** Everything that asks the service about one link. */
async function askAbout(shop: Pick<Shop, 'settled'>, reference: string): Promise<void> {
  const { settled } = shop;
  await settled.api(`${orderPath(reference)}/check`, { method: 'POST' });
  await settled.api(`${orderPath(reference)}/cancel`, { method: 'POST' });
}

/** An order whose link the service has perhaps made, and does not tell. */
async function openLinkLate(shop: Shop, fail: () => void): Promise<void> {
  fail();
  const before = (await requestsOf(shop.sandbox)).length;
  const opening = openOrder(shop, 'order-late');
  await passUntil(shop, async () => (await shop.settled.api(orderPath('order-late'))).status === 200, { stepMs: 100 });
  await askAbout(shop, 'order-late');
  await pass(shop, 11_000);
  expect((await opening).status).toBe(202);
  expect((await requestsOf(shop.sandbox)).length).toBe(before);
}

/** The API over a store that fails at everything. */
async function startBroken(error: Error): Promise<TestApp> {
  const fails = new Proxy({}, { get: () => () => Promise.reject(error) });
  const throws = () => {
    throw error;
  };
  const options = {
    store: fails,
    keyring: openKeyring(Buffer.alloc(32, 1)),
    credentials: fails,
    access: openCallers({
      store: fails as CallersOptions['store'],
      clock: systemClock,
      tokens: { operator: OPERATOR_TOKEN, shop: SHOP_TOKEN },
      address: null,
      proxyAuth: null,
      auditKey: new Uint8Array(32),
    }),
    auditKey: new Uint8Array(32),
    onAudited: async () => {},
    clock: systemClock,
    metrics: { scrape: () => Promise.reject(error) },
    activity: { follow: error instanceof Fault ? () => null : throws },
    readiness: () => ({ ready: true }),
    publicUrl: 'http://127.0.0.1:9',
    publicUrlReaches: true,
    asking: { service: fails, opener: fails, reconciler: fails },
    rotation: { mayRotate: () => true, rotate: () => Promise.reject(error) },
    pageLoads: { forget: () => {} },
    unopenable: { get: fails, anew: fails },
    apiSlots: 50,
    currency: 'BRL',
    storeAddress: sqliteAddress('/nowhere/settled.db'),
    storeName: '/nowhere/settled.db',
  };
  const router = apiRoutes(options as unknown as ApiOptions);
  const app = createApp({ routers: [router], log: openLog('silent'), newId: () => 'an-id' });
  return { apiUrl: await serveHere(app) } as TestApp;
}
