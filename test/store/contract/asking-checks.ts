import { beforeEach, describe, expect, it } from 'vitest';
import { CHECK_RANKS, CHECK_REASONS, type CheckReason } from '../../../src/domain/check_queue.ts';
import { readSearch } from '../../../src/domain/search.ts';
import type { ClaimedBulk } from '../../../src/store/verbs/bulk.ts';
import { stated } from '../../support/orders.ts';
import { type Link, said, type World, type Worlds } from './world.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const LEASE_MS = 30_000;

type Known = Link & { linkId: string };

export function checksContract({ shared }: Worlds): void {
  let world: World;
  beforeEach(async () => {
    world = shared();
    await world.forgetChecks();
  });

  /** An order whose link is known, with nothing that asks about it before its schedule does. */
  async function quietLink(): Promise<Known> {
    return world.openNew({ returnToken: world.name('return'), callbackUrl: 'https://shop.example.com/back' });
  }

  /** What makes each reason wait, as far as a delivery or a person does. */
  const HEARD: Record<CheckReason, (link: Known) => Promise<unknown>> = {
    registered: () => Promise.reject(new Error('a link that settled opens is not registered')),
    listed: ({ linkId: id }) => {
      const money = { amount: null, currency: null };
      const items = [{ id, reference: null, status: 'INACTIVE', money, createdAtMs: null }];
      return world.store.compareListed({ items, toleranceMs: 0, nowMs: world.nowMs });
    },
    person: (link) => askInBulk(link),
    link_changed: (link) => settleNow(link, { linkChanged: true }),
    rejected: (link) => world.reject(link),
    stale: (link) => world.store.recordHint({ ...world.hint(link), receivedAtMs: world.nowMs }),
    unreadable: (link) => world.deliver(link, { readable: false }),
    not_understood: (link) => settleNow(link, { notUnderstood: 'it says nothing', policy: { asks: 'in-doubt' } }),
    link_mismatch: (link) => settleNow(link, { linkIds: [world.name('other')] }),
    returned: async ({ reference }) => {
      const returnToken = returnTokens.get(reference) as string;
      return world.store.recordReturn({ returnToken, nowMs: world.nowMs });
    },
    doubtful_money: (link) => settleNow(link, { facts: [said('completed', { linkMoney: null })] }),
  };
  const returnTokens = new Map<string, string>();

  async function askInBulk({ reference }: Link): Promise<void> {
    const filter = { search: readSearch(reference) };
    const { keys } = await world.store.findBulkKeys({ action: 'check_orders', filter, limit: 9 });
    const started = { action: 'check_orders', filter: '{}', reason: null, keys, isMore: false, by: null } as const;
    const { nowMs } = world;
    await world.store.startBulk({ ...started, atMs: nowMs });
    const run = (await world.store.claimBulk({ limit: 9, nowMs, leaseMs: LEASE_MS })) as ClaimedBulk;
    for (const itemKey of run.items) {
      await world.store.carryOutBulk({ run, itemKey, auditKey: Buffer.alloc(32), nowMs });
    }
  }

  async function settleNow(link: Link, over: Parameters<World['job']>[1]): Promise<void> {
    await world.store.settle(world.job(await world.claimNew(link), over));
  }

  /** A link that waits for a check, for a reason. */
  async function waiting(reason: Exclude<CheckReason, 'registered'>): Promise<Known> {
    const returnToken = world.name('return');
    const link = await world.openNew({ returnToken, callbackUrl: 'https://shop.example.com/back' });
    returnTokens.set(link.reference, returnToken);
    await HEARD[reason](link);
    return link;
  }

  function fail({ linkKey }: Link, over: { dueAtMs?: number | null; missing?: boolean; sent?: boolean } = {}) {
    const { nowMs } = world;
    const failure = { linkKey, dueAtMs: nowMs + 5000, missing: false, sent: true, nowMs };
    return world.store.failCheck({ ...failure, ...over });
  }

  /** The same of a link that the shop has not made. */
  const giveUp = (link: Link) => fail(link, { dueAtMs: null });

  const keysOf = (links: readonly { linkKey: number }[]) => links.map(({ linkKey }) => linkKey);

  describe('the queue of checks', () => {
    it.each(CHECK_REASONS.filter((reason) => reason !== 'registered'))('holds a link that is %s', async (reason) => {
      const link = await waiting(reason);
      const { check } = await world.timeline(link);
      expect(check?.reason).toBe(reason);
      expect(check?.dueAtMs).toBe(check?.requestedAtMs);
      // Money that nobody named is asked about although the order is paid.
      expect(await world.claimChecks()).toMatchObject([{ linkKey: link.linkKey, reason, failures: 0 }]);
    });

    it('asks first for what matters most, and for what waits longest', async () => {
      const reasons = CHECK_REASONS.filter((reason) => reason !== 'registered');
      const links: { reason: CheckReason; linkKey: number }[] = [];
      for (const reason of reasons) {
        links.push({ reason, linkKey: (await waiting(reason)).linkKey });
        world.tick(10);
        links.push({ reason, linkKey: (await waiting(reason)).linkKey });
        world.tick(10);
      }
      const claimed = await world.claimChecks({ slots: 55 });
      const ranks = claimed.map(({ reason }) => CHECK_RANKS[reason as CheckReason]);
      expect(ranks).toEqual([...ranks].sort((a, b) => b - a));
      const rejected = links.filter(({ reason }) => reason === 'rejected');
      expect(keysOf(claimed.filter(({ reason }) => reason === 'rejected'))).toEqual(keysOf(rejected));
      const classes = new Map(claimed.map(({ reason, class: name }) => [reason, name]));
      expect(Object.fromEntries(classes)).toMatchObject({
        doubtful_money: 'confirm',
        returned: 'hint',
        stale: 'hint',
        rejected: 'hint',
        listed: 'janitor',
      });
    });

    it('says all that is needed to ask', async () => {
      const link = await waiting('stale');
      const { reference, token, linkKey, linkId } = link;
      expect(await world.claimChecks()).toEqual([
        { reference, token, linkKey, linkId, isOpening: false, class: 'hint', reason: 'stale', failures: 0 },
      ]);
    });

    it('gives out again what whoever is gone had claimed', async () => {
      const { linkKey } = await waiting('returned');
      await world.claimChecks();
      await world.restart();
      expect(await world.claimChecks()).toMatchObject([{ linkKey }]);
    });

    it('claims no more than the limit, and no more than the budget admits', async () => {
      for (let n = 0; n < 6; n++) await waiting('returned');
      expect(await world.claimChecks({ limit: 2 })).toHaveLength(2);
      await world.slot();
      // Of 5 slots the hints have 3, and one of them is in use.
      expect(await world.claimChecks({ slots: 5 })).toHaveLength(2);
    });

    it('claims nothing while the budget is used up, or pauses', async () => {
      await waiting('returned');
      const number = await world.slot();
      expect(await world.claimChecks({ slots: 1 })).toEqual([]);
      const pause = { untilMs: world.nowMs + 5000, spares: 'create' } as const;
      const returned = { number, seen: null, pause, standing: 'unknown', nowMs: world.nowMs } as const;
      await world.store.returnBudget(returned);
      expect(await world.claimChecks()).toEqual([]);
      world.tick(5000);
      expect(await world.claimChecks()).toHaveLength(1);
    });

    it('leaves a stronger class its slots', async () => {
      for (let n = 0; n < 6; n++) await waiting('listed');
      await waiting('doubtful_money');
      // Of 5 slots the janitor has 2, one of which the confirmation takes.
      const claimed = await world.claimChecks({ slots: 5 });
      expect(claimed.map(({ class: name }) => name)).toEqual(['confirm', 'janitor']);
    });

    it('lets customers who come back not take the slots of doubts about money', async () => {
      for (let n = 0; n < 8; n++) await waiting('returned');
      const { linkKey } = await waiting('doubtful_money');
      for (let n = 0; n < 3; n++) await world.slot('hint');
      expect(await world.claimChecks({ slots: 5 })).toMatchObject([{ linkKey, class: 'confirm' }]);
    });

    it('gives out what was requested before the clock was set back, once', async () => {
      const link = await waiting('returned');
      world.tick(-3_600_000);
      expect(await world.claimChecks()).toMatchObject([{ linkKey: link.linkKey }]);
      expect(await world.claimChecks()).toEqual([]);
      world.tick();
      await world.answer(link, []);
      expect(await world.check(link)).toBeNull();
      world.tick(3_600_000);
    });

    it('drops the registration of a link whose order was paid meanwhile', async () => {
      const paid = await world.newLink();
      const open = await world.newLink();
      await settleNow(paid, { facts: [said('completed')] });
      expect(await world.claimChecks()).toMatchObject([{ linkKey: open.linkKey, reason: 'registered' }]);
      expect((await world.timeline(paid)).check).toBeNull();
    });
  });

  describe('hints', () => {
    it('that come while money is asked about have their own limit, however many they are', async () => {
      const link = await waiting('doubtful_money');
      let asked = 0;
      for (let second = 0; second < 300; second += 3) {
        for (const { linkKey } of await world.claimChecks()) {
          expect(linkKey).toBe(link.linkKey);
          asked++;
          const number = await world.slot();
          await HEARD.rejected(link);
          await HEARD.stale(link);
          await world.answer(link, [said('completed')], { reading: { number } });
        }
        world.tick(3_000);
        await HEARD.rejected(link);
      }
      // For the reason itself, and once for all that was forged.
      expect(asked).toBe(2);
    });

    it('do not take the place of a doubt about money, nor keep it waiting', async () => {
      const link = await waiting('stale');
      await world.claimChecks();
      const number = await world.slot();
      await settleNow(link, { facts: [said('completed')], policy: { asks: 'always' } });
      await HEARD.rejected(link);
      await world.answer(link, [said('completed')], { reading: { number } });
      expect(await world.check(link)).toBe('doubtful_money');
      const other = await waiting('stale');
      await world.claimChecks();
      await HEARD.doubtful_money(other);
      expect(await world.claimChecks()).toMatchObject([{ linkKey: other.linkKey, class: 'confirm' }]);
    });

    it('are followed again after the clock was set back, within their limits', async () => {
      const links: Known[] = [];
      for (let n = 0; n < 10; n++) links.push(await waiting('stale'));
      expect(await world.claimChecks()).toHaveLength(10);
      for (const link of links) await world.answer(link, []);
      world.tick(-6 * 3_600_000);
      const { linkKey } = await waiting('stale');
      expect(await world.claimChecks()).toEqual([]);
      world.tick(MINUTE_MS);
      expect(await world.claimChecks()).toMatchObject([{ linkKey }]);
      await HEARD.stale(links[0] as Known);
      world.tick(4 * MINUTE_MS);
      expect(keysOf(await world.claimChecks())).toContain(links[0]?.linkKey);
      world.tick(6 * 3_600_000);
    });

    it('are followed ten times a minute, whatever the budget', async () => {
      const links: Known[] = [];
      for (let n = 0; n < 14; n++) links.push(await waiting('rejected'));
      const hints = async () => {
        const claimed = await world.claimChecks({ slots: 55 });
        return keysOf(claimed.filter(({ class: name }) => name === 'hint'));
      };
      expect(await hints()).toEqual(keysOf(links.slice(0, 10)));
      world.tick(MINUTE_MS - 1);
      expect(await hints()).toEqual([]);
      world.tick(1);
      expect(await hints()).toEqual(keysOf(links.slice(10)));
    });
  });

  describe('the schedule', () => {
    it('asks about a link when its time has come', async () => {
      const link = await quietLink();
      world.tick(2 * MINUTE_MS - 1);
      expect(await world.claimChecks()).toEqual([]);
      world.tick(1);
      const expected = { linkKey: link.linkKey, class: 'janitor', reason: 'scheduled', failures: 0 };
      expect(await world.claimChecks()).toMatchObject([expected]);
      expect(await world.claimChecks()).toEqual([]);
      world.tick(LEASE_MS);
      expect(await world.claimChecks()).toMatchObject([expected]);
    });

    it('asks about a registered link that has no id, too: it can be looked up', async () => {
      const link = await world.newLink();
      await world.claimChecks();
      const claimed = await world.store.findLink(link.reference);
      expect(claimed).toEqual({ ...link, linkId: null, isOpening: false });
      // The shop has not made it yet.
      await giveUp(link);
      const nextCheckAtMs = world.nowMs + 2 * MINUTE_MS;
      expect(await world.timeline(link)).toMatchObject({ attention: [], check: null, nextCheckAtMs });
      world.tick(2 * MINUTE_MS);
      expect(await world.claimChecks()).toMatchObject([{ linkKey: link.linkKey, linkId: null }]);
    });

    it('gives a link that is also in the queue once', async () => {
      const link = await waiting('returned');
      world.tick(2 * MINUTE_MS);
      expect(await world.claimChecks()).toMatchObject([{ linkKey: link.linkKey, reason: 'returned' }]);
      world.tick(LEASE_MS - 1);
      expect(await world.claimChecks()).toEqual([]);
    });

    it('asks about a paid order a day later, not when it would have asked about an open one', async () => {
      const link = await quietLink();
      await settleNow(link, { facts: [said('completed')] });
      const paidAtMs = world.nowMs;
      expect((await world.timeline(link)).nextCheckAtMs).toBe(paidAtMs + DAY_MS);
      world.tick(2 * MINUTE_MS);
      expect(await world.claimChecks()).toEqual([]);
      expect((await world.timeline(link)).nextCheckAtMs).toBe(paidAtMs + DAY_MS);
      world.nowMs = paidAtMs + DAY_MS;
      expect(await world.claimChecks()).toMatchObject([{ linkKey: link.linkKey, reason: 'scheduled' }]);
      world.tick(LEASE_MS);
      expect(await world.claimChecks()).toMatchObject([{ linkKey: link.linkKey }]);
    });

    it('ends four months after an order was paid', async () => {
      const link = await quietLink();
      await settleNow(link, { facts: [said('completed')] });
      const paidAtMs = world.nowMs;
      const days: number[] = [];
      for (;;) {
        await world.claimChecks();
        const { nextCheckAtMs } = await world.timeline(link);
        if (nextCheckAtMs === null) break;
        days.push((nextCheckAtMs - paidAtMs) / DAY_MS);
        world.nowMs = nextCheckAtMs;
        await world.claimChecks();
        await world.answer(link, []);
      }
      expect([...new Set(days)].slice(-6)).toEqual([1, 7, 30, 60, 90, 120]);
    });

    it.each([
      ['pays', async (link: Known) => settleNow(link, { facts: [said('completed')] })],
      [
        'is accepted by a person',
        async (link: Known) => {
          await settleNow(link, { facts: [said('completed', { linkMoney: stated('60.00') })] });
          await world.resolve(link, 'accept');
        },
      ],
    ])('begins again where money that %s comes after the open link was watched', async (_how, come) => {
      const link = await quietLink();
      world.tick(30 * DAY_MS);
      await world.answer(link, [], { made: { status: 'EXPIRED' } });
      expect((await world.timeline(link)).nextCheckAtMs).toBeNull();
      await come(link);
      expect((await world.timeline(link)).nextCheckAtMs).toBe(world.nowMs + DAY_MS);
      world.tick(DAY_MS);
      expect(await world.claimChecks()).toMatchObject([{ linkKey: link.linkKey, reason: 'scheduled' }]);
    });

    it('goes on while the link is read as active, although its expiry is long past', async () => {
      const link = await quietLink();
      world.tick(30 * DAY_MS);
      await world.answer(link, [], { made: { expiresAtMs: world.nowMs - 20 * DAY_MS } });
      const restMs = ((await world.timeline(link)).nextCheckAtMs ?? 0) - world.nowMs;
      expect(restMs).toBeGreaterThan(0);
      expect(restMs).toBeLessThanOrEqual(DAY_MS);
    });

    it('asks about a link of its own where the service has another under the reference', async () => {
      const link = await world.intend();
      const { attempt } = await world.claimOpening(link);
      const linkId = world.name('plink');
      await settleNow(link, { linkIds: [linkId] });
      const finish = { linkKey: link.linkKey, attempt, link: world.made(), withheld: null };
      expect(await world.store.finishOpening({ ...finish, nowMs: world.nowMs })).toBe('taken');
      world.tick(2 * MINUTE_MS);
      const asked = { linkKey: link.linkKey, linkId, isOpening: false };
      expect(await world.claimChecks()).toMatchObject([{ ...asked, reason: 'scheduled' }]);
      await world.answer({ ...link, linkId }, [], { made: { url: 'https://pay.example.com/x' } });
      expect(await world.timeline(link)).toMatchObject({
        // Its details were never compared with the order.
        order: { link: null },
        nextCheckAtMs: world.nowMs + 8 * MINUTE_MS,
      });
      await settleNow(link, { facts: [said('completed')], policy: { asks: 'always' } });
      expect(await world.claimChecks()).toMatchObject([{ ...asked, reason: 'doubtful_money' }]);
    });

    it('uses the slots that the queue leaves', async () => {
      const links: Known[] = [];
      for (let n = 0; n < 4; n++) links.push(await quietLink());
      world.tick(2 * MINUTE_MS);
      const { linkKey } = await waiting('returned');
      expect(keysOf(await world.claimChecks({ slots: 5 }))).toEqual([linkKey, links[0]?.linkKey]);
    });
  });

  describe('failCheck', () => {
    it.each<[string, string, () => Promise<Known>]>([
      ['in the queue', 'returned', () => waiting('returned')],
      [
        'of the schedule',
        'scheduled',
        async () => {
          const link = await quietLink();
          world.tick(2 * MINUTE_MS);
          return link;
        },
      ],
    ])('tries a check %s again at its time, and counts it unless it had no slot', async (_where, reason, come) => {
      const link = await come();
      for (const [sent, failures] of [
        [false, 0],
        [true, 1],
      ] as const) {
        await world.claimChecks();
        await fail(link, { sent });
        const { check, nextCheckAtMs } = await world.timeline(link);
        expect(reason === 'scheduled' ? nextCheckAtMs : check?.dueAtMs).toBe(world.nowMs + 5000);
        world.tick(4999);
        expect(await world.claimChecks()).toEqual([]);
        world.tick(1);
        expect(await world.claimChecks()).toMatchObject([{ linkKey: link.linkKey, reason, failures }]);
      }
      await world.answer(link, []);
      world.nowMs = (await world.timeline(link)).nextCheckAtMs as number;
      expect(await world.claimChecks()).toMatchObject([{ reason: 'scheduled', failures: 0 }]);
    });

    it('of a hint leaves the schedule as it is: forged ones must not use its slots', async () => {
      const link = await waiting('rejected');
      const { nextCheckAtMs } = await world.timeline(link);
      await world.claimChecks();
      await fail(link);
      expect((await world.timeline(link)).nextCheckAtMs).toBe(nextCheckAtMs);
    });

    it('tells a person of a link that the service does not know, and asks again by the schedule', async () => {
      const link = await waiting('returned');
      await world.claimChecks();
      await fail(link, { missing: true });
      const told = await world.timeline(link);
      expect(told).toMatchObject({ attention: [{ kind: 'link_missing' }], check: null });
      expect(told.attention[0]?.detail).toContain('settled links add');
      expect(told.nextCheckAtMs).toBe(world.nowMs + 2 * MINUTE_MS);
      await world.answer(link, []);
      expect((await world.timeline(link)).attention).toEqual([]);
    });

    it.each<[string, () => Promise<Link>, (link: Link) => Promise<unknown>]>([
      ['the service does not know its link', quietLink, (link) => fail(link, { missing: true })],
      ['no link is found', () => world.newLink(), giveUp],
    ])('never forgets a completion that waits to be confirmed although %s, and holds it', async (_why, come, fails) => {
      const link = await come();
      await settleNow(link, { facts: [said('completed')], policy: { asks: 'always' } });
      expect(await fails(link)).toBe(null);
      expect((await world.timeline(link)).check).toMatchObject({ dueAtMs: world.nowMs + 5000 });
      world.tick(10 * MINUTE_MS);
      expect(await fails(link)).toEqual({ from: 'awaiting_payment', rule: 'completion_unconfirmed' });
      const told = await world.timeline(link);
      expect(told.order).toMatchObject({ state: 'held', holds: [{ reason: 'unconfirmed' }] });
      expect(told.check).toBeNull();
    });

    describe('after an event that was not understood', () => {
      const HOUR_MS = 60 * MINUTE_MS;
      const unread = { notUnderstood: 'it says nothing', policy: { asks: 'in-doubt' } } as const;
      const told = async (link: Link) => {
        const { attention } = await world.timeline(link);
        return attention.map(({ kind, subject, detail }) => [kind, subject === link.reference, detail]);
      };
      const matter = [
        'event_not_understood',
        true,
        expect.stringMatching(/: it says nothing\. .*got no answer that says more/),
      ];

      it('tells a person at once if the shop has made no link, whatever the check was for', async () => {
        const link = await world.newLink();
        await settleNow(link, unread);
        expect(await told(link)).toEqual([]);
        await giveUp(link);
        await giveUp(link);
        const { attention } = await world.timeline(link);
        expect(attention).toMatchObject([{ kind: 'event_not_understood', count: 1 }]);
        expect(await told(link)).toEqual([matter]);
      });

      it('tells a person when the service knows no link of the id', async () => {
        const link = await quietLink();
        await settleNow(link, unread);
        await fail(link, { missing: true });
        expect((await told(link)).map(([kind]) => kind).sort()).toEqual(['event_not_understood', 'link_missing']);
      });

      it('tells a person once asking has failed for an hour, and ends that with the next answer', async () => {
        const link = await waiting('returned');
        await settleNow(link, unread);
        for (const byMs of [0, HOUR_MS - 1]) {
          world.tick(byMs);
          await fail(link);
          expect(await told(link)).toEqual([]);
        }
        world.tick(1);
        await fail(link, { sent: false });
        expect(await told(link)).toEqual([matter]);
        await world.answer(link, []);
        world.tick(HOUR_MS);
        await fail(link);
        expect(await told(link)).toEqual([]);
      });

      it('tells a person of none that a person has ended, until another comes', async () => {
        const link = await world.newLink();
        await settleNow(link, unread);
        await giveUp(link);
        const [ended] = (await world.timeline(link)).attention;
        world.tick();
        await world.end(ended?.key);
        await giveUp(link);
        expect(await told(link)).toEqual([]);
        world.tick();
        await settleNow(link, unread);
        await giveUp(link);
        expect(await told(link)).toEqual([matter]);
      });
    });

    it('says nothing of a link that is not there', async () => {
      const link = await world.newLink();
      expect(await fail({ ...link, linkKey: 987_654 }, { missing: true })).not.toBeTruthy();
    });
  });

  describe('findLink', () => {
    it('finds the link of an order, and whether it is still being opened', async () => {
      const link = await world.intend();
      expect(await world.store.findLink(link.reference)).toEqual({ ...link, linkId: null, isOpening: true });
      const opened = await world.openNew();
      expect(await world.store.findLink(opened.reference)).toEqual({ ...opened, isOpening: false });
      expect(await world.store.findLink('nobody')).toBeNull();
    });
  });

  describe('recordReturn', () => {
    const callbackUrl = 'https://shop.example.com/back';

    it('queues a check, once a minute for each link, and says where the customer goes', async () => {
      const returnToken = world.name('return');
      const link = await world.openNew({ returnToken, callbackUrl });
      const come = () => world.store.recordReturn({ returnToken, nowMs: world.nowMs });
      expect(await come()).toEqual({ callbackUrl });
      const firstAtMs = world.nowMs;
      world.tick(MINUTE_MS - 1);
      expect(await come()).toEqual({ callbackUrl });
      expect((await world.timeline(link)).check).toMatchObject({ reason: 'returned', requestedAtMs: firstAtMs });
      world.tick(1);
      await come();
      expect((await world.timeline(link)).check).toMatchObject({ requestedAtMs: world.nowMs });
    });

    it('knows no token that it did not make', async () => {
      await world.openNew({ returnToken: null, callbackUrl });
      const nowMs = world.nowMs;
      expect(await world.store.recordReturn({ returnToken: 'none', nowMs })).toBeNull();
      expect(await world.store.recordReturn({ returnToken: '', nowMs })).toBeNull();
    });
  });
}
