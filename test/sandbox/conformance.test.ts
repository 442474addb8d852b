import { beforeAll, describe, expect, it } from 'vitest';
import { startPair, startTestSandbox } from '../support/sandbox.ts';
import { act, BARE, create, deliveredKinds, details, paymentStatusesTold, RICH } from './client.ts';
import { sharedSandbox } from './page-order.ts';

/**
 * What the specification states, section by section, from the outside. What the sandbox refuses (sections 5 and 7) is in
 * api.test.ts, the rate limit (8) in api-properties.test.ts, deliveries (6) with the dispatcher.
 */

const PROFILE = '/merchant/profile';
const LINKS = '/payment-links';
const TEXT = expect.stringMatching(/./);
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const address = (start: string) => expect.stringMatching(new RegExp(`^http://127\\.0\\.0\\.1:\\d+${start}\\w+$`));

const CUSTOMER = { name: 'Ana', email: 'ana@shop.example' };
const CARD = { method: 'CREDIT_CARD', installments: 3, customer: CUSTOMER };
const NO_PAYMENTS = { PENDING: 0, COMPLETED: 0, DISPUTED: 0, REFUNDED: 0 };

/** What a list holds of each link: of one with everything that is paid, and of one with title and amount. */
const RICH_ITEM = {
  id: TEXT,
  externalReference: 'order-1',
  title: 'Two chairs',
  description: 'Oak, with arms',
  amount: 120.5,
  currency: 'BRL',
  status: 'INACTIVE',
  isMultiUse: false,
  isActive: true,
  isExpired: false,
  expiresAt: '2099-01-01T00:00:00.000Z',
  url: address('/pay/'),
  shortUrl: address('/s/'),
  metadata: { cart: { items: [1, 2] } },
  callbackUrl: 'https://shop.example/thanks',
  createdAt: TIME,
};
const BARE_ITEM = {
  ...{ ...RICH_ITEM, title: 'A table', amount: 26, status: 'ACTIVE' },
  ...{ externalReference: null, description: null, expiresAt: null, metadata: null, callbackUrl: null },
};

const COMPLETED_PAYMENT = {
  id: TEXT,
  status: 'COMPLETED',
  createdAt: TIME,
  completedAt: TIME,
  availableAt: TIME,
  customer: CUSTOMER,
  quote: { amount: 120.5, currency: 'BRL', paymentMethod: 'CREDIT_CARD', installments: 3, totalBRL: 125.3 },
};
const PENDING_PAYMENT = {
  ...{ ...COMPLETED_PAYMENT, status: 'PENDING', completedAt: null, availableAt: null, customer: null },
  quote: { amount: 26, currency: 'BRL', paymentMethod: 'PIX', installments: 1, totalBRL: 26 },
};

describe('section 2: every field, and no other', () => {
  it('of links in the list and in their details, and of payments', async () => {
    const sandbox = await startTestSandbox();
    const { id: paid } = await create(sandbox, RICH);
    const { id: bare } = await create(sandbox, BARE);
    await act(sandbox, paid, 'pay', CARD);
    expect((await sandbox.call(LINKS)).body.paymentLinks).toEqual([BARE_ITEM, RICH_ITEM]);
    expect(await details(sandbox, paid)).toEqual({
      ...{ ...RICH_ITEM, paymentStatus: 'COMPLETED', webhookUrl: 'http://127.0.0.1:9/hook' },
      paymentsSummary: { total: 1, byStatus: { ...NO_PAYMENTS, COMPLETED: 1 } },
      payments: [COMPLETED_PAYMENT],
    });
    expect(await details(sandbox, bare)).toEqual({
      ...{ ...BARE_ITEM, paymentStatus: 'NOT_STARTED', webhookUrl: null },
      paymentsSummary: { total: 0, byStatus: NO_PAYMENTS },
      payments: [],
    });
    const { payments } = await act(sandbox, bare, 'pay', { complete: false });
    expect(payments).toEqual([PENDING_PAYMENT]);
    await act(sandbox, bare, 'pay');
    const { paymentsSummary } = await details(sandbox, bare);
    expect(paymentsSummary).toEqual({ total: 2, byStatus: { ...NO_PAYMENTS, PENDING: 1, COMPLETED: 1 } });
  });

  it('of the merchant', async () => {
    const { body } = await (await startTestSandbox()).call(PROFILE);
    expect(body).toEqual({ success: true, merchant: { id: TEXT, businessName: TEXT, status: 'ACTIVE' } });
  });

  it('webhookSecret is returned by the creation and never again', async () => {
    const sandbox = await startTestSandbox();
    const created = await create(sandbox, RICH);
    const shown = await details(sandbox, created.id);
    expect(created).toEqual({ ...shown, webhookSecret: RICH.webhookSecret });
    const list = (await sandbox.call(LINKS)).body;
    const duplicate = (await sandbox.call(LINKS, { body: RICH })).body;
    const events = (await sandbox.control(`/events?link=${shown.id}`)).body;
    expect(JSON.stringify([shown, list, duplicate, events])).not.toContain(RICH.webhookSecret);
  });

  it('webhookSecret is generated if it is omitted, another for each link', async () => {
    const sandbox = await startTestSandbox();
    const secrets = [await create(sandbox, BARE), await create(sandbox, BARE)].map((link) => link.webhookSecret);
    expect(secrets).toEqual([expect.stringMatching(/.{32}/), expect.stringMatching(/.{32}/)]);
    expect(new Set(secrets).size).toBe(2);
  });

  it('isActive is true while the link is not expired', async () => {
    const sandbox = await startTestSandbox();
    const { id } = await create(sandbox, BARE);
    await act(sandbox, id, 'disable');
    expect(await details(sandbox, id)).toMatchObject({ isActive: true, isExpired: false });
    await act(sandbox, id, 'expire');
    expect(await details(sandbox, id)).toMatchObject({ isActive: false, isExpired: true });
  });
});

