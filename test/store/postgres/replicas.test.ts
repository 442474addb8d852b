import { describe, expect, it, onTestFinished } from 'vitest';
import type { Store } from '../../../src/store/contract.ts';
import { type Answer, Awaited, type Statement, statement, type Transaction } from '../../../src/store/transaction.ts';
import type { ClaimedEvent, SettleJob } from '../../../src/store/verbs/inbox.ts';
import { settle } from '../../../src/store/verbs/settle.ts';
import { stated } from '../../support/orders.ts';
import { FAULT, LEASE_MS, type Link, said, type World, worldOf } from '../contract/world.ts';
import { holding } from './locks.ts';
import { connectTo, openTestDatabase } from './opening.ts';
import { openTwoReplicas, sharedReplicas, type TwoReplicas } from './two_replicas.ts';

const PAID = said('completed');
const PAID_AGAIN = said('completed', { paymentId: 'pay_2' });

describe('two replicas on one database', () => {
  let url: string;
  let one: Store;
  let other: Store;
  let replicas: Store[];
  /** What is done where it does not matter which replica does it, the first one does. */
  let world: World;

  sharedReplicas(use);

  function use(both: TwoReplicas): void {
    ({ url, one, other } = both);
    replicas = [one, other];
    world = worldOf(one);
  }

  function claim(replica: Store, limit = 1000): Promise<ClaimedEvent[]> {
    return replica.claimEvents({ limit, nowMs: world.nowMs, leaseMs: LEASE_MS });
  }

  async function links(count: number): Promise<Link[]> {
    const made: Link[] = [];
    for (let n = 0; n < count; n++) made.push(await world.newLink());
    return made;
  }

  /** What orders came to, each with the notices that the shop gets. */
  async function ends(of: readonly Link[]) {
    return Promise.all(
      of.map(async (link) => {
        const { order, notices } = await world.timeline(link);
        return [order.state, order.entries.length, ...notices.map(({ type }) => type)];
      }),
    );
  }

  describe('claims', () => {
    it('give each event to one of them', async () => {
      const link = await world.newLink();
      const recorded = await Promise.all(Array.from({ length: 60 }, () => world.deliver(link)));
      const claims = [0, 1, 2, 3, 4, 5].flatMap(() => replicas.map((replica) => claim(replica, 5)));
      const claimed = (await Promise.all(claims)).flat();
      const keys = (events: readonly { eventKey: number }[]) =>
        events.map(({ eventKey }) => eventKey).sort((a, b) => a - b);
      expect(keys(claimed)).toEqual(keys(recorded));
    });

    it('leave a lapsed lease with the replica that is settling its event right now, and do not wait', async () => {
      const { eventKey } = await world.deliver(await world.newLink());
      await claim(one);
      world.tick(LEASE_MS);
      const settling = await holding(url, 'SELECT 1 FROM inbox WHERE key = $1 FOR NO KEY UPDATE', [eventKey]);
      expect(await claim(other)).toEqual([]);
      await settling.query('ROLLBACK');
      expect(await claim(other)).toMatchObject([{ eventKey, attempt: 2 }]);
    });
  });

  describe('a holder whose lease lapsed', () => {
    it('is told that it is lost, whatever it does, and changes nothing', async () => {
      const link = await world.newLink();
      const late = await world.claimNew(link);
      world.tick(LEASE_MS);
      const { eventKey, attempt } = late;
      expect(await claim(other)).toMatchObject([{ eventKey, attempt: 2 }]);
      const before = [await world.timeline(link), await world.event(eventKey)];
      const { nowMs } = world;
      expect(await one.settle(world.job(late, { facts: [PAID] }))).toEqual({ outcome: 'lost' });
      expect(await one.buryEvent({ eventKey, attempt, nowMs, fault: FAULT })).toBe('lost');
      await one.retryEvent({ eventKey, attempt, dueAtMs: nowMs, fault: FAULT });
      expect([await world.timeline(link), await world.event(eventKey)]).toEqual(before);
      expect(await other.settle(world.job({ eventKey, attempt: 2 }, { facts: [PAID] }))).toMatchObject({
        outcome: 'applied',
      });
    });

    it('is told so as well where a replay gave its number of attempt to another', async () => {
      const link = await world.newLink();
      const late = await world.claimNew(link);
      world.tick(LEASE_MS);
      const [taken] = (await claim(other)) as [ClaimedEvent];
      await other.settle(world.job(taken));
      await other.requeueEvent({ by: null, eventKey: late.eventKey, nowMs: world.nowMs });
      const [again] = (await claim(other)) as [ClaimedEvent];
      expect(again).toMatchObject({ eventKey: late.eventKey, attempt: late.attempt });
      const { eventKey, attempt } = late;
      expect(await one.settle(world.job(late, { facts: [PAID] }))).toEqual({ outcome: 'lost' });
      expect(await one.buryEvent({ eventKey, attempt, nowMs: world.nowMs, fault: FAULT })).toBe('lost');
      await one.retryEvent({ eventKey, attempt, dueAtMs: world.nowMs, fault: FAULT });
      expect(await world.event(eventKey)).toMatchObject({ status: 'leased', attempt, fault: null });
      expect(await other.settle(world.job(again, { facts: [PAID] }))).toMatchObject({ outcome: 'applied' });
    });

    it('settles nothing twice where it goes on at the same time as who took over', async () => {
      const orders = await links(20);
      for (const link of orders) await world.deliver(link);
      const stalled = await claim(one);
      world.tick(LEASE_MS);
      const taken = await claim(other);
      expect(taken).toHaveLength(20);
      const job = (claimed: ClaimedEvent) => world.job(claimed, { facts: [PAID] });
      const settled = await Promise.all([
        ...stalled.map((claimed) => one.settle(job(claimed))),
        ...taken.map((claimed) => other.settle(job(claimed))),
      ]);
      expect(settled.map(({ outcome }) => outcome)).toEqual([
        ...stalled.map(() => 'lost'),
        ...taken.map(() => 'applied'),
      ]);
      expect(await ends(orders)).toEqual(orders.map(() => ['paid', 1, 'order.paid']));
    });
  });

  /** Settles a new event of each order on one replica and the other in turn, all at once. */
  async function settleAtOnce(orders: readonly Link[], over: Partial<SettleJob>) {
    const jobs = [];
    for (const [n, link] of orders.entries()) {
      const replica = replicas[n % 2] as Store;
      const { eventKey } = await world.deliver(link);
      const [{ attempt }] = (await claim(replica)) as [ClaimedEvent];
      jobs.push(() => replica.settle(world.job({ eventKey, attempt }, over)));
    }
    return Promise.all(jobs.map((job) => job()));
  }

  describe('events of one order', () => {
    it('are settled one after the other, each by what the one before came to', async () => {
      const orders = await links(10);
      const jobs = [];
      for (const link of orders) {
        for (const [replica, fact] of [[one, PAID] as const, [other, PAID_AGAIN] as const]) {
          const { eventKey } = await world.deliver(link);
          const [{ attempt }] = (await claim(replica)) as [ClaimedEvent];
          jobs.push(() => replica.settle(world.job({ eventKey, attempt }, { facts: [fact] })));
        }
      }
      const rules = (await Promise.all(jobs.map((settled) => settled()))).map((settled) =>
        'rule' in settled ? settled.rule : settled.outcome,
      );
      expect(rules.sort()).toEqual([...orders.map(() => 'duplicate_payment'), ...orders.map(() => 'paid')]);
      expect(await ends(orders)).toEqual(orders.map(() => ['paid', 2, 'order.paid', 'payment.duplicate']));
    });

    it('name its link: where two orders are told the same id at once, one gets it', async () => {
      const settled = await settleAtOnce(await links(10), { linkIds: ['plink-1'] });
      expect(settled.map(({ outcome }) => outcome).sort()).toEqual(['ignored', ...Array(9).fill('link_mismatch')]);
    });
  });

  it('count quotes that name other money than their links together', async () => {
    const orders = await links(6);
    await settleAtOnce(orders, { facts: [said('completed', { quoteMoney: stated('90.00') })] });
    expect((await ends(orders)).map(([state]) => state)).toEqual(Array(6).fill('held'));
    expect(await world.matters('quote_reading_doubtful')).toMatchObject([{ count: 4, params: { count: 6 } }]);
  });

  describe('the settlement row of an order', () => {
    /**
     * Two payments of an order are settled by a replica that takes no lock and stalls once it has read the order, and by
     * one that settles the other payment meanwhile: all that keeps them apart is that row.
     */
    async function settleBoth(): Promise<{ late: Promise<unknown>; link: Link }> {
      const link = await world.newLink();
      const { eventKey } = await world.deliver(link);
      const [{ attempt }] = (await claim(one)) as [ClaimedEvent];
      const job = world.job({ eventKey, attempt }, { facts: [PAID] });
      const stalled = Promise.withResolvers<void>();
      const goOn = Promise.withResolvers<void>();
      const db = openTestDatabase(url, { connections: 1 });
      onTestFinished(() => db.close());
      const late = db.write((tx) =>
        settle(
          withoutLocks(tx, () => {
            stalled.resolve();
            return goOn.promise;
          }),
          job,
        ),
      );
      await stalled.promise;
      await other.recordDelivery(world.delivery(link));
      const [taken] = (await claim(other)) as [ClaimedEvent];
      expect(await other.settle(world.job(taken, { facts: [PAID_AGAIN] }))).toMatchObject({ rule: 'paid' });
      goOn.resolve();
      return { late: late.catch((error: unknown) => error), link };
    }

    it('is written once, also where neither locks nor leases keep replicas apart', async () => {
      const { late, link } = await settleBoth();
      expect(await late).toMatchObject({ code: '23505', constraint: 'settlement_pkey' });
      expect(await ends([link])).toEqual([['paid', 1, 'order.paid']]);
    });

    it('is all that does it then: without its key the order is settled twice', async () => {
      const own = await openTwoReplicas();
      onTestFinished(own.close);
      use(own);
      await (await connectTo(url)).query('ALTER TABLE settlement DROP CONSTRAINT settlement_pkey');
      const { late, link } = await settleBoth();
      expect(await late).toMatchObject({ rule: 'paid' });
      expect(await ends([link])).toEqual([['paid', 2, 'order.paid', 'order.paid']]);
    });
  });

  describe('deliveries', () => {
    it('are recorded once, whichever replica each comes to at the same time', async () => {
      const orders = await links(10);
      const deliveries = orders.map((link) => world.delivery(link));
      const calls = Array.from({ length: 6 }, (_, n) => replicas[n % 2] as Store).flatMap((replica) =>
        deliveries.map((delivery) => replica.recordDelivery(delivery)),
      );
      const recorded = await Promise.all(calls);
      expect(recorded.filter(({ outcome }) => outcome === 'recorded')).toHaveLength(10);
      expect(recorded.filter(({ outcome }) => outcome === 'duplicate')).toHaveLength(50);
      for (const link of orders) {
        expect((await world.timeline(link)).events).toMatchObject([{ duplicates: 5, conflict: false }]);
      }
    });

    it('of different contents under one id become one event and one conflict for each other content, of one matter', async () => {
      const link = await world.newLink();
      const contents = ['one', 'two', 'three'].map((body) =>
        world.delivery(link, { eventId: 'evt_1', body: Buffer.from(body) }),
      );
      const recorded = await Promise.all(
        contents.flatMap((delivery) => replicas.map((replica) => replica.recordDelivery(delivery))),
      );
      const outcomes = recorded.map(({ outcome }) => outcome).sort();
      expect(outcomes).toEqual(['conflict', 'conflict', 'duplicate', 'duplicate', 'duplicate', 'recorded']);
      const { events, attention } = await world.timeline(link);
      expect(events.map(({ conflict, duplicates }) => [conflict, duplicates]).sort()).toEqual([
        [false, 1],
        [true, 1],
        [true, 1],
      ]);
      expect(attention).toMatchObject([{ kind: 'event_conflict', count: 2 }]);
    });

    it('are refused for now where another transaction holds what they need for too long', async () => {
      const [link, claimed] = [await world.newLink(), await world.newLink()];
      const again = world.delivery(link);
      await one.recordDelivery(again);
      const job = world.job(await world.claimNew(claimed), { facts: [PAID] });
      const stuck = await holding(url, 'SELECT 1 FROM orders FOR NO KEY UPDATE');
      const news = world.delivery(link);
      await stuck.query(
        `INSERT INTO inbox (link_key, event_id, body_sha256, timestamp, mac, received_at_ms, due_at_ms)
         VALUES ($1, $2, $3, '', '', 1, 1)`,
        [news.linkKey, news.eventId, news.bodySha256],
      );
      const order: string[] = [];
      const ended = await Promise.allSettled([
        // It waits once with those of its moment, and once for itself.
        other.recordDelivery(news).finally(() => order.push('delivery')),
        one.settle(job).finally(() => order.push('settlement')),
        // These come in the same moment, and need nothing that is held.
        other.recordDelivery(again),
        other.recordDelivery(world.delivery(link)),
      ]);
      const busy = { status: 'rejected', reason: { kind: 'transient', code: 'store_busy' } };
      const taken = (outcome: string) => ({ status: 'fulfilled', value: { outcome } });
      expect(ended).toMatchObject([busy, busy, taken('duplicate'), taken('recorded')]);
      // By what a lock may take, and not by what a statement may.
      const why = ended.flatMap((end) => (end.status === 'rejected' ? [String(end.reason)] : []));
      expect(why).toEqual(Array(2).fill(expect.stringContaining('due to lock timeout')));
      expect(order).toEqual(['settlement', 'delivery']);
      await stuck.query('ROLLBACK');
      expect(await other.recordDelivery(again)).toMatchObject({ outcome: 'duplicate' });
      expect(await other.recordDelivery(news)).toMatchObject({ outcome: 'recorded' });
      expect(await one.settle(job)).toMatchObject({ rule: 'paid' });
    });
  });
});

/** Carries out the same statements without their locks, and stalls once the order was read. */
function withoutLocks(tx: Transaction, stall: () => Promise<void>): Transaction {
  const unlocked = ({ sql }: Statement): Statement => statement(sql.replace(/FOR NO KEY UPDATE(?: OF \w+)?/, ''));
  return {
    ...{ replica: tx.replica, newId: tx.newId, hasReplicas: tx.hasReplicas },
    run: (asked, values) => tx.run(unlocked(asked), values),
    send: (asked, values) => tx.send(unlocked(asked), values),
    lock: () => {},
    countMove: () => {},
    all: (asked, values) => tx.all(unlocked(asked), values),
    one: <Row>(asked: Statement, values?: object) => {
      const row = tx.one<Row>(unlocked(asked), values);
      return asked.sql.includes('short_url AS shownShortUrl') ? stalled(row, stall) : row;
    },
  };
}

/** The answer, once `stall` has let it go on. */
function stalled<T>(answer: Answer<T>, stall: () => Promise<void>): Answer<T> {
  return {
    *[Symbol.iterator]() {
      const value = yield* answer;
      yield new Awaited(stall());
      return value;
    },
  };
}
