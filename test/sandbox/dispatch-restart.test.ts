import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { EVENT_KINDS } from '../../sandbox/model.ts';
import { testFolder } from '../support/app.ts';
import { spawnSandbox } from '../support/process.ts';
import { startReceiver } from '../support/receiver.ts';
import {
  act,
  createLink,
  deliveriesOf,
  firstDelivery,
  HOUR_MS,
  MINUTE_MS,
  offsetsMs,
  plan,
  startTestSandbox,
  type TestSandbox,
  turn,
} from '../support/sandbox.ts';
import { eventually } from '../support/timing.ts';

const dataFile = () => join(testFolder(), 'sandbox.db');

/** A sandbox as a process of its own, and what calls it. */
async function startProcess(data: string) {
  const args = ['--listen', '127.0.0.1:0', '--data', data, '--seed', 'test', '--no-rate-limit', '--json'];
  const running = spawnSandbox(args);
  const { url, apiKey } = JSON.parse(await running.line(/"url"/));
  const headers = { 'content-type': 'application/json', 'x-api-key': apiKey };
  const post = async (path: string, body: object) =>
    JSON.parse(await (await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })).text());
  const link = { title: 'A chair', amount: 100 };
  return {
    post,
    open: async (webhookUrl: string) => (await post('/api/v1/payment-links', { ...link, webhookUrl })).paymentLink,
    kill: () => running.end('SIGKILL'),
  };
}

function restart(data: string, options: Parameters<typeof startTestSandbox>[0] = {}): Promise<TestSandbox> {
  return startTestSandbox({ data, rateLimit: null, ...options });
}

/** As while a computer sleeps: the true clock stands elsewhere from now on. */
function timePasses(byMs: number): void {
  const untilMs = Date.now() + byMs;
  const now = vi.spyOn(Date, 'now').mockImplementation(() => untilMs);
  onTestFinished(() => void now.mockRestore());
}

