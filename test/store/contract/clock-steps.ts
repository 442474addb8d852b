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
  });

  describe('mendTimes', () => {
    async function mend(stepMs: number, limit = 1000): Promise<number> {
      let calls = 0;
      for (let after: number | null = 0; after !== null; calls++) {
        ({ next: after } = await world.store.mendTimes({ stepMs, nowMs: world.nowMs, after, limit }));
      }
      return calls;
    }

    /** When the notices that are tried again were tried first, as those are told that claim them. */
    async function firstTried(): Promise<number[]> {
      const claimed = await world.claimNotices(true);
      for (const notice of claimed) await retryNotice(notice, 0);
      return claimed.map(({ firstTriedAtMs }) => firstTriedAtMs);
    }

    async function tryFirst(): Promise<void> {
      for (const notice of await world.claimNotices(false)) await retryNotice(notice, 0);
    }

    it('keeps the age of a notice through a step ahead, and never makes it younger than now', async () => {
      await world.settle(await world.newLink(), [said('completed')]);
      await tryFirst();
      const triedAtMs = world.nowMs;
      world.tick(HOUR_MS);
      world.tick(8 * DAY_MS);
      await mend(8 * DAY_MS);
      expect(await firstTried()).toEqual([triedAtMs + 8 * DAY_MS]);
      await mend(8 * DAY_MS);
      expect(await firstTried()).toEqual([world.nowMs]);
    });

    it('has the age of a notice that was tried first by a clock ahead begin now', async () => {
      await world.settle(await world.newLink(), [said('completed')]);
      await ahead(8 * DAY_MS, tryFirst);
      await hasten();
      await mend(-8 * DAY_MS);
      expect(await firstTried()).toEqual([world.nowMs]);
      world.tick(HOUR_MS);
      await mend(-8 * DAY_MS);
      expect(await firstTried()).toEqual([world.nowMs - HOUR_MS]);
    });

    const planned = async (link: { reference: string }) => (await world.timeline(link)).nextCheckAtMs;

    it('asks about a link as its schedule says, after a step back', async () => {
      const link = await world.openNew();
      await world.forgetChecks();
      const fresh = await world.openNew();
      const asked = await ahead(AHEAD_MS, async () => {
        expect((await world.claimChecks()).map(({ linkKey }) => linkKey)).toContain(fresh.linkKey);
        await world.answer(fresh, []);
        return planned(fresh);
      });
      expect(asked).toBe(world.nowMs + 2 * DAY_MS);
      await mend(AHEAD_MS);
      expect(await planned(fresh)).toBe(asked);
      await mend(-AHEAD_MS);
      expect(await planned(fresh)).toBe(world.nowMs + 2 * MINUTE_MS);
      // Of one whose schedule was over before, nothing begins again.
      expect(await planned(link)).toBeNull();
    });

    it('begins a schedule again that a clock ahead had ended, of a paid order as of an open one', async () => {
      const [open, paid] = [await world.openNew(), await world.openNew()];
      await world.settle(paid, [said('completed')]);
      const paidAtMs = world.nowMs;
      await ahead(200 * DAY_MS, async () => {
        await world.answer(open, [], { made: { status: 'EXPIRED' } });
        await world.answer(paid, [], { made: { status: 'INACTIVE' } });
      });
      expect([await planned(open), await planned(paid)]).toEqual([null, null]);
      expect(await mend(-200 * DAY_MS, 1)).toBeGreaterThan(1);
      expect(await planned(open)).toBe(world.nowMs + 2 * MINUTE_MS - 1000);
      expect(await planned(paid)).toBe(paidAtMs + DAY_MS);
    });

    it('asks within a day about an order that was paid by a clock ahead', async () => {
      const link = await world.openNew();
      await ahead(200 * DAY_MS, async () => {
        await world.settle(link, [said('completed')]);
        await world.answer(link, []);
      });
      await world.store.catchUp({ dryRun: false, nowMs: world.nowMs });
      await mend(-200 * DAY_MS);
      await world.claimChecks({ limit: 9 });
      await world.answer(link, []);
      world.tick(DAY_MS - 1);
      expect(await world.claimChecks()).toEqual([]);
      world.tick(1);
      expect((await world.claimChecks()).map(({ reason }) => reason)).toContain('scheduled');
    });

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
