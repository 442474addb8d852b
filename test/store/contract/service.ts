import { beforeEach, describe, expect, it } from 'vitest';
import { FAULT, said, type World, type Worlds } from './world.ts';

/** What people see of the service: drift, stale deliveries, and what is asked next. */
export function serviceContract({ fresh }: Worlds): void {
  let world: World;
  beforeEach(async () => {
    world = await fresh();
  });

  /** Walks over a list in pages of one. */
  async function walk(name: 'listDrift' | 'listHints', reference: string | null = null) {
    const rows: { key: number; reference: string }[] = [];
    for (let after: number | null = null; ; ) {
      const page: { key: number; reference: string }[] = await world.store[name]({ limit: 1, after, reference });
      const last = page.at(-1);
      if (last === undefined) return rows;
      rows.push(...page);
      after = last.key;
    }
  }

  describe('what the service knew otherwise', () => {
    it('is listed the newest first, of all orders or of one', async () => {
      const [one, other] = [await world.openNew({ reference: 'one' }), await world.openNew({ reference: 'other' })];
      await world.answer(one, [said('completed')]);
      world.tick();
      await world.answer(other, [said('completed')], { reading: { reason: 'stale' } });
      expect(await walk('listDrift')).toMatchObject([
        { reference: 'other', learnedBy: 'stale', atMs: world.nowMs, theirs: 'paid, 100.00 BRL', rightSide: 'service' },
        { reference: 'one', learnedBy: 'scheduled', ours: 'awaiting_payment, nothing counted', rule: 'paid' },
      ]);
      expect((await walk('listDrift', 'one')).map(({ reference }) => reference)).toEqual(['one']);
      expect(await walk('listDrift', 'nobody')).toEqual([]);
      const [drift] = await walk('listDrift', 'one');
      expect(drift).toMatchObject((await world.timeline(one)).drift[0] as object);
    });
  });

  describe('stale deliveries', () => {
    it('are listed the newest first, each once however often it came', async () => {
      const [one, other] = [await world.newLink({ reference: 'one' }), await world.newLink({ reference: 'other' })];
      const hint = world.hint(one);
      await world.store.recordHint(hint);
      await world.store.recordHint({ ...hint, receivedAtMs: world.tick() });
      await world.store.recordHint(world.hint(other));
      const { timestamp, receivedAtMs: firstAtMs } = hint;
      expect(await walk('listHints')).toMatchObject([
        { reference: 'other', count: 1 },
        { reference: 'one', count: 2, eventId: 'evt_stale', timestamp, firstAtMs, lastAtMs: firstAtMs + 1000 },
      ]);
      expect((await walk('listHints', 'one')).map(({ reference }) => reference)).toEqual(['one']);
    });
  });

  describe('what is asked next', () => {
    it('is the queue in the order of its turns, the schedule, and the links that are being opened', async () => {
      const fresh = await world.newLink({ reference: 'fresh' });
      const stale = await world.newLink({ reference: 'stale' });
      const refused = await world.newLink({ reference: 'refused' });
      await world.reject(refused);
      await world.store.recordHint(world.hint(stale));
      const opening = await world.intend({ reference: 'opening' });
      const [dueAtMs, attempt] = [world.nowMs + 60_000, 1];
      await world.retryOpening(opening, { dueAtMs });
      const { queue, schedule, openings } = await world.store.nextRequests({ limit: 10 });
      expect(queue).toMatchObject([
        { reference: 'stale', reason: 'stale', failures: 0 },
        { reference: 'refused', reason: 'rejected' },
        { reference: 'fresh', reason: 'registered' },
      ]);
      expect(schedule.map(({ reference }) => reference).slice(0, 2)).toEqual(['fresh', 'stale']);
      expect(schedule[0]?.dueAtMs).toBe((await world.timeline(fresh)).nextCheckAtMs);
      const { code: faultCode, message: faultMessage } = FAULT;
      expect(openings).toEqual([
        { reference: 'opening', status: 'pending', attempt, dueAtMs, faultCode, faultMessage },
      ]);
      const few = await world.store.nextRequests({ limit: 1 });
      expect([few.queue.length, few.schedule.length, few.openings.length]).toEqual([1, 1, 1]);
      expect(few.queue[0]?.reference).toBe('stale');
    });
  });

  describe('kinds of events', () => {
    it('are told apart: what the service delivered, and what it answered', async () => {
      const link = await world.openNew({ reference: 'both' });
      await world.settle(link, [said('pending')]);
      await world.answer(link, [said('completed')]);
      const listed = async (kind: 'event' | 'reading') => {
        const { rows, count } = await world.store.listEvents({ limit: 10, isCounted: true, kind });
        expect(count).toEqual({ n: rows.length, isMore: false });
        return rows.map(({ reading }) => (reading === null ? 'event' : 'reading'));
      };
      expect([await listed('event'), await listed('reading')]).toEqual([['event'], ['reading']]);
    });
  });
}