describe('section 3', () => {
  it('ACTIVE becomes INACTIVE when a payment completes, an event says so, and no second payment starts', async () => {
    const sandbox = await startTestSandbox();
    const { id } = await create(sandbox, RICH);
    await act(sandbox, id, 'pay', { complete: false });
    expect(await details(sandbox, id)).toMatchObject({ status: 'ACTIVE' });
    await act(sandbox, id, 'complete');
    expect(await details(sandbox, id)).toMatchObject({ status: 'INACTIVE', isActive: true, isExpired: false });
    expect(await deliveredKinds(sandbox, id)).toContain('payment_link.status_changed');
    const again = await sandbox.control(`/links/${id}/pay`, { body: {} });
    expect(again).toMatchObject({ status: 403, body: { error: { code: 'link_not_active' } } });
    expect((await details(sandbox, id)).payments).toHaveLength(1);
  });

  it('ACTIVE becomes EXPIRED when expiresAt is reached, and not before', async () => {
    const sandbox = await startTestSandbox();
    const expiresAt = new Date(sandbox.clock.nowMs() + 3_600_000).toISOString();
    const { id } = await create(sandbox, { ...BARE, webhookUrl: RICH.webhookUrl, expiresAt });
    await sandbox.clock.advance(3_590_000);
    expect(await details(sandbox, id)).toMatchObject({ status: 'ACTIVE', isActive: true, isExpired: false });
    await sandbox.clock.advance(10_000);
    const expired = { status: 'EXPIRED', isActive: false, isExpired: true, expiresAt };
    expect(await details(sandbox, id)).toMatchObject(expired);
    expect(await deliveredKinds(sandbox, id)).toContain('payment_link.status_changed');
    expect((await sandbox.control(`/links/${id}/pay`, { body: {} })).status).toBe(403);
  });

  it('paymentStatus goes from NOT_STARTED over PENDING to COMPLETED, with an event for each step', async () => {
    const sandbox = await startTestSandbox();
    const { id } = await create(sandbox, RICH);
    const step = async () => [(await details(sandbox, id)).paymentStatus, await paymentStatusesTold(sandbox, id)];
    expect(await step()).toEqual(['NOT_STARTED', []]);
    await act(sandbox, id, 'pay', { complete: false });
    expect(await step()).toEqual(['PENDING', ['PENDING']]);
    await act(sandbox, id, 'pay', { complete: false });
    expect(await step()).toEqual(['PENDING', ['PENDING']]);
    await act(sandbox, id, 'complete');
    expect(await step()).toEqual(['COMPLETED', ['PENDING', 'COMPLETED']]);
  });

  it.each([
    ['refund', 'REFUNDED'],
    ['dispute', 'DISPUTED'],
  ])('a %s changes the payment, and neither the link nor its paymentStatus', async (action, status) => {
    const sandbox = await startTestSandbox();
    const { id } = await create(sandbox, RICH);
    await act(sandbox, id, 'pay');
    await act(sandbox, id, action);
    expect(await details(sandbox, id)).toMatchObject({
      ...{ paymentStatus: 'COMPLETED', status: 'INACTIVE', payments: [{ status }] },
      paymentsSummary: { total: 1, byStatus: { ...NO_PAYMENTS, [status]: 1 } },
    });
  });
});

