import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { type CallbackAnswer, type ReceivedNotice, startCallback } from '../support/callback.ts';
import { readableLog } from '../support/observe.ts';
import { openAttention } from '../support/rows.ts';
import { HOUR_MS, MINUTE_MS } from '../support/sandbox.ts';
import { POLL_MS, type Stage, startStage } from './stage.ts';

/** The shop's time for one notice here, in real time; long enough for a busy machine to answer in. */
const DEADLINE_MS = 1_000;
/** Later than any test may end. */
const NEVER_MS = 600_000;

/** For each of the answers: how long the shop was left alone after it gave it to a first attempt, in milliseconds. */
async function waitsAfter(answers: readonly Exclude<CallbackAnswer, number>[]): Promise<number[]> {
  const { shop, newOrder, happen, passFar } = await startStage();
  const firsts: ReceivedNotice[] = [];
  shop.answerWith((notice) => {
    if (firsts.some(({ id }) => id === notice.id)) return 200;
    return answers[firsts.push(notice) - 1];
  });
  for (const _ of answers) await happen(await newOrder());
  await passFar(25 * HOUR_MS);
  return firsts.map((first) => {
    const times = shop.notices.filter(({ id }) => id === first.id).map(({ atMs }) => atMs);
    expect(times).toHaveLength(2);
    return Number(times[1]) - Number(times[0]);
  });
}

/** One notice, and the fault after its first attempt. */
async function firstFault({ list, newOrder, happen, quiet }: Stage) {
  await happen(await newOrder());
  await quiet();
  const [notice] = await list();
  expect(notice).toMatchObject({ status: 'pending', attempt: 1 });
  return notice?.fault;
}

type AnswerBy = (response: ServerResponse) => undefined;

function writeEndlessly(response: ServerResponse): undefined {
  response.on('error', () => {});
  const more = () => {
    while (response.write('x'.repeat(1_000)) && !response.destroyed);
  };
  response.on('drain', more);
  more();
}

/** The ids that the shop was sent, with one letter for each that is new. */
function letters({ shop }: Stage): string {
  const ids = [...new Set(shop.notices.map(({ id }) => id))];
  return shop.notices.map(({ id }) => String.fromCharCode(65 + ids.indexOf(id))).join('');
}

