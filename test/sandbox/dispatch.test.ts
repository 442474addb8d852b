import { describe, expect, it } from 'vitest';
import {
  act,
  createDelivered,
  createLink,
  deliveriesOf,
  firstDelivery,
  startPair,
  startTestSandbox,
  turn,
} from '../support/sandbox.ts';
import { eventually } from '../support/timing.ts';

const CREATED = 'payment_link.created';
const STATUS = 'payment_link.status_changed';
const PAYMENT_STATUS = 'payment_link.payment_status_changed';

describe('sandbox: which events are sent', () => {
  it('reports the creation, the first payment, its completion and the used link', async () => {
    const { sandbox, receiver } = await startPair();
    const link = await createDelivered({ sandbox, receiver });
    expect(receiver.kinds()).toEqual([CREATED]);
    await act(sandbox, link, 'pay', { complete: false });
    await sandbox.idle();
    expect(receiver.kinds()).toEqual([CREATED, PAYMENT_STATUS]);
    await act(sandbox, link, 'complete');
    await sandbox.idle();
    expect(receiver.kinds()).toEqual([CREATED, PAYMENT_STATUS, PAYMENT_STATUS, STATUS]);
    const [, pending, completed, used] = receiver.received.map(({ event }) => event.data);
    expect(pending).toMatchObject({
      paymentStatus: 'PENDING',
      latestPayment: { status: 'PENDING' },
      counts: { total: 1, byStatus: { PENDING: 1, COMPLETED: 0 } },
    });
    expect(completed).toMatchObject({
      paymentStatus: 'COMPLETED',
      latestPayment: { status: 'COMPLETED' },
      counts: { total: 1, byStatus: { PENDING: 0, COMPLETED: 1 } },
    });
    expect(used.paymentLink).toMatchObject({ id: link.id, status: 'INACTIVE' });
  });

  it('reports no second payment that begins, because the link stays pending', async () => {
    const { sandbox, receiver } = await startPair();
    const link = await createLink(sandbox, { webhookUrl: receiver.url });
    await act(sandbox, link, 'pay', { complete: false });
    await act(sandbox, link, 'pay', { complete: false });
    await sandbox.idle();
    expect(receiver.kinds()).toEqual([CREATED, PAYMENT_STATUS]);
  });

  it.each([
    ['expire', 'EXPIRED'],
    ['disable', 'INACTIVE'],
  ])('reports a link that changes its status by "%s"', async (what, status) => {
    const { sandbox, receiver } = await startPair();
    const link = await createLink(sandbox, { webhookUrl: receiver.url });
    await act(sandbox, link, what);
    await sandbox.idle();
    expect(receiver.kinds()).toEqual([CREATED, STATUS]);
    expect(receiver.received[1]?.event.data.paymentLink.status).toBe(status);
  });

  it('reports a link that expires, at its time', async () => {
    const { sandbox, receiver } = await startPair();
    const expiresAt = new Date(sandbox.clock.nowMs() + 3_600_000).toISOString();
    await createLink(sandbox, { webhookUrl: receiver.url, expiresAt });
    await turn(sandbox, 3_590_000);
    expect(receiver.kinds()).toEqual([CREATED]);
    await turn(sandbox, 20_000);
    expect(receiver.kinds()).toEqual([CREATED, STATUS]);
    const { createdAt, data } = receiver.received[1]?.event ?? {};
    expect(data.paymentLink.status).toBe('EXPIRED');
    expect(Math.abs(Date.parse(createdAt) - Date.parse(expiresAt))).toBeLessThan(5_000);
  });

  it('gives every event its own id', async () => {
    const { sandbox, receiver } = await startPair();
    const link = await createLink(sandbox, { webhookUrl: receiver.url });
    await act(sandbox, link, 'pay');
    await sandbox.idle();
    expect(new Set(receiver.received.map(({ event }) => event.id)).size).toBe(4);
  });

  it('sends nothing for a link without a webhookUrl', async () => {
    const sandbox = await startTestSandbox();
    const link = await createLink(sandbox, {});
    await act(sandbox, link, 'pay');
    await sandbox.idle();
    expect(await deliveriesOf(sandbox, link)).toEqual([]);
  });

  it('sends only what the panel asks for in the sandbox environment', async () => {
    const { sandbox, receiver } = await startPair({ environment: 'sandbox' });
    const link = await createLink(sandbox, { webhookUrl: receiver.url });
    await act(sandbox, link, 'disable');
    await sandbox.idle();
    expect(receiver.kinds()).toEqual([]);
    await act(sandbox, link, 'events', { kind: PAYMENT_STATUS });
    await sandbox.idle();
    expect(receiver.kinds()).toEqual([PAYMENT_STATUS]);
    expect(await firstDelivery(sandbox, link)).toMatchObject({ origin: 'panel', status: 'acknowledged' });
  });
});

