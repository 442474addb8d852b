import { describe, expect, it } from 'vitest';
import { NO_DETAILS } from '../../../src/domain/payment_details.ts';
import type { Store } from '../../../src/store/contract.ts';
import type { SettleJob } from '../../../src/store/verbs/inbox.ts';
import { stated } from '../../support/orders.ts';
import { type Link, said, type World, type Worlds } from './world.ts';

const DAY_MS = 86_400_000;

type Call = (store: Store) => Promise<unknown>;

export function concurrencyContract({ fresh, shared }: Worlds): void {
  describe('calls at once', () => {
    it('come to the same end as calls in sequence: 200 of many kinds', async () => {
      const ends = [];
      for (const atOnce of [false, true]) {
        const world = await fresh();
        const calls = await manyCalls(world);
        expect(calls.length).toBeGreaterThanOrEqual(200);
        if (atOnce) await Promise.all(calls.map((call) => call(world.store)));
        else for (const call of calls) await call(world.store);
        ends.push(await endOf(world));
      }
      expect(ends[1]).toEqual(ends[0]);
    });

    it('record one delivery once, however often it comes', async () => {
      const world = shared();
      const link = await world.newLink();
      const delivery = world.delivery(link);
      const recorded = await Promise.all(times(50, () => world.store.recordDelivery(delivery)));
      expect(recorded.filter(({ outcome }) => outcome === 'recorded')).toHaveLength(1);
      expect(recorded.filter(({ outcome }) => outcome === 'duplicate')).toHaveLength(49);
      expect((await world.timeline(link)).events).toMatchObject([{ duplicates: 49 }]);
    });

    it('register one order once, with one token', async () => {
      const world = shared();
      const reference = world.name('order');
      const registered = await Promise.all(times(20, () => world.register({ reference })));
      expect(registered.filter(({ outcome }) => outcome === 'created')).toHaveLength(1);
      expect(new Set(registered.map((each) => ('token' in each ? each.token : null))).size).toBe(1);
      expect((await world.timeline({ reference })).history).toHaveLength(1);
    });

    it('claim each row once', async () => {
      const world = await fresh();
      const link = await world.newLink();
      const recorded = await Promise.all(times(40, () => world.deliver(link)));
      const claimed = await Promise.all(times(12, () => world.claim(5)));
      const keys = claimed.flat().map(({ eventKey }) => eventKey);
      expect(keys.sort((a, b) => a - b)).toEqual(recorded.map(({ eventKey }) => eventKey).sort((a, b) => a - b));
    });

    it('settle one claim once', async () => {
      const world = shared();
      const link = await world.newLink();
      const job = world.job(await world.claimNew(link), { facts: [said('completed')] });
      const settled = await Promise.all(times(10, () => world.store.settle(job)));
      expect(settled.map(({ outcome }) => outcome).sort()).toEqual(['applied', ...times(9, () => 'lost')]);
    });

    it('bring no customer back who is being dropped, in orders or notices', async () => {
      const world = await fresh();
      const ana = { ...NO_DETAILS, paymentId: 'pay_1', customerName: 'Ana', method: 'PIX' };
      const links: Link[] = [];
      for (const _ of times(20, () => null)) {
        const link = await world.newLink();
        await world.settle(link, [said('completed')], { details: [ana] });
        links.push(link);
      }
      world.tick(DAY_MS);
      const claimed = await Promise.all(links.map((link) => world.deliver(link)));
      const events = await world.claim();
      expect(events).toHaveLength(claimed.length);
      const drop = () => world.store.dropCustomers({ untilMs: world.nowMs - 3_600_000, limit: 7, sendsNotices: false });
      const settle = (event: (typeof events)[number]) =>
        world.store.settle(world.job(event, { facts: [said('refunded')], details: [{ ...ana, installments: 2 }] }));
      await Promise.all(events.flatMap((event) => [settle(event), drop()]));
      while ((await drop()).isMore);
      const { notices } = await world.store.readFeed({ after: 0, limit: 1000, bytesMax: 10_000_000 });
      expect(notices).toHaveLength(2 * links.length);
      expect(notices.filter(({ body }) => body.includes('Ana'))).toEqual([]);
      for (const { reference } of links) {
        const [details] = (await world.store.findOrder(reference))?.details ?? [];
        expect(details).toMatchObject({ customerName: null, isForgotten: true, installments: 2 });
      }
    });

    it('settle one order once, by whichever of its events comes first', async () => {
      const world = shared();
      const link = await world.newLink();
      const jobs = [];
      for (const _ of times(10, () => 0)) {
        jobs.push(world.job(await world.claimNew(link), { facts: [said('completed')] }));
      }
      const settled = await Promise.all(jobs.map((job) => world.store.settle(job)));
      expect(settled.filter(({ outcome }) => outcome === 'applied')).toHaveLength(1);
      const { order, notices } = await world.timeline(link);
      expect(order.entries).toHaveLength(1);
      expect(notices).toHaveLength(1);
    });

    it('settle each of several orders, and the events of one in their order', async () => {
      const world = shared();
      const links = await Promise.all(times(8, () => world.newLink()));
      const jobs: SettleJob[] = [];
      for (const kind of ['pending', 'expired', 'completed'] as const) {
        for (const link of links) jobs.push(world.job(await world.claimNew(link), { facts: [said(kind)] }));
      }
      const settled = await Promise.all(jobs.map((job) => world.store.settle(job)));
      const ends = (['payment_pending', 'expired', 'paid'] as const).flatMap((state) =>
        links.map(({ reference }) => ({ outcome: 'applied', state, reference })),
      );
      expect(settled).toMatchObject(ends);
      for (const link of links) {
        const { order, notices, history } = await world.timeline(link);
        expect([order.version, order.entries.length, notices.length, history.length]).toEqual([4, 1, 3, 4]);
      }
    });

    it('count what is counted over all orders, each once', async () => {
      const world = shared();
      await world.settle(await world.newLink(), [said('completed', { quoteMoney: stated('100.00') })]);
      const jobs: SettleJob[] = [];
      for (const _ of times(7, () => 0)) {
        const facts = [said('completed', { quoteMoney: stated('90.00') })];
        jobs.push(world.job(await world.claimNew(await world.newLink()), { facts }));
      }
      await Promise.all(jobs.map((job) => world.store.settle(job)));
      expect(await world.matters('quote_reading_doubtful')).toMatchObject([{ params: { count: 7 } }]);
    });

    it.each([
      ['after', ['90.00', '100.00']],
      ['before', ['100.00', '90.00']],
    ])('leave no doubt about quotes if one that agrees comes %s one that differs', async (_when, amounts) => {
      const world = shared();
      const settling = async (amount: string) =>
        world.job(await world.claimNew(await world.newLink()), {
          facts: [said('completed', { quoteMoney: stated(amount) })],
        });
      for (const amount of ['100.00', '90.00', '90.00']) await world.store.settle(await settling(amount));
      const jobs = [];
      for (const amount of amounts) jobs.push(await settling(amount));
      await Promise.all(jobs.map((job) => world.store.settle(job)));
      expect(await world.matters('quote_reading_doubtful')).toEqual([]);
    });

    it.each<[string, Partial<SettleJob>]>([
      ['the database refuses', { nowMs: 1e300 }],
      ['the code cannot carry out', { details: null as never }],
    ])('settle without one that %s', async (_what, bad) => {
      const world = shared();
      const jobs: SettleJob[] = [];
      for (const _ of times(10, () => 0)) {
        jobs.push(world.job(await world.claimNew(await world.newLink()), { facts: [said('completed')] }));
      }
      const settled = await Promise.allSettled(
        jobs.map((job, index) => world.store.settle(index === 5 ? { ...job, ...bad } : job)),
      );
      expect(settled.map((one) => (one.status === 'fulfilled' ? one.value.outcome : one.status))).toEqual(
        times(10, (index) => (index === 5 ? 'rejected' : 'applied')),
      );
    });

    it('fail alone: one that cannot be carried out takes nothing from the others', async () => {
      const world = shared();
      const link = await world.newLink();
      const calls = times(30, (index) => world.deliver(index % 10 === 5 ? { ...link, linkKey: 987_654 } : link));
      const ended = await Promise.allSettled(calls);
      expect(ended.filter(({ status }) => status === 'rejected')).toHaveLength(3);
      expect((await world.timeline(link)).events).toHaveLength(27);
    });

    it('read an order as it stood at one moment', async () => {
      const world = shared();
      for (const _ of times(10, () => 0)) {
        const link = await world.newLink();
        const job = world.job(await world.claimNew(link), { facts: [said('pending'), said('completed')] });
        const settling = world.store.settle(job);
        const reads = await Promise.all(times(10, () => world.timeline(link)));
        await settling;
        for (const { order, notices, history, events } of [...reads, await world.timeline(link)]) {
          const settled = events[0]?.status === 'done';
          expect([order.version, order.entries.length, notices.length, history.length]).toEqual(
            settled ? [3, 1, 2, 3] : [1, 0, 0, 1],
          );
        }
      }
    });
  });

  describe('close', () => {
    it('waits for what was called before, and refuses what is called after', async () => {
      const world = await fresh();
      const link = await world.newLink();
      const before = times(50, () => world.deliver(link));
      const { store } = world;
      const closed = store.close();
      await expect(world.deliver(link)).rejects.toMatchObject({ code: 'store_stopped' });
      await expect(store.findOrder(link.reference)).rejects.toMatchObject({ code: 'store_stopped' });
      expect(await Promise.all(before)).toHaveLength(50);
      await closed;
      await world.reopen();
      expect((await world.timeline(link)).events).toHaveLength(50);
    });
  });
}

