import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { FactKind } from '../../../src/domain/fact.ts';
import { shownFlags } from '../../../src/domain/notice.ts';
import type { Matters } from '../../../src/store/verbs/attention_list.ts';
import { stated } from '../../support/orders.ts';
import { runs } from '../../support/timing.ts';
import { FAULT, type Link, said, type World, type Worlds } from './world.ts';

const ORDERS = 2;

type Deed =
  | { do: 'say'; order: number; kind: FactKind; payment: string | null; amount: string; currency: string }
  | { do: 'decide'; order: number; decision: 'accept' | 'reject' }
  | { do: 'cancel' | 'bury' | 'conflict' | 'not_understood'; order: number }
  | { do: 'end'; which: number };

const OTHERS: FactKind[] = ['pending', 'refunded', 'disputed', 'unclear', 'expired'];

const order = fc.nat({ max: ORDERS - 1 });
const anyDeed: fc.Arbitrary<Deed> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('say' as const),
      order,
      kind: fc.constantFrom<FactKind>('completed', 'completed', 'completed', 'completed', ...OTHERS),
      payment: fc.constantFrom('pay_1', 'pay_1', 'pay_2', 'pay_3', null),
      amount: fc.constantFrom('100.00', '100.00', '100.00', '60.00', '140.00'),
      currency: fc.constantFrom('BRL', 'BRL', 'BRL', 'USD'),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('decide' as const),
      order,
      decision: fc.constantFrom('accept' as const, 'reject' as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom('cancel' as const, 'bury' as const, 'conflict' as const, 'not_understood' as const),
      order,
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('end' as const), which: fc.nat(9) }) },
);

const paid = { do: 'say', order: 0, kind: 'completed', amount: '100.00', currency: 'BRL' } as const;
/** A debt that a person ends, that comes again with another payment, and that the service then sends back. */
const HARD: Deed[] = [
  { ...paid, payment: 'pay_1' },
  { ...paid, payment: 'pay_2' },
  { do: 'end', which: 0 },
  { ...paid, payment: 'pay_3' },
  { do: 'not_understood', order: 0 },
  { ...paid, kind: 'refunded', payment: 'pay_2' },
  { ...paid, kind: 'unclear', payment: 'pay_1' },
  { do: 'bury', order: 0 },
  { ...paid, kind: 'refunded', payment: 'pay_3' },
];
/** More than the order asks, which no sum has, beside money that counts, until a person takes it. */
const MISREAD: Deed[] = [
  { ...paid, payment: 'pay_1', amount: '140.00' },
  { ...paid, order: 1, payment: 'pay_1', amount: '60.00' },
  { ...paid, payment: 'pay_2', amount: '60.00' },
  { do: 'cancel', order: 1 },
];

export function mattersPropertyContract({ fresh }: Worlds): void {
  it('needs nobody if and only if nothing is held, no refund is due and no matter is open, whatever happened', async () => {
    const world = await fresh();
    await fc.assert(
      fc.asyncProperty(fc.array(anyDeed, { minLength: 4, maxLength: 30, size: 'max' }), async (deeds) => {
        const links: Link[] = [];
        for (let n = 0; n < ORDERS; n++) links.push(await world.newLink());
        for (const deed of deeds) await perform(world, links, deed);
        await check(world, links);
        await clear(world);
        await check(world, links);
      }),
      runs<[Deed[]]>(10, 300, [[HARD], [MISREAD], [[...MISREAD, { do: 'decide', order: 0, decision: 'accept' }]]]),
    );
  });
}

