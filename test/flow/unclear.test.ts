import { describe, expect, it } from 'vitest';
import { sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';

/** Only a settlement that never comes takes this long; latency.test.ts measures how long one takes. */

const theApp = sharedApp();

describe('an authentic event that says COMPLETED, but not plainly', () => {
  it('pays nothing if it names two amounts: the order is held', async () => {
    const settled = theApp();
    const link = await settled.reserve('order-1');
    const body = JSON.stringify({
      paymentStatus: 'COMPLETED',
      paymentLink: { id: 'pl_1', amount: 100, currency: 'BRL' },
      link: { amount: 1 },
    });
    expect((await settled.deliver(link, body)).status).toBe(200);
    await eventually(async () => {
      const { state, hold } = await settled.order('order-1');
      expect({ state, hold }).toEqual({ state: 'held', hold: { reason: 'status_unclear' } });
    });
  });

  it('becomes a matter for a person if its type is unknown', async () => {
    const settled = theApp();
    const link = await settled.reserve('order-2');
    const body = JSON.stringify({ type: 'payment.captured', paymentLinkId: 'pl_2', paymentStatus: 'COMPLETED' });
    expect((await settled.deliver(link, body)).status).toBe(200);
    await eventually(async () => {
      const { attention } = (await settled.api('/v1/attention')).body;
      const others = attention.filter(({ reference }: { reference: string }) => reference !== 'order-1');
      expect(others).toMatchObject([{ kind: 'event_not_understood', reference: 'order-2', count: 1 }]);
    });
    expect((await settled.order('order-2')).state).toBe('awaiting_payment');
  });
});
