import { beforeEach, describe, expect, it } from 'vitest';
import type { ListedLink } from '../../../src/store/verbs/sweep.ts';
import { type Link, said, type World, type Worlds } from './world.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

type Known = Link & { linkId: string };

/** What the service's list says of every link here. */
const aLink = { money: { amount: '100.00', currency: 'BRL' }, createdAtMs: 0 };

export function sweepContract({ shared, fresh }: Worlds): void {
  let world: World;
  beforeEach(async () => {
    world = shared();
    await world.forgetChecks();
  });

  function listed({ linkId: id, reference }: Known, status = 'ACTIVE'): ListedLink {
    return { ...aLink, id, reference, status };
  }

  function compare(...items: ListedLink[]) {
    return world.store.compareListed({ items, toleranceMs: MINUTE_MS, nowMs: world.nowMs });
  }

  describe('compareListed', () => {
    it('queues a check of each open link whose status is another', async () => {
      const same = await world.openNew();
      const inactive = await world.openNew();
      const expired = await world.openNew();
      const answer = await compare(listed(same), listed(inactive, 'INACTIVE'), listed(expired, 'EXPIRED'));
      expect(answer.differing).toBe(2);
      expect(await world.check(same)).toBeNull();
      expect(await world.check(inactive)).toBe('listed');
      expect(await world.check(expired)).toBe('listed');
    });

    it('takes a link that was never read for active', async () => {
      const linkId = world.name('plink');
      const link = { ...(await world.newLink({ linkId })), linkId };
      expect((await compare(listed(link))).differing).toBe(0);
      await world.answer(link, [], { made: { status: 'INACTIVE' } });
      expect((await compare(listed(link, 'INACTIVE'))).differing).toBe(0);
      expect((await compare(listed(link))).differing).toBe(1);
    });

    it('leaves paid orders and unknown links alone', async () => {
      const paid = await world.openNew();
      await world.settle(paid, [said('completed')]);
      const unknown = { ...aLink, id: world.name('plink'), reference: world.name('order'), status: 'INACTIVE' };
      expect((await compare(listed(paid, 'INACTIVE'), unknown)).differing).toBe(0);
      expect(await world.check(paid)).toBeNull();
    });

    it('finds a reserved link whose id nobody told, by its reference', async () => {
      const link = await world.newLink();
      const { differing } = await compare({
        ...aLink,
        id: world.name('plink'),
        reference: link.reference,
        status: 'ACTIVE',
      });
      expect(differing).toBe(1);
      expect(await world.check(link)).toBe('listed');
    });
  });

  describe('sweepBounds', () => {
    const oldestOpenMs = async () => (await world.store.sweepBounds({ nowMs: world.nowMs })).oldestOpenMs;

    it('says since when the oldest link is there that may still be paid', async () => {
      expect(await oldestOpenMs()).toBeNull();
      const paid = await world.openNew();
      world.tick();
      const oldest = await world.openNew({ expiresAtMs: world.nowMs + DAY_MS });
      const oldestMs = world.nowMs;
      world.tick();
      await world.openNew();
      await world.intend();
      await world.settle(paid, [said('completed')]);
      expect(await oldestOpenMs()).toBe(oldestMs);
      // The link of a cancelled order may be paid until the service says that it expired.
      await world.cancel(oldest);
      world.tick(DAY_MS);
      expect(await oldestOpenMs()).toBe(oldestMs);
      await world.answer(oldest, [], { made: { status: 'EXPIRED', expiresAtMs: world.nowMs } });
      expect(await oldestOpenMs()).toBeGreaterThan(oldestMs);
    });

    it('says whether the service has made any link', async () => {
      const own = await fresh();
      const hasLinks = async () => (await own.store.sweepBounds({ nowMs: own.nowMs })).hasLinks;
      await own.newLink();
      expect(await hasLinks()).toBe(false);
      await own.newLink({ linkId: own.name('plink') });
      expect(await hasLinks()).toBe(true);
    });
  });

  describe('catchUp', () => {
    it('makes every open link due, and says how many they are', async () => {
      const open = await world.openNew();
      const paid = await world.openNew();
      await world.settle(paid, [said('completed')]);
      const cancelled = await world.openNew();
      await world.cancel(cancelled);
      await world.newLink();
      await world.intend();
      const before = await world.timeline(open);
      expect(await world.store.catchUp({ dryRun: true, nowMs: world.nowMs })).toEqual({ links: 2 });
      expect(await world.timeline(open)).toEqual(before);
      expect(await world.store.catchUp({ dryRun: false, nowMs: world.nowMs })).toEqual({ links: 2 });
      const claimed = await world.claimChecks();
      const scheduled = claimed.filter(({ reason }) => reason === 'scheduled');
      expect(scheduled.map(({ linkKey }) => linkKey)).toEqual([open.linkKey, cancelled.linkKey]);
    });

    it('leaves out a link whose schedule is over, which is compared should the service show it again', async () => {
      const link = await world.openNew({ expiresAtMs: world.nowMs + MINUTE_MS });
      world.tick(30 * DAY_MS);
      await world.answer(link, [said('expired', { paymentId: null })], { made: { status: 'EXPIRED' } });
      expect((await world.timeline(link)).nextCheckAtMs).toBeNull();
      expect(await world.store.catchUp({ dryRun: false, nowMs: world.nowMs })).toEqual({ links: 0 });
      expect((await compare(listed(link, 'EXPIRED'))).differing).toBe(0);
      expect((await compare(listed(link, 'INACTIVE'))).differing).toBe(1);
    });

    it.each(['awaiting_payment', 'cancelled'])(
      'takes up what the schedule gave up although it may be paid: an order %s',
      async (state) => {
        const linkId = world.name('plink');
        const link = { ...(await world.newLink({ linkId })), linkId };
        if (state === 'cancelled') await world.cancel(link);
        world.tick(200 * DAY_MS);
        const { linkKey } = link;
        const failure = { linkKey, dueAtMs: null, missing: false, sent: true, nowMs: world.nowMs };
        await world.store.failCheck(failure);
        expect(await world.timeline(link)).toMatchObject({ check: null, nextCheckAtMs: null });
        expect((await compare(listed(link, 'INACTIVE'))).differing).toBe(1);
        expect(await world.check(link)).toBe('listed');
        await world.store.failCheck(failure);
        expect(await world.store.catchUp({ dryRun: false, nowMs: world.nowMs })).toEqual({ links: 1 });
        expect(await world.claimChecks()).toMatchObject([{ linkKey: link.linkKey, reason: 'scheduled' }]);
      },
    );
  });

  describe('heartbeat', () => {
    // No outage of the tests before is told of.
    beforeEach(async () => {
      await world.store.heartbeat(world.nowMs);
      await world.store.catchUp({ dryRun: false, nowMs: world.nowMs });
    });

    it('says for how long nobody was alive', async () => {
      await world.store.heartbeat(world.nowMs);
      expect(await world.store.heartbeat(world.tick(700))).toEqual({ gapMs: 700, aheadMs: 0 });
      expect(await world.store.heartbeat(world.nowMs)).toEqual({ gapMs: 0, aheadMs: 0 });
      await world.reopen();
      // Opening the store says that it can be written, by a millisecond.
      expect((await world.store.heartbeat(world.tick(90_000))).gapMs).toBeGreaterThan(89_000);
    });

    it('is not confused by a clock that was set back', async () => {
      await world.store.heartbeat(world.nowMs);
      expect(await world.store.heartbeat(world.nowMs - 5000)).toEqual({ gapMs: 0, aheadMs: 5000 });
      expect(await world.store.heartbeat(world.nowMs)).toEqual({ gapMs: 5000, aheadMs: 0 });
    });
  });
}
