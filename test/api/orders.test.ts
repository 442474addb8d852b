import { beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { UNSAID } from '../support/orders.ts';
import { sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';
import { deliverAndSee, get, heldOrder, orderPath, paidOrder, post, problem } from './client.ts';

const settled = sharedApp();

async function references(app: TestApp, query: string): Promise<string[]> {
  const { status, body } = await get(app, `/v1/orders?${query}`);
  expect([status, body.errors]).toEqual([200, undefined]);
  return body.orders.map(({ reference }: { reference: string }) => reference);
}

describe('api: one order', () => {
  it('is shown whole, to the shop as to the operator', async () => {
    const { reference } = await paidOrder(settled());
    const shown = await get(settled(), orderPath(reference), 'shop');
    const money = { amount: '100.00', currency: 'BRL', customerPaid: null };
    const payment = { id: `pay_${reference}`, status: 'completed', ...money, ...UNSAID };
    expect(shown.body.order).toEqual({
      reference,
      state: 'paid',
      flags: [],
      amount: '100.00',
      currency: 'BRL',
      title: null,
      metadata: null,
      customer: null,
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      paidAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      learnedBy: 'webhook',
      payment,
      payments: [payment],
      paymentsTotal: { count: 1, sums: [{ currency: 'BRL', captured: '100.00', balance: '100.00' }] },
      holds: [],
      hold: null,
      link: { id: `pl_${reference}`, url: null, shortUrl: null, status: null, expiresAt: null },
      version: 2,
    });
    expect((await get(settled(), orderPath(reference))).body).toEqual(shown.body);
  });

  it('that is not there is 404, and so is its timeline', async () => {
    problem(await get(settled(), '/v1/orders/nobody'), 404, 'not_found');
    problem(await get(settled(), '/v1/orders/nobody/timeline'), 404, 'not_found');
  });
});

describe('api: the list of orders', () => {
  /** It has these orders and no others. */
  const three = sharedApp();
  beforeAll(async () => {
    await paidOrder(three(), 'paid-1');
    await heldOrder(three(), 'held-1');
    await three().reserve('waiting-1');
  });

  it('goes from the newest to the oldest', async () => {
    expect(await references(three(), '')).toEqual(['waiting-1', 'held-1', 'paid-1']);
  });

  it('stays in step while orders arrive: every order once, none left out', async () => {
    const app = await startTestApp();
    for (let i = 0; i < 10; i++) await app.reserve(`old-${i}`);
    const seen: string[] = [];
    let cursor: string | null = null;
    let pages = 0;
    do {
      const query: string = `/v1/orders?limit=3${cursor === null ? '' : `&cursor=${cursor}`}`;
      const { body } = await get(app, query);
      expect(body.orders.length).toBeLessThanOrEqual(3);
      seen.push(...body.orders.map(({ reference }: { reference: string }) => reference));
      cursor = body.nextCursor;
      await app.reserve(`new-${pages++}`);
    } while (cursor !== null);
    expect(seen).toEqual(Array.from({ length: 10 }, (_, i) => `old-${9 - i}`));
    expect(pages).toBe(4);
  });

  it('has no further page if the last one is full', async () => {
    expect((await get(three(), '/v1/orders?limit=3')).body.nextCursor).toBeNull();
    expect((await get(three(), '/v1/orders?limit=2')).body.nextCursor).not.toBeNull();
  });

  it.each([
    ['nothing', ''],
    ['a key as it is', '12'],
    ['another text', Buffer.from('k0').toString('base64url')],
    ['SQL', Buffer.from('k1 OR 1=1').toString('base64url')],
    ['a cursor with something added', `${Buffer.from('k12').toString('base64url')}!`],
    ['a padded cursor', `${Buffer.from('k1').toString('base64')}`],
    ['a number beyond all keys', Buffer.from('k9999999999999999').toString('base64url')],
    ['a long text', 'x'.repeat(65)],
  ])('has no cursor of %s', async (_name, cursor) => {
    for (const list of ['orders', 'events', 'rejections', 'attention']) {
      const response = await get(settled(), `/v1/${list}?cursor=${encodeURIComponent(cursor)}`);
      expect(problem(response, 400, 'invalid_request')).toMatch(/^cursor: /);
    }
  });

  it('is narrowed to states', async () => {
    expect(await references(three(), 'state=paid')).toEqual(['paid-1']);
    expect(await references(three(), 'state=held,paid')).toEqual(['held-1', 'paid-1']);
    expect(await references(three(), 'state=held&state=paid')).toEqual(['held-1', 'paid-1']);
    expect(await references(three(), 'state=held,held&state=held')).toEqual(['held-1']);
    expect(await references(three(), 'state=refunded')).toEqual([]);
  });

  it('says how many there are if it is asked', async () => {
    const counted = async (query: string) => (await get(three(), `/v1/orders?${query}`)).body.count;
    expect(await counted('limit=1&count=true')).toEqual({ n: 3, isMore: false });
    expect(await counted('count=true&state=held')).toEqual({ n: 1, isMore: false });
    expect(await counted('count=false')).toBeUndefined();
  });

  it.each([
    [400, 'q=%00', 'q: '],
    [400, 'state=lost', 'state: '],
    [400, 'state=paid,', 'state: '],
    [400, `state=${Array(99).fill('paid')}`, 'state: '],
    [400, 'flag=big', 'flag: '],
    [400, 'attention=none', 'attention: '],
    [400, 'hold=none', 'hold: '],
    [400, 'since=yesterday', 'since: '],
    [400, 'paidUntil=1', 'paidUntil: '],
    [400, 'amountFrom=ten', 'amountFrom: '],
    [400, 'flag=late&flag=late', 'flag: '],
    [400, 'count=yes', 'count: '],
    [422, 'amountTo=1.0011', 'amountTo: has more decimals than'],
    [422, 'amountTo=1.000', 'amountTo: may mean thousands: write 1 or 1000'],
    [422, 'amountTo=1.5&currency=JPY', 'amountTo: has more decimals than'],
  ])('answers %i to a filter that no order can meet, by its name: %s', async (status, query, words) => {
    const detail = problem(await get(three(), `/v1/orders?${query}`), status, 'invalid_request');
    expect(detail.slice(0, words.length)).toBe(words);
  });

  it('is searched by what a person has: ids as they are written, references in any case', async () => {
    const app = settled();
    await paidOrder(app, 'summer/2026-0417');
    for (const reference of ['100%', '100x', 'a_b', 'axb', "o'neil"]) await app.reserve(reference);
    const found: [string, string[]][] = [
      ['summer/', ['summer/2026-0417']],
      ['SUMMER/', ['summer/2026-0417']],
      ['SUMMER/2026-0418', []],
      ['PAY_summer/2026-0417', []],
      ['2026', ['summer/2026-0417']],
      ['0417 summer', ['summer/2026-0417']],
      ['026', []],
      ['pl_summer/2026-0417', ['summer/2026-0417']],
      ['pay_summer/2026-0417', ['summer/2026-0417']],
      ['pay_summer', []],
      ['100%', ['100x', '100%']],
      ['a_', ['a_b']],
      ["o'n", ["o'neil"]],
    ];
    for (const [text, expected] of found) {
      expect([text, await references(app, `q=${encodeURIComponent(text)}`)]).toEqual([text, expected]);
    }
  });
});

describe('api: resolving a hold', () => {
  const accept = { decision: 'accept', reason: 'the rest came in cash' };
  const reject = { decision: 'reject', reason: 'too little' };

  const paid = {
    state: 'paid',
    amount: '100.00',
    payment: { amount: '60.00', status: 'completed' },
    learnedBy: 'person',
    paidAt: expect.any(String),
    holds: [],
    hold: null,
    flags: ['underpaid'],
  };
  const cancelled = { state: 'cancelled', flags: ['refund_due'], paidAt: null };
  const toPaid = { to: 'paid', rule: 'hold_accepted', notices: ['order.paid'], raised: [] };
  const toCancelled = { to: 'cancelled', rule: 'hold_rejected', notices: ['order.cancelled'], raised: ['refund_due'] };

  it.each([
    ['accept', accept, paid, toPaid, 'reject'],
    ['reject', reject, cancelled, toCancelled, 'accept'],
  ] as const)(
    'says what a decision would do, does just that, answers the same again, and does not go back on it: %s',
    async (_decision, asked, expected, previewed, other) => {
      const { reference } = await heldOrder(settled());
      const { decision, reason } = asked;
      const resolve = (body: object) => post(settled(), `${orderPath(reference)}/resolve`, body);
      const before = (await get(settled(), orderPath(reference))).body;
      const dry = await resolve({ decision, dryRun: true });
      expect([dry.status, dry.body.order]).toEqual([200, before.order]);
      expect((await get(settled(), orderPath(reference))).body).toEqual(before);
      const { preview } = dry.body;
      expect(preview).toMatchObject({ from: 'held', ...previewed });
      expect(preview.sentences[0]).toBe(`Order ${reference} (100.00 BRL) changes from held to ${preview.to}.`);
      expect(preview.sentences.at(-1)).toBe(`settled tells the shop: ${preview.notices[0]}.`);

      const done = await resolve(asked);
      expect(done.status).toBe(200);
      expect(done.body.order).toMatchObject(expected);
      expect(done.body.order.flags).toEqual(preview.flags);
      const again = await resolve(asked);
      expect([again.status, again.body]).toEqual([200, done.body]);
      const dryAgain = await resolve({ decision, dryRun: true });
      expect(dryAgain.body.preview.sentences).toEqual([expect.stringMatching(/^Nothing changes: /)]);
      for (const more of [{ dryRun: true }, { reason }]) {
        problem(await resolve({ decision: other, ...more }), 409, 'not_held');
      }
      expect((await get(settled(), orderPath(reference))).body.order).toEqual(done.body.order);
      expect((await get(settled(), `${orderPath(reference)}/timeline`)).text).toContain(reason);
    },
  );

  it('needs a reason, unless nothing is decided', async () => {
    const { reference } = await heldOrder(settled());
    const answer = await post(settled(), `${orderPath(reference)}/resolve`, { decision: 'accept' });
    expect(problem(answer, 422, 'invalid_request')).toBe('reason: is needed');
    problem(await post(settled(), '/v1/orders/nobody/resolve', { decision: 'accept', dryRun: true }), 404, 'not_found');
  });

  it('is for held orders only, that are there', async () => {
    const { reference } = await paidOrder(settled());
    const response = await post(settled(), `${orderPath(reference)}/resolve`, accept);
    expect(problem(response, 409, 'not_held')).toContain('paid');
    problem(await post(settled(), '/v1/orders/nobody/resolve', accept), 404, 'not_found');
  });

  it('is not for the shop, whose hold it may be', async () => {
    const { reference } = await heldOrder(settled());
    const response = await post(settled(), `${orderPath(reference)}/resolve`, accept, 'shop');
    problem(response, 403, 'forbidden');
    expect((await settled().order(reference)).state).toBe('held');
  });

  it('accepts nothing if the held money went back', async () => {
    const { reference, link } = await heldOrder(settled());
    const refund = paymentEvent({
      linkId: `pl_${reference}`,
      status: 'REFUNDED',
      paymentId: `pay_${reference}`,
      amount: '60.00',
    });
    await deliverAndSee(settled(), link, refund, 'held');
    await eventually(async () =>
      expect(await settled().order(reference)).toMatchObject({ payment: { status: 'refunded' } }),
    );
    const response = await post(settled(), `${orderPath(reference)}/resolve`, accept);
    expect(problem(response, 409, 'nothing_left_to_accept')).toContain('Reject');
    expect((await post(settled(), `${orderPath(reference)}/resolve`, reject)).status).toBe(200);
  });
});
