import { expect, it } from 'vitest';
import { busiestMinute } from '../../prove/harness/proof.ts';
import { look } from '../support/rows.ts';
import { plan } from '../support/sandbox.ts';
import { openOrder, passUntil, requestsOf, startShop } from '../support/shop.ts';
import { times } from '../support/timing.ts';

const ORDERS = times(80, 200);
const LIMIT = 60;
const references = Array.from({ length: ORDERS }, (_, n) => `order-${n + 1}`);

it(`pays ${ORDERS} orders by asking alone, each once, and within the limit of the service`, async () => {
  const shop = await startShop({ rateLimit: LIMIT });
  const { sandbox, settled } = shop;
  const stats = async () => (await settled.api('/v1/stats')).body.stats;
  await plan(sandbox, { fault: 'drop', count: null });
  const opened = references.map((reference) => openOrder(shop, reference));
  const isOpened = async () => {
    const { orders, openings } = await stats();
    return orders.awaiting_payment === ORDERS && openings.pending + openings.leased === 0;
  };
  await passUntil(shop, isOpened, { stepMs: 5_000 });
  for (const { status } of await Promise.all(opened)) expect([201, 202]).toContain(status);
  for (const reference of references) {
    expect((await sandbox.control(`/links/${reference}/pay`, { method: 'POST' })).status).toBe(200);
  }
  await passUntil(shop, async () => (await stats()).orders.paid === ORDERS, { stepMs: 5_000 });

  expect(await look(settled, 'SELECT count(*) AS n FROM inbox WHERE reading IS NULL')).toEqual([{ n: 0 }]);
  for (const reference of references) {
    const order = await settled.order(reference);
    expect(order).toMatchObject({ state: 'paid', learnedBy: 'reconciliation', flags: [], holds: [] });
    expect(order.payments).toHaveLength(1);
  }
  const paid = await look(settled, "SELECT order_key FROM outbox WHERE type = 'order.paid'");
  expect([paid.length, new Set(paid.map(({ order_key }) => order_key)).size]).toEqual([ORDERS, ORDERS]);

  const requests = await requestsOf(sandbox);
  expect(requests.filter(({ status }) => status === 429)).toEqual([]);
  expect(requests.filter(({ method }) => method === 'POST')).toHaveLength(ORDERS);
  const busiest = busiestMinute(requests.map(({ epochMs }) => epochMs));
  expect(busiest).toBeLessThanOrEqual(LIMIT);
  // Slots are used as far as their class may.
  expect(busiest).toBeGreaterThan(40);
});
