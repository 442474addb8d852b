import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/timing.ts';
import { LEASE_MS, said, type Worlds } from './world.ts';

/** The mark that says whether anything was committed. Other databases of a server may change it too. */
export function changesContract({ shared }: Worlds): void {
  const mark = () => shared().store.changeMark();

  describe('the change mark', () => {
    it('is another one after each change', async () => {
      const world = shared();
      const marks = [await mark()];
      const link = await world.newLink();
      marks.push(await mark());
      await world.reject(link);
      marks.push(await mark());
      await world.settle(link, [said('completed')]);
      marks.push(await mark());
      expect(new Set(marks).size).toBe(4);
    });

    it('is the same after signs of life, claims that found nothing, and reads', async () => {
      const world = shared();
      await world.store.claimOpenings({ limit: 100, nowMs: world.nowMs, leaseMs: LEASE_MS });
      await eventually(async () => {
        const before = await mark();
        await world.store.heartbeat(world.tick());
        expect(await world.store.claimOpenings({ limit: 1, nowMs: world.nowMs, leaseMs: LEASE_MS })).toEqual([]);
        expect(await world.store.claimBulk({ limit: 1, nowMs: world.nowMs, leaseMs: LEASE_MS })).toBeNull();
        await world.store.endRefusals(world.nowMs);
        await world.store.stats(world.nowMs);
        expect(await mark()).toBe(before);
      });
    });
  });
}
