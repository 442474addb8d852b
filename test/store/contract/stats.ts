import { beforeEach, describe, expect, it } from 'vitest';
import type { SaidFact } from '../../../src/domain/fact.ts';
import type { ClaimedNotice } from '../../../src/store/verbs/notices.ts';
import type { Stats } from '../../../src/store/verbs/stats.ts';
import { FAULT, LEASE_MS, said, type World, type Worlds } from './world.ts';

const DAY_MS = 86_400_000;

export function statsContract({ fresh }: Worlds): void {
  let world: World;
  beforeEach(async () => {
    world = await fresh();
  });

  const stats = (): Promise<Stats> => world.store.stats(world.nowMs);

  describe('stats: how long notices are due', () => {
    const claim = async (tried: boolean) => (await world.claimNotices(tried, 1))[0] as ClaimedNotice;
    const retry = (claimed: ClaimedNotice, inMs: number) => {
      const { nowMs } = world;
      return world.store.retryNotice({ ...claimed, dueAtMs: nowMs + inMs, fault: FAULT, answer: null, nowMs });
    };
    it('is counted from when the oldest was due first, over all its attempts', async () => {
      await world.settle(await world.newLink(), [said('completed')]);
      world.tick(5_000);
      expect((await stats()).noticesLagMs).toBe(5_000);
      const first = await claim(false);
      expect((await stats()).noticesLagMs).toBe(0);
      await retry(first, 3_600_000);
      world.tick(60_000);
      // It is not due now, and the shop should have it by now.
      expect((await stats()).noticesLagMs).toBe(60_000);
      world.tick(3_600_000);
      await retry(await claim(true), 1);
      expect((await stats()).noticesLagMs).toBe(3_660_000);
    });

    it.each(['done', 'dead'] as const)('is over once they are %s', async (end) => {
      await world.settle(await world.newLink(), [said('completed')]);
      world.tick(5_000);
      const told = { ...(await claim(false)), answer: null, nowMs: world.nowMs };
      if (end === 'dead') await world.store.buryNotice({ ...told, fault: FAULT });
      else await world.store.finishNotice({ ...told, answer: { status: 200, body: '' } });
      world.tick(5_000);
      expect((await stats()).noticesLagMs).toBe(0);
    });

    it('says nothing of a notice that waits for an earlier one of its order', async () => {
      await world.settle(await world.newLink(), [said('pending'), said('completed')]);
      await claim(false);
      world.tick(LEASE_MS - 1);
      expect((await stats()).noticesLagMs).toBe(0);
    });
  });

  describe('stats: how long checks are due', () => {
    it('is told by class', async () => {
      const link = await world.newLink();
      await world.forgetChecks();
      await world.settle(link, [said('completed')], { policy: { asks: 'always' } });
      world.tick(7_000);
      expect((await stats()).checksLagMs).toEqual({ confirm: 7_000, hint: 0, janitor: 0 });
      await world.reject(await world.newLink());
      world.tick(1_000);
      await world.newLink();
      world.tick(500);
      expect((await stats()).checksLagMs).toEqual({ confirm: 8_500, hint: 1_500, janitor: 500 });
      await world.claimChecks();
      expect((await stats()).checksLagMs).toEqual({ confirm: 0, hint: 0, janitor: 0 });
    });

    it('counts a scheduled one among the last class', async () => {
      const link = await world.openNew();
      await world.answer(link, [said('unpaid')]);
      const { nextCheckAtMs } = await world.timeline(link);
      world.nowMs = (nextCheckAtMs as number) + 3_000;
      expect((await stats()).checksLagMs).toEqual({ confirm: 0, hint: 0, janitor: 3_000 });
    });
  });

  describe('stats: webhooks that are missing', () => {
    const MONEY: SaidFact[] = [said('completed')];

    /** Orders whose webhooks are missing, a day after they were paid. */
    async function missing(): Promise<number> {
      world.tick(DAY_MS);
      return (await stats()).webhooksMissing;
    }

    it('are those of orders that the API called paid, and no webhook within a day', async () => {
      const link = await world.openNew();
      expect(await world.answer(link, MONEY)).toMatchObject({ paidNow: 'reconciliation' });
      world.tick(DAY_MS - 1);
      expect((await stats()).webhooksMissing).toBe(0);
      world.tick(1);
      expect((await stats()).webhooksMissing).toBe(1);
      world.tick(7 * DAY_MS - 1);
      expect((await stats()).webhooksMissing).toBe(1);
      world.tick(1);
      expect((await stats()).webhooksMissing).toBe(0);
    });

    it('are not those of orders that a webhook paid', async () => {
      const link = await world.openNew();
      expect(await world.settle(link, MONEY)).toMatchObject({ paidNow: 'webhook' });
      expect(await world.answer(link, MONEY)).toMatchObject({ paidNow: null });
      expect(await missing()).toBe(0);
    });

    it('are not missing where one came that waited for the API', async () => {
      const link = await world.openNew();
      const asked = await world.settle(link, MONEY, { policy: { asks: 'always' } });
      expect(asked).toMatchObject({ outcome: 'ask', paidNow: null });
      expect(await world.answer(link, MONEY)).toMatchObject({ paidNow: 'reconciliation' });
      expect(await missing()).toBe(0);
    });

    it('are not missing any more once one comes, however late', async () => {
      const link = await world.openNew();
      // However often the API is asked.
      for (let n = 0; n < 2; n++) await world.answer(link, MONEY);
      expect(await missing()).toBe(1);
      await world.settle(link, [said('pending')]);
      expect((await stats()).webhooksMissing).toBe(1);
      await world.settle(link, MONEY);
      expect((await stats()).webhooksMissing).toBe(0);
    });

    it('are not waited for where a person accepted the money', async () => {
      const link = await world.openNew();
      await world.answer(link, [said('completed', { linkMoney: { amount: '60.00', currency: 'BRL' } })]);
      expect(await world.resolve(link, 'accept')).toMatchObject({ paidNow: 'person' });
      expect(await world.resolve(link, 'accept')).toMatchObject({ paidNow: null });
      expect(await missing()).toBe(0);
    });
  });

  it('stats: tell the newest position of the feed', async () => {
    await world.settle(await world.newLink(), [said('pending'), said('completed')]);
    const { newest, generation } = await world.store.readFeed({ after: 0, limit: 1, bytesMax: 1_000_000 });
    expect((await stats()).feed).toEqual({ newest, generation, restoredFromMs: null });
    expect(newest).toBe(2);
  });
}