/** Prepares ten orders, then returns calls of many kinds about them whose end does not depend on their order. */
async function manyCalls(world: World): Promise<Call[]> {
  const calls: Call[][] = [];
  for (let n = 0; n < 10; n++) {
    const link = await world.newLink({ reference: `order-${n}` });
    const claimed = [];
    for (let m = 0; m < 3; m++) claimed.push(await world.claimNew(link));
    calls.push(callsAbout(world, link, claimed));
  }
  // One call about each order, then the next about each.
  return (calls[0] ?? []).flatMap((_, index) => calls.map((ofOne) => ofOne[index] as Call));
}

function callsAbout(world: World, link: Link, claimed: { eventKey: number; attempt: number }[]): Call[] {
  const { linkKey, reference } = link;
  const nowMs = world.nowMs;
  const delivery = world.delivery(link, { eventId: 'evt_again' });
  const hint = world.hint(link);
  const [first, second, third] = claimed as [(typeof claimed)[0], (typeof claimed)[0], (typeof claimed)[0]];
  const paid = { facts: [said('completed')], linkIds: [`pl-${reference}`] };
  const reject: Call = (store) =>
    store.recordRejection({ linkKey, reason: 'signature_wrong', count: 2, lastAtMs: nowMs });
  const register: Call = (store) => store.registerLink(world.registration({ reference }));
  return [
    (store) => store.settle(world.job(first, paid)),
    (store) => store.settle(world.job(second, paid)),
    (store) => store.buryEvent({ ...third, nowMs, fault: { code: 'bug', message: 'wrong' } }),
    ...times(4, (): Call => (store) => store.recordDelivery(delivery)),
    (store) => store.recordDelivery(world.delivery(link)),
    ...times(2, (): Call => (store) => store.recordHint(hint)),
    reject,
    reject,
    register,
    register,
    (store) => store.heartbeat(nowMs),
    (store) => store.findCredentials({ linkKey }),
    (store) => store.findOrder(reference),
    (store) => store.timeline(reference),
    (store) => store.stats(nowMs),
    (store) => store.listEvents({ limit: 5, reference }),
    (store) => store.resolveOrder({ by: null, reference: 'nobody', decision: 'accept', reason: '', atMs: nowMs }),
  ];
}

/** What must be the same whichever call came first: not which of two events settled, but that one did. */
async function endOf(world: World) {
  const { rows: orders } = await world.store.listOrders({ limit: 100 });
  const stories = orders.map(async ({ value: order }) => {
    const { events, hints, rejections, notices, attention, history } = await world.timeline(order);
    return {
      order,
      events: events.map(({ status, outcome, duplicates }) => `${status} ${outcome} ${duplicates}`).sort(),
      hints: hints.map(({ count }) => count),
      rejections: rejections.map(({ reason, count }) => `${reason} ${count}`),
      notices: notices.map(({ type, version }) => `${type} ${version}`),
      attention: attention.map(({ kind, count }) => `${kind} ${count}`),
      history: history.map(({ what }) => what),
    };
  });
  return { stories: await Promise.all(stories), stats: await world.store.stats(world.nowMs) };
}

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}
