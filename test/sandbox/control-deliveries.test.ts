import { describe, expect, it } from 'vitest';
import { startReceiver } from '../support/receiver.ts';
import { startTestSandbox } from '../support/sandbox.ts';
import { createLink } from './client.ts';

describe('control: deliveries', () => {
  it('shows how many copies were sent, with which faults, and the payment status of the event', async () => {
    const { url: webhookUrl } = await startReceiver();
    const sandbox = await startTestSandbox();
    await sandbox.control('/faults', { body: { fault: 'drop', with: { forGood: true } } });
    await createLink(sandbox, { webhookUrl });
    await sandbox.control('/faults', { body: { fault: 'duplicate', with: { times: 3 } } });
    await sandbox.control('/links/order-1/pay', { method: 'POST' });
    await sandbox.control('/idle', { method: 'POST' });
    expect((await sandbox.control('/deliveries')).body.deliveries).toMatchObject([
      { paymentStatus: null, attempts: 1, sent: 0, faults: ['drop'] },
      { paymentStatus: 'PENDING', attempts: 1, sent: 3, faults: ['duplicate'] },
      { paymentStatus: 'COMPLETED', attempts: 1, sent: 1, faults: [] },
      { paymentStatus: null, attempts: 1, sent: 1, faults: [] },
    ]);
  });

  it('shows what holds a delivery back, and how many more it waits for', async () => {
    const { url: webhookUrl } = await startReceiver();
    const sandbox = await startTestSandbox();
    const held = async () => {
      await sandbox.control('/idle', { method: 'POST' });
      const { deliveries } = (await sandbox.control('/deliveries')).body;
      return [deliveries[0].held, deliveries[0].status, deliveries[0].dueAt];
    };
    await sandbox.control('/faults', { body: { fault: 'reorder', with: { by: 4 } } });
    await createLink(sandbox, { webhookUrl });
    expect(await held()).toEqual([{ fault: 'reorder', left: 4 }, 'waiting', null]);
    await sandbox.control('/links/order-1/pay', { method: 'POST' });
    expect(await held()).toEqual([{ fault: 'reorder', left: 1 }, 'waiting', null]);
    const body = { kind: 'payment_link.status_changed' };
    await sandbox.control('/links/order-1/events', { body });
    expect(await held()).toEqual([null, 'acknowledged', null]);
    const [first] = (await sandbox.control('/events')).body.events;
    await sandbox.control('/faults', { body: { fault: 'delay' } });
    await sandbox.control(`/events/${first.id}/resend`, { method: 'POST' });
    await sandbox.control('/idle', { method: 'POST' });
    const { deliveries } = (await sandbox.control('/deliveries')).body;
    expect(deliveries.at(-1)).toMatchObject({
      held: { fault: 'delay', left: null },
      dueAt: expect.stringMatching(/Z$/),
    });
  });

  it('shows every attempt of a delivery', async () => {
    const statuses = [500];
    const { url: webhookUrl } = await startReceiver(
      (_received, response) => void response.writeHead(statuses.pop() ?? 200).end('noted'),
    );
    const sandbox = await startTestSandbox();
    await createLink(sandbox, { webhookUrl });
    await sandbox.control('/clock', { body: { advance: '1m' } });
    const { deliveries } = (await sandbox.control('/deliveries?link=order-1')).body;
    const { body } = await sandbox.control(`/deliveries/${deliveries[0].id}`);
    expect(body).toMatchObject({ status: 'acknowledged', attempts: 2, origin: 'automatic', dueAt: null });
    expect(body.log).toEqual([
      {
        attempt: 1,
        at: expect.stringMatching(/Z$/),
        tookMs: expect.any(Number),
        faults: [],
        timestamp: expect.stringMatching(/^\d{13}$/),
        signature: expect.stringMatching(/^[0-9a-f]{64}$/),
        responseStatus: 500,
        responseBody: 'noted',
        error: null,
      },
      expect.objectContaining({ attempt: 2, responseStatus: 200 }),
    ]);
    expect((await sandbox.control('/attempts')).body.attempts).toEqual(
      body.log.map((attempt: object) => ({
        ...attempt,
        delivery: body.id,
        event: body.event,
        kind: 'payment_link.created',
      })),
    );
  });

  it('sends an event again in a new delivery, signed and logged like every other', async () => {
    const { url: webhookUrl, received } = await startReceiver(200);
    const sandbox = await startTestSandbox();
    await createLink(sandbox, { webhookUrl });
    await sandbox.control('/idle', { method: 'POST' });
    const [first] = (await sandbox.control('/deliveries')).body.deliveries;
    const byDelivery = await sandbox.control(`/deliveries/${first.id}/resend`, { method: 'POST' });
    const byEvent = await sandbox.control(`/events/${first.event}/resend`, { method: 'POST' });
    await sandbox.control('/idle', { method: 'POST' });
    for (const { status, body } of [byDelivery, byEvent]) {
      expect([status, body.origin, body.event]).toEqual([201, 'resend', first.event]);
      const again = (await sandbox.control(`/deliveries/${body.id}`)).body;
      expect(again).toMatchObject({ status: 'acknowledged', log: [{ responseStatus: 200 }] });
    }
    expect(received.map(({ event }) => event.id)).toEqual([first.event, first.event, first.event]);
    expect(received.every(({ headers }) => /^[0-9a-f]{64}$/.test(String(headers['x-service-signature'])))).toBe(true);
  });
});
