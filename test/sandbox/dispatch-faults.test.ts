import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { Received } from '../support/receiver.ts';
import {
  act,
  createDelivered,
  createLink,
  firstDelivery,
  HOUR_MS,
  MINUTE_MS,
  plan,
  startPair,
  turn,
} from '../support/sandbox.ts';
import { CREATED, isGenuine, PAYMENT_STATUS, SECRET } from './genuine.ts';

/** A link with one fault plan, whose creation event was delivered. */
async function planned(fault: object, switches: readonly string[] = []) {
  const { sandbox, receiver } = await startPair({ switches });
  await plan(sandbox, fault);
  const link = await createDelivered({ sandbox, receiver }, { webhookSecret: SECRET });
  return { sandbox, receiver, link };
}

describe('sandbox: faults of how a delivery is sent', () => {
  it('oversize: as many bytes as the plan says, signed, the same JSON', async () => {
    const { receiver } = await planned({ fault: 'oversize', with: { bytes: 300_000 } });
    const [sent] = receiver.received as [Received];
    expect([sent.body.length, isGenuine(sent)]).toEqual([300_000, true]);
    expect(JSON.parse(sent.body.toString())).toMatchObject({ type: CREATED });
  });

  it('other-method: PUT, unless the plan names another', async () => {
    expect((await planned({ fault: 'other-method' })).receiver.received).toMatchObject([{ method: 'PUT' }]);
    const { receiver } = await planned({ fault: 'other-method', with: { method: 'GET' } });
    expect(receiver.received).toMatchObject([{ method: 'GET' }]);
  });

  it('compress: gzip with its Content-Encoding, signed before it was compressed', async () => {
    const { receiver } = await planned({ fault: 'compress' });
    const [sent] = receiver.received as [Received];
    expect(sent.headers['content-encoding']).toBe('gzip');
    expect(isGenuine({ ...sent, body: gunzipSync(sent.body) })).toBe(true);
  });
});

