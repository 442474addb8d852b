import { describe, expect, it } from 'vitest';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import type { ServiceProxy } from '../support/proxies.ts';
import { act, createLink, MINUTE_MS } from '../support/sandbox.ts';
import {
  bindLink,
  cancel,
  check,
  openLink,
  pass,
  passUntil,
  quiet,
  type Shop,
  startDeafShop,
  startProxiedShop,
  startShop,
} from '../support/shop.ts';
import { eventually } from '../support/timing.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
type Json = any;

/** Changes what the service answers about links. */
function change(proxy: ServiceProxy, edit: (link: Json) => void): void {
  proxy.answerWith(async ({ method, path }, pass) => {
    if (method !== 'GET' || !/payment-links\/[^/?]+$/.test(path)) return undefined;
    const answer = await pass();
    const body = JSON.parse(answer.text);
    if (body.paymentLink !== undefined) edit(body.paymentLink);
    return { ...answer, text: JSON.stringify(body) };
  });
}

/** As it was before anybody paid. */
function unpaid(link: Json): void {
  Object.assign(link, { status: 'ACTIVE', paymentStatus: 'NOT_STARTED', payments: [] });
  Object.assign(link, { isActive: true, paymentsSummary: { total: 0, byStatus: {} } });
}

const orderOf = ({ settled }: Shop, reference = 'order-1') => settled.order(reference);
const stateOf = async (shop: Shop, reference = 'order-1') => (await orderOf(shop, reference)).state;

describe('SETTLED_CONFIRM=always', () => {
  const ALWAYS = { environment: { SETTLED_CONFIRM: 'always' } };

  it('pays by the answer of the API, and not by the webhook alone', async () => {
    const { shop, proxy } = await startProxiedShop(startShop, ALWAYS);
    const link = await openLink(shop, 'order-1');
    change(proxy, unpaid);
    await act(shop.sandbox, link, 'pay');
    await pass(shop, 5 * MINUTE_MS, 30_000);
    expect(await orderOf(shop)).toMatchObject({ state: 'payment_pending', payments: [], holds: [] });
    proxy.passAll();
    await passUntil(shop, async () => (await stateOf(shop)) === 'paid', { withinMs: MINUTE_MS + 1_000 });
    expect(await orderOf(shop)).toMatchObject({ learnedBy: 'reconciliation', flags: [], holds: [] });
  });

  it('is as quick as the API is', async () => {
    const shop = await startShop(ALWAYS);
    const link = await openLink(shop, 'order-1');
    await act(shop.sandbox, link, 'pay');
    // Nothing waits for a poll; but with replicas a link is passed over while its order is being changed.
    await quiet(shop);
    if (shop.settled.database !== null) await pass(shop, 1_000);
    expect(await stateOf(shop)).toBe('paid');
  });

  it('holds a completion that the API does not confirm for ten minutes', async () => {
    const { shop, proxy } = await startProxiedShop(startShop, ALWAYS);
    const link = await openLink(shop, 'order-1');
    change(proxy, unpaid);
    await act(shop.sandbox, link, 'pay');
    await pass(shop, 9 * MINUTE_MS, 30_000);
    expect((await orderOf(shop)).holds).toEqual([]);
    await pass(shop, 2 * MINUTE_MS, 30_000);
    expect(await orderOf(shop)).toMatchObject({ state: 'held', holds: [{ reason: 'unconfirmed' }], payments: [] });
    proxy.passAll();
    await check(shop, 'order-1');
    expect(await orderOf(shop)).toMatchObject({ state: 'held', payments: [{ status: 'completed' }] });
  });

  it('keeps waiting if the API cannot be asked', async () => {
    const { shop, proxy } = await startProxiedShop(startShop, ALWAYS);
    const link = await openLink(shop, 'order-1');
    proxy.answerWith(async () => ({ status: 503, headers: {}, text: '' }));
    await act(shop.sandbox, link, 'pay');
    await pass(shop, 20 * MINUTE_MS, MINUTE_MS);
    expect(await orderOf(shop)).toMatchObject({ state: 'payment_pending', holds: [] });
    proxy.passAll();
    await passUntil(shop, async () => (await stateOf(shop)) === 'paid', {
      withinMs: 70 * MINUTE_MS,
      stepMs: MINUTE_MS,
    });
  });
});