describe('sections 1 and 9', () => {
  it('in the sandbox environment the list and payments are 403, and a change sends no event', async () => {
    const { sandbox, receiver } = await startPair({ environment: 'sandbox' });
    const { id } = await create(sandbox, { ...RICH, webhookUrl: receiver.url });
    expect((await sandbox.call(LINKS)).status).toBe(403);
    expect((await sandbox.call(`${LINKS}?status=ACTIVE`)).status).toBe(403);
    expect((await sandbox.control(`/links/${id}/pay`, { body: {} })).status).toBe(403);
    expect(await details(sandbox, id)).toMatchObject({ paymentStatus: 'NOT_STARTED', payments: [] });
    await act(sandbox, id, 'expire');
    await sandbox.idle();
    expect([receiver.received, await deliveredKinds(sandbox, id)]).toEqual([[], []]);
  });

  it('the completion arrives with the latest payment, which the details show as well', async () => {
    const { sandbox, receiver } = await startPair();
    const { id } = await create(sandbox, { ...RICH, webhookUrl: receiver.url });
    await act(sandbox, id, 'pay');
    await sandbox.idle();
    const { paymentStatus, payments } = await details(sandbox, id);
    const told = receiver.received.map(({ event }) => event.data).filter(({ latestPayment }) => latestPayment);
    expect(told.at(-1)).toMatchObject({ paymentStatus: 'COMPLETED', latestPayment: payments[0] });
    expect(paymentStatus).toBe('COMPLETED');
    for (const path of ['/payments', `/payments/${payments[0].id}`, `${LINKS}/${id}/payments`]) {
      expect((await sandbox.call(path)).status).toBe(404);
    }
  });

  it.each(['production', 'sandbox'] as const)('the version is the path prefix /api/v1 in %s', async (environment) => {
    const sandbox = await startTestSandbox({ environment });
    const headers = { 'x-api-key': sandbox.apiKey };
    const statuses = ['/api/v1', '/api/v2', '/api', ''].map(async (prefix) => {
      return (await fetch(`${sandbox.url}${prefix}${PROFILE}`, { headers })).status;
    });
    expect(await Promise.all(statuses)).toEqual([200, 404, 404, 404]);
  });
});

describe('section 4', () => {
  it('a creation, a link and a list answer success and what they name', async () => {
    const sandbox = await startTestSandbox();
    const created = await sandbox.call(LINKS, { body: BARE });
    expect([created.status, Object.keys(created.body)]).toEqual([201, ['success', 'paymentLink']]);
    const one = await sandbox.call(`${LINKS}/${created.body.paymentLink.id}`);
    expect([one.status, Object.keys(one.body)]).toEqual([200, ['success', 'paymentLink']]);
    const list = await sandbox.call(LINKS);
    expect([list.status, Object.keys(list.body)]).toEqual([200, ['success', 'paymentLinks', 'pagination']]);
    expect([created, one, list].map(({ body }) => body.success)).toEqual([true, true, true]);
  });

  it('a page has 20 links if no pageSize is given, the newest first', async () => {
    const sandbox = await startTestSandbox({ rateLimit: null });
    const ids: string[] = [];
    for (let link = 0; link < 21; link++) ids.unshift((await create(sandbox, BARE)).id);
    const { body } = await sandbox.call(LINKS);
    expect(idsOf(body)).toEqual(ids.slice(0, 20));
    expect(body.pagination).toEqual({ page: 1, pageSize: 20, total: 21, totalPages: 2 });
    const { pagination } = (await sandbox.call(`${LINKS}?page=2&pageSize=8`)).body;
    expect(pagination).toEqual({ page: 2, pageSize: 8, total: 21, totalPages: 3 });
  });

  describe('the list of an active, a paid and an expired link', () => {
    const ids: string[] = [];
    const shared = sharedSandbox('production');
    beforeAll(async () => {
      const sandbox = shared();
      for (const number of [0, 1, 2]) {
        ids.push((await create(sandbox, { ...BARE, externalReference: `order-${number}` })).id);
      }
      await act(sandbox, ids[1] as string, 'pay');
      await act(sandbox, ids[2] as string, 'expire');
    });

    it.each([
      ['status=ACTIVE', [0]],
      ['status=INACTIVE', [1]],
      ['status=EXPIRED', [2]],
      ['status=OPEN', [2, 1, 0]],
      ['status=active', [2, 1, 0]],
      ['externalReference=order-1', [1]],
      ['externalReference=order', []],
      ['externalReference=ORDER-1', []],
      ['status=EXPIRED&externalReference=order-1', []],
      ['page=1&pageSize=2', [2, 1]],
      ['page=2&pageSize=2', [0]],
      ['page=3&pageSize=2', []],
    ])('?%s', async (query, expected) => {
      const { body } = await shared().call(`${LINKS}?${query}`);
      expect(idsOf(body)).toEqual(expected.map((number) => ids[number]));
    });
  });
});

function idsOf({ paymentLinks }: { paymentLinks: { id: string }[] }): string[] {
  return paymentLinks.map(({ id }) => id);
}
