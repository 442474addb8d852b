import { describe, expect, it } from 'vitest';
import { startReceiver } from '../support/receiver.ts';
import {
  act,
  createDelivered,
  createLink,
  deliveriesOf,
  firstDelivery,
  HOUR_MS,
  MINUTE_MS,
  offsetsMs,
  startPair,
  turn,
} from '../support/sandbox.ts';
import { eventually } from '../support/timing.ts';

/** Spec section 6, as time since the first attempt. */
const AS_OFFSETS = [0, 1, 5, 15, 60, 240, 720];
const AS_DELAYS = [0, 1, 6, 21, 81, 321, 1_041];
/** What the attempts themselves take, in milliseconds. */
const SLACK_MS = 5_000;

async function failing(switches: readonly string[] = []) {
  const { sandbox, receiver } = await startPair({ switches });
  receiver.answerWith(503);
  const link = await createLink(sandbox, { webhookUrl: receiver.url });
  return { sandbox, receiver, link };
}

function expectMinutes(delivery: { log: { at: string }[] }, minutes: readonly number[]): void {
  const lateMs = offsetsMs(delivery).map((ms, at) => ms - (minutes[at] ?? Number.NaN) * MINUTE_MS);
  expect(lateMs).toHaveLength(minutes.length);
  for (const ms of lateMs) expect([ms >= 0, ms < SLACK_MS]).toEqual([true, true]);
}

