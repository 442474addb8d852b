import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import type { ClaimedEvent, SettleJob } from '../../../src/store/verbs/inbox.ts';
import { FAULT, LEASE_MS, type Link, said, type World, type Worlds } from './world.ts';

export function inboxContract({ shared, fresh }: Worlds): void {
  let world: World;
  let link: Link;
  beforeEach(async () => {
    world = shared();
    link = await world.newLink();
  });

  async function done(): Promise<number> {
    const claimed = await world.claimNew(link);
    await world.store.settle(world.job(claimed, { facts: [said('completed')] }));
    return claimed.eventKey;
  }

  describe('claimEvents', () => {
    it('claims what is due, oldest first, up to the limit', async () => {
      const own = await fresh();
      const mine = await own.newLink();
      const times = [3000, 1000, 2000, 9000].map((ms) => own.nowMs + ms);
      const keys: number[] = [];
      for (const receivedAtMs of times) keys.push((await own.deliver(mine, { receivedAtMs })).eventKey);
      own.tick(4000);
      const claimed = [await own.claim(2), await own.claim(2), await own.claim(2)];
      expect(claimed.map((batch) => batch.map(({ eventKey }) => eventKey))).toEqual([
        [keys[1], keys[2]],
        [keys[0]],
        [],
      ]);
    });

    it('claims a few where bodies are large, and the others after them', async () => {
      const own = await fresh();
      const mine = await own.newLink();
      const keys: number[] = [];
      for (let n = 0; n < 24; n++) keys.push((await own.deliver(mine, { body: randomBytes(262_144) })).eventKey);
      const claims: number[][] = [];
      for (let left = keys.length; left > 0; left -= claims.at(-1)?.length ?? 0) {
        claims.push((await own.claim()).map(({ eventKey }) => eventKey));
        expect(claims.at(-1)?.length).toBeGreaterThan(0);
      }
      expect(claims.flat()).toEqual(keys);
      for (const claimed of claims) expect(claimed.length * 262_144).toBeLessThanOrEqual(4 * 1024 * 1024);
    });

    it('leases what it claims: nobody else gets it until the lease lapses', async () => {
      const own = await fresh();
      const { eventKey } = await own.deliver(await own.newLink());
      expect(await own.claim()).toMatchObject([{ eventKey, attempt: 1 }]);
      expect(await own.event(eventKey)).toMatchObject({ status: 'leased', attempt: 1, dueAtMs: own.nowMs + LEASE_MS });
      own.tick(LEASE_MS - 1);
      expect(await own.claim()).toEqual([]);
      own.tick(1);
      expect(await own.claim()).toMatchObject([{ eventKey, attempt: 2 }]);
    });

    it('voids every lease when the store is opened again, so that its rows are due at once', async () => {
      const claimed = await world.claimNew(link);
      await world.reopen();
      expect(await world.event(claimed.eventKey)).toMatchObject({ status: 'pending', attempt: 1 });
      expect((await world.claimOne(claimed.eventKey)).attempt).toBe(2);
    });
  });

  describe('settle', () => {
    it('ends the row with the outcome and rule of its last fact', async () => {
      const claimed = await world.claimNew(link);
      const facts = [said('pending'), said('completed')];
      expect(await world.store.settle(world.job(claimed, { facts }))).toEqual({
        outcome: 'applied',
        rule: 'paid',
        reference: link.reference,
        state: 'paid',
        change: { from: 'awaiting_payment', rule: 'paid' },
        notices: 2,
        paidNow: 'webhook',
        raised: [],
      });
      expect(await world.event(claimed.eventKey)).toMatchObject({
        status: 'done',
        outcome: 'applied',
        rule: 'paid',
        endedAtMs: world.nowMs,
        fault: null,
      });
    });

    it('ends a row without a fact as ignored', async () => {
      const claimed = await world.claimNew(link);
      const { reference } = link;
      const settled = await world.store.settle(world.job(claimed));
      const nothing = { rule: null, change: null, notices: 0, paidNow: null, raised: [] };
      expect(settled).toEqual({ outcome: 'ignored', reference, state: 'awaiting_payment', ...nothing });
      expect((await world.event(claimed.eventKey)).status).toBe('done');
    });

    it('names the rule that changed the state, and not that of a later fact which does not', async () => {
      const facts = [said('pending'), said('completed'), said('completed')];
      const result = await world.settle(link, facts);
      expect(result).toMatchObject({
        rule: 'completion_already_counted',
        state: 'paid',
        change: { from: 'awaiting_payment', rule: 'paid' },
      });
      expect(await world.settle(link, facts)).toMatchObject({ state: 'paid', change: null });
    });

    it('clears the fault of an earlier attempt', async () => {
      const { eventKey, attempt } = await world.claimNew(link);
      await world.store.retryEvent({ eventKey, attempt, dueAtMs: world.nowMs, fault: FAULT });
      await world.store.settle(world.job(await world.claimOne(eventKey)));
      expect(await world.event(eventKey)).toMatchObject({ status: 'done', attempt: 2, fault: null });
    });

    it('queues a check for an event that says too little, or for a change of its link; a doubt is the stronger', async () => {
      await world.forgetChecks();
      for (const [facts, over, reason] of [
        [[], {}, null],
        [[], { linkChanged: true }, 'link_changed'],
        [[], { notUnderstood: 'it says nothing', linkChanged: true }, 'not_understood'],
        [[], { linkChanged: true }, 'not_understood'],
        [[said('unclear')], {}, 'not_understood'],
      ] as const) {
        if (facts.length > 0) await world.forgetChecks();
        await world.settle(link, [...facts], over);
        expect([over, await world.check(link)]).toEqual([over, reason]);
      }
    });

    describe("an event that names the link's status", () => {
      const statusOf = async (known: Link) => (await world.timeline(known)).order.link?.status;

      it('writes it, also of a paid order, whose link nobody asks about for that', async () => {
        const known = await world.openNew();
        await world.settle(known, [said('completed')]);
        expect(await statusOf(known)).toBe('ACTIVE');
        await world.settle(known, [], { linkChanged: true, linkStatus: 'INACTIVE' });
        expect(await statusOf(known)).toBe('INACTIVE');
        await world.settle(known, [], { linkChanged: true });
        expect(await statusOf(known)).toBe('INACTIVE');
      });

      it('leaves what was read since it came', async () => {
        const known = await world.openNew();
        const claimed = await world.claimNew(known);
        world.tick();
        await world.answer(known, [], { made: { status: 'EXPIRED' } });
        await world.store.settle(world.job(claimed, { linkChanged: true, linkStatus: 'INACTIVE' }));
        expect(await statusOf(known)).toBe('EXPIRED');
        await world.settle(known, [], { linkChanged: true, linkStatus: 'INACTIVE' });
        expect(await statusOf(known)).toBe('INACTIVE');
      });
    });

    describe('an event that is not understood', () => {
      const UNREADABLE = { code: 'unreadable_event', message: 'no JSON' };
      const unread = { notUnderstood: 'it says nothing' };
      const inDoubt = { asks: 'in-doubt' as const };
      const matters = async (known = link) =>
        (await world.timeline(known)).attention.map(({ kind, count }) => [kind, count]);
      /** Settles an event that is not understood; returns its key. */
      const misread = async (over: Partial<SettleJob> = {}, of: Link = link) => {
        const claimed = await world.claimNew(of);
        world.tick();
        await world.store.settle(world.job(claimed, { ...unread, ...over }));
        return claimed.eventKey;
      };
      const replay = async (eventKey: number, over: Partial<SettleJob>) => {
        await world.requeue(eventKey);
        return world.store.settle(world.job(await world.claimOne(eventKey), over));
      };

      it('is told to a person if nobody can be asked: one matter for all of its link', async () => {
        const first = await misread();
        const second = await misread({ notUnderstood: 'it is a list' });
        const [matter, ...others] = (await world.timeline(link)).attention;
        expect(others).toEqual([]);
        const { kind, subject, count, detail } = matter ?? {};
        expect([kind, subject, count]).toEqual(['event_not_understood', link.reference, 2]);
        expect(detail).toContain(`does not understand it: it is a list.`);
        expect(detail).toContain(`settled events show ${second}`);
        expect(await world.event(first)).toMatchObject({
          status: 'done',
          outcome: 'ignored',
          fault: { code: 'event_not_understood', message: 'It says nothing.' },
        });
      });

      it.each([
        ['the service can be asked', { ...unread, policy: inDoubt }],
        ['it is understood, and says less than settled needs', { facts: [said('unclear')], policy: inDoubt }],
      ])('is not told if %s', async (_why, over) => {
        await world.store.settle(world.job(await world.claimNew(link), over));
        expect(await matters()).toEqual([]);
      });

      it('says what it is, if the service is asked as well', async () => {
        const eventKey = await misread({ policy: inDoubt });
        expect((await world.event(eventKey)).fault?.code).toBe('event_not_understood');
        expect(await world.check(link)).toBe('not_understood');
      });

      it('is over once a replay of the last one understands it', async () => {
        const [first, second] = [await misread(), await misread()];
        await replay(first, {});
        expect(await matters()).toEqual([['event_not_understood', 2]]);
        expect((await world.event(first)).fault).toBeNull();
        await replay(second, unread);
        expect(await matters()).toEqual([['event_not_understood', 3]]);
        await replay(second, { facts: [said('completed')] });
        expect(await matters()).toEqual([]);
      });

      it('stays when a later event makes the order paid, and says so: it may have told of another payment', async () => {
        const eventKey = await misread();
        for (const facts of [[], [said('pending')]]) await world.settle(link, facts);
        const detail = async () => (await world.timeline(link)).attention[0]?.detail ?? '';
        expect(await detail()).not.toMatch(/paid/);
        await world.settle(link, [said('completed')]);
        expect(await matters()).toEqual([['event_not_understood', 1]]);
        expect(await detail()).toMatch(/was paid by event \d+: .*same payment\./);
        await replay(eventKey, {});
        expect(await matters()).toEqual([]);
      });

      it('is over once a replay understands it, for this order alone: another may be called as the event is numbered', async () => {
        const first = await misread();
        const namesake = await world.openNew({ reference: String(first + 2) });
        await misread({}, namesake);
        const replayed = await misread();
        expect(String(replayed)).toBe(namesake.reference);
        await replay(replayed, {});
        expect(await matters(namesake)).toEqual([['event_not_understood', 1]]);
      });

      it('is over once a replay of the only one makes the order paid', async () => {
        await replay(await misread(), { facts: [said('completed')] });
        expect(await matters()).toEqual([]);
      });

      it('is over once the service itself was read, for this order alone', async () => {
        const [read, other] = [await world.openNew(), await world.openNew()];
        for (const one of [read, other]) await misread({}, one);
        await world.answer(read, []);
        expect(await matters(read)).toEqual([]);
        expect(await matters(other)).toEqual([['event_not_understood', 1]]);
      });

      it('is asked about once more if it is no JSON and the check of its receipt was answered before it was settled', async () => {
        const read = await world.openNew();
        const { eventKey, attempt } = await world.claimNew(read);
        await world.answer(read, []);
        expect((await world.timeline(read)).check).toBeNull();
        world.tick();
        await world.bury({ eventKey, attempt }, UNREADABLE);
        expect(await matters(read)).toEqual([['event_not_understood', 1]]);
        expect(await world.check(read)).toBe('unreadable');
        await world.answer(read, []);
        expect(await matters(read)).toEqual([]);
        expect((await world.timeline(read)).check).toBeNull();
      });

      it('and one that is no JSON are one matter, until both are understood', async () => {
        const misunderstood = await misread();
        const { eventKey, attempt } = await world.claimNew(link);
        world.tick();
        await world.bury({ eventKey, attempt }, UNREADABLE);
        expect(await matters()).toEqual([['event_not_understood', 2]]);
        expect((await world.event(eventKey)).status).toBe('dead');
        await replay(misunderstood, {});
        expect(await matters()).toEqual([['event_not_understood', 2]]);
        await replay(eventKey, {});
        expect(await matters()).toEqual([]);
      });
    });

    it('takes back everything of a job that fails half-way, and leaves its lease', async () => {
      const claimed = await world.claimNew(link);
      const before = [await world.timeline(link), await world.event(claimed.eventKey)];
      const impossible = { ...said('completed'), kind: 'impossible' } as never;
      const linkIds = [world.name('pl')];
      const facts = [said('completed'), impossible];
      await expect(world.store.settle(world.job(claimed, { linkIds, facts }))).rejects.toThrow();
      expect([await world.timeline(link), await world.event(claimed.eventKey)]).toEqual(before);
      const job = world.job(claimed, { facts: [said('completed')] });
      expect(await world.store.settle(job)).toMatchObject({ outcome: 'applied', rule: 'paid' });
    });
  });

  describe('the link that an event names', () => {
    it('is bound by the first authentic event', async () => {
      const linkId = world.name('pl');
      const settled = await world.settle(link, [said('completed')], { linkIds: [linkId] });
      expect(settled).toMatchObject({ outcome: 'applied' });
      expect((await world.timeline(link)).order.link?.id).toBe(linkId);
      expect((await world.store.findCredentials({ linkId }))?.linkKey).toBe(link.linkKey);
    });

    it('may be named again once it is bound', async () => {
      const linkId = world.name('pl');
      await world.register({ reference: link.reference, linkId });
      const settled = await world.settle(link, [said('completed')], { linkIds: [linkId] });
      expect(settled).toMatchObject({ outcome: 'applied' });
    });

    it.each([
      ['another link than the bound one', 'bound', () => ['pl_other']],
      ['the bound link and another one', 'bound', (bound: string) => [bound, 'pl_other']],
      ['the link of another order', 'unbound', (_bound: string, taken: string) => [taken]],
      ['several links while none is bound', 'unbound', () => ['pl_one', 'pl_two']],
    ])('buries an event that names %s, and leaves the order untouched', async (_what, start, names) => {
      const bound = world.name('pl');
      const taken = world.name('pl');
      await world.newLink({ linkId: taken });
      if (start === 'bound') await world.register({ reference: link.reference, linkId: bound });
      await world.forgetChecks();
      const before = await world.timeline(link);
      const claimed = await world.claimNew(link);
      const job = world.job(claimed, { linkIds: names(bound, taken), facts: [said('completed')] });
      expect(await world.store.settle(job)).toEqual({ outcome: 'link_mismatch' });

      const { order, history, notices, attention, check } = await world.timeline(link);
      expect({ order, history, notices }).toEqual({ order: before.order, history: before.history, notices: [] });
      expect(attention.map(({ kind }) => kind).sort()).toEqual(['link_mismatch']);
      expect(check?.reason).toBe('link_mismatch');
      expect(await world.event(claimed.eventKey)).toMatchObject({
        status: 'dead',
        fault: { code: 'link_mismatch' },
        outcome: null,
      });
    });

    it('ends the matter when the buried event is put back', async () => {
      const { eventKey, attempt } = await world.claimNew(link);
      await world.store.settle(world.job({ eventKey, attempt }, { linkIds: ['pl_one', 'pl_two'] }));
      await world.requeue(eventKey);
      expect((await world.timeline(link)).attention).toEqual([]);
    });
  });

  describe('retryEvent', () => {
    it('gives a row back, due at its time, with what went wrong', async () => {
      const { eventKey, attempt } = await world.claimNew(link);
      const dueAtMs = world.nowMs + 5000;
      await world.store.retryEvent({ eventKey, attempt, dueAtMs, fault: FAULT });
      expect(await world.event(eventKey)).toMatchObject({ status: 'pending', attempt: 1, dueAtMs, fault: FAULT });
      world.tick(4999);
      await expect(world.claimOne(eventKey)).rejects.toThrow('is not due');
      world.tick(1);
      expect((await world.claimOne(eventKey)).attempt).toBe(2);
    });
  });

  describe('buryEvent', () => {
    it('retires a row for a person: dead, with what went wrong, never claimed again', async () => {
      const eventKey = await world.deadEvent(link);
      expect(await world.event(eventKey)).toMatchObject({ status: 'dead', fault: FAULT, endedAtMs: world.nowMs });
      expect((await world.timeline(link)).attention).toMatchObject([
        { kind: 'event_dead', subject: String(eventKey), reference: link.reference, count: 1 },
      ]);
      world.tick(LEASE_MS * 100);
      await expect(world.claimOne(eventKey)).rejects.toThrow('is not due');
    });

    it('of a row that was settled before and is replayed leaves it done, with what went wrong, and tells nobody', async () => {
      const eventKey = await done();
      await world.requeue(eventKey);
      expect(await world.bury(await world.claimOne(eventKey))).toBe('done');
      expect(await world.event(eventKey)).toMatchObject({
        status: 'done',
        outcome: 'applied',
        rule: 'paid',
        fault: FAULT,
        endedAtMs: world.nowMs,
      });
      expect(await world.kinds(link)).toEqual([]);
    });
  });

  describe.each(['new', 'replayed'])('a %s row whose lease went to another attempt', (what) => {
    it.each<[string, (lost: ClaimedEvent) => Promise<unknown>, unknown]>([
      ['settle', (of) => world.store.settle(world.job(of, { facts: [said('completed')] })), { outcome: 'lost' }],
      ['retryEvent', (of) => world.store.retryEvent({ ...of, dueAtMs: world.nowMs, fault: FAULT }), undefined],
      ['buryEvent', (of) => world.bury(of), 'lost'],
    ])('is left alone by %s', async (_verb, end, answer) => {
      const eventKey = what === 'new' ? (await world.deliver(link)).eventKey : await done();
      if (what === 'replayed') await world.requeue(eventKey);
      const lost = await world.claimOne(eventKey);
      world.tick(LEASE_MS);
      const taken = await world.claimOne(eventKey);
      const before = [await world.timeline(link), await world.event(eventKey)];
      expect((await end(lost)) ?? undefined).toEqual(answer);
      expect([await world.timeline(link), await world.event(eventKey)]).toEqual(before);
      const outcome = what === 'new' ? 'applied' : 'already_applied';
      const job = world.job(taken, { facts: [said('completed')] });
      expect(await world.store.settle(job)).toMatchObject({ outcome });
      expect(await world.store.settle(job)).toEqual({ outcome: 'lost' });
    });
  });

  describe('requeueEvent', () => {
    it('makes a dead row pending, as new, and ends the matter', async () => {
      const eventKey = await world.deadEvent(link);
      expect(await world.requeue(eventKey)).toBe('requeued');
      expect(await world.event(eventKey)).toMatchObject({
        status: 'pending',
        attempt: 0,
        dueAtMs: world.nowMs,
        endedAtMs: null,
      });
      expect(await world.kinds(link)).toEqual([]);
      expect((await world.claimOne(eventKey)).attempt).toBe(1);
    });

    it('settles a done row again without settling its order twice', async () => {
      const eventKey = await done();
      const before = await world.timeline(link);
      expect(await world.requeue(eventKey)).toBe('requeued');
      const job = world.job(await world.claimOne(eventKey), { facts: [said('completed')] });
      expect(await world.store.settle(job)).toMatchObject({ outcome: 'already_applied', notices: 0 });
      const { order, history, notices } = await world.timeline(link);
      expect({ order, history, notices }).toEqual({
        order: before.order,
        history: before.history,
        notices: before.notices,
      });
    });

    it('leaves pending and leased rows in work, and knows none that is not there', async () => {
      const { eventKey } = await world.deliver(link);
      expect(await world.requeue(eventKey)).toBe('in_work');
      await world.claimOne(eventKey);
      const before = await world.event(eventKey);
      expect(await world.requeue(eventKey)).toBe('in_work');
      expect(await world.event(eventKey)).toEqual(before);
      expect(await world.requeue(987_654)).toBe('unknown');
    });
  });
}
