import { describe, expect, it } from 'vitest';
import { startTestApp } from '../support/app.ts';
import { startCallback } from '../support/callback.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { sharedApp } from '../support/shared.ts';
import { followTail } from '../support/tail.ts';
import { eventually, startOwnTime } from '../support/timing.ts';
import { get, problem } from './client.ts';

const settled = sharedApp();

const AT = expect.stringMatching(/^2\S+Z$/);

describe('api: tail', () => {
  it('tells of a delivery, of its settlement and of the notice, in this order', async () => {
    const shop = await startCallback();
    const app = await startTestApp({ environment: shop.environment });
    const tail = await followTail(app);
    const link = await app.reserve('order-1');
    await app.deliver(link, paymentEvent({ linkId: 'pl_1', amount: '100.00' }));
    await tail.first('notified');
    const [{ id = '' } = {}] = shop.notices;
    const type = 'payment_link.payment_status_changed';
    expect(tail.lines.filter(({ what }) => what !== 'alive')).toEqual([
      { at: AT, what: 'accepted', reference: 'order-1', event: '1', type, signedAs: 'hex' },
      {
        at: AT,
        what: 'settled',
        reference: 'order-1',
        event: '1',
        reading: null,
        outcome: 'applied',
        rule: 'paid',
        state: 'paid',
      },
      {
        at: AT,
        what: 'notified',
        reference: 'order-1',
        notice: id,
        type: 'order.paid',
        attempt: 1,
        outcome: 'delivered',
        status: 204,
        fault: null,
      },
    ]);
  });

  it('tells why a notice was not taken', async () => {
    const shop = await startCallback();
    shop.answerWith(410);
    const app = await startTestApp({ environment: shop.environment });
    const tail = await followTail(app);
    await app.deliver(await app.reserve('order-1'), paymentEvent({ amount: '100.00' }));
    expect(await tail.first('notified')).toMatchObject({ outcome: 'dead', status: 410, fault: 'shop_gone' });
  });

  it('tells how each delivery ended', async () => {
    const tail = await followTail(settled());
    const link = await settled().reserve('ends');
    const body = paymentEvent({ amount: '100.00', id: 'evt_ends' });
    await settled().deliver(link, body);
    await settled().deliver(link, body);
    await settled().deliver(link, `${body} `);
    await settled().deliver(link, 'not JSON');
    await settled().deliver(link, body, signedHeaders(link.webhookSecret, body, '1700000000000'));
    await settled().deliver(link, body, signedHeaders('another-secret-altogether', body));
    await settled().deliver({ ...link, webhookUrl: link.webhookUrl.replace(/.{32}$/, 'x'.repeat(32)) }, body);
    await tail.first('refused');
    const told = tail.lines.filter(({ what }) => what !== 'alive' && !what.endsWith('settled'));
    expect(told.map(({ what, reference, reason }) => [what, reference, reason])).toEqual([
      ['accepted', 'ends', undefined],
      ['duplicate', 'ends', undefined],
      ['conflict', 'ends', undefined],
      ['unreadable', 'ends', undefined],
      ['stale', 'ends', undefined],
      ['rejected', 'ends', 'signature_wrong'],
      ['refused', null, 'unknown_link'],
    ]);
    expect(await tail.first('not_settled')).toMatchObject({ reference: 'ends', outcome: 'buried' });
  });

  it('tells of an event that names another link', async () => {
    const tail = await followTail(settled());
    const link = await settled().reserve('other-link');
    await settled().deliver(link, paymentEvent({ linkId: 'pl_one', status: 'PENDING' }));
    await tail.first('settled');
    await settled().deliver(link, paymentEvent({ linkId: 'pl_two' }));
    expect(await tail.first('not_settled')).toMatchObject({ reference: 'other-link', outcome: 'link_mismatch' });
  });

  it('tells of one order alone if asked to', async () => {
    const tail = await followTail(settled(), '?reference=mine');
    await settled().deliver(await settled().reserve('theirs'), paymentEvent({ amount: '100.00' }));
    await settled().deliver(await settled().reserve('mine'), paymentEvent({ amount: '100.00' }));
    await tail.first('settled');
    expect(new Set(tail.lines.map(({ reference }) => reference))).toEqual(new Set([null, 'mine']));
    expect(tail.lines.map(({ what }) => what)).toEqual(['alive', 'accepted', 'settled']);
  });

  it('is for ten at once, and has room again when one leaves', async () => {
    const tails = await Promise.all(Array.from({ length: 10 }, () => followTail(settled())));
    const refused = await get(settled(), '/v1/tail');
    expect(problem(refused, 503, 'unavailable')).toContain('End another');
    tails[0]?.leave();
    await eventually(async () => {
      const again = await followTail(settled());
      again.leave();
      expect(again.response.statusCode).toBe(200);
    });
  });

  it('ends with a line that says so when settled stops, and does not hold up the stop', async () => {
    const app = await startTestApp();
    const tail = await followTail(app);
    const stopping = app.app.stop();
    await tail.ended;
    expect(tail.lines.at(-1)).toEqual({ at: AT, what: 'stopping', reference: null });
    const ownMs = startOwnTime();
    await stopping;
    // The second of grace, and a little.
    expect(ownMs()).toBeLessThan(2_000);
  });

  it('refuses what it does not know', async () => {
    expect(problem(await get(settled(), '/v1/tail?order=x'), 400, 'invalid_request')).toContain('order');
    problem(await get(settled(), '/v1/tail', 'shop'), 403, 'forbidden');
  });
});