describe('sandbox: one delivery', () => {
  it('is a POST of the event as JSON, with both headers and the bytes that were stored', async () => {
    const { sandbox, receiver } = await startPair();
    const beforeMs = sandbox.clock.nowMs();
    const link = await createLink(sandbox, { webhookUrl: `${receiver.url}?shop=1`, title: 'Poltrona “São João” 🪑' });
    await sandbox.idle();
    const [{ method, path, headers, body, event }] = receiver.received as [(typeof receiver.received)[0]];
    expect([method, path, headers['content-type']]).toEqual(['POST', '/hook?shop=1', 'application/json']);
    expect(headers['x-service-signature']).toMatch(/^[0-9a-f]{64}$/);
    expect(headers['x-service-timestamp']).toMatch(/^\d{13}$/);
    expect(Number(headers['x-service-timestamp'])).toBeGreaterThanOrEqual(beforeMs);
    expect(Number(headers['x-service-timestamp'])).toBeLessThanOrEqual(sandbox.clock.nowMs());
    expect(event.data.paymentLink.title).toBe('Poltrona “São João” 🪑');
    const delivery = await firstDelivery(sandbox, link);
    expect(body.toString()).toBe(delivery.body);
    expect(delivery.log).toEqual([
      {
        attempt: 1,
        at: expect.any(String),
        tookMs: expect.any(Number),
        faults: [],
        timestamp: headers['x-service-timestamp'],
        signature: headers['x-service-signature'],
        responseStatus: 204,
        responseBody: '',
        error: null,
      },
    ]);
  });

  it.each([200, 201, 204, 299])('is acknowledged by %i', async (status) => {
    const { sandbox, receiver } = await startPair();
    receiver.answerWith(status);
    const link = await createDelivered({ sandbox, receiver });
    expect(await firstDelivery(sandbox, link)).toMatchObject({ status: 'acknowledged', attempts: 1, dueAt: null });
  });

  it.each([304, 400, 401, 404, 410, 500, 503])('has failed if the answer is %i', async (status) => {
    const { sandbox, receiver } = await startPair();
    receiver.answerWith(status);
    const link = await createDelivered({ sandbox, receiver });
    const delivery = await firstDelivery(sandbox, link);
    expect(delivery).toMatchObject({ status: 'waiting', attempts: 1, log: [{ responseStatus: status }] });
    expect(Date.parse(delivery.dueAt)).toBeGreaterThan(sandbox.clock.nowMs());
  });

  it('has failed if the answer is a redirect, which it does not follow', async () => {
    const { sandbox, receiver } = await startPair();
    receiver.answerWith((_, response) => void response.writeHead(307, { location: receiver.url }).end());
    const link = await createDelivered({ sandbox, receiver });
    expect(receiver.received).toHaveLength(1);
    const { status, log } = await firstDelivery(sandbox, link);
    expect([status, log[0].responseStatus, log[0].error]).toEqual([
      'waiting',
      307,
      `a redirect to ${receiver.url}, which is not followed`,
    ]);
  });

  it('says in words why there is no answer: nothing listens, or the connection breaks', async () => {
    const { sandbox, receiver } = await startPair();
    receiver.answerWith((_, response) => void response.destroy());
    const broken = await createDelivered({ sandbox, receiver });
    await receiver.close();
    const refused = await createDelivered({ sandbox, receiver });
    expect((await firstDelivery(sandbox, broken)).log[0]).toMatchObject({
      responseStatus: null,
      responseBody: null,
      error: 'socket hang up',
    });
    expect((await firstDelivery(sandbox, refused)).log[0].error).toContain(`ECONNREFUSED 127.0.0.1:${receiver.port}`);
  });

  it("has failed if no answer comes within 20 seconds of the sandbox's time", async () => {
    const { sandbox, receiver } = await startPair({ timeScale: 20 });
    receiver.answerWith(() => undefined);
    const link = await createDelivered({ sandbox, receiver });
    const { status, log } = await firstDelivery(sandbox, link);
    expect([status, log[0].responseStatus, log[0].error]).toEqual(['waiting', null, 'no answer within 20 s']);
    expect(log[0].tookMs).toBeGreaterThan(19_900);
  });

  it('keeps the first 4 KB of the answer, and its status if the answer never ends', async () => {
    const { sandbox, receiver } = await startPair();
    receiver.answerWith((_, response) => {
      response.writeHead(200);
      const more = () => {
        // Nobody reads it any more: to go on would keep a core busy for the rest of the run.
        if (!response.destroyed) response.write('ab'.repeat(30_000), () => setImmediate(more));
      };
      more();
      return undefined;
    });
    const link = await createDelivered({ sandbox, receiver });
    const { status, log } = await firstDelivery(sandbox, link);
    expect(status).toBe('acknowledged');
    expect(log[0].responseBody).toBe('ab'.repeat(2_048));
  });

  it('is acknowledged by the status alone if the body of the answer breaks off', async () => {
    const { sandbox, receiver } = await startPair();
    receiver.answerWith((_, response) => {
      response.writeHead(200, { 'content-length': 100 });
      response.write('half of it', () => response.destroy());
      return undefined;
    });
    const link = await createDelivered({ sandbox, receiver });
    const { status, log } = await firstDelivery(sandbox, link);
    expect([status, log.length, log[0].responseStatus, log[0].error]).toEqual(['acknowledged', 1, 200, null]);
  });

  it('is acknowledged by the status alone if the body of the answer stalls', async () => {
    const { sandbox, receiver } = await startPair({ timeScale: 20 });
    receiver.answerWith((_, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('half of it');
      return undefined;
    });
    const link = await createDelivered({ sandbox, receiver });
    expect(await firstDelivery(sandbox, link)).toMatchObject({
      status: 'acknowledged',
      log: [{ responseStatus: 200, responseBody: 'half of it', error: null }],
    });
  });

  it('has time to be answered if a second of the sandbox lasts for weeks', async () => {
    const { sandbox, receiver } = await startPair({ timeScale: 1e-7 });
    receiver.answerWith((_, response) => {
      const answer = async () => {
        for (let call = 0; call < 20; call++) await sandbox.control('/clock');
        response.writeHead(204).end();
      };
      void answer();
      return undefined;
    });
    const link = await createDelivered({ sandbox, receiver });
    expect(await firstDelivery(sandbox, link)).toMatchObject({ status: 'acknowledged', attempts: 1 });
  });

  it('that is answered slowly does not delay the API', async () => {
    const { sandbox, receiver } = await startPair();
    let answer = () => {};
    receiver.answerWith((_, response) => {
      answer = () => void response.writeHead(204).end();
      return undefined;
    });
    const link = await createLink(sandbox, { webhookUrl: receiver.url });
    await eventually(() => expect(receiver.received).toHaveLength(1));
    expect((await sandbox.call(`/payment-links/${link.id}`)).status).toBe(200);
    expect(await firstDelivery(sandbox, link)).toMatchObject({ status: 'waiting', attempts: 0 });
    answer();
    await sandbox.idle();
    expect(await firstDelivery(sandbox, link)).toMatchObject({ status: 'acknowledged', attempts: 1 });
  });
});
