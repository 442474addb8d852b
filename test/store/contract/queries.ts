import { beforeEach, describe, expect, it } from 'vitest';
import { stated } from '../../support/orders.ts';
import { openAttention } from '../../support/rows.ts';
import { FAULT, LEASE_MS, type Link, said, type World, type Worlds } from './world.ts';

export function queriesContract({ fresh, shared }: Worlds): void {
  let world: World;

  describe('lists', () => {
    beforeEach(async () => {
      world = await fresh();
    });

    async function newOrders(...names: string[]): Promise<Link[]> {
      const links: Link[] = [];
      for (const reference of names) links.push(await world.newLink({ reference }));
      return links;
    }

    it('lists orders newest first, in pages that stay where they are while orders arrive', async () => {
      await newOrders('a', 'b', 'c', 'd', 'e');
      const page = async (after: number | null) => {
        const { rows, next } = await world.store.listOrders({ limit: 2, after });
        return { names: rows.map(({ value }) => value.reference), next };
      };
      const first = await page(null);
      expect(first.names).toEqual(['e', 'd']);
      await newOrders('f', 'g');
      const second = await page(first.next);
      expect(second.names).toEqual(['c', 'b']);
      expect(await page(second.next)).toEqual({ names: ['a'], next: null });
    });

    it('lists orders whole', async () => {
      const [link] = await newOrders('a');
      await world.settle(link as Link, [said('completed', { linkMoney: stated('60.00') })]);
      const [listed] = (await world.store.listOrders({ limit: 1 })).rows;
      expect(listed?.value).toEqual(await world.store.findOrder('a'));
      expect(listed?.value.holds).toHaveLength(1);
    });

    it('lists events newest first, in pages that stay where they are while events arrive', async () => {
      const [a] = (await newOrders('a')) as [Link];
      const keys: number[] = [];
      for (let i = 0; i < 5; i++) keys.push((await world.deliver(a)).eventKey);
      const list = async (after: number | null) =>
        (await world.store.listEvents({ limit: 2, after })).rows.map(({ key }) => key);
      expect(await list(null)).toEqual([keys[4], keys[3]]);
      await world.deliver(a);
      expect(await list(keys[3] as number)).toEqual([keys[2], keys[1]]);
      expect(await list(keys[1] as number)).toEqual([keys[0]]);
    });

    it('lists an event as it finds it, without its body', async () => {
      const [a] = (await newOrders('a')) as [Link];
      await world.settle(a, [said('completed')], { linkIds: ['pl_a'] });
      const [listed] = (await world.store.listEvents({ limit: 1 })).rows;
      const { body, bodySha256, timestamp, ...found } = await world.event(listed?.key ?? 0);
      expect(listed).toEqual(found);
      expect(found).toMatchObject({ reference: 'a', linkId: 'pl_a', outcome: 'applied', rule: 'paid' });
    });
  });

  describe('stats', () => {
    beforeEach(async () => {
      world = await fresh();
    });

    it('counts nothing in an empty store', async () => {
      expect(await world.store.stats(world.nowMs)).toEqual({
        orders: {},
        events: { pending: 0, leased: 0, dead: 0, done: 0 },
        notices: { pending: 0, leased: 0, done: 0, dead: 0 },
        matters: [],
        checks: 0,
        checksByClass: { confirm: 0, hint: 0, janitor: 0 },
        openings: { pending: 0, leased: 0, taken: 0 },
        drift: 0,
        api: { slotsInUse: 0, pausedUntilMs: null },
        rejections: 0,
        lagMs: 0,
        noticesLagMs: 0,
        shopFailures: 0,
        checksLagMs: { confirm: 0, hint: 0, janitor: 0 },
        webhooksMissing: 0,
        feed: { newest: 0, generation: 1, restoredFromMs: null },
      });
    });

    it('counts what is there', async () => {
      const paid = await world.newLink();
      const held = await world.newLink();
      const open = await world.newLink();
      await world.settle(paid, [said('completed')]);
      await world.settle(held, [said('completed', { linkMoney: stated('60.00') })]);
      await world.deadEvent(open);
      await world.claimNew(open);
      await world.deliver(open);
      await world.deliver(open);
      const { linkKey } = open;
      const rejection = { linkKey, lastAtMs: world.nowMs, reason: 'signature_wrong', count: 5 } as const;
      await world.store.recordRejection(rejection);
      expect(await world.store.stats(world.nowMs)).toMatchObject({
        orders: { paid: 1, held: 1, awaiting_payment: 1 },
        events: { pending: 2, leased: 1, dead: 1, done: 2 },
        notices: { pending: 2 },
        matters: [
          { kind: 'hold', reason: 'amount_mismatch', count: 1 },
          { kind: 'event_dead', reason: null, count: 1 },
        ],
        checks: 3,
        checksByClass: { confirm: 0, hint: 1, janitor: 2 },
        rejections: 5,
      });
    });

    it('gives the age of the oldest row that is due', async () => {
      const link = await world.newLink();
      await world.settle(link, [said('completed')]);
      world.tick(LEASE_MS * 2);
      const { eventKey, attempt } = await world.claimNew(link);
      await world.deliver(link, { receivedAtMs: world.tick(500) });
      expect((await world.store.stats(world.tick(2000))).lagMs).toBe(2000);
      await world.claim();
      expect((await world.store.stats(world.nowMs)).lagMs).toBe(0);
      const dueAtMs = world.nowMs + 5000;
      await world.store.retryEvent({ eventKey, attempt, dueAtMs, fault: FAULT });
      expect((await world.store.stats(world.nowMs)).lagMs).toBe(0);
      expect((await world.store.stats(dueAtMs + 300)).lagMs).toBe(300);
    });
  });

  describe('endAttention', () => {
    let link: Link;
    const conflict = async (of: Link, text: string) => world.deliver(of, { eventId: 'evt_1', body: Buffer.from(text) });
    const matters = async (of: Link) => (await world.timeline(of)).attention;

    beforeEach(async () => {
      world = shared();
      link = await world.newLink();
      await conflict(link, 'one');
      await conflict(link, 'two');
    });

    it('ends the one matter, once, and notes the reason in the history of its order', async () => {
      const other = await world.newLink();
      await conflict(other, 'one');
      await conflict(other, 'two');
      const [matter] = await matters(link);
      const atMs = world.tick();
      const ended = { kind: 'event_conflict', reference: link.reference };
      expect(await world.end(matter?.key, 'both say the same')).toEqual(ended);
      expect([await matters(link), (await matters(other)).length]).toEqual([[], 1]);
      const listed = (await openAttention(world.store)).map(({ key }) => key);
      expect(listed).not.toContain(matter?.key);
      const { history } = await world.timeline(link);
      const cause = { kind: 'person', id: 'both say the same' };
      expect(history.at(-1)).toMatchObject({ atMs, what: 'a person ended event_conflict', cause });
      expect((await world.timeline(other)).history).toHaveLength(1);
      expect([await world.end(matter?.key), await world.end(987_654)]).toEqual([null, null]);
      expect((await world.timeline(link)).history).toEqual(history);
    });

    it('of a matter of no order notes nothing anywhere', async () => {
      world = await fresh();
      link = await world.newLink();
      await world.settle(link, [said('completed')]);
      for (const notice of await world.claimNotices()) {
        await world.store.buryNotice({ ...notice, fault: FAULT, answer: null, nowMs: world.nowMs });
      }
      const [dead] = await world.matters('notices_dead');
      const { history } = await world.timeline(link);
      expect(await world.end(dead?.key)).toEqual({ kind: 'notices_dead', reference: null });
      expect((await world.timeline(link)).history).toEqual(history);
    });
  });

  describe('timeline', () => {
    beforeEach(() => {
      world = shared();
    });

    it('tells everything known of an order, oldest first, and nothing of another', async () => {
      const reference = world.name('order');
      const linkId = world.name('pl');
      const linkAtMs = world.nowMs;
      const link = await world.newLink({ reference });
      const other = await world.newLink();
      await world.settle(other, [said('completed')]);
      const rejectedAtMs = world.tick();
      const { linkKey } = link;
      await world.store.recordRejection({ linkKey, reason: 'signature_wrong', count: 2, lastAtMs: rejectedAtMs });
      const hint = world.hint(link);
      await world.store.recordHint(hint);
      await world.settle(link, [said('pending')], { linkIds: [linkId] });
      await world.settle(link, [said('completed', { quoteMoney: stated('150.00') })]);
      const told = await world.timeline(link);

      expect(told.order).toEqual(await world.store.findOrder(reference));
      expect(told.order).toMatchObject({ state: 'paid', flags: [] });
      expect(told.history.map(({ what, from, to }) => [what, from, to])).toEqual([
        ['link reserved', null, null],
        ['payment_pending', 'awaiting_payment', 'payment_pending'],
        ['paid', 'payment_pending', 'paid'],
      ]);
      expect(told.history[0]).toMatchObject({ atMs: linkAtMs, cause: { kind: 'person' }, effects: [] });
      expect(told.history[2]?.effects).toEqual([
        'ledger: captured 100.00 BRL, payment pay_1; the customer paid 150.00 BRL',
        'became paid; this is written once, whatever follows',
        'notice order.paid',
      ]);
      expect(told.events.map(({ status, rule }) => [status, rule])).toEqual([
        ['done', 'payment_pending'],
        ['done', 'paid'],
      ]);
      expect(told.hints).toMatchObject([{ eventId: 'evt_stale', count: 1 }]);
      expect(told.rejections).toMatchObject([{ reason: 'signature_wrong', count: 2 }]);
      expect(told.attention).toEqual([]);
      expect(told.notices.map(({ type }) => type)).toEqual(['order.payment_pending', 'order.paid']);
      const { receivedAtMs } = hint;
      expect(told.check).toEqual({ reason: 'stale', requestedAtMs: receivedAtMs, dueAtMs: receivedAtMs });
      const nextCheckAtMs = (told.order.settlement?.paidAtMs ?? 0) + 86_400_000;
      expect(told).toMatchObject({ nextCheckAtMs, opening: null, drift: [] });
    });

    it('knows nothing of an unknown order or event', async () => {
      expect(await world.store.timeline('nobody')).toBeNull();
      expect(await world.store.findOrder('nobody')).toBeNull();
      expect(await world.store.findEvent(987_654)).toBeNull();
    });

    it.each(['a b', 'ação', '50%', "x' OR 1=1", '/../', 'emoji 🧾'])(
      'takes a reference as it is written: %j',
      async (reference) => {
        await world.newLink({ reference });
        expect((await world.store.findOrder(reference))?.reference).toBe(reference);
        expect((await world.timeline({ reference })).order.reference).toBe(reference);
      },
    );
  });
}
