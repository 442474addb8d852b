import { describe, expect, it } from 'vitest';
import { look } from '../support/rows.ts';
import { act, HOUR_MS, plan } from '../support/sandbox.ts';
import { openLink, pass, quiet, requestsOf, type Shop, sleep, startShop } from '../support/shop.ts';

const DAY_MS = 24 * HOUR_MS;

/** An order that a webhook paid; no webhook reports what happens to it later. */
async function paidShop() {
  const shop = await startShop();
  const link = await openLink(shop, 'order-1');
  await act(shop.sandbox, link, 'pay');
  await quiet(shop);
  const order = await orderOf(shop);
  expect(order).toMatchObject({ state: 'paid', learnedBy: 'webhook' });
  await plan(shop.sandbox, { fault: 'drop', count: null });
  return { shop, link, paidAtMs: Date.parse(order.paidAt as string) };
}

const orderOf = ({ settled }: Shop) => settled.order('order-1');

/** Lets time pass until an hour past a day after the payment, and expects that to have changed the order. */
async function reachDay(shop: Shop, paidAtMs: number, day: number): Promise<void> {
  const untilMs = (atMs: number) => atMs - shop.sandbox.clock.nowMs();
  await sleep(shop, untilMs(paidAtMs + day * DAY_MS - HOUR_MS));
  const { version } = await orderOf(shop);
  await pass(shop, 2 * HOUR_MS, 2 * HOUR_MS);
  expect((await orderOf(shop)).version).toBeGreaterThan(version as number);
}

/** The decisions of the order's history, oldest first. */
async function decisions({ settled }: Shop): Promise<string[]> {
  const { body } = await settled.api('/v1/orders/order-1/timeline');
  const made = body.entries.filter(({ kind }: { kind: string }) => kind === 'decision');
  return made.map(({ summary }: { summary: string }) => summary.replace(/:.*/, ''));
}

const driftOf = ({ settled }: Shop) => look(settled, 'SELECT rule, right_side, learned_by FROM drift ORDER BY key');

describe('a paid order', () => {
  it('is asked about after 1, 7, 30, 60, 90 and 120 days, as its timeline says, and never again', async () => {
    const { shop, link, paidAtMs } = await paidShop();
    expect((await orderOf(shop)).link).toMatchObject({ status: 'INACTIVE' });
    const { body } = await shop.settled.api('/v1/orders/order-1/timeline');
    expect(JSON.stringify(body)).toContain(new Date(paidAtMs + DAY_MS).toISOString());
    const days = async () => {
      const requests = await requestsOf(shop.sandbox);
      const asked = requests.filter(({ path }) => path === `/api/v1/payment-links/${link.id}`);
      return asked.map(({ epochMs }) => Math.round((epochMs - paidAtMs) / DAY_MS));
    };
    const told: number[] = [];
    for (const day of [1, 7, 30, 60, 90, 120]) {
      const beforeMs = paidAtMs + day * DAY_MS - HOUR_MS - shop.sandbox.clock.nowMs();
      await sleep(shop, beforeMs);
      expect(await days()).toEqual(told);
      await pass(shop, 2 * HOUR_MS, HOUR_MS);
      told.push(day);
      expect(await days()).toEqual(told);
    }
    for (let n = 1; n <= 10; n++) await sleep(shop, 40 * DAY_MS);
    expect(await days()).toEqual(told);
  });

  it('is refunded by the check of the first day if no webhook said so', async () => {
    const { shop, link, paidAtMs } = await paidShop();
    const paid = await orderOf(shop);
    await act(shop.sandbox, link, 'refund');
    await reachDay(shop, paidAtMs, 1);
    expect(await orderOf(shop)).toMatchObject({
      state: 'refunded',
      paidAt: paid.paidAt,
      learnedBy: 'webhook',
      payments: [{ status: 'refunded', amount: '100.00' }],
      holds: [],
    });
    expect((await decisions(shop)).at(-1)).toBe('paid → refunded');
    expect(await driftOf(shop)).toEqual([{ rule: 'refunded', right_side: 'service', learned_by: 'scheduled' }]);
  });

  it('is disputed by a later check, and paid again once the dispute is won', async () => {
    const { shop, link, paidAtMs } = await paidShop();
    const { paidAt } = await orderOf(shop);
    await sleep(shop, 3 * DAY_MS);
    await act(shop.sandbox, link, 'dispute');
    await reachDay(shop, paidAtMs, 7);
    expect(await orderOf(shop)).toMatchObject({ state: 'disputed', payments: [{ status: 'disputed' }] });
    await act(shop.sandbox, link, 'win');
    await reachDay(shop, paidAtMs, 30);
    expect(await orderOf(shop)).toMatchObject({ state: 'paid', paidAt, payments: [{ status: 'completed' }] });
    expect((await decisions(shop)).slice(-2)).toEqual(['paid → disputed', 'disputed → paid']);
    expect((await driftOf(shop)).map(({ rule }) => rule)).toEqual(['disputed', 'dispute_won']);
  });

  it('stays paid if it was paid twice and the second payment is refunded', async () => {
    const { shop, link, paidAtMs } = await paidShop();
    await act(shop.sandbox, link, 'enable');
    await act(shop.sandbox, link, 'pay');
    await reachDay(shop, paidAtMs, 1);
    const attention = async () => {
      const open = (await shop.settled.api('/v1/attention')).body.attention;
      return open.map(({ kind }: { kind: string }) => kind);
    };
    expect(await orderOf(shop)).toMatchObject({
      state: 'paid',
      flags: ['duplicate_payment'],
      payments: [{ status: 'completed' }, { status: 'completed' }],
    });
    expect(await attention()).toEqual(['duplicate_payment']);
    await act(shop.sandbox, link, 'refund');
    await reachDay(shop, paidAtMs, 7);
    expect(await orderOf(shop)).toMatchObject({
      state: 'paid',
      payments: [{ status: 'completed' }, { status: 'refunded' }],
    });
    expect((await driftOf(shop)).map(({ rule }) => rule)).toEqual(['duplicate_payment', 'still_covered']);
  });
});
