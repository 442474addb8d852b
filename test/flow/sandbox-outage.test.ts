import { describe, expect, it } from 'vitest';
import { startHookProxy, startServiceProxy } from '../support/proxies.ts';
import { look } from '../support/rows.ts';
import { deliveriesOf, HOUR_MS, MINUTE_MS, offsetsMs, turn } from '../support/sandbox.ts';
import {
  allSettled,
  expectPaid,
  passUntil,
  payLink,
  type Shop,
  type ShopOptions,
  sell,
  startShop,
} from '../support/shop.ts';

/** An order whose webhooks come while the receiver is down, for two hours. */
async function outage(options: ShopOptions) {
  const shop = await startShop(options);
  const door = await startHookProxy();
  door.shut();
  const link = await sell(shop, 'order-1', { webhookUrl: door.through });
  await payLink(shop, link);
  await turn(shop.sandbox, 2 * HOUR_MS);
  expect((await shop.settled.order('order-1')).state).toBe('awaiting_payment');
  door.open();
  return { shop, link };
}

async function kept({ settled }: Shop) {
  return {
    hints: await look(settled, 'SELECT event_id, timestamp FROM hint ORDER BY key'),
    checks: await look(settled, 'SELECT reason FROM link_check'),
  };
}

describe('a receiver that is down for two hours', () => {
  it.each([
    ['delays', [0, 1, 6, 21, 81, 321]],
    ['offsets', [0, 1, 5, 15, 60, 240]],
  ])('is paid on the 4-hour retry if retries are signed again and counted as %s', async (schedule, minutes) => {
    const { shop, link } = await outage({ switches: [`schedule=${schedule}`], api: false });
    await turn(shop.sandbox, HOUR_MS);
    expect((await shop.settled.order('order-1')).state).toBe('awaiting_payment');
    await turn(shop.sandbox, 3 * HOUR_MS);
    await expectPaid(shop, 'order-1');
    const [, , completed] = await deliveriesOf(shop.sandbox, link);
    expect(offsetsMs(completed).map((ms) => Math.floor(ms / MINUTE_MS))).toEqual(minutes);
    expect(completed.log.map((attempt: { responseStatus: number }) => attempt.responseStatus)).toEqual([
      503, 503, 503, 503, 503, 200,
    ]);
  });

  it('refuses the 4-hour retry as stale if it carries the signature of the first attempt, and keeps it as a hint', async () => {
    const { shop, link } = await outage({ switches: ['retries=signed-once'], api: false });
    await turn(shop.sandbox, 4 * HOUR_MS);
    await allSettled(shop);
    const deliveries = await deliveriesOf(shop.sandbox, link);
    for (const { status, log } of deliveries) {
      expect([status, log.at(-1).attempt, log.at(-1).responseStatus]).toEqual(['waiting', 6, 400]);
      expect(JSON.parse(log.at(-1).responseBody)).toMatchObject({ title: 'stale_timestamp' });
    }
    const { hints, checks } = await kept(shop);
    const told = deliveries.map(({ event, log }) => ({ event_id: event, timestamp: log[0].timestamp }));
    expect(hints).toEqual(expect.arrayContaining(told));
    expect([hints.length, told.length]).toEqual([4, 4]);
    expect(checks).toHaveLength(1);
    expect((await shop.settled.order('order-1')).state).toBe('awaiting_payment');
  });

  it('is paid by the check that the stale retry queues, even if the API was down as well', async () => {
    let heardOfIt = async () => false;
    let serviceUrl = '';
    const proxy = await startServiceProxy(() => serviceUrl);
    proxy.answerWith(async () => ((await heardOfIt()) ? undefined : { status: 503, headers: {}, text: 'down' }));
    const { shop } = await outage({ switches: ['retries=signed-once'], apiUrl: proxy.url });
    serviceUrl = shop.sandbox.url;
    heardOfIt = async () => (await look(shop.settled, 'SELECT 1 FROM hint')).length > 0;
    const isPaid = async () => (await shop.settled.order('order-1')).state === 'paid';
    await passUntil(shop, isPaid, { withinMs: 5 * HOUR_MS, stepMs: 10 * MINUTE_MS });
    expect((await kept(shop)).hints).toHaveLength(4);
    await expectPaid(shop, 'order-1', { learnedBy: 'reconciliation' });
    const [reading] = await look(shop.settled, 'SELECT type FROM inbox WHERE reading IS NOT NULL ORDER BY reading');
    expect(reading).toEqual({ type: 'stale' });
  });
});
