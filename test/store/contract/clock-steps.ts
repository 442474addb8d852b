import { beforeEach, describe, expect, it } from 'vitest';
import type { ClaimedNotice } from '../../../src/store/verbs/notices.ts';
import { FAULT, LEASE_MS, said, type World, type Worlds } from './world.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const AHEAD_MS = 25 * HOUR_MS;

/** What is mended after a step of the clock that the store goes by. */
export function clockStepsContract({ fresh }: Worlds): void {
  let world: World;
  beforeEach(async () => {
    world = await fresh();
  });

  const hasten = (waitMsMax = MINUTE_MS, limit = 1000) =>
    world.store.hastenDue({ waitMsMax, nowMs: world.nowMs, limit });

  /** While the clock is so far ahead. */
  async function ahead<T>(byMs: number, work: () => Promise<T>): Promise<T> {
    world.tick(byMs);
    try {
      return await work();
    } finally {
      world.tick(-byMs);
    }
  }

  /** An event whose next attempt comes so much later. */
  async function retried(inMs: number): Promise<number> {
    const { eventKey, attempt } = await world.claimNew(await world.newLink());
    await world.store.retryEvent({ eventKey, attempt, dueAtMs: world.nowMs + inMs, fault: FAULT });
    return eventKey;
  }

  const retryNotice = (claimed: ClaimedNotice, inMs: number) =>
    world.store.retryNotice({
      ...{ ...claimed, fault: FAULT, answer: null },
      ...{ dueAtMs: world.nowMs + inMs, nowMs: world.nowMs },
    });

  describe('hastenDue', () => {
    it('makes due what waits for longer than anything may, a little at once, and nothing else', async () => {
      const [far, near] = [await retried(AHEAD_MS), await retried(HOUR_MS)];
      expect(await world.claim()).toEqual([]);
      expect(await hasten(2 * HOUR_MS)).toEqual({ hastened: 1 });
      expect((await world.claim()).map(({ eventKey }) => eventKey)).toEqual([far]);
      expect(await hasten(2 * HOUR_MS)).toEqual({ hastened: 0 });
      expect(await hasten()).toEqual({ hastened: 1 });
      expect((await world.claim()).map(({ eventKey }) => eventKey)).toEqual([near]);
      for (let n = 0; n < 3; n++) await retried(AHEAD_MS);
      for (const hastened of [2, 1, 0]) expect(await hasten(MINUTE_MS, 2)).toEqual({ hastened });
    });

    it('makes notices due, those that were tried and those that were not, and openings', async () => {
      await world.settle(await world.newLink(), [said('completed')]);
      const [tried] = await world.claimNotices(false);
      await retryNotice(tried as ClaimedNotice, AHEAD_MS);
      await ahead(AHEAD_MS, async () => world.settle(await world.newLink(), [said('completed')]));
      const opening = await ahead(AHEAD_MS, () => world.intend());
      expect([await world.claimNotices(true), await world.claimNotices(false)]).toEqual([[], []]);
      await hasten();
      expect(await world.claimNotices(true)).toHaveLength(1);
      expect(await world.claimNotices(false)).toHaveLength(1);
      expect(await world.claimOpening(opening)).toMatchObject({ attempt: 1 });
    });

    it('makes checks due that were put off', async () => {
      const link = await world.openNew();
      await world.forgetChecks();
      await world.reject(link);
      await ahead(AHEAD_MS, async () => expect(await world.claimChecks()).toHaveLength(1));
      world.tick(HOUR_MS);
      expect(await world.claimChecks()).toEqual([]);
      await hasten();
      // The hint was followed: the next one is, five minutes later.
      expect(await world.claimChecks()).toEqual([]);
      world.tick(5 * MINUTE_MS);
      expect((await world.claimChecks()).map(({ reason }) => reason)).toEqual(['rejected']);
    });

    it('ends leases that a clock was ahead for, and no lease of now', async () => {
      const link = await world.newLink();
      const [event, opening] = [await world.deliver(link), await world.intend()];
      await world.settle(await world.newLink(), [said('completed')]);
      await ahead(AHEAD_MS, async () => {
        await world.claimOne(event.eventKey);
        await world.claimOpening(opening);
        expect(await world.claimNotices(false)).toHaveLength(1);
      });
      const ofNow = await world.claimNew(link);
      await hasten();
      const claimed = async () => [
        (await world.claim()).map(({ eventKey }) => eventKey),
        (await world.store.claimOpenings({ limit: 9, nowMs: world.nowMs, leaseMs: LEASE_MS })).length,
        (await world.claimNotices(true)).length,
      ];
      world.tick(LEASE_MS - 1);
      expect(await claimed()).toEqual([[], 0, 0]);
      world.tick(MINUTE_MS - LEASE_MS + 1);
      expect(await claimed()).toEqual([[ofNow.eventKey, event.eventKey], 1, 1]);
    });

    const planned = async (link: { reference: string }) => (await world.timeline(link)).nextCheckAtMs;

    it('makes a link due that a clock ahead planned for later than any schedule does', async () => {
      const [open, paid] = [await world.openNew(), await world.openNew()];
      await ahead(200 * DAY_MS, async () => {
        await world.settle(paid, [said('completed')]);
        for (const link of [open, paid]) await world.answer(link, []);
      });
      expect(await world.claimChecks({ limit: 9 })).toEqual([]);
      await hasten();
      const due = await world.claimChecks({ limit: 9 });
      expect(due.map(({ linkKey, reason }) => [linkKey, reason])).toEqual([
        [open.linkKey, 'scheduled'],
        [paid.linkKey, 'scheduled'],
      ]);
      for (const link of [open, paid]) await world.answer(link, []);
      expect(await planned(open)).toBe(world.nowMs + 2 * MINUTE_MS - 1000);
      world.tick(DAY_MS);
      expect((await world.claimChecks({ limit: 9 })).map(({ linkKey }) => linkKey)).toContain(paid.linkKey);
    });

    it('leaves the longest wait of the schedule as it is', async () => {
      const paid = await world.openNew();
      await world.settle(paid, [said('completed')]);
      world.tick(30 * DAY_MS);
      await world.answer(paid, []);
      const nextAtMs = await planned(paid);
      expect(nextAtMs).toBeGreaterThan(world.nowMs + 29 * DAY_MS);
      await hasten();
      expect(await planned(paid)).toBe(nextAtMs);
    });
  });

  describe('catchUp', () => {
    it('makes a link due that a clock ahead planned by the days of the schedule', async () => {
      const link = await world.openNew();
      await ahead(AHEAD_MS, () => world.answer(link, []));
      await hasten();
      expect((await world.timeline(link)).nextCheckAtMs).toBeGreaterThan(world.nowMs + DAY_MS);
      await world.store.catchUp({ dryRun: false, nowMs: world.nowMs });
      expect((await world.timeline(link)).nextCheckAtMs).toBe(world.nowMs);
    });
  });

  describe('recordReturn', () => {
    it('follows a customer who comes back, whatever time he came back at by a clock ahead', async () => {
      const returnToken = 'returned-by-a-clock-ahead';
      const link = await world.openNew({ returnToken, callbackUrl: 'https://shop.example.com/thanks' });
      const comeBack = () => world.store.recordReturn({ returnToken, nowMs: world.nowMs });
      await ahead(AHEAD_MS, comeBack);
      await world.forgetChecks();
      await comeBack();
      expect(await world.check(link)).toBe('returned');
    });
  });

  describe('heartbeat', () => {
    it('tells how far ahead the clock was at the last one, once', async () => {
      await world.store.heartbeat(world.tick());
      await ahead(AHEAD_MS, () => world.store.heartbeat(world.nowMs));
      expect((await world.store.heartbeat(world.nowMs)).aheadMs).toBe(AHEAD_MS);
      expect((await world.store.heartbeat(world.nowMs)).aheadMs).toBe(0);
      expect((await world.store.heartbeat(world.tick(2_000))).aheadMs).toBe(0);
    });
  });
}
