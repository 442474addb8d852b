import { describe, expect, it } from 'vitest';
import { SWITCHES } from '../../sandbox/options.ts';
import { startReceiver } from '../support/receiver.ts';
import { startTestSandbox } from '../support/sandbox.ts';
import { createLink } from './client.ts';

describe('control: the sandbox', () => {
  it('shows what it is, and no secret', async () => {
    const sandbox = await startTestSandbox({ seed: 'the seed' });
    const { webhookSecret } = await createLink(sandbox);
    const { status, body } = await sandbox.control('/');
    expect(status).toBe(200);
    expect(body).toMatchObject({
      environment: 'production',
      url: sandbox.url,
      counts: { links: 1, payments: 0, events: 1, deliveries: 0 },
    });
    const everything = await Promise.all(
      ['/', '/links', '/links/order-1', '/events', '/deliveries', '/attempts', '/silences', '/faults'].map(
        async (path) => JSON.stringify((await sandbox.control(path)).body),
      ),
    );
    expect(everything.filter((text) => text.includes(webhookSecret))).toEqual([]);
    expect(everything.filter((text) => text.includes(sandbox.apiKey))).toEqual([]);
    // The key and every secret follow from the seed.
    expect(everything.filter((text) => text.includes('the seed'))).toEqual([]);
  });

  it('sets switches while it runs, and keeps the others', async () => {
    const sandbox = await startTestSandbox({ switches: ['signature=base64'] });
    const { body } = await sandbox.control('/silences', { body: { 'type-name': 'event' } });
    expect(body.silences).toMatchObject({ signature: 'base64', 'type-name': 'event' });
    await createLink(sandbox);
    const { events } = (await sandbox.control('/events')).body;
    expect(JSON.parse(events[0].body)).toMatchObject({ event: 'payment_link.created' });
    expect((await sandbox.control('/silences')).body.known).toEqual(SWITCHES);
  });

  it('names the known switches and values if one is unknown, and sets nothing', async () => {
    const sandbox = await startTestSandbox();
    const name = await sandbox.control('/silences', { body: { signature: 'base64', colour: 'red' } });
    expect(name.status).toBe(400);
    for (const known of Object.keys(SWITCHES)) expect(name.body.error.message).toContain(known);
    const value = await sandbox.control('/silences', { body: { signature: 'rot13' } });
    expect(value.status).toBe(400);
    for (const known of SWITCHES.signature.values) expect(value.body.error.message).toContain(known);
    expect((await sandbox.control('/silences')).body.silences.signature).toBe('hex');
  });

  it('names the route, the body or the field that it does not know', async () => {
    const sandbox = await startTestSandbox();
    await createLink(sandbox);
    const refused = [
      [await sandbox.control('/nothing'), 404, null],
      [await sandbox.control('/clock', { body: '{"advance"' }), 400, 'body'],
      [await sandbox.control('/clock', { body: '[1]' }), 400, 'body'],
      [await sandbox.control('/silences', { body: 'x'.repeat(70_000) }), 413, 'body'],
      [await sandbox.control('/links/nobody'), 404, 'id'],
      [await sandbox.control('/links?pageSize=0'), 400, 'pageSize'],
      [await sandbox.control('/links/order-1/pay', { body: { method: 'CASH' } }), 400, 'method'],
      [await sandbox.control('/links/order-1/pay', { body: { instalments: 3 } }), 400, 'instalments'],
      [await sandbox.control('/links/order-1/pay', { body: { installments: 2 } }), 400, 'installments'],
      [await sandbox.control('/links/order-1/events', { body: { kind: 'paid' } }), 400, 'kind'],
      [await sandbox.control('/links/order-1/events', { body: { kind: { toString: 1 } } }), 400, 'kind'],
      [await sandbox.control('/clock', { body: { advance: { toString: 1 } } }), 400, 'advance'],
      [await sandbox.control('/clock', { body: { advanceMs: -1 } }), 400, 'advanceMs'],
      [await sandbox.control('/silences', { body: { signature: { toString: 1 } } }), 400, 'signature'],
      [await sandbox.control('/faults', { body: { fault: { toString: 1 } } }), 400, 'fault'],
      [await sandbox.control('/deliveries/dlv_0'), 404, 'id'],
      [await sandbox.control('/deliveries?link=nobody'), 404, 'id'],
      [await sandbox.control('/events/evt_0/resend', { method: 'POST' }), 404, 'id'],
      [await sandbox.control('/links/order-1/pay', { body: { money: 'none' } }), 400, 'money'],
    ] as const;
    for (const [{ body, status }, expected, field] of refused) {
      expect([status, body.error]).toEqual([
        expected,
        { code: expect.any(String), message: expect.any(String), field },
      ]);
    }
    expect(refused[9][0].body.error.message).toContain('payment_link.payment_status_changed');
  });
});

