import { describe, expect, it } from 'vitest';
import { startTestApp } from '../support/app.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { eventually } from '../support/timing.ts';

describe('the whole way', () => {
  it('turns a reserved order paid by one signed delivery, and answers its repetition as a duplicate', async () => {
    const settled = await startTestApp();
    const link = await settled.reserve('order-1', '100.00');
    const body = paymentEvent({ linkId: 'pl_1', amount: '100.00' });

    const first = await settled.deliver(link, body);
    expect([first.status, await first.json()]).toEqual([200, { received: true, duplicate: false }]);
    // Only a settlement that never comes takes this long; latency.test.ts measures how long one takes.
    const isPaid = async () => expect((await settled.order('order-1')).state).toBe('paid');
    await eventually(isPaid);
    const order = await settled.order('order-1');
    expect(order).toMatchObject({
      payment: { id: 'pay_1', amount: '100.00', currency: 'BRL' },
      link: { id: 'pl_1' },
      learnedBy: 'webhook',
      flags: [],
    });

    const second = await settled.deliver(link, body);
    expect([second.status, await second.json()]).toEqual([200, { received: true, duplicate: true }]);
    expect(await settled.order('order-1')).toEqual(order);
  });
});
