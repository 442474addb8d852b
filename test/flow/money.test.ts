import { describe, expect, it } from 'vitest';
import { act } from '../support/sandbox.ts';
import { check, openLink, passUntil, type Shop, sell, startShop } from '../support/shop.ts';

/** Of an order of 100.00 BRL: the ways to pay that the sandbox knows, and what settled makes of each. */
const PAYS = {
  asked: ['paid', '100.00 BRL', null],
  less: ['held', '60.00 BRL', null],
  more: ['held', '120.00 BRL', null],
  interest: ['paid', '100.00 BRL', { amount: '121.89', currency: 'BRL' }],
  'other-currency': ['paid', '100.00 BRL', { amount: '18.00', currency: 'USD' }],
} as const;

type Shown = {
  reference: string;
  state: string;
  payment: { amount: string; currency: string };
  holds: { reason: string }[];
};

/** Every order once its money is settled. */
async function settle(shop: Shop, open: typeof sell): Promise<Shown[]> {
  for (const money of Object.keys(PAYS)) {
    const link = await open(shop, money);
    await act(shop.sandbox, link, 'pay', { money });
  }
  const read = async (reference: string) => (await shop.settled.order(reference)) as Shown;
  const orders = () => Promise.all(Object.keys(PAYS).map(read));
  await passUntil(shop, async () => (await orders()).every(({ state }) => /paid|held/.test(state)));
  return orders();
}

describe('money as the service may say it', () => {
  it.each([
    ['with an API', true],
    ['without an API', false],
  ])('pays or is held, and interest raises nothing: %s', async (_name, api) => {
    const shop = await startShop({ api });
    for (const order of await settle(shop, api ? openLink : sell)) {
      const [state, captured, customerPaid] = PAYS[order.reference as keyof typeof PAYS];
      const { amount, currency } = order.payment;
      expect([order.reference, order.state, `${amount} ${currency}`]).toEqual([order.reference, state, captured]);
      expect(order).toMatchObject({ flags: [], payment: { customerPaid } });
      expect(order.holds.map(({ reason }) => reason)).toEqual(state === 'held' ? ['amount_mismatch'] : []);
    }
    const { groups } = (await shop.settled.api('/v1/attention')).body;
    expect(groups).toMatchObject([{ kind: 'hold', reason: 'amount_mismatch' }]);
    const { answer, next } = (await shop.settled.api('/v1/orders/interest/timeline')).body;
    expect(answer).toContain('the customer paid 121.89 BRL');
    expect(next.join(' ')).not.toContain('efund it');
  });

  it('of a payment without an id is read repeatedly, and sends no further notice', async () => {
    const shop = await startShop({ switches: ['payment-ids=first', 'refund-event=none'] });
    const link = await openLink(shop, 'order-1');
    await act(shop.sandbox, link, 'pay');
    await passUntil(shop, async () => (await shop.settled.order('order-1')).state === 'paid');
    await act(shop.sandbox, link, 'enable');
    await act(shop.sandbox, link, 'pay');
    await act(shop.sandbox, link, 'dispute');
    const told = async () => {
      const { notices } = (await shop.settled.api('/v1/notices')).body;
      return notices.map(({ type, version }: { type: string; version: number }) => `${type} ${version}`);
    };
    const once = (await check(shop, 'order-1')).body.order;
    const before = await told();
    expect((await check(shop, 'order-1')).body.order).toEqual(once);
    expect((await check(shop, 'order-1')).body.order).toEqual(once);
    expect(await told()).toEqual(before);
    expect(once.state).toBe('paid');
    const { attention } = (await shop.settled.api('/v1/attention')).body;
    expect(attention).toMatchObject([{ kind: 'status_unclear', count: 3 }]);
  });
});
