import { beforeAll, describe, expect, it } from 'vitest';
import { act, createLink, HOUR_MS, MINUTE_MS, plan } from '../support/sandbox.ts';
import { freshReference, sharedShop } from '../support/shared.ts';
import {
  allSettled,
  cancel,
  check,
  openLink,
  openOrder,
  pass,
  passUntil,
  quiet,
  requestsOf,
  type Shop,
  startDeafShop,
  startProxiedShop,
  startShop,
} from '../support/shop.ts';

const DAY_MS = 24 * HOUR_MS;

/** For tests that neither turn its clock nor plan mischief, nor count all that it is asked. */
const theDeafShop = sharedShop();
beforeAll(() => plan(theDeafShop().sandbox, { fault: 'drop', count: null }));

const stateOf = async ({ settled }: Shop, reference = 'order-1') => (await settled.order(reference)).state;

describe('POST /v1/orders/:reference/check', () => {
  it('asks the service now, settles what it says, and answers with the order and with that', async () => {
    const shop = theDeafShop();
    const reference = freshReference();
    const link = await openLink(shop, reference);
    const before = await check(shop, reference);
    expect([before.status, before.body]).toEqual([
      200,
      {
        order: expect.objectContaining({ state: 'awaiting_payment' }),
        service: { linkStatus: 'ACTIVE', paymentStatus: 'NOT_STARTED' },
      },
    ]);
    await act(shop.sandbox, link, 'pay');
    const after = await check(shop, reference);
    expect(after.body).toMatchObject({
      order: { state: 'paid', learnedBy: 'reconciliation', link: { status: 'INACTIVE' } },
      service: { linkStatus: 'INACTIVE', paymentStatus: 'COMPLETED' },
    });
  });

  it('asks once for callers that come together', async () => {
    const shop = await startDeafShop();
    await openLink(shop, 'order-1');
    const before = (await requestsOf(shop.sandbox)).length;
    const answers = await Promise.all(Array.from({ length: 5 }, () => check(shop, 'order-1')));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    const asked = (await requestsOf(shop.sandbox)).length - before;
    expect(asked).toBeLessThan(5);
  });

  it('says what is in its way', async () => {
    const shop = await startShop();
    expect(await check(shop, 'nobodys')).toMatchObject({ status: 404, body: { title: 'not_found' } });
    await shop.settled.reserve('order-1');
    expect(await check(shop, 'order-1')).toMatchObject({ status: 409, body: { title: 'link_unknown' } });
    await openLink(shop, 'order-2');
    await plan(shop.sandbox, { fault: 'rate-limit', with: { retryAfterSeconds: 42 } });
    const limited = await check(shop, 'order-2');
    expect(limited).toMatchObject({ status: 503, body: { title: 'service_unavailable' } });
    expect(limited.body.detail).toContain('429');
    expect(limited.headers.get('retry-after')).toBe('42');
    const paused = await check(shop, 'order-2');
    expect(paused.body.detail).toContain('the API is paused until');
    expect(Number(paused.headers.get('retry-after'))).toBeGreaterThan(30);
  });

  it('says that a link is being opened', async () => {
    const shop = await startShop();
    await plan(shop.sandbox, { fault: 'server-error', count: null, match: { method: 'POST' } });
    const opening = openOrder(shop, 'order-1');
    await passUntil(shop, async () => (await requestsOf(shop.sandbox)).length > 0, { stepMs: 100 });
    const answer = await check(shop, 'order-1');
    expect(answer).toMatchObject({ status: 503, body: { title: 'link_unknown' } });
    expect(answer.headers.get('retry-after')).not.toBe(null);
    expect(await cancel(shop, 'order-1')).toMatchObject({ status: 503, body: { title: 'link_unknown' } });
    await pass(shop, 11_000);
    expect((await opening).status).toBe(202);
  });

  it('says that no service is configured', async () => {
    const shop = await startShop({ api: false });
    await shop.settled.reserve('order-1');
    for (const ask of [check, cancel]) {
      const answer = await ask(shop, 'order-1');
      expect(answer).toMatchObject({ status: 503, body: { title: 'api_not_configured' } });
    }
  });
});

