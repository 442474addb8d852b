import { describe, expect, it } from 'vitest';
import {
  act,
  createDelivered,
  createLink,
  deliveriesOf,
  firstDelivery,
  HOUR_MS,
  MINUTE_MS,
  offsetsMs,
  plan,
  startPair,
  turn,
} from '../support/sandbox.ts';
import { CREATED, isGenuine, PAYMENT_STATUS, SECRET } from './genuine.ts';

describe('sandbox: fault plans', () => {
  it('harm only the attempt that they name: the next is right, even if retries are signed once', async () => {
    const { sandbox, receiver } = await startPair({ switches: ['retries=signed-once'] });
    receiver.answerWith(503);
    for (const fault of ['tamper', 'wrong-secret', 'stale-timestamp', 'truncate']) await plan(sandbox, { fault });
    await plan(sandbox, { fault: 're-encode', match: { attempt: 3 } });
    const link = await createLink(sandbox, { webhookUrl: receiver.url, webhookSecret: SECRET });
    await turn(sandbox, HOUR_MS);
    expect(receiver.received.map(isGenuine)).toEqual([false, true, false, true]);
    const { log } = await firstDelivery(sandbox, link);
    expect(log.map(({ faults }: { faults: string[] }) => faults)).toEqual([
      ['tamper', 'wrong-secret', 'stale-timestamp', 'truncate'],
      [],
      ['re-encode'],
      [],
    ]);
    const stamps = receiver.received.map(({ headers }) => headers['x-service-timestamp']);
    expect(new Set(stamps.slice(1)).size).toBe(1);
    expect(Number(stamps[1]) - Number(stamps[0])).toBe(3_600_000);
  });

  it('combine: a delivery is delayed, held back, and then sent twice', async () => {
    const { sandbox, receiver } = await startPair();
    await plan(sandbox, { fault: 'delay', match: { event: CREATED }, with: { ms: HOUR_MS } });
    await plan(sandbox, { fault: 'reorder', match: { event: CREATED } });
    await plan(sandbox, { fault: 'duplicate', match: { event: CREATED } });
    const link = await createLink(sandbox, { webhookUrl: receiver.url });
    await turn(sandbox, 2 * HOUR_MS);
    expect(receiver.received).toEqual([]);
    await act(sandbox, link, 'pay', { complete: false });
    await sandbox.idle();
    expect(receiver.kinds()).toEqual([PAYMENT_STATUS, CREATED, CREATED]);
    expect((await firstDelivery(sandbox, link)).log).toMatchObject([
      { faults: ['delay', 'reorder', 'duplicate'] },
      { faults: ['delay', 'reorder', 'duplicate'] },
    ]);
  });

  it('of one kind wait for each other: each attempt takes the first one', async () => {
    const { sandbox, receiver } = await startPair();
    await plan(sandbox, { fault: 'stale-timestamp' });
    await plan(sandbox, { fault: 'stale-timestamp', with: { ageMs: -7_200_000 } });
    const skewHours: number[] = [];
    receiver.answerWith(({ headers }) => {
      const aheadMs = Number(headers['x-service-timestamp']) - sandbox.clock.nowMs();
      skewHours.push(Math.round(Math.abs(aheadMs) / HOUR_MS));
      return 204;
    });
    for (let n = 0; n < 3; n++) {
      await createDelivered({ sandbox, receiver });
    }
    expect(skewHours).toEqual([1, 2, 0]);
    const { body } = await sandbox.control('/faults');
    expect(body.faults.map(({ applied }: { applied: number }) => applied)).toEqual([1, 1]);
  });

  it('that delay add up', async () => {
    const { sandbox, receiver } = await startPair();
    for (let n = 0; n < 2; n++) await plan(sandbox, { fault: 'delay', with: { ms: HOUR_MS } });
    await createLink(sandbox, { webhookUrl: receiver.url });
    await turn(sandbox, 1.5 * HOUR_MS);
    expect(receiver.received).toHaveLength(0);
    await turn(sandbox, HOUR_MS);
    expect(receiver.received).toHaveLength(1);
  });

  it('can harm what another has harmed', async () => {
    const { sandbox, receiver } = await startPair();
    await plan(sandbox, { fault: 'truncate', count: 2, with: { bytes: 1_000_000 } });
    await plan(sandbox, { fault: 're-encode', count: 1 });
    await plan(sandbox, { fault: 'tamper', count: 2, with: { what: 'byte' } });
    for (let n = 0; n < 2; n++) await createDelivered({ sandbox, receiver });
    expect(receiver.received.map(({ body }) => body.length).sort()).toEqual([0, 1]);
  });

  it('harm what is resent and what the panel sends like everything else', async () => {
    const { sandbox, receiver } = await startPair({ environment: 'sandbox' });
    const link = await createLink(sandbox, { webhookUrl: receiver.url, webhookSecret: SECRET });
    await plan(sandbox, { fault: 'tamper', count: 2 });
    await act(sandbox, link, 'events', { kind: CREATED });
    await sandbox.idle();
    const { id } = await firstDelivery(sandbox, link);
    await sandbox.control(`/deliveries/${id}/resend`, { method: 'POST' });
    await sandbox.control(`/deliveries/${id}/resend`, { method: 'POST' });
    await sandbox.idle();
    expect(receiver.received.map(isGenuine)).toEqual([false, false, true]);
    expect((await deliveriesOf(sandbox, link)).map(({ origin }) => origin)).toEqual(['panel', 'resend', 'resend']);
  });

  it('leave the schedule as it is: a retry counts from the harmed attempt', async () => {
    const { sandbox, receiver } = await startPair({ switches: ['schedule=offsets'] });
    receiver.answerWith(401);
    await plan(sandbox, { fault: 'delay', match: { attempt: 1 }, with: { ms: HOUR_MS } });
    const link = await createLink(sandbox, { webhookUrl: receiver.url });
    await turn(sandbox, HOUR_MS + 2 * MINUTE_MS);
    const [, retryMs] = offsetsMs(await firstDelivery(sandbox, link)) as [number, number];
    expect(Math.abs(retryMs - MINUTE_MS)).toBeLessThan(5_000);
  });

  it('release what is held back once all plans are cleared', async () => {
    const { sandbox, receiver } = await startPair();
    await plan(sandbox, { fault: 'reorder', with: { by: 100 } });
    const link = await createDelivered({ sandbox, receiver });
    expect(await firstDelivery(sandbox, link)).toMatchObject({ status: 'waiting', dueAt: null });
    await sandbox.control('/faults', { method: 'DELETE' });
    await sandbox.idle();
    expect(receiver.kinds()).toEqual([CREATED]);
    expect(await firstDelivery(sandbox, link)).toMatchObject({ status: 'acknowledged', attempts: 1 });
  });
});
