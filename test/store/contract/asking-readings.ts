import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import type { SaidFact } from '../../../src/domain/fact.ts';
import { readReading } from '../../../src/paylink/reading.ts';
import { stated } from '../../support/orders.ts';
import { details } from '../../support/readings.ts';
import { times } from '../../support/timing.ts';
import { hex, LEASE_MS, type Link, said, sha256, type World, type Worlds } from './world.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

type Known = Link & { linkId: string };

export function readingsContract({ shared }: Worlds): void {
  let world: World;
  let link: Known;
  beforeEach(async () => {
    world = shared();
    link = await world.openNew();
  });

  const state = () => world.state(link);
  const check = async () => (await world.timeline(link)).check;
  /** A link's status changed, as an authentic event says: a check is queued. */
  const hear = (over = {}) => world.settle(link, [], { linkChanged: true, ...over });

  describe('recordReading', () => {
    it('keeps the answer as a row of the inbox, leased to the caller', async () => {
      const body = Buffer.from('{"data":{}}');
      const claimed = await world.read(link, { number: 1_000_001, reason: 'person', body });
      const { linkKey } = link;
      const nowMs = world.nowMs;
      expect(claimed).toMatchObject({ attempt: 1, linkKey, receivedAtMs: nowMs, reading: 1_000_001 });
      expect([hex(claimed.body), hex(claimed.mac)]).toEqual([hex(body), hex(sha256(body))]);
      const event = await world.event(claimed.eventKey);
      expect(event).toMatchObject({ status: 'leased', type: 'person', reading: 1_000_001, attempt: 1 });
      expect(event).toMatchObject({ eventId: 'reading:1000001', linkId: link.linkId });
      expect([hex(event.body), hex(event.bodySha256)]).toEqual([hex(body), hex(sha256(body))]);
    });

    it('lets the row be claimed as an event is where its caller died', async () => {
      const recorded = await world.read(link);
      expect((await world.claim()).map(({ eventKey }) => eventKey)).not.toContain(recorded.eventKey);
      world.tick(LEASE_MS);
      const claimed = await world.claimOne(recorded.eventKey);
      expect({ ...claimed, body: hex(claimed.body), mac: hex(claimed.mac) }).toEqual({
        ...recorded,
        body: hex(recorded.body),
        mac: hex(recorded.mac),
        attempt: 2,
      });
      expect(await world.store.settle(world.job(recorded))).toEqual({ outcome: 'lost' });
    });

    it('binds the id of a link that had none, of which an event is no reading', async () => {
      const reserved = await world.newLink();
      const linkId = world.name('plink');
      await world.read({ ...reserved, linkId });
      expect((await world.timeline(reserved)).order.link?.id).toBe(linkId);
      expect(await world.store.findLink(reserved.reference)).toMatchObject({ linkId });
      const { eventKey, reading } = await world.claimNew(reserved);
      expect([reading, (await world.event(eventKey)).reading]).toEqual([null, null]);
    });

    it('binds it for an opening too, which is due at once', async () => {
      const intended = await world.intend();
      await world.retryOpening(intended, { dueAtMs: world.nowMs + MINUTE_MS, mayExist: true });
      const linkId = world.name('plink');
      await world.answer({ ...intended, linkId }, []);
      // Its address is not compared with the order yet, and so not shown.
      expect((await world.timeline(intended)).order.link).toBeNull();
      expect(await world.claimOpening(intended)).toMatchObject({ linkId });
    });

    it.each([
      ['another order’s link has the id', async () => ({ ...(await world.newLink()), linkId: link.linkId })],
      ['the link has another id', async () => ({ ...link, linkId: world.name('plink') })],
      ['the link is not there', async () => ({ ...link, linkKey: 987_654 })],
    ])('keeps nothing where %s', async (_where, arrange) => {
      const { linkKey, linkId } = await arrange();
      const asked = { linkKey, linkId, reason: 'scheduled', number: 5, leaseMs: LEASE_MS } as const;
      const before = await world.timeline(link);
      const reading = { ...asked, body: Buffer.from('{}'), nowMs: world.nowMs };
      expect(await world.store.recordReading(reading)).toBeNull();
      expect(await world.timeline(link)).toEqual(before);
    });
  });

  describe('a reading', () => {
    it('makes an order paid, as an event does, and says how it was learned', async () => {
      expect(await world.answer(link, [said('completed')])).toMatchObject({ outcome: 'applied', notices: 1 });
      const { order, history, notices } = await world.timeline(link);
      expect(order).toMatchObject({ state: 'paid', settlement: { learnedBy: 'reconciliation' } });
      expect(history.at(-1)).toMatchObject({ cause: { kind: 'reading', id: String(order.lastReading) } });
      expect(notices).toMatchObject([{ type: 'order.paid' }]);
    });

    it('decides all its facts before its number is raised', async () => {
      const facts = [said('completed'), said('disputed')];
      await world.answer(link, facts);
      expect(await state()).toBe('disputed');
      await world.answer(link, [said('completed')]);
      expect(await state()).toBe('paid');
    });

    it('that a newer one overtook changes nothing', async () => {
      const older = await world.read(link);
      world.tick();
      await world.answer(link, [said('completed')], { made: { status: 'INACTIVE' } });
      await hear();
      const before = await world.timeline(link);
      const shown = world.made({ id: link.linkId, status: 'ACTIVE', url: 'https://old.example.com' });
      const late = world.job(older, { facts: [said('disputed')], link: shown, nowMs: world.tick() });
      expect(await world.store.settle(late)).toMatchObject({ outcome: 'ignored', rule: 'older_reading' });
      const { order, check: waiting, nextCheckAtMs } = await world.timeline(link);
      expect({ order, waiting, nextCheckAtMs }).toEqual({
        order: before.order,
        waiting: before.check,
        nextCheckAtMs: before.nextCheckAtMs,
      });
    });

    describe('that an event overtook: the event was settled after its request had left', () => {
      const overtake = async (kind: 'completed' | 'disputed') => {
        const number = await world.slot();
        world.tick();
        await world.settle(link, [said(kind)]);
        return number;
      };

      it('does not take back what the event said', async () => {
        await world.settle(link, [said('completed')]);
        const number = await overtake('disputed');
        const before = await world.timeline(link);
        const result = await world.answer(link, [said('completed')], { reading: { number } });
        expect(result).toMatchObject({ outcome: 'ignored', rule: 'older_reading', notices: 0 });
        const { order, nextCheckAtMs } = await world.timeline(link);
        expect({ order, nextCheckAtMs }).toEqual({ order: before.order, nextCheckAtMs: before.nextCheckAtMs });
        // The dispute is won where the service says so after the event.
        await world.answer(link, [said('completed')]);
        expect(await state()).toBe('paid');
      });

      it('is no disagreement', async () => {
        const number = await overtake('completed');
        await world.answer(link, [said('unpaid', { paymentId: null })], { reading: { number } });
        expect(await world.timeline(link)).toMatchObject({ attention: [], drift: [] });
      });

      it('leaves its check, which is claimed again when the lease lapses', async () => {
        await world.forgetChecks();
        await world.settle(link, [said('completed', { linkMoney: null })]);
        const claimed = await world.claimChecks();
        expect(claimed).toMatchObject([{ linkKey: link.linkKey, reason: 'doubtful_money' }]);
        const number = await overtake('disputed');
        await world.answer(link, [said('completed')], { reading: { number } });
        expect(await world.claimChecks()).toEqual([]);
        world.tick(LEASE_MS);
        expect(await world.claimChecks()).toMatchObject([{ reason: 'doubtful_money' }]);
      });

      it('is believed where the event changed nothing', async () => {
        await world.settle(link, [said('completed')]);
        await world.settle(link, [said('disputed')]);
        const number = await overtake('completed');
        await world.answer(link, [said('completed')], { reading: { number } });
        expect(await state()).toBe('paid');
      });
    });

    it('that is settled again changes nothing', async () => {
      const { eventKey } = await world.read(link);
      world.tick(LEASE_MS);
      const settle = async () => {
        const job = world.job(await world.claimOne(eventKey), { facts: [said('completed')] });
        return world.store.settle({ ...job, link: world.made({ id: link.linkId }) });
      };
      await settle();
      await world.store.requeueEvent({ by: null, eventKey, nowMs: world.nowMs });
      const before = await world.timeline(link);
      expect(await settle()).toMatchObject({ outcome: 'ignored', rule: 'older_reading' });
      const after = await world.timeline(link);
      expect({ ...after, events: [] }).toEqual({ ...before, events: [] });
    });

    it('brings what the service shows of the link', async () => {
      const url = 'https://pay.example.com/new';
      const made = { status: 'INACTIVE', url, shortUrl: 'https://p.example.com/n' };
      await world.answer(link, [], { made });
      expect((await world.timeline(link)).order).toMatchObject({ version: 1, link: { id: link.linkId, ...made } });
      // What an answer does not hold stays as it was.
      await world.answer(link, [], { made: { status: 'ACTIVE', url: null, shortUrl: null } });
      expect((await world.timeline(link)).order.link).toMatchObject({ ...made, status: 'ACTIVE' });
    });

    it('sets the next scheduled time, by the order after it', async () => {
      world.tick(3 * MINUTE_MS);
      await world.answer(link, []);
      const openedAtMs = world.nowMs - 3 * MINUTE_MS;
      expect((await world.timeline(link)).nextCheckAtMs).toBe(openedAtMs + 10 * MINUTE_MS);
      await world.answer(link, [said('completed')]);
      expect((await world.timeline(link)).nextCheckAtMs).toBe(world.nowMs + DAY_MS);
    });

    it('learns when the link expires', async () => {
      const registered = await world.newLink({ linkId: world.name('plink') });
      const known = { ...registered, linkId: (await world.timeline(registered)).order.link?.id as string };
      world.tick(8 * 3_600_000);
      const expiresAtMs = world.nowMs + MINUTE_MS;
      await world.answer(known, [], { made: { expiresAtMs } });
      expect((await world.timeline(known)).nextCheckAtMs).toBe(expiresAtMs + 30_000);
    });

    it('of another link than it was recorded for is dead, and the order untouched', async () => {
      const other = { id: world.name('plink') };
      const result = await world.answer(link, [said('completed')], { made: other });
      expect(result).toEqual({ outcome: 'link_mismatch' });
      expect(await state()).toBe('awaiting_payment');
    });

    it('that is not understood tells a person, once, until one is understood', async () => {
      const job = { notUnderstood: 'it says nothing' };
      await world.answer(link, [], { job });
      await world.answer(link, [], { job });
      const told = await world.timeline(link);
      expect(told.attention).toMatchObject([{ kind: 'event_not_understood', count: 2 }]);
      // Asking again would bring the same answer.
      expect(told.check).toBeNull();
      await world.answer(link, [said('pending')]);
      expect((await world.timeline(link)).attention).toEqual([]);
    });
  });

  describe('a completion that waits to be confirmed', () => {
    beforeEach(async () => {
      await world.settle(link, [said('completed')], { policy: { asks: 'always' } });
      expect(await check()).toMatchObject({ reason: 'doubtful_money', dueAtMs: world.nowMs });
      expect(await state()).toBe('awaiting_payment');
    });

    it('pays where the service confirms it, without a drift: it was known', async () => {
      await world.answer(link, [said('completed')]);
      const { order, check: waiting, drift } = await world.timeline(link);
      expect({ state: order.state, waiting, drift }).toEqual({ state: 'paid', waiting: null, drift: [] });
    });

    it('is asked about again and again, and then held', async () => {
      const sinceMs = world.nowMs;
      let asked = 0;
      for (;;) {
        const result = await world.answer(link, [said('unpaid', { paymentId: null })]);
        asked++;
        const waiting = await check();
        if (waiting === null) {
          expect(result).toMatchObject({ outcome: 'held', rule: 'completion_unconfirmed', notices: 1 });
          break;
        }
        expect(waiting.dueAtMs).toBeGreaterThan(world.nowMs);
        world.nowMs = waiting.dueAtMs;
      }
      expect(world.nowMs - sinceMs).toBe(10 * MINUTE_MS);
      expect(asked).toBeGreaterThan(5);
      const { order, history } = await world.timeline(link);
      expect(order).toMatchObject({ state: 'held', holds: [{ reason: 'unconfirmed' }] });
      expect(history.at(-1)?.cause).toEqual({ kind: 'reading', id: String(order.lastReading) });
    });

    it('waits since it was heard of first, however often that comes again', async () => {
      world.tick(9 * MINUTE_MS);
      await world.settle(link, [said('completed')], { policy: { asks: 'always' } });
      world.tick(MINUTE_MS);
      await world.answer(link, [said('unpaid', { paymentId: null })]);
      expect(await state()).toBe('held');
    });

    it('is not held by a reading that a newer one overtook', async () => {
      const older = await world.read(link);
      await world.answer(link, []);
      world.tick(11 * MINUTE_MS);
      const shown = world.made({ id: link.linkId });
      const again = await world.claimOne(older.eventKey);
      await world.store.settle(world.job(again, { link: shown }));
      expect(await state()).toBe('awaiting_payment');
      expect(await check()).not.toBeNull();
    });
  });

  describe('drift', () => {
    it('is noted where a reading moved the order: the service was right', async () => {
      await world.answer(link, [said('completed')], { reading: { reason: 'stale' } });
      const { order, drift } = await world.timeline(link);
      expect(drift).toEqual([
        {
          atMs: world.nowMs,
          reading: order.lastReading,
          learnedBy: 'stale',
          ours: 'awaiting_payment, nothing counted',
          theirs: 'paid, 100.00 BRL',
          rule: 'paid',
          rightSide: 'service',
        },
      ]);
    });

    it.each([
      [
        'once if a reading counted money',
        said('completed', { paymentId: 'pay_2' }),
        { theirs: 'paid, 100.00 BRL, 100.00 BRL', rule: 'duplicate_payment' },
        [{ kind: 'duplicate_payment' }],
      ],
      [
        'once if a person must say who is right',
        said('unpaid', { paymentId: null }),
        { theirs: 'unpaid', rule: 'service_disagrees', rightSide: 'undecided' },
        [{ kind: 'service_disagrees', count: 2 }],
      ],
    ])('is noted %s', async (_when, fact, noted, raised) => {
      await world.settle(link, [said('completed')]);
      for (let n = 0; n < 2; n++) await world.answer(link, [fact]);
      const { drift, attention } = await world.timeline(link);
      expect(drift).toMatchObject([{ ours: 'paid, 100.00 BRL', ...noted }]);
      expect(attention).toMatchObject(raised);
    });

    it('leaves a matter that one fact of a reading raised to a person, whatever its other facts say', async () => {
      await world.settle(link, [said('completed')]);
      await world.answer(link, [said('unpaid', { paymentId: null }), said('expired', { paymentId: null })]);
      expect((await world.timeline(link)).attention).toMatchObject([{ kind: 'service_disagrees' }]);
    });

    it('is none if a link expired in its time, nor if the service says what is known, nor in an event', async () => {
      const paid = await world.openNew();
      await world.settle(paid, [said('completed')]);
      await world.answer(paid, [said('completed')]);
      await world.answer(paid, []);
      await world.answer(link, [said('expired', { paymentId: null })]);
      expect([await state(), (await world.timeline(link)).drift]).toEqual(['expired', []]);
      expect((await world.timeline(paid)).drift).toEqual([]);
    });
  });

  describe('a reading that comes again, newer and the same', () => {
    /** Records what the API answered, and settles it. */
    async function read(answer: object): Promise<void> {
      world.tick();
      const body = Buffer.from(JSON.stringify({ success: true, paymentLink: answer }));
      const claimed = await world.read(link, { body });
      const said = readReading(claimed.body, claimed.reading ?? 0);
      await world.store.settle(world.job(claimed, { ...said, policy: { asks: 'in-doubt' } }));
    }

    /** All that a person or the shop sees, but how often a matter was raised. */
    async function seen() {
      const { order, history, notices, attention, drift } = await world.timeline(link);
      const decided = history.filter(({ effects }) => !effects.every((line) => /^attention/.test(line)));
      const { lastReading: _, ...rest } = order;
      return { rest, decided, notices, drift, attention: attention.map(({ kind }) => kind) };
    }

    const EVENTS = [
      said('completed'),
      said('completed', { paymentId: 'a', quoteMoney: stated('112.40') }),
      said('completed', { paymentId: 'b', linkMoney: null }),
      said('completed', { paymentId: null }),
      said('disputed', { paymentId: 'a' }),
      said('refunded', { paymentId: null }),
      said('unclear'),
      said('pending'),
      said('expired', { paymentId: null }),
    ];

    it('changes nothing and tells nothing, whatever it says and whatever came before', async () => {
      const story = fc.array(fc.constantFrom(...EVENTS), { maxLength: 3 });
      await fc.assert(
        fc.asyncProperty(story, details, async (events, answer) => {
          // A quote that agrees: those of the stories before do not count together with this one's.
          await world.settle(await world.openNew(), [said('completed', { quoteMoney: stated('100.00') })]);
          link = await world.openNew();
          for (const fact of events) await world.settle(link, [fact]);
          const { reference, linkId: id } = link;
          const externalReference = answer.externalReference === 'order-1' ? reference : undefined;
          const shown = { ...answer, id, externalReference };
          await read(shown);
          const once = await seen();
          await read(shown);
          expect(await seen()).toEqual(once);
        }),
        { numRuns: times(10, 25) },
      );
    });

    it('changes nothing where a payment without an id was refunded before', async () => {
      await world.settle(link, [said('refunded', { paymentId: null })]);
      const answer = {
        id: link.linkId,
        status: 'ACTIVE',
        amount: 100,
        currency: 'BRL',
        paymentStatus: 'COMPLETED',
        payments: [
          { id: 'c', status: 'COMPLETED' },
          { id: 'a', status: 'COMPLETED', quote: { amount: 100, currency: 'BRL' } },
        ],
      };
      await read(answer);
      const once = await seen();
      await read(answer);
      expect(await seen()).toEqual(once);
    });

    it('changes nothing where one of its payments has no id, and is disputed', async () => {
      const payments = [{ id: 'a', status: 'COMPLETED' }, { status: 'DISPUTED' }];
      const amount = { amount: 100, currency: 'BRL' };
      const answer = { id: link.linkId, status: 'INACTIVE', paymentStatus: 'COMPLETED', ...amount, payments };
      for (let n = 0; n < 3; n++) await read(answer);
      const { rest, notices, attention } = await seen();
      expect(rest).toMatchObject({ state: 'paid', version: 2 });
      expect(notices.map(({ type }) => type)).toEqual(['order.paid']);
      expect(attention).toEqual(['status_unclear']);
    });
  });

  describe('an event that could not be settled', () => {
    /** One that was buried, or that names another link. */
    const DEATHS = {
      async event_dead() {
        await world.deadEvent(link);
      },
      async link_mismatch() {
        await world.settle(link, [], { linkIds: [world.name('other')] });
      },
    };
    const kinds = () => world.kinds(link);

    describe.each(['event_dead', 'link_mismatch'] as const)('(%s)', (kind) => {
      it.each(['completed', 'refunded', 'disputed'] as const)(
        'is no matter any more when a reading that was asked for later shows a payment that is %s',
        async (status) => {
          await DEATHS[kind]();
          expect(await kinds()).toEqual([kind]);
          world.tick();
          await world.answer(link, [said(status)]);
          expect(await kinds()).toEqual([]);
        },
      );

      it.each(['before it came', 'after it came'])(
        'stays one where the order was paid %s, and the reading agrees with that',
        async (when) => {
          if (when === 'before it came') await world.settle(link, [said('completed')]);
          await DEATHS[kind]();
          if (when === 'after it came') await world.settle(link, [said('completed')]);
          for (let n = 0; n < 2; n++) await world.answer(link, [said('completed')]);
          expect(await state()).toBe('paid');
          expect(await kinds()).toEqual([kind]);
        },
      );

      it('stays one where the reading was asked for before it came', async () => {
        const number = await world.slot();
        world.tick();
        await DEATHS[kind]();
        await world.answer(link, [said('completed')], { reading: { number } });
        expect(await kinds()).toContain(kind);
      });

      it.each([
        ['shows no payment', [said('unpaid', { paymentId: null })], 'awaiting_payment', []],
        ['is held', [said('completed', { linkMoney: stated('60') })], 'held', []],
        ['is unclear', [said('completed'), said('unclear')], 'paid', ['status_unclear']],
      ] as const)('stays one where the reading %s', async (_name, facts, left, raised) => {
        await DEATHS[kind]();
        await world.answer(link, [...facts]);
        expect(await state()).toBe(left);
        expect((await kinds()).sort()).toEqual([kind, ...raised].sort());
      });

      it("is another order's matter still", async () => {
        await DEATHS[kind]();
        const other = await world.openNew();
        await world.answer(other, [said('completed')]);
        expect(await kinds()).toEqual([kind]);
      });
    });

    it('is over if it was a reading, with the next one that can be settled', async () => {
      await world.bury(await world.read(link));
      world.tick();
      expect(await kinds()).toEqual(['event_dead']);
      await world.answer(link, [said('unpaid', { paymentId: null })]);
      expect(await kinds()).toEqual([]);
    });
  });
}

