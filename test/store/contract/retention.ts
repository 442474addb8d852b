import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { LEASE_MS, type Link, said, type World, type Worlds } from './world.ts';

const DAY_MS = 86_400_000;

export function retentionContract({ shared, fresh }: Worlds): void {
  let world: World;
  let link: Link;

  /** Settled now. */
  async function done(over: Parameters<World['deliver']>[1] = {}): Promise<number> {
    const { eventKey } = await world.deliver(link, over);
    await world.store.settle(world.job(await world.claimOne(eventKey)));
    return eventKey;
  }

  /** Drops what was settled a day ago, in one call. */
  const drop = ({ after = 0, limit = 1000 } = {}) =>
    world.store.dropBodies({ untilMs: world.nowMs - DAY_MS, nowMs: world.nowMs, after, limit });
  const hasBody = async (key: number) => (await world.event(key)).body !== null;

  describe('dropBodies', () => {
    beforeEach(async () => {
      world = await fresh();
      link = await world.newLink();
    });

    it('drops the bytes of what was settled so long ago, and of nothing later', async () => {
      const old = await done();
      world.tick();
      const young = await done();
      world.tick(DAY_MS - 1000);
      expect(await drop()).toEqual({ dropped: 1, next: null });
      expect([await hasBody(old), await hasBody(young)]).toEqual([false, true]);
      world.tick();
      expect(await drop()).toEqual({ dropped: 1, next: null });
      expect(await drop()).toEqual({ dropped: 0, next: null });
    });

    it('keeps the row with all else that is known of it, of what a reading said as of an event', async () => {
      const opened = await world.openNew();
      const reading = await world.read(opened);
      await world.store.settle(world.job(reading, { link: world.made({ id: opened.linkId }) }));
      const keys = [await done(), reading.eventKey];
      const rows = () => Promise.all(keys.map((key) => world.event(key)));
      const [before, counts] = [await rows(), await world.store.stats(world.nowMs)];
      const told = await world.timeline(link);
      world.tick(DAY_MS);
      expect(await drop()).toMatchObject({ dropped: 2 });
      expect(await rows()).toEqual(before.map((row) => ({ ...row, body: null })));
      expect((await world.store.stats(world.nowMs)).events).toEqual(counts.events);
      expect(await world.timeline(link)).toEqual(told);
    });

    it('keeps the bytes of what is not settled, however old it is', async () => {
      const buried = await world.deadEvent(link);
      const leased = (await world.claimNew(link)).eventKey;
      const pending = (await world.deliver(link)).eventKey;
      world.tick(900 * DAY_MS);
      expect(await drop()).toEqual({ dropped: 0, next: null });
      for (const key of [buried, leased, pending]) expect(await hasBody(key)).toBe(true);
    });

    it('counts from the last time that it was settled', async () => {
      const key = await done();
      world.tick(DAY_MS);
      await world.requeue(key);
      expect(await drop()).toMatchObject({ dropped: 0 });
      await world.store.settle(world.job(await world.claimOne(key)));
      expect(await drop()).toMatchObject({ dropped: 0 });
      world.tick(DAY_MS);
      expect(await drop()).toMatchObject({ dropped: 1 });
    });

    it('looks at a few rows in each call, goes on where it ended, and passes over what stays', async () => {
      const keys: number[] = [];
      for (let n = 0; n < 3; n++) keys.push(await world.deadEvent(link), await done());
      world.tick(DAY_MS);
      const first = await drop({ limit: 2 });
      const second = await drop({ limit: 2, after: first.next ?? 0 });
      const third = await drop({ limit: 3, after: second.next ?? 0 });
      expect([first, second, third]).toEqual([
        { dropped: 1, next: keys[1] },
        { dropped: 1, next: keys[3] },
        { dropped: 1, next: null },
      ]);
    });

    it('comes past a whole page of what it must keep to what it may drop', async () => {
      // A batch of retention. They wait, and one that is old and settled is behind them.
      for (let n = 0; n < 256; n++) await world.deliver(link);
      const key = await done();
      const last = (await world.deliver(link)).eventKey;
      world.tick(DAY_MS);
      let dropped = 0;
      let calls = 0;
      for (let after: number | null = 0; after !== null; calls++) {
        const batch = await drop({ after, limit: 256 });
        if (batch.next !== null) expect(batch.next).toBeGreaterThan(after);
        dropped += batch.dropped;
        after = batch.next;
      }
      expect([dropped, calls]).toEqual([1, 2]);
      expect([await hasBody(key), await hasBody(last), await hasBody(key - 1)]).toEqual([false, true, true]);
    });

    it('drops nothing of what was settled later than asked, on a page with what it drops', async () => {
      const old = await done();
      const again = await done();
      world.tick(DAY_MS - 1);
      await world.store.requeueEvent({ by: null, eventKey: again, nowMs: world.nowMs });
      await world.store.settle(world.job(await world.claimOne(again)));
      world.tick(1);
      expect(await drop()).toMatchObject({ dropped: 1 });
      expect([await hasBody(old), await hasBody(again)]).toEqual([false, true]);
    });

    it('finds in a later round what was settled since', async () => {
      const key = await world.deadEvent(link);
      world.tick(DAY_MS);
      expect(await drop()).toMatchObject({ dropped: 0 });
      await world.requeue(key);
      await world.store.settle(world.job(await world.claimOne(key)));
      world.tick(DAY_MS);
      expect(await drop()).toMatchObject({ dropped: 1 });
    });

    it('drops a few large bodies in each call', async () => {
      for (let n = 0; n < 12; n++) await done({ body: randomBytes(262_144) });
      world.tick(DAY_MS);
      const dropped: number[] = [];
      for (let after: number | null = 0; after !== null; ) {
        const batch = await drop({ after });
        dropped.push(batch.dropped);
        after = batch.next;
      }
      expect(dropped.reduce((sum, n) => sum + n)).toBe(12);
      expect(Math.max(...dropped)).toBeLessThanOrEqual(8);
    });

    it('is not held up by an event that came while the clock was ahead', async () => {
      const { nowMs } = world;
      world.tick(400 * DAY_MS);
      const ahead = await done();
      world.nowMs = nowMs;
      const key = await done();
      world.tick(2 * DAY_MS);
      expect(await drop()).toMatchObject({ dropped: 1 });
      expect([await hasBody(ahead), await hasBody(key)]).toEqual([true, false]);
    });

    it('drops the bytes of hints and keeps that they came', async () => {
      for (let n = 0; n < 3; n++) await world.store.recordHint(world.hint(link));
      const told = await world.timeline(link);
      expect(await drop()).toEqual({ dropped: 0, next: null });
      world.tick(DAY_MS);
      const first = await drop({ limit: 2 });
      expect(first).toEqual({ dropped: 2, next: 0 });
      expect(await drop({ limit: 2 })).toEqual({ dropped: 1, next: 0 });
      expect(await drop({ limit: 2 })).toEqual({ dropped: 0, next: null });
      expect(await world.timeline(link)).toEqual(told);
    });

    it('counts from the last time that a hint came', async () => {
      const hint = world.hint(link);
      await world.store.recordHint(hint);
      await world.store.recordHint({ ...hint, receivedAtMs: world.tick(DAY_MS - 1000) });
      world.tick();
      expect(await drop()).toMatchObject({ dropped: 0 });
      world.tick(DAY_MS);
      expect(await drop()).toMatchObject({ dropped: 1 });
    });
  });

  describe('an event whose bytes were dropped', () => {
    let delivery: ReturnType<World['delivery']>;
    let eventKey: number;
    beforeEach(async () => {
      world = shared();
      link = await world.newLink();
      delivery = world.delivery(link);
      ({ eventKey } = await world.store.recordDelivery(delivery));
      const facts = [said('completed')];
      await world.store.settle(world.job(await world.claimOne(eventKey), { facts }));
      world.tick(DAY_MS);
      for (let after: number | null = 0; after !== null; ) after = (await drop({ after })).next;
    });

    it('cannot be made pending again, and is still what other content under its id is in conflict with', async () => {
      const before = await world.event(eventKey);
      expect(await world.requeue(eventKey)).toBe('body_dropped');
      expect(await world.event(eventKey)).toEqual(before);
      const other = { ...world.delivery(link), eventId: delivery.eventId };
      expect(await world.store.recordDelivery(other)).toMatchObject({ outcome: 'conflict' });
    });

    it('is still the one of which another delivery is a duplicate, which settles nothing', async () => {
      const again = { ...delivery, receivedAtMs: world.nowMs };
      expect(await world.store.recordDelivery(again)).toEqual({ outcome: 'duplicate', eventKey });
      expect(await world.event(eventKey)).toMatchObject({ status: 'done', duplicates: 1, body: null });
      world.tick(LEASE_MS);
      expect((await world.claim()).map((claimed) => claimed.eventKey)).not.toContain(eventKey);
    });
  });
}