describe('sandbox: retries', () => {
  it('come 1 min, 5 min, 15 min, 1 h, 4 h and 12 h after the previous attempt', async () => {
    const { sandbox, link } = await failing();
    await turn(sandbox, 18 * HOUR_MS);
    const delivery = await firstDelivery(sandbox, link);
    expectMinutes(delivery, AS_DELAYS);
    expect(delivery.log.map(({ attempt }: { attempt: number }) => attempt)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });

  it('come 1 min, 5 min, 15 min, 1 h, 4 h and 12 h after the first attempt, in the other reading', async () => {
    const { sandbox, link } = await failing(['schedule=offsets']);
    await turn(sandbox, 13 * HOUR_MS);
    expectMinutes(await firstDelivery(sandbox, link), AS_OFFSETS);
  });

  it('come at the same times if the clock is turned in many small steps', async () => {
    const { sandbox, link } = await failing(['schedule=offsets']);
    for (let step = 0; step < 26; step++) await turn(sandbox, 30 * MINUTE_MS);
    expectMinutes(await firstDelivery(sandbox, link), AS_OFFSETS);
  });

  it('come as time passes, without a turn of the clock', async () => {
    const { sandbox, receiver } = await startPair({ timeScale: 600 });
    receiver.answerWith(503);
    const link = await createLink(sandbox, { webhookUrl: receiver.url });
    await eventually(() => expect(receiver.received).toHaveLength(3));
    await sandbox.idle();
    const [first, second, third] = offsetsMs(await firstDelivery(sandbox, link));
    expect([first, (second as number) >= MINUTE_MS, (third as number) >= 6 * MINUTE_MS]).toEqual([0, true, true]);
  });

  it('count from the end of the previous attempt, not from its start', async () => {
    const { sandbox, receiver } = await startPair({ timeScale: 100 });
    receiver.answerWith((_, response) => {
      const sinceMs = sandbox.clock.nowMs();
      const answer = () => {
        if (sandbox.clock.nowMs() < sinceMs + 10_000) setImmediate(answer);
        else response.writeHead(503).end();
      };
      answer();
      return undefined;
    });
    const link = await createDelivered({ sandbox, receiver });
    const { dueAt, log } = await firstDelivery(sandbox, link);
    expect(Date.parse(dueAt) - Date.parse(log[0].at)).toBeGreaterThanOrEqual(MINUTE_MS + 10_000);
  });

  it('end with the one after 12 hours', async () => {
    const { sandbox, receiver, link } = await failing();
    await turn(sandbox, 72 * HOUR_MS);
    expect(receiver.received).toHaveLength(7);
    expect(await firstDelivery(sandbox, link)).toMatchObject({ status: 'given_up', attempts: 7, dueAt: null });
  });

  it.each([
    ['delays', [...AS_DELAYS, 1_761, 2_481]],
    ['offsets', [...AS_OFFSETS, 1_440, 2_160, 2_880]],
  ])('go on every 12 hours if the last one is repeated, counted as %s', async (schedule, minutes) => {
    const { sandbox, link } = await failing([`schedule=${schedule}`, 'after-last-retry=repeat-last']);
    await turn(sandbox, 49 * HOUR_MS);
    const delivery = await firstDelivery(sandbox, link);
    expectMinutes(delivery, minutes);
    expect(delivery.status).toBe('waiting');
  });

  it('end with the first 2xx', async () => {
    const { sandbox, receiver, link } = await failing();
    await turn(sandbox, 10 * MINUTE_MS);
    receiver.answerWith(200);
    await turn(sandbox, 72 * HOUR_MS);
    const { status, log } = await firstDelivery(sandbox, link);
    expect(status).toBe('acknowledged');
    expect(log.map(({ responseStatus }: { responseStatus: number }) => responseStatus)).toEqual([503, 503, 503, 200]);
  });

  it('log each attempt with its result', async () => {
    const { sandbox, receiver, link } = await failing();
    await turn(sandbox, MINUTE_MS);
    receiver.answerWith((_, response) => void response.writeHead(500).end('database is gone'));
    await turn(sandbox, 5 * MINUTE_MS);
    await receiver.close();
    await turn(sandbox, 15 * MINUTE_MS);
    const { log } = await firstDelivery(sandbox, link);
    expect(log).toMatchObject([
      { attempt: 1, responseStatus: 503, responseBody: '', error: null },
      { attempt: 2, responseStatus: 503 },
      { attempt: 3, responseStatus: 500, responseBody: 'database is gone', error: null },
      { attempt: 4, responseStatus: null, responseBody: null, error: expect.stringContaining('ECONNREFUSED') },
    ]);
  });
});

describe('sandbox: the order of deliveries', () => {
  it("is that of a link's events, one after the other", async () => {
    const { sandbox, receiver } = await startPair();
    let atOnce = 0;
    let mostAtOnce = 0;
    receiver.answerWith((_, response) => {
      mostAtOnce = Math.max(mostAtOnce, ++atOnce);
      setImmediate(() => {
        atOnce--;
        response.writeHead(204).end();
      });
      return undefined;
    });
    const link = await createLink(sandbox, { webhookUrl: receiver.url });
    for (let n = 0; n < 20; n++) await act(sandbox, link, 'events', { kind: 'payment_link.created' });
    await sandbox.idle();
    const sent = (await deliveriesOf(sandbox, link)).map(({ event }) => event);
    expect(receiver.received.map(({ event }) => event.id)).toEqual(sent);
    expect([sent.length, mostAtOnce]).toEqual([21, 1]);
  });

  it('is not blocked by a failed one', async () => {
    const { sandbox, receiver } = await startPair();
    receiver.answerWith(({ event }) => (event.type === 'payment_link.created' ? 503 : 204));
    const link = await createLink(sandbox, { webhookUrl: receiver.url });
    await act(sandbox, link, 'pay');
    await sandbox.idle();
    const statuses = (await deliveriesOf(sandbox, link)).map(({ status }) => status);
    expect(statuses).toEqual(['waiting', 'acknowledged', 'acknowledged', 'acknowledged']);
  });

  it('delays no other link while one receiver does not answer', async () => {
    const { sandbox, receiver } = await startPair();
    const waiting: (() => void)[] = [];
    receiver.answerWith(({ event }, response) => {
      if (event.data.paymentLink.title !== 'slow') return 204;
      waiting.push(() => void response.writeHead(204).end());
      return undefined;
    });
    const slow = await createLink(sandbox, { webhookUrl: receiver.url, title: 'slow' });
    for (let n = 0; n < 40; n++) await act(sandbox, slow, 'events', { kind: 'payment_link.created' });
    for (let n = 0; n < 20; n++) await createLink(sandbox, { webhookUrl: receiver.url });
    await eventually(() => expect(receiver.received).toHaveLength(21));
    expect(waiting).toHaveLength(1);
  });

  it('never has more than 16 in flight', async () => {
    const { sandbox, receiver } = await startPair();
    const receivers = [receiver];
    while (receivers.length < 8) receivers.push(await startReceiver());
    const waiting: (() => void)[] = [];
    for (const each of receivers)
      each.answerWith((_, response) => {
        waiting.push(() => void response.writeHead(204).end());
        return undefined;
      });
    for (let n = 0; n < 40; n++) await createLink(sandbox, { webhookUrl: receivers[n % 8]?.url });
    await eventually(() => expect(waiting).toHaveLength(16));
    for (const answer of waiting.splice(0)) answer();
    await eventually(() => expect(waiting).toHaveLength(16));
    for (const answer of waiting.splice(0)) answer();
    await eventually(() => expect(waiting).toHaveLength(8));
    for (const answer of waiting.splice(0)) answer();
    await sandbox.idle();
    expect(receivers.map(({ received }) => received.length)).toEqual(Array(8).fill(5));
  });

  it('never has more than 4 in flight to one receiver: others are served while it is dead', async () => {
    const { sandbox, receiver: dead } = await startPair();
    dead.answerWith(() => undefined);
    const good = await startReceiver();
    for (let n = 0; n < 40; n++) await createLink(sandbox, { webhookUrl: `${dead.url}/${n}` });
    const link = await createLink(sandbox, { webhookUrl: good.url });
    await eventually(() => expect(good.received).toHaveLength(1));
    await eventually(async () => expect((await firstDelivery(sandbox, link)).status).toBe('acknowledged'));
    expect(dead.received).toHaveLength(4);
  });

  it('does not change if the clock is turned while one is in flight', async () => {
    const { sandbox, receiver } = await startPair();
    let answer = () => {};
    receiver.answerWith((_, response) => {
      answer = () => void response.writeHead(503).end();
      return undefined;
    });
    const link = await createLink(sandbox, { webhookUrl: receiver.url });
    await eventually(() => expect(receiver.received).toHaveLength(1));
    const turned = sandbox.clock.advance(18 * HOUR_MS);
    receiver.answerWith(503);
    answer();
    await turned;
    expectMinutes(await firstDelivery(sandbox, link), AS_DELAYS);
  });
});

describe('sandbox: resending', () => {
  it('sends the same event with its own timestamp, and retries it like any other', async () => {
    const { sandbox, receiver } = await startPair();
    const link = await createDelivered({ sandbox, receiver });
    const { id } = await firstDelivery(sandbox, link);
    await turn(sandbox, HOUR_MS);
    receiver.answerWith(503);
    const resent = await sandbox.control(`/deliveries/${id}/resend`, { method: 'POST' });
    expect(resent.status).toBe(201);
    await turn(sandbox, 18 * HOUR_MS);
    const [first, again] = await deliveriesOf(sandbox, link);
    expect([first.status, first.attempts]).toEqual(['acknowledged', 1]);
    expect(again).toMatchObject({ event: first.event, origin: 'resend', status: 'given_up', attempts: 7 });
    expectMinutes(again, AS_DELAYS);
    const [one, other] = receiver.received.map(({ headers, body }) => ({ headers, body: body.toString() }));
    expect(other?.body).toBe(one?.body);
    expect(other?.headers['x-service-signature']).not.toBe(one?.headers['x-service-signature']);
  });
});