describe('POST /v1/orders/:reference/cancel', () => {
  it('asks, then cancels an unpaid order, and answers the same again', async () => {
    const shop = theDeafShop();
    const reference = freshReference();
    const { id } = await openLink(shop, reference);
    expect(await cancel(shop, reference)).toMatchObject({ status: 200, body: { order: { state: 'cancelled' } } });
    const asked = (await requestsOf(shop.sandbox)).filter(({ path }) => path.endsWith(id));
    expect(asked).toHaveLength(1);
    expect(await cancel(shop, reference)).toMatchObject({ status: 200, body: { order: { state: 'cancelled' } } });
  });

  it.each([
    ['paid', {}, 'paid', /refund the payment in the service's panel\.$/],
    [
      'pending',
      { complete: false },
      'payment_pending',
      /When the link has expired, the order expires and can be cancelled, .* settled sends order\.paid\. To ask again: settled orders check link-payment_pending$/,
    ],
  ])('does not cancel what the service calls %s, knows it then, and says what to do', async (...given) => {
    const [, choice, state, instead] = given;
    const shop = theDeafShop();
    const reference = `link-${state}`;
    const link = await openLink(shop, reference);
    await act(shop.sandbox, link, 'pay', choice);
    expect(await stateOf(shop, reference)).toBe('awaiting_payment');
    const refused = await cancel(shop, reference);
    expect(refused).toMatchObject({ status: 409, body: { title: 'not_cancellable' } });
    expect(refused.body.detail).toMatch(instead);
    expect(await stateOf(shop, reference)).toBe(state);
  });

  it('does not cancel a paid order, and asks the service nothing', async () => {
    const shop = await startShop();
    const link = await openLink(shop, 'order-1');
    await act(shop.sandbox, link, 'pay');
    await quiet(shop);
    expect(await stateOf(shop)).toBe('paid');
    const before = (await requestsOf(shop.sandbox)).length;
    expect(await cancel(shop, 'order-1')).toMatchObject({ status: 409, body: { title: 'not_cancellable' } });
    expect((await requestsOf(shop.sandbox)).length).toBe(before);
  });

  it('cancels nothing if the service cannot be asked', async () => {
    const shop = await startDeafShop();
    await openLink(shop, 'order-1');
    await plan(shop.sandbox, { fault: 'server-error', match: { method: 'GET' }, with: { status: 502 } });
    const refused = await cancel(shop, 'order-1');
    expect(refused).toMatchObject({ status: 503, body: { title: 'service_unavailable' } });
    expect(refused.body.detail).toContain('502');
    expect(await stateOf(shop)).toBe('awaiting_payment');
  });

  it.each([
    ['paid', {}, 409, 'awaiting_payment'],
    ['not paid', null, 200, 'cancelled'],
  ])('looks at a link that has the reference but is not ours: it is %s', async (_name, choice, status, state) => {
    const shop = theDeafShop();
    const reference = freshReference();
    await shop.settled.reserve(reference);
    const link = await createLink(shop.sandbox, { externalReference: reference });
    if (choice !== null) await act(shop.sandbox, link, 'pay', choice);
    const checked = await check(shop, reference);
    expect(checked).toMatchObject({ status: 409, body: { title: 'link_unknown' } });
    expect(checked.body.detail).toContain(link.id);
    expect((await cancel(shop, reference)).status).toBe(status);
    expect(await shop.settled.order(reference)).toMatchObject({ state, link: { id: null }, payments: [] });
  });

  it('looks at the link that took the reference of an order that settled was to open', async () => {
    const shop = theDeafShop();
    const reference = freshReference();
    await createLink(shop.sandbox, { externalReference: reference });
    expect(await openOrder(shop, reference)).toMatchObject({ status: 409, body: { title: 'reference_taken' } });
    expect(await check(shop, reference)).toMatchObject({ status: 409, body: { title: 'link_unknown' } });
    expect((await cancel(shop, reference)).body.order).toMatchObject({ state: 'cancelled' });
  });

  it('keeps watching the open link of a cancelled order: money that comes is held', async () => {
    const { shop, proxy } = await startProxiedShop(startDeafShop, { environment: { SETTLED_LINK_LIFETIME: '10d' } });
    // Without the list the schedule alone finds it.
    proxy.answerWith(async ({ path }) =>
      path.includes('?page=') ? { status: 403, headers: {}, text: '' } : undefined,
    );
    const link = await openLink(shop, 'order-1');
    await cancel(shop, 'order-1');
    await pass(shop, 2 * DAY_MS, HOUR_MS);
    expect(await stateOf(shop)).toBe('cancelled');
    await act(shop.sandbox, link, 'pay');
    await passUntil(shop, async () => (await stateOf(shop)) === 'held', {
      withinMs: DAY_MS + HOUR_MS,
      stepMs: HOUR_MS,
    });
    expect(await shop.settled.order('order-1')).toMatchObject({
      holds: [{ reason: 'paid_after_cancel' }],
      payments: [{ status: 'completed', amount: '100.00' }],
    });
  });

  it('loses no payment that comes between the answer and the cancel', async () => {
    const { shop, proxy } = await startProxiedShop(startShop);
    const link = await openLink(shop, 'order-1');
    proxy.answerWith(async (_asked, passOn) => {
      const unpaid = await passOn();
      await act(shop.sandbox, link, 'pay');
      await shop.sandbox.idle();
      await allSettled(shop);
      return unpaid;
    });
    expect(await cancel(shop, 'order-1')).toMatchObject({ status: 409, body: { title: 'not_cancellable' } });
    expect(await shop.settled.order('order-1')).toMatchObject({ state: 'paid', learnedBy: 'webhook', holds: [] });
  });

  it('holds a payment whose news comes after the cancel', async () => {
    const shop = await startShop();
    const link = await openLink(shop, 'order-1');
    await cancel(shop, 'order-1');
    await act(shop.sandbox, link, 'pay');
    await quiet(shop);
    expect(await shop.settled.order('order-1')).toMatchObject({
      state: 'held',
      holds: [{ reason: 'paid_after_cancel' }],
    });
    await pass(shop, 5 * MINUTE_MS, MINUTE_MS);
    expect((await shop.settled.order('order-1')).holds).toHaveLength(1);
  });
});