async function perform(world: World, links: readonly Link[], deed: Deed): Promise<void> {
  const atMs = world.tick();
  const { store } = world;
  if (deed.do === 'end') {
    const { rows } = await listed(world);
    const open = rows.filter(({ kind }) => kind !== 'hold');
    const matter = open[deed.which % Math.max(1, open.length)];
    if (matter !== undefined) await store.endAttention({ by: null, key: matter.key, reason: 'seen', atMs });
    return;
  }
  const link = links[deed.order] as Link;
  const { reference } = link;
  switch (deed.do) {
    case 'say': {
      const { kind, payment: paymentId, amount, currency } = deed;
      await world.settle(link, [said(kind, { paymentId, linkMoney: stated(amount, currency), reference: null })]);
      return;
    }
    case 'decide':
      await store.resolveOrder({ by: null, reference, decision: deed.decision, reason: 'so', atMs });
      return;
    case 'cancel':
      await store.cancelOrder({ by: null, reference, atMs });
      return;
    case 'bury':
      await store.buryEvent({ ...(await world.claimNew(link)), nowMs: atMs, fault: FAULT });
      return;
    case 'conflict': {
      const eventId = world.name('twice');
      for (const text of ['one', 'two']) await world.deliver(link, { eventId, body: Buffer.from(text) });
      for (const event of await world.claim()) await store.settle(world.job(event));
      return;
    }
    case 'not_understood':
      await world.settle(link, [], { notUnderstood: 'it names no type' });
  }
}

/** What the list says, against what each order says of itself. */
async function check(world: World, links: readonly Link[]): Promise<void> {
  const matters = await listed(world);
  const names = new Set(links.map(({ reference }) => reference));
  const own = matters.rows.filter(({ order }) => names.has(order?.reference ?? ''));
  for (const { reference } of links) {
    const { order, attention } = await world.timeline({ reference });
    const expected = [...(order.holds.length > 0 ? ['hold'] : []), ...attention.map(({ kind }) => kind)];
    const found = own.filter((row) => row.order?.reference === reference).map(({ kind }) => kind);
    expect(found.toSorted()).toEqual(expected.toSorted());
    const due = shownFlags(order).filter((flag) => flag === 'refund_due' || flag === 'duplicate_payment');
    const isOwed = found.filter((kind) => kind === 'refund_due' || kind === 'duplicate_payment');
    expect(isOwed.toSorted()).toEqual(due.toSorted());
    expect(order.state === 'held').toBe(order.holds.length > 0);
  }
  const counted = matters.groups.reduce((sum, { count }) => sum + count, 0);
  expect(counted).toBe(matters.rows.length);
  const { matters: inStats } = await world.store.stats(world.nowMs);
  expect(inStats.map(({ kind, count }) => [kind, count])).toEqual(
    matters.groups.map(({ kind, count }) => [kind, count]),
  );
  checkMoney(matters);
}

/** The sums of the list against those of its rows. */
function checkMoney({ rows, money, groups }: Matters): void {
  const isMoney = new Set(groups.filter(({ sums }) => sums.length > 0).map(({ kind }) => kind));
  const orders = new Map(rows.filter(({ kind }) => isMoney.has(kind)).map(({ order }) => [order?.reference, order]));
  const sums = new Map<string, bigint>();
  for (const order of orders.values()) {
    if (order === null) continue;
    const { state, amount, entries } = order;
    for (const { amountMinor, currency } of entries) {
      // More than a held order asks was misread: no sum has it.
      const isMore = currency === amount.currency && Math.abs(amountMinor) > amount.amountMinor;
      if (state === 'held' && isMore) continue;
      sums.set(currency, (sums.get(currency) ?? 0n) + BigInt(amountMinor));
    }
  }
  expect(money.orders).toBe(orders.size);
  for (const { currency, balance } of money.sums) expect(balance).toBe(sums.get(currency) ?? 0n);
}

/** A person decides and ends all there is. */
async function clear(world: World): Promise<void> {
  for (const { kind, key, order } of (await listed(world)).rows) {
    const atMs = world.tick();
    const reference = order?.reference ?? '';
    if (kind === 'hold')
      await world.store.resolveOrder({ by: null, reference, decision: 'reject', reason: 'no', atMs });
    else await world.store.endAttention({ by: null, key, reason: 'seen', atMs });
  }
  for (const { key, kind } of (await listed(world)).rows) {
    expect(kind).not.toBe('hold');
    await world.store.endAttention({ by: null, key, reason: 'seen', atMs: world.tick() });
  }
  expect((await listed(world)).groups).toEqual([]);
}

function listed(world: World): Promise<Matters> {
  return world.store.listMatters({ limit: 1_000, after: null, kind: null, state: null });
}
