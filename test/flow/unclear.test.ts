import { describe, expect, it, vi } from 'vitest';
import { startTestApp } from '../support/app.ts';

describe('an authentic event that says COMPLETED, but not plainly', () => {
  it('pays nothing where it names two amounts: the order is held', async () => {
    const settled = await startTestApp();
    const link = await settled.reserve('order-1');
    const body = JSON.stringify({
      paymentStatus: 'COMPLETED',
      paymentLink: { id: 'pl_1', amount: 100, currency: 'BRL' },
      link: { amount: 1 },
    });
    expect((await settled.deliver(link, body)).status).toBe(200);
    await vi.waitFor(async () => {
      const { state, hold } = await settled.order('order-1');
      expect({ state, hold }).toEqual({ state: 'held', hold: { reason: 'status_unclear' } });
    });
  });

  it('is told to a person where its type is unknown', async () => {
    const settled = await startTestApp();
    const link = await settled.reserve('order-1');
    const body = JSON.stringify({
      type: 'payment.captured',
      paymentLinkId: 'pl_1',
      paymentStatus: 'COMPLETED',
    });
    expect((await settled.deliver(link, body)).status).toBe(200);
    await vi.waitFor(async () => {
      const { attention } = (await settled.api('/v1/attention')).body;
      expect(attention).toMatchObject([{ kind: 'event_not_understood', reference: 'order-1', count: 1 }]);
    });
    expect((await settled.order('order-1')).state).toBe('awaiting_payment');
  });
});