describe('sandbox: faults of whether and when a delivery is sent', () => {
  it('drop: nothing is ever sent, and the service believes that it arrived', async () => {
    const { sandbox, receiver, link } = await planned({ fault: 'drop' });
    await turn(sandbox, 18 * HOUR_MS);
    expect(receiver.received).toEqual([]);
    expect(await firstDelivery(sandbox, link)).toMatchObject({
      status: 'lost',
      attempts: 1,
      dueAt: null,
      log: [{ faults: ['drop'], responseStatus: null, error: 'dropped by a fault plan: nothing was sent' }],
    });
  });

  it('drop, but not for good: the attempt fails, and the retry arrives', async () => {
    const { sandbox, receiver, link } = await planned({ fault: 'drop', with: { forGood: false } });
    expect(receiver.received).toEqual([]);
    expect(await firstDelivery(sandbox, link)).toMatchObject({ status: 'waiting', attempts: 1 });
    await turn(sandbox, MINUTE_MS);
    expect(receiver.received.map(isGenuine)).toEqual([true]);
    const { status, log } = await firstDelivery(sandbox, link);
    expect(status).toBe('acknowledged');
    expect(log).toMatchObject([
      { faults: ['drop'], error: 'dropped by a fault plan: nothing was sent' },
      { faults: [], responseStatus: 204, error: null },
    ]);
  });

  it('duplicate: the same request as often as planned, and every answer is in the log', async () => {
    const { sandbox, receiver, link } = await planned({ fault: 'duplicate', with: { times: 20 } });
    expect(receiver.received).toHaveLength(20);
    const same = receiver.received.map(({ headers, body }) => [
      headers['x-service-timestamp'],
      headers['x-service-signature'],
      body.toString(),
    ]);
    expect(new Set(same.map(String)).size).toBe(1);
    expect(receiver.received.every(isGenuine)).toBe(true);
    const { status, attempts, log } = await firstDelivery(sandbox, link);
    expect([status, attempts, log.length]).toEqual(['acknowledged', 1, 20]);
    expect(log[19]).toMatchObject({ attempt: 1, faults: ['duplicate'], responseStatus: 204 });
  });

  it('duplicate: one acknowledgement of several is enough', async () => {
    const { sandbox, receiver } = await startPair();
    let answered = 0;
    receiver.answerWith(() => (++answered === 1 ? 204 : 500));
    await plan(sandbox, { fault: 'duplicate', with: { times: 3 } });
    const link = await createLink(sandbox, { webhookUrl: receiver.url });
    await turn(sandbox, HOUR_MS);
    expect(await firstDelivery(sandbox, link)).toMatchObject({ status: 'acknowledged', attempts: 1 });
    expect(receiver.received).toHaveLength(3);
  });

  it('reorder: held back until a later delivery of the same link was sent', async () => {
    const { sandbox, receiver, link } = await planned({ fault: 'reorder', match: { event: CREATED } });
    await createLink(sandbox, { webhookUrl: `${receiver.url}/other`, externalReference: 'other' });
    await turn(sandbox, 18 * HOUR_MS);
    expect(receiver.received.map(({ path }) => path)).toEqual(['/hook/other']);
    expect(await firstDelivery(sandbox, link)).toMatchObject({ status: 'waiting', attempts: 0, dueAt: null });
    await act(sandbox, link, 'pay');
    await sandbox.idle();
    expect(receiver.kinds().slice(1)).toEqual([PAYMENT_STATUS, CREATED, PAYMENT_STATUS, 'payment_link.status_changed']);
    expect(receiver.received.slice(1).every(isGenuine)).toBe(true);
    expect((await firstDelivery(sandbox, link)).log).toMatchObject([{ faults: ['reorder'] }]);
  });

  it('reorder: by as many as the plan says, of the same link', async () => {
    const { sandbox, receiver, link } = await planned({ fault: 'reorder', with: { by: 3 } });
    const other = await createLink(sandbox, { webhookUrl: `${receiver.url}/other` });
    await act(sandbox, other, 'pay');
    await act(sandbox, link, 'pay', { complete: false });
    await sandbox.idle();
    expect(await firstDelivery(sandbox, link)).toMatchObject({ status: 'waiting', attempts: 0 });
    await act(sandbox, link, 'complete');
    await sandbox.idle();
    const ownKinds = receiver.received.filter(({ path }) => path === '/hook').map(({ event }) => event.type);
    expect(ownKinds).toEqual([PAYMENT_STATUS, PAYMENT_STATUS, 'payment_link.status_changed', CREATED]);
  });

  it('reorder: counts what was sent after it was held back, not before', async () => {
    const { sandbox, receiver } = await startPair();
    receiver.answerWith(({ event }) => (event.type === CREATED ? 503 : 204));
    await plan(sandbox, { fault: 'reorder', match: { event: CREATED, attempt: 2 }, with: { by: 2 } });
    const link = await createLink(sandbox, { webhookUrl: receiver.url });
    await act(sandbox, link, 'events', { kind: PAYMENT_STATUS });
    await turn(sandbox, MINUTE_MS);
    await act(sandbox, link, 'events', { kind: PAYMENT_STATUS });
    await sandbox.idle();
    expect(await firstDelivery(sandbox, link)).toMatchObject({ attempts: 1, dueAt: null });
    await act(sandbox, link, 'events', { kind: PAYMENT_STATUS });
    await sandbox.idle();
    expect(await firstDelivery(sandbox, link)).toMatchObject({ attempts: 2 });
  });

  it('delay: sent later, once, and stamped when it is sent', async () => {
    const { sandbox, receiver, link } = await planned({ fault: 'delay', with: { ms: 90 * MINUTE_MS }, count: null });
    const createdMs = sandbox.clock.nowMs();
    await turn(sandbox, 89 * MINUTE_MS);
    expect(receiver.received).toEqual([]);
    expect(await firstDelivery(sandbox, link)).toMatchObject({ status: 'waiting', attempts: 0 });
    await turn(sandbox, 2 * MINUTE_MS);
    expect(receiver.received.map(isGenuine)).toEqual([true]);
    const stampedMs = Number(receiver.received[0]?.headers['x-service-timestamp']) - createdMs;
    expect(Math.abs(stampedMs - 90 * MINUTE_MS)).toBeLessThan(5_000);
    expect((await firstDelivery(sandbox, link)).log).toMatchObject([{ faults: ['delay'], attempt: 1 }]);
  });

  it('delay: does not hold up later events of the link', async () => {
    const { sandbox, receiver, link } = await planned({ fault: 'delay', match: { event: CREATED } });
    await act(sandbox, link, 'pay', { complete: false });
    await sandbox.idle();
    expect(receiver.kinds()).toEqual([PAYMENT_STATUS]);
    await turn(sandbox, MINUTE_MS);
    expect(receiver.kinds()).toEqual([PAYMENT_STATUS, CREATED]);
  });
});