describe('sandbox: deliveries over a restart', () => {
  it('continue: what failed is retried at its time, with its log', async () => {
    const data = dataFile();
    const receiver = await startReceiver();
    receiver.answerWith(503);
    const before = await restart(data, { switches: ['retries=signed-once'] });
    const link = await createLink(before, { webhookUrl: receiver.url });
    await turn(before, 2 * HOUR_MS);
    await before.stop();
    const after = await restart(data, { switches: ['retries=signed-once'] });
    await turn(after, 18 * HOUR_MS);
    const delivery = await firstDelivery(after, link);
    expect(delivery).toMatchObject({ status: 'given_up', attempts: 7 });
    const minutes = offsetsMs(delivery).map((ms) => Math.round(ms / MINUTE_MS));
    expect(minutes).toEqual([0, 1, 6, 21, 81, 321, 1_041]);
    const signatures = receiver.received.map(({ headers }) => headers['x-service-signature']);
    expect([signatures.length, new Set(signatures).size]).toEqual([7, 1]);
  });

  it('send at the start what fell due meanwhile', async () => {
    const data = dataFile();
    const receiver = await startReceiver();
    receiver.answerWith(503);
    const before = await restart(data);
    const link = await createLink(before, { webhookUrl: receiver.url });
    await before.idle();
    await before.stop();
    receiver.answerWith(204);
    timePasses(10 * MINUTE_MS);
    const after = await restart(data);
    await after.idle();
    expect(await firstDelivery(after, link)).toMatchObject({ status: 'acknowledged', attempts: 2 });
  });

  it('let no retry wait for an event, and no event for a retry, if neither is answered', async () => {
    const data = dataFile();
    const receiver = await startReceiver();
    receiver.answerWith(503);
    const before = await restart(data);
    await plan(before, { fault: 'delay' });
    const link = await createLink(before, { webhookUrl: receiver.url });
    await act(before, link, 'disable');
    await before.idle();
    expect(receiver.kinds()).toEqual(['payment_link.status_changed']);
    await before.stop();
    timePasses(10 * MINUTE_MS);
    const waiting: Record<string, ServerResponse> = {};
    receiver.answerWith(({ event }, response) => {
      waiting[event.type] = response;
      return undefined;
    });
    const after = await restart(data);
    const [delayed, retried, further] = EVENT_KINDS;
    await eventually(() => expect(Object.keys(waiting).sort()).toEqual([delayed, retried]));
    waiting[delayed]?.writeHead(204).end();
    await act(after, link, 'events', { kind: further });
    await eventually(() => expect(Object.keys(waiting)).toContain(further));
    expect(waiting[retried]?.closed).toBe(false);
    for (const kind of [retried, further]) waiting[kind]?.writeHead(204).end();
    await after.idle();
    expect((await deliveriesOf(after, link)).map(({ attempts }) => attempts)).toEqual([1, 2, 1]);
  });

  it('keep the faults that were planned, delayed and held back', async () => {
    const data = dataFile();
    const receiver = await startReceiver();
    const before = await restart(data);
    await plan(before, { fault: 'delay', with: { ms: HOUR_MS } });
    await plan(before, { fault: 'reorder', skip: 1 });
    await plan(before, { fault: 'duplicate', match: { event: 'payment_link.status_changed' } });
    const delayed = await createLink(before, { webhookUrl: receiver.url, title: 'delayed' });
    const held = await createLink(before, { webhookUrl: receiver.url, title: 'held' });
    await before.idle();
    expect(receiver.received).toEqual([]);
    await before.stop();
    const after = await restart(data);
    await turn(after, 2 * HOUR_MS);
    expect((await firstDelivery(after, delayed)).log).toMatchObject([{ faults: ['delay'] }]);
    expect(await firstDelivery(after, held)).toMatchObject({ status: 'waiting', attempts: 0 });
    await act(after, held, 'disable');
    await after.idle();
    expect(receiver.received.map(({ event }) => [event.data.paymentLink.title, event.type])).toEqual([
      ['delayed', 'payment_link.created'],
      ['held', 'payment_link.status_changed'],
      ['held', 'payment_link.status_changed'],
      ['held', 'payment_link.created'],
    ]);
  });

  it('make an attempt again that was in flight when the process was killed', async () => {
    const data = dataFile();
    const receiver = await startReceiver();
    receiver.answerWith(() => undefined);
    const killed = await startProcess(data);
    const link = await killed.open(receiver.url);
    await eventually(() => expect(receiver.received).toHaveLength(1));
    await killed.post(`/_control/links/${link.id}/pay`, {});
    await killed.kill();
    receiver.answerWith(204);
    const after = await restart(data);
    await after.idle();
    const deliveries = await deliveriesOf(after, link);
    expect(deliveries.map(({ status, attempts }) => [status, attempts])).toEqual(Array(4).fill(['acknowledged', 1]));
    const ids = receiver.received.map(({ event }) => event.id);
    expect(ids).toEqual([deliveries[0].event, ...deliveries.map(({ event }) => event)]);
  });

  it('do the same faults to an attempt that was in flight when the process was killed', async () => {
    const data = dataFile();
    const receiver = await startReceiver();
    receiver.answerWith(() => undefined);
    const killed = await startProcess(data);
    await killed.post('/_control/faults', { fault: 're-encode' });
    const link = await killed.open(receiver.url);
    await eventually(() => expect(receiver.received).toHaveLength(1));
    await killed.kill();
    receiver.answerWith(204);
    const after = await restart(data);
    await after.idle();
    expect((await firstDelivery(after, link)).log).toMatchObject([{ faults: ['re-encode'] }]);
    const [one, other] = receiver.received.map(({ body }) => body.toString());
    expect(other).toBe(one);
  });

  it('remember the one answer to a duplicated delivery that the stop aborts', async () => {
    const data = dataFile();
    const receiver = await startReceiver();
    receiver.answerWith(() => (receiver.received.length === 1 ? 200 : undefined));
    const before = await restart(data);
    await plan(before, { fault: 'duplicate', with: { times: 3 } });
    const link = await createLink(before, { webhookUrl: receiver.url });
    await eventually(() => expect(receiver.received).toHaveLength(3));
    await before.stop();
    const after = await restart(data);
    await after.idle();
    const { status, attempts, log } = await firstDelivery(after, link);
    expect([status, attempts, receiver.received.length]).toEqual(['acknowledged', 1, 3]);
    const statuses = log.map(({ responseStatus }: { responseStatus: number | null }) => responseStatus);
    expect(statuses.filter(Boolean)).toEqual([200]);
  });

  it('abort an attempt without an answer at the stop, and make it after the restart', async () => {
    const data = dataFile();
    const receiver = await startReceiver();
    receiver.answerWith(() => undefined);
    const before = await restart(data);
    const link = await createLink(before, { webhookUrl: receiver.url });
    await eventually(() => expect(receiver.received).toHaveLength(1));
    await before.stop();
    receiver.answerWith(204);
    const after = await restart(data);
    await after.idle();
    expect(await firstDelivery(after, link)).toMatchObject({ status: 'acknowledged', attempts: 1 });
    expect(receiver.received).toHaveLength(2);
  });
});