describe('an answer of the shop', () => {
  it.each<[string, number, AnswerBy, object]>([
    [
      'takes its time, but not too much',
      NEVER_MS,
      (response) => void setTimeout(() => response.end('slow'), 200),
      { answer: { status: 200, body: 'slow' } },
    ],
    [
      'never comes but for its first line',
      DEADLINE_MS,
      (response) => void response.writeHead(202, { 'content-length': 100 }).write('the begin'),
      { answer: { status: 202, body: 'the begin' } },
    ],
    [
      'is cut off in the middle, because the connection is reset',
      NEVER_MS,
      (response) =>
        void response.writeHead(200, { 'content-length': 100 }).write('the begin', () => response.destroy()),
      {},
    ],
    ['has no end', NEVER_MS, writeEndlessly, { answer: { status: 200, body: 'x'.repeat(1_024) } }],
  ])('counts from its first line although it %s', async (_name, deadlineMs, answer, kept) => {
    const stage = await startStage({ deadlineMs });
    stage.shop.answerWith((_, response) => answer(response));
    await stage.happen(await stage.newOrder());
    await stage.quiet();
    expect(await stage.list()).toMatchObject([{ status: 'done', ...kept }]);
    expect(letters(stage)).toBe('A');
  });

  it('that comes too late, after the shop did what was to be done, has the notice sent again with its id', async () => {
    const stage = await startStage({ deadlineMs: DEADLINE_MS });
    stage.shop.answerWith(() => (stage.shop.notices.length === 1 ? undefined : 200));
    expect(await firstFault(stage)).toEqual({
      code: 'shop_timeout',
      message: 'The shop did not answer within 1 s. It may still have taken the notice.',
    });
    await stage.passFar(MINUTE_MS);
    expect(letters(stage)).toBe('AA');
    expect(await stage.list('done')).toHaveLength(1);
  });

  it('is none if the connection is reset before its first line', async () => {
    const stage = await startStage();
    stage.shop.answerWith((_, response) => void response.socket?.destroy());
    expect(await firstFault(stage)).toMatchObject({
      code: 'shop_unreachable',
      message: expect.stringContaining('ECONNRESET'),
    });
    stage.shop.answerWith(200);
    await stage.passFar(MINUTE_MS);
    expect(letters(stage)).toBe('AA');
  });

  it('that repeats the path of its address decoded is kept without that text', async () => {
    const stage = await startStage({ query: '/part%2Bsecret' });
    stage.shop.answerWith({ status: 403, body: 'no part+secret, no /settled/part+secret, no part%2Bsecret' });
    await firstFault(stage);
    const [notice] = await stage.list();
    expect(notice?.answer?.body).toBe('no …, no …, no …');
  });

  it('that repeats path or query of its address is kept without that text', async () => {
    const secret = 'a b+c/d&e=f';
    const stage = await startStage({ query: `?shop=7&key=${encodeURIComponent(secret)}` });
    const written = encodeURIComponent(secret);
    const said = `/settled?shop=7&key=${written} is wrong: ${written}, ${secret}. 7 ${'.'.repeat(925)}`;
    stage.shop.answerWith({ status: 403, body: said + secret });
    await firstFault(stage);
    const [notice] = await stage.list();
    expect(notice?.answer?.body).toMatch(/^…\?… is wrong: …, …\. 7 \.{925}…$/);
  });

  it('other than 2xx is kept up to its first bytes, and the notice is sent again', async () => {
    const { shop, newOrder, happen, quiet, list, passFar } = await startStage();
    const statuses = [400, 401, 403, 404, 409, 422, 429, 500, 503];
    for (const status of statuses) {
      shop.answerWith({ status, body: `${'ä'.repeat(511)}x${'y'.repeat(100_000)}` });
      const { reference } = await newOrderTold();
      const hint = [401, 403].includes(status) ? ' Does the shop have the secret of SETTLED_SHOP_SECRET?' : '';
      const message = `The shop answered ${status}; only 2xx takes a notice. Look at the shop's own log.${hint}`;
      expect((await list('pending')).find((notice) => notice.reference === reference)).toMatchObject({
        attempt: 1,
        fault: { code: 'shop_refused', message },
        answer: { status, body: `${'ä'.repeat(511)}xy` },
      });
    }
    shop.answerWith(200);
    await passFar(MINUTE_MS);
    expect(await list('done')).toHaveLength(statuses.length);

    async function newOrderTold() {
      const order = await newOrder();
      await happen(order);
      await quiet();
      return order;
    }
  });

  it('that points elsewhere sends nothing there', async () => {
    const stage = await startStage();
    const other = await startCallback();
    const statuses = [301, 302, 303, 307, 308];
    stage.shop.answerWith(() => {
      return { status: Number(statuses[stage.shop.notices.length - 1]), headers: { location: other.url } };
    });
    for (const _ of statuses) await stage.happen(await stage.newOrder());
    await stage.quiet();
    const pending = await stage.list('pending');
    expect(pending.map(({ answer }) => answer?.status).sort()).toEqual(statuses);
    for (const { fault } of pending) {
      expect(fault).toEqual({
        code: 'shop_redirects',
        message: expect.stringContaining('Put the final address into SETTLED_SHOP_URL'),
      });
    }
    expect(other.connections).toBe(0);
  });

  it('410 ends that notice at once, and nothing else', async () => {
    const { log, lines } = readableLog();
    const stage = await startStage({ log });
    const { shop, newOrder, happen, list, store, quiet, passFar } = stage;
    shop.answerWith(({ body }) => (body.includes('payment_pending') ? 410 : 200));
    const [order, other] = [await newOrder('order-1'), await newOrder('order-2')];
    await happen(order, 'pending');
    await happen(order);
    await happen(other);
    await quiet();
    expect(await list()).toMatchObject([
      { reference: 'order-1', type: 'order.payment_pending', status: 'dead', attempt: 1, fault: { code: 'shop_gone' } },
      { reference: 'order-1', type: 'order.paid', status: 'done' },
      { reference: 'order-2', type: 'order.paid', status: 'done' },
    ]);
    expect(await openAttention(store)).toMatchObject([{ kind: 'notices_dead' }]);
    expect(lines.filter(({ level }) => level !== 'info')).toMatchObject([
      { level: 'error', order: 'order-1', fault: { code: 'shop_gone' } },
    ]);
    // It is an answer: the shop is there, and is not taken for one that is down.
    for (let n = 0; n < 30; n++) await happen(await newOrder(), 'pending');
    await passFar(POLL_MS);
    expect(await list('dead')).toHaveLength(31);
    expect(lines.filter(({ level }) => level === 'warn')).toEqual([]);
  });
});

describe('Retry-After', () => {
  it('is obeyed if it asks for more time than the schedule gives, in seconds or as a time of the shop', async () => {
    const date = new Date(5_000_000).toUTCString();
    const waits = await waitsAfter([
      { status: 503, headers: { 'retry-after': '900' } },
      { status: 429, headers: { date, 'retry-after': new Date(5_800_000).toUTCString() } },
      { status: 503, headers: { 'retry-after': '86400' } },
    ]);
    // An hour at most: waiting notices are sent within the hour after the shop recovers.
    for (const [index, askedMs] of [900_000, 800_000, HOUR_MS].entries()) {
      expect(waits[index]).toBeGreaterThanOrEqual(askedMs);
      expect(waits[index]).toBeLessThanOrEqual(askedMs + POLL_MS);
    }
  });

  it('leaves it to the schedule if it asks for less, cannot be read, or comes with another status than 429 and 503', async () => {
    const values = ['0', '-5', 'soon', '1.5', new Date(0).toUTCString()];
    const others = [500, 502, 400, 301].map((status) => ({ status, headers: { 'retry-after': '900' } }));
    const waits = await waitsAfter([
      ...values.map((value) => ({ status: 503, headers: { 'retry-after': value } })),
      ...others,
    ]);
    expect(waits).toHaveLength(values.length + others.length);
    for (const waitMs of waits) {
      expect(waitMs).toBeGreaterThanOrEqual(4_000);
      expect(waitMs).toBeLessThanOrEqual(5_000 + POLL_MS);
    }
  });
});
