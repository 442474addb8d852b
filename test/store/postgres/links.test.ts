import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/contract.ts';
import type { Registered } from '../../../src/store/verbs/links.ts';
import { LEASE_MS, type Link, type World, worldOf } from '../contract/world.ts';
import { holding, untilBehind } from './locks.ts';
import { openTwoReplicas } from './two_replicas.ts';

/** Two calls at once do not meet each time. */
const ROUNDS = Array.from({ length: 10 }, (_, n) => n);

describe('links on two replicas at once', () => {
  let world: World;
  let stores: [Store, Store];
  let url: string;

  beforeAll(async () => {
    const replicas = await openTwoReplicas();
    stores = [replicas.one, replicas.other];
    url = replicas.url;
    world = worldOf(replicas.one);
    return replicas.close;
  });

  const onBoth = <T>(call: (store: Store, n: number) => Promise<T>): Promise<T[]> => Promise.all(stores.map(call));

  it('register one order and one link of a reference', async () => {
    for (const _ of ROUNDS) {
      const reference = world.name('order');
      const registered = await onBoth((store) => store.registerLink(world.registration({ reference })));
      expect(outcomes(registered)).toEqual(['created', 'same']);
      const [one, other] = registered.map((each) => ('token' in each ? [each.token, each.linkKey] : null));
      expect(one).toEqual(other);
      expect((await world.timeline({ reference })).history).toMatchObject([{ what: 'link reserved' }]);
    }
  });

  it('open one link of a reference', async () => {
    for (const _ of ROUNDS) {
      const intent = world.intent();
      const intended = await onBoth((store) => store.openIntent({ ...intent, token: randomUUID() }));
      expect(outcomes(intended)).toEqual(['created', 'same']);
      const [one, other] = intended.map((each) => ('linkKey' in each ? each.linkKey : null));
      expect(one).toBe(other);
      expect((await world.timeline(intent)).history).toMatchObject([{ what: 'link is to be opened' }]);
    }
  });

  it('register or open a reference, and refuse the other', async () => {
    for (const _ of ROUNDS) {
      const reference = world.name('order');
      const both = await Promise.all([
        stores[0].registerLink(world.registration({ reference })),
        stores[1].openIntent(world.intent({ reference })),
      ]);
      expect([
        ['created', 'conflict'],
        ['opened_by_settled', 'created'],
      ]).toContainEqual(both.map(({ outcome }) => outcome));
    }
  });

  /** One of the two has the link id, and the other call names its order. */
  function expectOneOwner(registered: Registered[], outcome: string, linkId: string): void {
    expect(outcomes(registered)).toEqual([outcome, 'link_id_taken']);
    expect(registered.map(({ order }) => order.link?.id)).toEqual([linkId, linkId]);
    expect(new Set(registered.map(({ order }) => order.reference)).size).toBe(1);
  }

  it('bind a link id to one of two orders, and name that to the other', async () => {
    for (const _ of ROUNDS) {
      const links = [await world.newLink(), await world.newLink()] as [Link, Link];
      const linkId = world.name('plink');
      const bound = await onBoth((store, n) => {
        const { reference } = links[n] as Link;
        return store.registerLink(world.registration({ reference, linkId }));
      });
      expectOneOwner(bound, 'bound', linkId);
    }
  });

  it('register a link id for one of two new orders, and keep nothing of the other', async () => {
    for (const _ of ROUNDS) {
      const linkId = world.name('plink');
      const registrations = stores.map(() => world.registration({ linkId }));
      const created = await Promise.all(
        registrations.map((registration, n) => (stores[n] as Store).registerLink(registration)),
      );
      expectOneOwner(created, 'created', linkId);
      const there = await Promise.all(registrations.map(({ reference }) => world.store.findOrder(reference)));
      expect(there.filter((order) => order !== null)).toHaveLength(1);
    }
  });

  function claim(store: Store, limit = 1000) {
    return store.claimOpenings({ limit, nowMs: world.nowMs, leaseMs: LEASE_MS });
  }

  /** Claims what is due, with the opening of a link. */
  async function claimOne(store: Store, { linkKey }: Link) {
    const found = (await claim(store)).find((opening) => opening.linkKey === linkKey);
    if (found === undefined) throw new Error(`the opening of link ${linkKey} is not due`);
    return { linkKey, attempt: found.attempt };
  }

  it('give a link that the service made to one of two orders, and park the other', async () => {
    for (const _ of ROUNDS) {
      const claimed = [];
      for (const store of stores) claimed.push(await claimOne(store, await world.intend()));
      const made = { link: world.made(), withheld: null, nowMs: world.nowMs };
      const finished = await Promise.all(
        claimed.map((opening, n) => (stores[n] as Store).finishOpening({ ...opening, ...made })),
      );
      expect(finished.sort()).toEqual(['bound', 'taken']);
    }
  });

  it('cancel no order whose opening the other one claims, and claim none that is being cancelled', async () => {
    const cancel = (store: Store, { reference }: Link) => store.cancelOrder({ by: null, reference, atMs: world.nowMs });
    // A claim that is not committed so far.
    const claimed = await world.intend();
    const lease = await holding(
      url,
      "UPDATE opening SET status = 'leased', holder = 'other', attempt = 1, due_at_ms = $2 WHERE link_key = $1",
      [claimed.linkKey, world.nowMs + LEASE_MS],
    );
    const late = cancel(stores[0], claimed);
    await untilBehind(lease);
    await lease.query('COMMIT');
    expect(await late).toMatchObject({ outcome: 'opening', order: { state: 'awaiting_payment' } });
    // A cancellation that is not committed so far: it waits to know whether the link was heard of.
    const cancelled = await world.intend();
    const heard = await holding(url, 'LOCK TABLE hint IN ACCESS EXCLUSIVE MODE');
    const early = cancel(stores[0], cancelled);
    await untilBehind(heard);
    const claims = await claim(stores[1]);
    await heard.query('ROLLBACK');
    expect(await early).toMatchObject({ outcome: 'decided', order: { state: 'cancelled' } });
    expect(claims.map(({ linkKey }) => linkKey)).not.toContain(cancelled.linkKey);
    expect((await claim(stores[1])).map(({ linkKey }) => linkKey)).not.toContain(cancelled.linkKey);
    for (const client of [lease, heard]) await client.end();
  });

  it('correct the id of a link one after the other', async () => {
    for (const _ of ROUNDS) {
      const first = world.name('plink');
      const { reference } = await world.newLink({ linkId: first });
      const ids = [world.name('plink'), world.name('plink')];
      const both = await onBoth((store, n) =>
        store.registerLink(world.registration({ reference, linkId: ids[n] as string })),
      );
      expect(outcomes(both)).toEqual(['corrected', 'corrected']);
      const { order, history } = await world.timeline({ reference });
      const last = order.link?.id as string;
      const [between] = ids.filter((id) => id !== last);
      expect(history.slice(1).map(({ what }) => what)).toEqual([
        `link id corrected from ${first} to ${between}`,
        `link id corrected from ${between} to ${last}`,
      ]);
    }
  });

  it('lease each opening to one of them', async () => {
    await claim(stores[0]);
    const links = [];
    for (const _ of ROUNDS) links.push(await world.intend());
    const claims = await Promise.all(ROUNDS.map((n) => claim(stores[n % 2] as Store, 2)));
    const keys = claims.flat().map(({ linkKey }) => linkKey);
    expect(keys.sort((a, b) => a - b)).toEqual(links.map(({ linkKey }) => linkKey));
  });

  it('end an attempt by nobody but the one who has its lease', async () => {
    const link = await world.intend();
    const { linkKey } = link;
    expect(await claimOne(stores[0], link)).toMatchObject({ attempt: 1 });
    world.tick(LEASE_MS);
    expect(await claimOne(stores[1], link)).toMatchObject({ attempt: 2 });
    for (const attempt of [1, 2]) {
      const late = { linkKey, attempt, nowMs: world.nowMs };
      const made = { link: world.made(), withheld: null };
      expect(await stores[0].finishOpening({ ...late, ...made })).toBe('lost');
      expect(await stores[0].closeOpening(late)).toBe('lost');
    }
    const ended = await stores[1].closeOpening({ linkKey, attempt: 2, nowMs: world.nowMs });
    expect(ended).toBe('closed');
  });

  it('forget an order or keep its event, where the event comes as the opening is closed', async () => {
    for (const _ of ROUNDS) {
      const link = await world.intend();
      const opening = await claimOne(stores[0], link);
      const [closed, recorded] = await Promise.allSettled([
        stores[0].closeOpening({ ...opening, nowMs: world.nowMs }),
        stores[1].recordDelivery(world.delivery(link)),
      ]);
      const isKept = recorded.status === 'fulfilled';
      expect(closed).toMatchObject({ status: 'fulfilled', value: isKept ? 'kept' : 'closed' });
      expect((await world.store.findOrder(link.reference)) !== null).toBe(isKept);
    }
  });
});

function outcomes(calls: { outcome: string }[]): string[] {
  return calls.map(({ outcome }) => outcome).sort();
}