describe('SETTLED_CONFIRM=in-doubt', () => {
  /** An order with a paid link, none of whose own webhooks came; and one that names half of its money. */
  async function doubted() {
    const { shop, proxy } = await startProxiedShop(startDeafShop);
    const { webhookUrl, webhookSecret } = await shop.settled.reserve('order-1');
    const link = await createLink(shop.sandbox, { externalReference: 'order-1', webhookUrl, webhookSecret });
    await bindLink(shop, 'order-1', link);
    await quiet(shop);
    await act(shop.sandbox, link, 'pay');
    const paymentId = (await shop.sandbox.control('/links/order-1')).body.payments[0].id;
    const deliver = async () => {
      const body = paymentEvent({ linkId: link.id, paymentId, amount: '50' });
      const headers = signedHeaders(webhookSecret, body, String(shop.sandbox.clock.nowMs()));
      expect((await fetch(webhookUrl, { method: 'POST', headers, body })).status).toBe(200);
    };
    return { shop, proxy, deliver };
  }

  it('asks about an event that names less money, and is paid by what the API says', async () => {
    const { shop, proxy, deliver } = await doubted();
    proxy.answerWith(async () => ({ status: 503, headers: {}, text: '' }));
    await deliver();
    await pass(shop, 2_000);
    expect(await orderOf(shop)).toMatchObject({ state: 'awaiting_payment', holds: [] });
    proxy.passAll();
    await passUntil(shop, async () => (await stateOf(shop)) === 'paid', { withinMs: 2 * MINUTE_MS });
    expect(await orderOf(shop)).toMatchObject({
      learnedBy: 'reconciliation',
      payments: [{ amount: '100.00' }],
      holds: [],
    });
  });

  it('holds the order if the API says the same', async () => {
    const { shop, proxy, deliver } = await doubted();
    change(proxy, (link) => {
      link.amount = 50;
      for (const payment of link.payments) payment.quote.amount = 50;
    });
    await deliver();
    await passUntil(shop, async () => (await stateOf(shop)) === 'held', { withinMs: MINUTE_MS });
    expect(await orderOf(shop)).toMatchObject({
      holds: [{ reason: 'amount_mismatch' }],
      payments: [{ amount: '50.00' }],
    });
  });

  it('does not cancel an order if the service lists a payment beside NOT_STARTED', async () => {
    const { shop, proxy } = await startProxiedShop(startDeafShop);
    for (const status of ['FAILED', 'PENDING', 'COMPLETED']) {
      await openLink(shop, status);
      change(proxy, (link) => {
        unpaid(link);
        link.payments = [{ id: 'pay_1', status, createdAt: link.createdAt }];
      });
      expect([status, (await cancel(shop, status)).status]).toEqual([status, 409]);
      expect(await stateOf(shop, status)).not.toBe('cancelled');
    }
  });

  it('holds every order whose quote differs from its link, and makes them one matter with one decision', async () => {
    const { shop, proxy } = await startProxiedShop(startDeafShop);
    change(proxy, (link) => {
      for (const payment of link.payments) payment.quote.amount = 19.99;
    });
    const kinds = async () => {
      const { attention } = (await shop.settled.api('/v1/attention')).body;
      return attention.map(({ kind }: { kind: string }) => kind);
    };
    const states: string[] = [];
    for (const reference of ['order-1', 'order-2', 'order-3', 'order-4']) {
      await act(shop.sandbox, await openLink(shop, reference), 'pay');
      states.push((await check(shop, reference)).body.order.state);
      if (states.length === 2) expect(await kinds()).not.toContain('quote_reading_doubtful');
    }
    expect(states).toEqual(['held', 'held', 'held', 'held']);
    expect(await kinds()).toContain('quote_reading_doubtful');
    const accept = { action: 'accept_orders', filter: { hold: 'amount_mismatch' } };
    const { body: counted } = await shop.settled.api('/v1/bulk', { body: { ...accept, preview: true } });
    expect(counted).toMatchObject({ count: { n: 4 } });
    await shop.settled.api('/v1/bulk', { body: { ...accept, reason: 'the panel says the same' } });
    await eventually(async () => {
      expect((await orderOf(shop, 'order-4')).state).toBe('paid');
    });
    expect(await orderOf(shop, 'order-1')).toMatchObject({ flags: ['underpaid'], payments: [{ amount: '19.99' }] });
    proxy.passAll();
    await act(shop.sandbox, await openLink(shop, 'order-5'), 'pay');
    expect((await check(shop, 'order-5')).body.order.state).toBe('paid');
    expect(await kinds()).not.toContain('quote_reading_doubtful');
  });
});
