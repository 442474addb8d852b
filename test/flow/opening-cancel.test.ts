import { describe, expect, it } from 'vitest';
import { plan } from '../support/sandbox.ts';
import { cancel, openOrder, pass, passUntil, requestsOf, type Shop, startShop } from '../support/shop.ts';

const CREATION = { method: 'POST', path: '/api/v1/payment-links' };

/** Opens an order of which the service answers nothing but this fault, and waits until that was answered. */
async function waitingOrder(fault: object, forMs = 12_000): Promise<Shop> {
  const shop = await startShop();
  await plan(shop.sandbox, { match: CREATION, count: null, ...fault });
  const answered = openOrder(shop, 'order-1');
  await pass(shop, forMs);
  expect((await answered).status).toBe(202);
  return shop;
}

const isCreation = ({ method }: { method: string }) => method === 'POST';

describe('cancelling an order whose link is being opened', () => {
  it('cancels it at once if the service cannot have the link, and no longer opens one', async () => {
    const shop = await waitingOrder({ fault: 'rate-limit', with: { retryAfterSeconds: 60 } });
    expect(await cancel(shop, 'order-1')).toMatchObject({
      status: 200,
      body: { order: { state: 'cancelled', link: null } },
    });
    const before = (await requestsOf(shop.sandbox)).filter(isCreation).length;
    await pass(shop, 300_000, 30_000);
    expect((await requestsOf(shop.sandbox)).filter(isCreation)).toHaveLength(before);
    expect((await shop.sandbox.control('/links')).body.links).toEqual([]);
    expect(await openOrder(shop, 'order-1')).toMatchObject({ status: 409, body: { title: 'order_cancelled' } });
  });

  it('says what it waits for if the service may have it, and when the next attempt is', async () => {
    const shop = await waitingOrder({ fault: 'server-error' }, 60_000);
    // Attempts are further and further apart: one is waited for that is not close.
    const isFar = async () => Number((await cancel(shop, 'order-1')).headers.get('retry-after')) > 20;
    await passUntil(shop, isFar);
    const answer = await cancel(shop, 'order-1');
    expect(answer).toMatchObject({ status: 503, body: { title: 'link_unknown' } });
    expect(answer.body.detail).toMatch(/may have it already: the order is not cancelled.*at 20/);
    const [, nextAttemptAt = ''] = /settled next tries to open it at (20\S+Z)/.exec(answer.body.detail) ?? [];
    const waitsMs = Date.parse(nextAttemptAt) - shop.sandbox.clock.nowMs();
    expect(waitsMs).toBeGreaterThan(15_000);
    expect(Math.abs(Number(answer.headers.get('retry-after')) - waitsMs / 1_000)).toBeLessThan(5);
    expect((await shop.settled.order('order-1')).state).toBe('awaiting_payment');
  });
});