describe('control: links', () => {
  it('finds a link by its id, its short code and its externalReference', async () => {
    const sandbox = await startTestSandbox();
    const { id, shortUrl } = await createLink(sandbox);
    for (const key of [id, shortUrl.split('/').at(-1), 'order-1']) {
      expect((await sandbox.control(`/links/${key}`)).body.id).toBe(id);
    }
    expect((await sandbox.control('/links')).body).toMatchObject({ total: 1, links: [{ id }] });
  });

  it('shows a link as the API shows it', async () => {
    const sandbox = await startTestSandbox();
    const { id } = await createLink(sandbox);
    await sandbox.control('/links/order-1/pay', { method: 'POST' });
    const { body } = await sandbox.call(`/payment-links/${id}`);
    expect((await sandbox.control('/links/order-1')).body).toEqual(body.paymentLink);
  });

  it('pays by PIX, in instalments, and in two steps', async () => {
    const sandbox = await startTestSandbox();
    for (const reference of ['pix', 'card', 'later']) await createLink(sandbox, { externalReference: reference });
    const pix = await sandbox.control('/links/pix/pay', { method: 'POST' });
    expect(pix.body).toMatchObject({
      status: 'INACTIVE',
      paymentStatus: 'COMPLETED',
      payments: [{ status: 'COMPLETED', customer: null, quote: { paymentMethod: 'PIX', installments: 1 } }],
    });
    const customer = { name: 'Ana', email: 'ana@example.com' };
    const card = { method: 'CREDIT_CARD', installments: 3, customer };
    expect((await sandbox.control('/links/card/pay', { body: card })).body.payments).toEqual([
      expect.objectContaining({ customer, quote: expect.objectContaining({ installments: 3 }) }),
    ]);
    const started = await sandbox.control('/links/later/pay', { body: { complete: false } });
    expect(started.body).toMatchObject({ status: 'ACTIVE', paymentStatus: 'PENDING' });
    const completed = await sandbox.control('/links/later/complete', { method: 'POST' });
    expect(completed.body).toMatchObject({ status: 'INACTIVE', paymentStatus: 'COMPLETED' });
  });

  it('names the chosen money, and no payment id if that is switched off', async () => {
    const sandbox = await startTestSandbox();
    const interest = { method: 'CREDIT_CARD', installments: 3, money: 'interest' };
    const pays = [
      ['less', { money: 'less' }, 100, 60, 'BRL'],
      ['more', { money: 'more' }, 120, 120, 'BRL'],
      ['interest', interest, 100, 103.98, 'BRL'],
      ['abroad', { money: 'other-currency' }, 100, 18, 'USD'],
    ] as const;
    for (const [externalReference, body, ofLink, amount, currency] of pays) {
      await createLink(sandbox, { externalReference, amount: 100 });
      const paid = await sandbox.control(`/links/${externalReference}/pay`, { body });
      expect(paid.body).toMatchObject({ amount: ofLink, payments: [{ quote: { amount, currency } }] });
    }
    await sandbox.control('/silences', { body: { 'payment-ids': 'none' } });
    const [hidden] = (await sandbox.control('/links/less')).body.payments;
    expect(hidden).not.toHaveProperty('id');
    await sandbox.control('/silences', { body: { 'payment-ids': 'first' } });
    expect((await sandbox.control('/links/less')).body.payments[0].id).toMatch(/^pay_/);
  });

  it('refunds, disputes, expires and disables', async () => {
    const sandbox = await startTestSandbox();
    const names = ['refund', 'dispute', 'expire', 'disable'];
    for (const name of names) await createLink(sandbox, { externalReference: name });
    for (const name of ['refund', 'dispute']) await sandbox.control(`/links/${name}/pay`, { method: 'POST' });
    const bodies = await Promise.all(
      names.map(async (name) => (await sandbox.control(`/links/${name}/${name}`, { method: 'POST' })).body),
    );
    expect(bodies).toMatchObject([
      { payments: [{ status: 'REFUNDED' }] },
      { payments: [{ status: 'DISPUTED' }] },
      { status: 'EXPIRED', isExpired: true },
      { status: 'INACTIVE' },
    ]);
  });

  it("refuses what the link's state does not allow", async () => {
    const sandbox = await startTestSandbox();
    await createLink(sandbox);
    expect((await sandbox.control('/links/order-1/refund', { method: 'POST' })).status).toBe(404);
    await createLink(sandbox, { externalReference: 'paid' });
    await sandbox.control('/links/paid/pay', { method: 'POST' });
    await sandbox.control('/links/paid/refund', { method: 'POST' });
    for (const again of ['refund', 'dispute']) {
      const { status, body } = await sandbox.control(`/links/paid/${again}`, { method: 'POST' });
      expect([status, body.error.message]).toEqual([400, expect.stringContaining('is REFUNDED already')]);
    }
    await sandbox.control('/links/order-1/expire', { method: 'POST' });
    const { status, body } = await sandbox.control('/links/order-1/pay', { method: 'POST' });
    expect([status, body.error.code]).toEqual([403, 'link_not_active']);
  });

  it('disables payments in the sandbox environment, and says what to do instead', async () => {
    const sandbox = await startTestSandbox({ environment: 'sandbox' });
    await createLink(sandbox);
    for (const name of ['pay', 'complete']) {
      const { status, body } = await sandbox.control(`/links/order-1/${name}`, { method: 'POST' });
      expect([status, body.error.message]).toEqual([403, expect.stringContaining('--environment production')]);
    }
  });

  it.for(['sandbox', 'production'] as const)('emits an event in the %s environment', async (environment) => {
    const { url: webhookUrl, received } = await startReceiver();
    const sandbox = await startTestSandbox({ environment });
    await createLink(sandbox, { webhookUrl });
    await sandbox.control('/idle', { method: 'POST' });
    const before = received.length;
    const kind = 'payment_link.status_changed';
    const { status, body } = await sandbox.control('/links/order-1/events', { body: { kind } });
    expect([status, body.delivery.origin]).toEqual([201, 'panel']);
    await sandbox.control('/idle', { method: 'POST' });
    expect(received.slice(before).map(({ event }) => event)).toEqual([
      expect.objectContaining({ id: body.event.id, type: kind }),
    ]);
  });
});
