import { beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { UNSAID } from '../support/orders.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
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
    ['q=%00', 'q'],
    ['state=lost', 'state'],
    ['state=paid,', 'state'],
    [`state=${Array(99).fill('paid')}`, 'state'],
    ['flag=big', 'flag'],
    ['attention=none', 'attention'],
    ['hold=none', 'hold'],
    ['since=yesterday', 'since'],
    ['paidUntil=1', 'paidUntil'],
    ['amountFrom=ten', 'amountFrom'],
    ['flag=late&flag=late', 'flag'],
    ['count=yes', 'count'],
  ])('refuses a filter that no order can meet by its name: %s', async (query, name) => {
    const detail = problem(await get(settled(), `/v1/orders?${query}`), 400, 'invalid_request');
    expect(detail.startsWith(`${name}: `)).toBe(true);
  });

  it.each(['amountTo=1.001', 'amountTo=1.5&currency=JPY'])(
    'refuses an amount that is none of its currency: %s',
    async (query) => {
      const detail = problem(await get(three(), `/v1/orders?${query}`), 422, 'invalid_request');
      expect(detail).toMatch(/^amountTo: has more decimals than/);
    },
  );

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

  it('accepts: the order is paid, with the money as it was captured', async () => {
    const { reference } = await heldOrder(settled());
    const response = await post(settled(), `${orderPath(reference)}/resolve`, accept);
    expect(response.status).toBe(200);
    expect(response.body.order).toMatchObject({
      state: 'paid',
      amount: '100.00',
      payment: { amount: '60.00', status: 'completed' },
      learnedBy: 'person',
      paidAt: expect.any(String),
      holds: [],
      hold: null,
      flags: ['underpaid'],
    });
    expect((await get(settled(), orderPath(reference))).body.order).toEqual(response.body.order);
  });

  it('rejects: the order is cancelled and the refund is due', async () => {
    const { reference } = await heldOrder(settled());
    const response = await post(settled(), `${orderPath(reference)}/resolve`, reject);
    expect(response.status).toBe(200);
    expect(response.body.order).toMatchObject({ state: 'cancelled', flags: ['refund_due'], paidAt: null });
  });

  it.each([accept, reject])('answers the same again with 200: $decision', async (asked) => {
    const { reference } = await heldOrder(settled());
    const first = await post(settled(), `${orderPath(reference)}/resolve`, asked);
    const again = await post(settled(), `${orderPath(reference)}/resolve`, asked);
    expect([again.status, again.body]).toEqual([200, first.body]);
  });

  it.each(['accept', 'reject'])(
    'says what a decision would do, and does just that when it is made: %s',
    async (decision) => {
      const { reference } = await heldOrder(settled());
      const path = `${orderPath(reference)}/resolve`;
      const before = (await get(settled(), orderPath(reference))).body;
      const previewed = await post(settled(), path, { decision, dryRun: true });
      expect([previewed.status, previewed.body.order]).toEqual([200, before.order]);
      expect((await get(settled(), orderPath(reference))).body).toEqual(before);
      const { preview } = previewed.body;
      expect(preview).toMatchObject(
        decision === 'accept'
          ? { from: 'held', to: 'paid', rule: 'hold_accepted', notices: ['order.paid'], raised: [] }
          : {
              from: 'held',
              to: 'cancelled',
              rule: 'hold_rejected',
              notices: ['order.cancelled'],
              raised: ['refund_due'],
            },
      );
      expect(preview.sentences[0]).toBe(`Order ${reference} (100.00 BRL) changes from held to ${preview.to}.`);
      expect(preview.sentences.at(-1)).toBe(`settled tells the shop: ${preview.notices[0]}.`);
      const { order } = (await post(settled(), path, { decision, reason: 'seen' })).body;
      expect([order.state, order.flags]).toEqual([preview.to, preview.flags]);
      const again = await post(settled(), path, { decision, dryRun: true });
      expect(again.body.preview.sentences).toEqual([expect.stringMatching(/^Nothing changes: /)]);
      const other = decision === 'accept' ? 'reject' : 'accept';
      problem(await post(settled(), path, { decision: other, dryRun: true }), 409, 'not_held');
    },
  );

  it('needs a reason, unless nothing is decided', async () => {
    const { reference } = await heldOrder(settled());
    const answer = await post(settled(), `${orderPath(reference)}/resolve`, { decision: 'accept' });
    expect(problem(answer, 422, 'invalid_request')).toBe('reason: is needed');
    problem(await post(settled(), '/v1/orders/nobody/resolve', { decision: 'accept', dryRun: true }), 404, 'not_found');
  });

  it('does not go back on a decision', async () => {
    const { reference } = await heldOrder(settled());
    await post(settled(), `${orderPath(reference)}/resolve`, accept);
    problem(await post(settled(), `${orderPath(reference)}/resolve`, reject), 409, 'not_held');
    expect((await settled().order(reference)).state).toBe('paid');
  });

  it('is for held orders only', async () => {
    const { reference } = await paidOrder(settled());
    const response = await post(settled(), `${orderPath(reference)}/resolve`, accept);
    expect(problem(response, 409, 'not_held')).toContain('paid');
  });

  it('is for orders that are there', async () => {
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

  it('keeps the reason', async () => {
    const reference = freshReference();
    await heldOrder(settled(), reference);
    await post(settled(), `${orderPath(reference)}/resolve`, accept);
    const { text } = await get(settled(), `${orderPath(reference)}/timeline`);
    expect(text).toContain(accept.reason);
  });
});
