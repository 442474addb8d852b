import { beforeEach, describe, expect, it } from 'vitest';
import type { MatterGroup } from '../../../src/domain/matter_money.ts';
import type { ListedMatter, Matters } from '../../../src/store/verbs/attention_list.ts';
import type { ClaimedNotice } from '../../../src/store/verbs/notices.ts';
import { stated } from '../../support/orders.ts';
import { FAULT, type Link, said, type World, type Worlds } from './world.ts';

const EVERY = { limit: 1_000, after: null, kind: null, state: null } as const;

export function mattersContract({ fresh }: Worlds): void {
  let world: World;

  beforeEach(async () => {
    world = await fresh();
  });

  /** An order that was paid too little: it is held. */
  async function held(amount = '60.00'): Promise<Link> {
    const link = await world.newLink();
    await world.settle(link, [said('completed', { linkMoney: stated(amount) })]);
    return link;
  }

  /** An order that was paid twice. */
  async function paidTwice(): Promise<Link> {
    const link = await world.newLink();
    await world.settle(link, [said('completed')]);
    await world.settle(link, [said('completed', { paymentId: 'pay_2' })]);
    return link;
  }

  /** An order of which an event could not be settled. */
  async function dead(link?: Link): Promise<Link> {
    const of = link ?? (await world.newLink());
    world.tick();
    await world.deadEvent(of);
    return of;
  }
  const list = (over: Partial<Parameters<World['store']['listMatters']>[0]> = {}) =>
    world.store.listMatters({ ...EVERY, ...over });
  const shown = ({ rows }: Matters) => rows.map(({ kind, order }) => `${kind} ${order?.reference}`);
  const grouped = ({ groups }: Matters) => groups.map(nameOf);
  const nameOf = ({ kind, reason, count }: MatterGroup) => `${count} ${kind}${reason === null ? '' : ` ${reason}`}`;

  it('says nothing of a store in which nothing needs a person', async () => {
    const link = await world.newLink();
    await world.settle(link, [said('completed')]);
    expect(await list()).toEqual({
      groups: [],
      money: { orders: 0, withBalance: 0, sums: [], isWhole: true, hasMisread: false, hasUnreadable: false },
      rows: [],
    });
  });

  it('lists money first, then the oldest first, whatever came last', async () => {
    const a = await dead();
    const b = await held();
    const c = await paidTwice();
    const d = await held();
    const e = await dead();
    const matters = await list();
    expect(shown(matters)).toEqual([
      `hold ${b.reference}`,
      `hold ${d.reference}`,
      `duplicate_payment ${c.reference}`,
      `event_dead ${a.reference}`,
      `event_dead ${e.reference}`,
    ]);
    expect(grouped(matters)).toEqual(['2 hold amount_mismatch', '1 duplicate_payment', '2 event_dead']);
  });

  /** All rows, read one at a time; `between` happens after the first. */
  async function readByOne(between = async (_first: ListedMatter): Promise<unknown> => null): Promise<ListedMatter[]> {
    const read: ListedMatter[] = [];
    while (read.length < 100) {
      const [next] = (await list({ limit: 1, after: read.at(-1) ?? null })).rows;
      if (next === undefined) break;
      if (read.push(next) === 1) await between(next);
    }
    return read;
  }

  it('pages through all of it, row by row, while older matters end and others begin', async () => {
    for (let n = 0; n < 2; n++) {
      await dead();
      await held();
      await paidTwice();
    }
    const whole = (await list()).rows;
    expect(whole).toHaveLength(6);
    expect(await readByOne(({ order }) => world.resolve(order as { reference: string }, 'accept'))).toEqual(whole);
  });

  it('pages through matters that began in one millisecond, each once', async () => {
    const [atMs, link] = [world.tick(), await world.newLink()];
    const tooLittle = [said('completed', { linkMoney: stated('60.00') })];
    for (let n = 0; n < 3; n++) await world.settle(await world.newLink(), tooLittle, { nowMs: atMs });
    for (let n = 0; n < 3; n++) {
      await world.store.buryEvent({ ...(await world.claimNew(link)), nowMs: atMs, fault: FAULT });
    }
    const whole = (await list()).rows;
    expect(whole.map(({ openedAtMs }) => openedAtMs)).toEqual(Array(6).fill(atMs));
    expect(await readByOne()).toEqual(whole);
  });

  it('sums what is asked and what is captured, of an order that needs a person twice once', async () => {
    await held('60.00');
    const both = await held('70.00');
    await world.settle(both, [said('completed', { paymentId: 'pay_2', linkMoney: stated('30.00') })]);
    const { groups, money } = await list();
    await world.resolve(both, 'accept');
    const after = await list();
    expect(groups).toMatchObject([
      { kind: 'hold', count: 2, sums: [{ currency: 'BRL', asked: 20_000n, balance: 16_000n }] },
    ]);
    expect(money).toMatchObject({ orders: 2, sums: [{ currency: 'BRL', asked: 20_000n, balance: 16_000n }] });
    expect(after.groups).toMatchObject([
      { kind: 'hold', sums: [{ asked: 10_000n, balance: 6_000n }] },
      { kind: 'duplicate_payment', sums: [{ asked: 10_000n, balance: 10_000n }] },
    ]);
    await world.settle(both, [said('unclear')]);
    const twice = await list();
    expect(grouped(twice)).toEqual(['1 hold amount_mismatch', '1 duplicate_payment', '1 status_unclear']);
    expect(twice.money).toEqual(after.money);
  });

  it('leaves out of all sums what a held order got beyond what it asks, and says so', async () => {
    await held('60.00');
    const misread = await held('9000.00');
    await world.settle(misread, [said('completed', { paymentId: 'pay_2', linkMoney: stated('70.00') })]);
    const sums = [{ currency: 'BRL', asked: 20_000n, balance: 13_000n, reported: 0n }];
    const { groups, money } = await list();
    expect([groups[0]?.sums, money]).toEqual([
      sums,
      { orders: 2, withBalance: 2, sums, isWhole: true, hasMisread: true, hasUnreadable: false },
    ]);
    await world.resolve(misread, 'accept');
    // A person has seen the money and accepted it.
    const after = (await list()).money;
    expect([after.sums[0]?.balance, after.hasMisread]).toEqual([913_000n, false]);
  });

  it('never says 0 for captured money that is not readable', async () => {
    const unread = await held('1.005');
    const alone = await list();
    expect(alone.groups[0]?.sums).toEqual([{ currency: 'BRL', asked: 10_000n, balance: null, reported: 0n }]);
    expect(alone.money).toMatchObject({ sums: alone.groups[0]?.sums, hasUnreadable: true });
    await held('60.00');
    const both = (await list()).money;
    expect(both).toMatchObject({ sums: [{ asked: 20_000n, balance: 6_000n }], hasUnreadable: true });
    await world.settle(unread, [said('completed', { quoteMoney: stated('70.00') })]);
    const named = (await list()).money;
    expect(named).toMatchObject({ sums: [{ balance: 13_000n }], hasUnreadable: false });
  });

  it('counts apart the orders that have a balance: not those whose money went back, is left out or is not readable', async () => {
    await held('60.00');
    await held('1.005');
    await held('9000.00');
    const back = await held('70.00');
    await world.settle(back, [said('refunded')]);
    const abroad = await world.newLink();
    await world.settle(abroad, [said('completed', { linkMoney: stated('50.00', 'USD') })]);
    expect((await list()).money).toMatchObject({ orders: 5, withBalance: 2, hasMisread: true, hasUnreadable: true });
  });

  it('sums the largest amounts exactly, each currency for itself', async () => {
    const amountMinor = 999_999_999_999_999;
    for (const currency of ['BRL', 'BRL', 'JPY', 'BRL', 'BRL', 'BRL', 'BRL', 'BRL', 'BRL', 'BRL', 'BRL']) {
      const link = await world.newLink({ amount: { amountMinor, currency } });
      await world.settle(link, [said('completed', { linkMoney: stated('7', currency) })]);
    }
    const { money } = await list();
    expect(money.sums).toEqual([
      { currency: 'BRL', asked: BigInt(amountMinor) * 10n, balance: 7_000n, reported: 0n },
      { currency: 'JPY', asked: BigInt(amountMinor), balance: 7n, reported: 0n },
    ]);
  });

  it('lists a held order once, since its oldest hold and for its reason, and counts its holds', async () => {
    const twice = await held();
    const { nowMs } = world;
    await world.settle(twice, [said('completed', { paymentId: 'pay_2' })], { nowMs });
    // They began in one millisecond.
    const both = await list();
    expect(both.rows).toMatchObject([{ kind: 'hold', count: 2, openedAtMs: nowMs, lastAtMs: nowMs }]);
    expect(grouped(both)).toEqual(['1 hold amount_mismatch']);
    await world.resolve(twice, 'reject');
    const link = await held('60.00');
    const openedAtMs = world.nowMs;
    await world.settle(link, [said('unclear', { paymentId: 'pay_9' })]);
    await world.settle(link, [said('completed', { paymentId: 'pay_2' })]);
    const { rows, groups } = await list({ kind: 'hold' });
    const { holds } = (await world.timeline(link)).order;
    expect(holds.length).toBeGreaterThan(1);
    expect(groups).toMatchObject([{ reason: 'amount_mismatch', count: 1, oldestAtMs: openedAtMs }]);
    expect(rows).toMatchObject([{ reason: 'amount_mismatch', count: holds.length, openedAtMs, lastAtMs: world.nowMs }]);
  });

  it('filters groups, sums and rows alike by the reason of a hold', async () => {
    const [little, twice] = [await held('60.00'), await paidTwice()];
    const other = await world.newLink();
    await world.settle(other, [said('completed', { linkMoney: stated('70.00', 'USD') })]);
    const ofAmount = await list({ reason: 'amount_mismatch' });
    expect(shown(ofAmount)).toEqual([`hold ${little.reference}`]);
    expect(grouped(ofAmount)).toEqual(['1 hold amount_mismatch']);
    expect(ofAmount.money).toEqual({
      orders: 1,
      withBalance: 1,
      sums: [{ currency: 'BRL', asked: 10_000n, balance: 6_000n, reported: 0n }],
      isWhole: true,
      hasMisread: false,
      hasUnreadable: false,
    });
    expect(shown(await list({ kind: 'hold', reason: 'currency_mismatch' }))).toEqual([`hold ${other.reference}`]);
    expect(shown(await list({ kind: 'duplicate_payment', reason: 'amount_mismatch' }))).toEqual([]);
    expect(shown(await list({ kind: 'duplicate_payment' }))).toEqual([`duplicate_payment ${twice.reference}`]);
  });

  it('filters groups, sums and rows alike by kind and by the state of the order', async () => {
    const a = await held();
    const b = await paidTwice();
    await dead(a);
    await dead(b);
    const ofKind = await list({ kind: 'event_dead' });
    expect([grouped(ofKind), ofKind.money.orders]).toEqual([['2 event_dead'], 0]);
    const paid = await list({ state: 'paid' });
    expect(shown(paid)).toEqual([`duplicate_payment ${b.reference}`, `event_dead ${b.reference}`]);
    expect([grouped(paid), paid.money.orders]).toEqual([['1 duplicate_payment', '1 event_dead'], 1]);
    const ofHeld = await list({ state: 'held' });
    expect(shown(ofHeld)).toEqual([`hold ${a.reference}`, `event_dead ${a.reference}`]);
    expect(ofHeld.money).toMatchObject({ orders: 1, sums: [{ asked: 10_000n, balance: 6_000n }] });
    expect(await list({ state: 'cancelled' })).toMatchObject({ groups: [], rows: [], money: { orders: 0 } });
    expect(shown(await list({ kind: 'event_dead', state: 'held' }))).toEqual([`event_dead ${a.reference}`]);
    expect(await list({ kind: 'hold', state: 'paid' })).toMatchObject({ groups: [], rows: [], money: { orders: 0 } });
  });

  it('lists what concerns no order', async () => {
    const link = await world.newLink();
    await world.settle(link, [said('completed')]);
    const [notice] = (await world.claimNotices()) as [ClaimedNotice];
    await world.store.buryNotice({ ...notice, fault: FAULT, answer: null, nowMs: world.nowMs });
    expect((await list()).rows).toMatchObject([{ kind: 'notices_dead', subject: 'shop', order: null }]);
    expect((await list({ state: 'paid' })).rows).toEqual([]);
  });

  describe('a refund that a person says was made', () => {
    it.each(['refund_due', 'duplicate_payment'])(
      'ends %s, and the order is not flagged for it any longer',
      async (kind) => {
        const link = kind === 'refund_due' ? await held() : await paidTwice();
        if (kind === 'refund_due') await world.resolve(link, 'reject');
        const [matter] = (await list()).rows;
        const before = await world.store.findOrder(link.reference);
        expect([matter?.kind, before?.flags]).toEqual([kind, [kind]]);
        world.tick();
        await world.end(matter?.key, 'by bank transfer');
        const after = await world.store.findOrder(link.reference);
        expect(after).toEqual({ ...before, flags: [], version: (before?.version ?? 0) + 1 });
        expect((await list()).groups).toEqual([]);
        const cause = { kind: 'person', id: 'by bank transfer' };
        expect((await world.timeline(link)).history.at(-1)).toMatchObject({ what: `a person ended ${kind}`, cause });
      },
    );

    it('leaves an order as it is when another matter of it ends', async () => {
      const link = await paidTwice();
      await dead(link);
      const before = await world.store.findOrder(link.reference);
      const [matter] = (await list({ kind: 'event_dead' })).rows;
      await world.end(matter?.key);
      expect(await world.store.findOrder(link.reference)).toEqual(before);
    });
  });
}