/** They are counted over all orders, so each test begins with a quote that agrees. */
export function quotesContract({ shared }: Worlds): void {
  let world: World;
  beforeEach(async () => {
    world = shared();
    await pay(AGREES);
  });

  const DIFFERS = said('completed', { quoteMoney: stated('90.00') });
  const AGREES = said('completed', { quoteMoney: stated('100.00') });
  const MORE = said('completed', { quoteMoney: stated('112.40') });
  const DOLLARS = said('completed', { quoteMoney: stated('18.20', 'USD') });
  const LINK_DIFFERS = said('completed', { linkMoney: stated('90.00'), quoteMoney: stated('90.00') });

  /** An order that is paid with such words; the state that it comes to. */
  async function pay(fact = DIFFERS, over: Parameters<World['job']>[1] = {}): Promise<string> {
    const link = await world.newLink();
    await world.settle(link, [fact], over);
    return world.state(link);
  }

  /** The open matter about such quotes. */
  const doubts = () => world.matters('quote_reading_doubtful');
  async function isDoubtful(): Promise<boolean> {
    return (await doubts()).length > 0;
  }

  describe('quotes that name other money than their links', () => {
    it('hold each order, and from the third in a row on they are one matter', async () => {
      expect([await pay(), await pay()]).toEqual(['held', 'held']);
      expect(await isDoubtful()).toBe(false);
      expect([await pay(), await pay()]).toEqual(['held', 'held']);
      expect(await doubts()).toMatchObject([{ subject: 'quote', count: 2, params: { count: 4 } }]);
    });

    it('are over with one that agrees, and counted anew', async () => {
      for (let n = 0; n < 3; n++) await pay();
      expect(await pay(AGREES)).toBe('paid');
      expect(await isDoubtful()).toBe(false);
      await world.restart();
      for (let n = 0; n < 3; n++) expect(await pay()).toBe('held');
      expect(await doubts()).toMatchObject([{ count: 1, params: { count: 3 } }]);
    });

    it.each<[string, SaidFact[], string, boolean]>([
      [
        'are in a row only without one that agrees between them',
        [DIFFERS, DIFFERS, AGREES, DIFFERS, DIFFERS],
        'hhphh',
        false,
      ],
      [
        'hold a payment that is heard of only as refunded, too',
        [DIFFERS, DIFFERS, DIFFERS, { ...DIFFERS, kind: 'refunded' }],
        'hhhh',
        true,
      ],
      ['are no matter if they name more, as with interest', Array(3).fill(MORE), 'ppp', false],
      ['are no matter if they name another currency', Array(3).fill(DOLLARS), 'ppp', false],
      ['are in a row although one between them names more', [DIFFERS, MORE, DIFFERS, DIFFERS], 'hphh', true],
      ['are in a row although one between them is in dollars', [DIFFERS, DOLLARS, DIFFERS, DIFFERS], 'hphh', true],
      ['are no matter of links that differ themselves', Array(4).fill(LINK_DIFFERS), 'hhhh', false],
    ])('%s', async (_what, facts, ends, isMatter) => {
      const states: string[] = [];
      for (const fact of facts) states.push(await pay(fact));
      expect([states.map(([first]) => first).join(''), await isDoubtful()]).toEqual([ends, isMatter]);
    });

    it('are not counted while they are only asked about, nor on an order that is paid', async () => {
      const link = await world.newLink();
      await world.settle(link, [said('completed')]);
      for (const paymentId of ['pay_2', 'pay_3']) {
        await world.settle(link, [{ ...DIFFERS, paymentId }]);
        await pay(DIFFERS, { policy: { asks: 'in-doubt' } });
      }
      expect(await pay()).toBe('held');
      expect(await isDoubtful()).toBe(false);
    });

    it('are counted where a reading decides', async () => {
      for (const expected of ['held', 'held', 'held']) {
        const link = await world.openNew();
        await world.answer(link, [DIFFERS]);
        expect((await world.timeline(link)).order.state).toBe(expected);
      }
      expect(await isDoubtful()).toBe(true);
    });
  });
}