describe('sandbox: faults of what a delivery says', () => {
  const changed = async (fault: object) => {
    const { sandbox, receiver, link } = await planned(fault);
    const [sent] = receiver.received as [Received];
    const { body, log } = await firstDelivery(sandbox, link);
    expect(isGenuine(sent)).toBe(false);
    // Signed over what it should have been.
    expect(isGenuine({ ...sent, body: Buffer.from(body) })).toBe(true);
    expect(log).toMatchObject([{ faults: [(fault as { fault: string }).fault] }]);
    return { sent, original: body as string };
  };

  it('tamper: another amount', async () => {
    const { sent, original } = await changed({ fault: 'tamper' });
    expect(sent.body.toString()).toBe(original.replace('"amount":100', '"amount":101'));
  });

  it('tamper: another status', async () => {
    const { sent, original } = await changed({ fault: 'tamper', with: { what: 'status' } });
    expect(sent.body.toString()).toBe(original.replace('"ACTIVE"', '"INACTIVE"'));
  });

  it('tamper: one byte', async () => {
    const { sent, original } = await changed({ fault: 'tamper', with: { what: 'byte' } });
    const before = Buffer.from(original);
    const differing = [...sent.body].filter((byte, at) => byte !== before[at]);
    expect([sent.body.length, differing.length]).toEqual([before.length, 1]);
  });

  it('re-encode: the same JSON in other bytes', async () => {
    const { sent, original } = await changed({ fault: 're-encode' });
    expect(sent.event).toEqual(JSON.parse(original));
    expect(sent.body.toString()).not.toBe(original);
  });

  it('truncate: the end is missing', async () => {
    const { sent, original } = await changed({ fault: 'truncate', with: { bytes: 25 } });
    expect(sent.body.toString()).toBe(original.slice(0, -25));
  });

  it.each([1_000, 1_000_000])('truncate: of a body that is shorter than %i nothing is left', async (bytes) => {
    const { sent, original } = await changed({ fault: 'truncate', with: { bytes } });
    expect(original.length).toBeLessThan(1_000);
    expect(sent.body).toHaveLength(0);
  });

  it('wrong-secret: signed with another', async () => {
    const { sandbox, receiver, link } = await planned({ fault: 'wrong-secret' });
    const [sent] = receiver.received as [Received];
    expect(isGenuine(sent)).toBe(false);
    expect(sent.headers['x-service-signature']).toMatch(/^[0-9a-f]{64}$/);
    expect(sent.body.toString()).toBe((await firstDelivery(sandbox, link)).body);
  });

  it.each([
    ['stale', 3_600_000],
    ['of the future', -3_600_000],
  ])('stale-timestamp: signed correctly with a timestamp that is %s', async (_name, ageMs) => {
    const { sandbox, receiver } = await planned({ fault: 'stale-timestamp', with: { ageMs } });
    const [sent] = receiver.received as [Received];
    expect(isGenuine(sent)).toBe(true);
    const aheadMs = Number(sent.headers['x-service-timestamp']) - sandbox.clock.nowMs();
    expect(Math.abs(aheadMs + ageMs)).toBeLessThan(5_000);
  });
});
