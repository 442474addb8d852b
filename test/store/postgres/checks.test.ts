import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ClaimedCheck } from '../../../src/domain/check_queue.ts';
import type { Store } from '../../../src/store/contract.ts';
import type { ListedLink } from '../../../src/store/verbs/sweep.ts';
import { openAttention } from '../../support/rows.ts';
import { LEASE_MS, type Link, type World, worldOf } from '../contract/world.ts';
import { runIn } from './contract_store.ts';
import { holding, untilBehind } from './locks.ts';
import { openTwoReplicas } from './two_replicas.ts';

const MINUTE_MS = 60_000;

describe('asking about links by two replicas on PostgreSQL', () => {
  let url: string;
  let one: Store;
  let other: Store;
  let world: World;

  beforeAll(async () => {
    const replicas = await openTwoReplicas();
    ({ url, one, other } = replicas);
    world = worldOf(one);
    return replicas.close;
  });
  // Nothing of the test before is in use, or waits.
  beforeEach(async () => {
    world.tick(3_600_000);
    await runIn(url, 'DELETE FROM link_check; UPDATE link SET next_check_at_ms = NULL');
  });

  function claim(replica: Store, limit = 8): Promise<ClaimedCheck[]> {
    return replica.claimChecks({ limit, slots: 55, nowMs: world.nowMs, leaseMs: LEASE_MS });
  }

  const keysOf = (links: readonly { linkKey: number }[]) => links.map(({ linkKey }) => linkKey).sort((a, b) => a - b);

  /** Links whose check waits since they were registered. */
  function newLinks(count: number): Promise<Link[]> {
    return Promise.all(Array.from({ length: count }, () => world.newLink()));
  }

  /** Links that nothing asks about before their schedule does. */
  async function quietLinks(count: number): Promise<Link[]> {
    const links = await newLinks(count);
    const failure = { dueAtMs: null, missing: false, sent: true, nowMs: world.nowMs };
    await Promise.all(links.map(({ linkKey }) => one.failCheck({ linkKey, ...failure })));
    return links;
  }

  it.each([
    ['in the queue', (count: number) => newLinks(count)],
    [
      'of the schedule',
      async (count: number) => {
        const links = await quietLinks(count);
        world.tick(2 * MINUTE_MS);
        return links;
      },
    ],
  ])('gives each link to one of them: %s', async (_where, come) => {
    const links = await come(20);
    const claimed: ClaimedCheck[] = [];
    for (let rounds = 0; rounds < 40 && claimed.length < links.length; rounds++) {
      const answers = await Promise.all([claim(one, 3), claim(other, 4), claim(other, 2)]);
      claimed.push(...answers.flat());
    }
    expect(keysOf(claimed)).toEqual(keysOf(links));
    expect(await claim(one)).toEqual([]);
  });

  it('follows ten hints a minute in all: who claims waits for whoever claims', async () => {
    for (const link of await quietLinks(14)) await world.reject(link);
    const holder = await holding(url, 'LOCK TABLE orders IN EXCLUSIVE MODE');
    // The one has read what is due, and must not go on before the table is free.
    const ofOne = claim(one);
    await untilBehind(holder);
    const ofOther = claim(other);
    await untilBehind(holder, 2);
    await holder.query('COMMIT');
    expect((await ofOne).map(({ reason }) => reason)).toEqual(Array(8).fill('rejected'));
    expect(await ofOther).toHaveLength(2);
    expect(new Set(keysOf([...(await ofOne), ...(await ofOther)])).size).toBe(10);
    expect([...(await claim(one)), ...(await claim(other))]).toEqual([]);
  });

  it('leaves a link to the next claim while its order is being changed', async () => {
    const [busy, free] = (await newLinks(2)) as [Link, Link];
    const holder = await holding(url, `SELECT 1 FROM orders WHERE reference = '${busy.reference}' FOR NO KEY UPDATE`);
    expect(keysOf(await claim(one))).toEqual([free.linkKey]);
    expect(await claim(other)).toEqual([]);
    await holder.query('COMMIT');
    expect(keysOf(await claim(other))).toEqual([busy.linkKey]);
  });

  it.each([
    [
      'a doubt about money was heard',
      `UPDATE link_check SET reason = 'doubtful_money', rank = 6;
       INSERT INTO check_reason SELECT link_key, 'doubtful_money', 6, 0 FROM link_check`,
      [{ reason: 'doubtful_money', class: 'confirm' }],
    ],
    ['it was answered', 'DELETE FROM link_check', []],
    ['it was put off', 'UPDATE link_check SET due_at_ms = due_at_ms + 1', []],
  ])('claims by what stands once it holds the order: %s meanwhile', async (_what, change, expected) => {
    const [link] = (await quietLinks(1)) as [Link];
    await world.reject(link);
    const holder = await holding(url, 'LOCK TABLE orders IN EXCLUSIVE MODE');
    const claimed = claim(one);
    await untilBehind(holder);
    await holder.query(`${change}; COMMIT`);
    expect(await claimed).toMatchObject(expected);
  });

  it('tells a person once of a link that both find not to be known', async () => {
    await runIn(url, `UPDATE instance SET restored_from_ms = ${world.nowMs}`);
    const lost = listed(world.name('plink'));
    // The one has told of it, and has not committed it.
    const holder = await holding(
      url,
      `INSERT INTO attention (kind, subject, detail, params, opened_at_ms, last_at_ms)
       VALUES ('link_not_known', '${lost.id}', '', '{"restoredFromMs":0,"why":"told"}', ${world.nowMs}, ${world.nowMs})`,
    );
    const compared = compare(other, [lost, listed(world.name('plink'))]);
    await untilBehind(holder);
    await holder.query('COMMIT');
    expect(await compared).toMatchObject({ notKnown: 1 });
    const told = await openAttention(one);
    expect(told.filter(({ subject }) => subject === lost.id)).toMatchObject([{ count: 1, params: { why: 'told' } }]);
  });

  it('compares the list, and makes all links due, where both do so at once', async () => {
    const links = await Promise.all(
      Array.from({ length: 30 }, async () => {
        const linkId = world.name('plink');
        return { ...(await world.newLink({ linkId })), linkId };
      }),
    );
    const items = links.map(({ linkId }) => listed(linkId));
    const catchUp = { dryRun: false, nowMs: world.nowMs };
    const answers = await Promise.all([
      compare(one, items),
      compare(other, [...items].reverse()),
      one.catchUp(catchUp),
      other.catchUp(catchUp),
    ]);
    expect(answers.slice(0, 2)).toMatchObject([{ differing: 30 }, { differing: 30 }]);
    for (const link of links) {
      const { check, nextCheckAtMs } = await world.timeline(link);
      expect([check?.reason, nextCheckAtMs]).toEqual(['listed', world.nowMs]);
    }
  });

  it('makes all links due, although they are more than one statement takes', async () => {
    await runIn(
      url,
      `INSERT INTO orders (reference, amount_minor, currency, state, created_at_ms, updated_at_ms)
         SELECT 'many-' || n, 1, 'BRL', 'awaiting_payment', 1, 1 FROM generate_series(1, 10001) AS n;
       INSERT INTO link (order_key, link_id, token, sealed_secret, secrets_key_id, secret_fingerprint, created_at_ms)
         SELECT key, reference, reference, '', 'key-1', '', 1 FROM orders WHERE reference LIKE 'many-%' ORDER BY key`,
    );
    const { links } = await one.catchUp({ dryRun: true, nowMs: world.nowMs });
    expect(links).toBeGreaterThan(10_000);
    // The last of them is in somebody's hands: those before it wait for nobody by then.
    const holder = await holding(url, "SELECT 1 FROM link WHERE link_id = 'many-10001' FOR UPDATE");
    const due = `SELECT count(*)::int AS due FROM link WHERE next_check_at_ms = ${world.nowMs}`;
    const catchingUp = one.catchUp({ dryRun: false, nowMs: world.nowMs });
    await untilBehind(holder);
    expect((await holder.query(due)).rows).toEqual([{ due: 10_000 }]);
    await holder.query('COMMIT');
    expect(await catchingUp).toEqual({ links });
    expect((await holder.query(due)).rows).toEqual([{ due: links }]);
  });

  function listed(id: string): ListedLink {
    const money = { amount: null, currency: null };
    return { id, reference: null, status: 'INACTIVE', money, createdAtMs: null };
  }

  function compare(replica: Store, items: ListedLink[]) {
    return replica.compareListed({ items, toleranceMs: 0, nowMs: world.nowMs });
  }
});
