import { beforeEach, describe, expect, it } from 'vitest';
import type { SaidFact } from '../../../src/domain/fact.ts';
import { stated } from '../../support/orders.ts';
import { type Link, said, type World, type Worlds } from './world.ts';

const LITTLE = { linkMoney: stated('60.00') };

export function settlementContract({ shared }: Worlds): void {
  let world: World;
  let link: Link;
  beforeEach(async () => {
    world = shared();
    link = await world.newLink();
  });

  /** The order as a person looks at it: state, money, and what the shop was told. */
  async function story() {
    const { order, notices, attention } = await world.timeline(link);
    return {
      state: order.state,
      flags: order.flags,
      ledger: order.entries.map((entry) => `${entry.kind} ${entry.amountMinor} ${entry.currency} ${entry.paymentKey}`),
      holds: order.holds.map(({ reason }) => reason),
      notices: notices.map(({ type }) => type),
      attention: attention.map(({ kind }) => kind),
      adopted: order.adoptedPaymentId,
    };
  }

  const resolve = (decision: 'accept' | 'reject', reason?: string) => world.resolve(link, decision, reason);
  describe('money', () => {
    it('makes an order paid: ledger, settlement, history, notice and row in one transaction', async () => {
      const claimed = await world.claimNew(link);
      const paidAtMs = world.tick();
      await world.store.settle(world.job(claimed, { facts: [said('completed')] }));
      const { order, history, notices } = await world.timeline(link);
      expect(order).toMatchObject({
        state: 'paid',
        version: 2,
        settlement: { paidAtMs, paymentKey: 'pay_1', learnedBy: 'webhook' },
        entries: [{ paymentKey: 'pay_1', kind: 'captured', occurrence: 1, amountMinor: 10_000, currency: 'BRL' }],
      });
      expect(history.at(-1)).toMatchObject({
        atMs: paidAtMs,
        what: 'paid',
        outcome: 'applied',
        from: 'awaiting_payment',
        to: 'paid',
        cause: { kind: 'event', id: String(claimed.eventKey) },
      });
      expect(history.at(-1)?.effects).toContain('ledger: captured 100.00 BRL, payment pay_1');
      expect(notices).toMatchObject([{ type: 'order.paid', version: 2, status: 'pending', createdAtMs: paidAtMs }]);
      expect(await world.store.findOrder(link.reference)).toEqual(order);
    });

    it('keeps all of it when the store is opened again', async () => {
      await world.settle(link, [said('completed')]);
      await world.settle(link, [said('completed', { paymentId: 'pay_2' })]);
      const before = await world.timeline(link);
      await world.reopen();
      expect(await world.timeline(link)).toEqual(before);
    });

    it('raises the version with each change and gives each notice the version that it tells', async () => {
      await world.settle(link, [said('pending')]);
      await world.settle(link, [said('completed')]);
      await world.settle(link, [said('refunded')]);
      const { order, notices } = await world.timeline(link);
      expect(notices.map(({ type, version }) => [type, version])).toEqual([
        ['order.payment_pending', 2],
        ['order.paid', 3],
        ['order.refunded', 4],
      ]);
      expect(order.version).toBe(4);
      expect(new Set(notices.map(({ id }) => id)).size).toBe(3);
    });

    it.each([
      ['nobody began to pay', []],
      ['a payment was begun', [said('pending')]],
    ])('tells once that the link expired if %s, however often the service says so', async (_, facts) => {
      const expired = said('expired', { paymentId: null });
      const opened = await world.openNew();
      await world.settle(opened, facts);
      for (let n = 0; n < 2; n++) {
        await world.answer(opened, [expired], { made: { status: 'EXPIRED' } });
        await world.settle(opened, [expired]);
        await world.restart();
      }
      const { order, notices } = await world.timeline(opened);
      expect(order.state).toBe('expired');
      expect(notices.map(({ type }) => type).filter((type) => type !== 'order.payment_pending')).toEqual([
        'order.expired',
      ]);
    });

    const FIRST = 'captured 10000 BRL pay_1';

    async function expectStory(facts: SaidFact[], told: Partial<Awaited<ReturnType<typeof story>>>) {
      let paid: unknown;
      for (const fact of facts) {
        await world.settle(link, [fact]);
        const { settlement } = (await world.timeline(link)).order;
        // It is written once.
        expect(settlement).toEqual(paid ?? settlement);
        paid ??= settlement;
      }
      const plain = { state: 'paid', ledger: [FIRST], notices: ['order.paid'] };
      const none = { flags: [], holds: [], attention: [], adopted: null };
      expect(await story()).toEqual({ ...none, ...plain, ...told });
    }

    it.each<[string, SaidFact[], Partial<Awaited<ReturnType<typeof story>>>]>([
      [
        'marks an order paid whose money nobody named',
        [said('completed', { linkMoney: null })],
        { flags: ['money_unnamed'], attention: ['money_unnamed'] },
      ],
      [
        'counts a second payment and says so',
        [said('completed'), said('completed', { paymentId: 'pay_2' })],
        {
          flags: ['duplicate_payment'],
          ledger: [FIRST, 'captured 10000 BRL pay_2'],
          notices: ['order.paid', 'payment.duplicate'],
          attention: ['duplicate_payment'],
        },
      ],
      ...(['refunded', 'disputed'] as const).map((kind): [string, SaidFact[], object] => [
        `takes money back that is ${kind}`,
        [said('completed'), said(kind)],
        { state: kind, ledger: [FIRST, `${kind} -10000 BRL pay_1`], notices: ['order.paid', `order.${kind}`] },
      ]),
      [
        'gives a payment its id later, and counts nothing twice',
        [said('completed', { paymentId: null }), said('completed')],
        { ledger: ['captured 10000 BRL unnamed'], adopted: 'pay_1' },
      ],
    ])('%s', (_what, facts, told) => expectStory(facts, told));

    it('holds money that does not agree', () =>
      expectStory([said('completed', LITTLE)], {
        state: 'held',
        ledger: ['captured 6000 BRL pay_1'],
        holds: ['amount_mismatch'],
        notices: ['order.held'],
      }));

    it('asks about money that does not agree where it can, and leaves the order as it is', async () => {
      await world.forgetChecks();
      const before = await world.timeline(link);
      const asked = await world.settle(link, [said('completed', LITTLE)], { policy: { asks: 'in-doubt' } });
      expect(asked).toMatchObject({ outcome: 'ask', notices: 0 });
      const { order, check } = await world.timeline(link);
      expect(order).toEqual(before.order);
      expect(check?.reason).toBe('doubtful_money');
    });

    it('keeps what the customer paid beside what counts, when the store is opened again too', async () => {
      await world.settle(link, [said('completed', { quoteMoney: stated('112.4') })]);
      await world.settle(link, [said('completed', { paymentId: 'pay_2', quoteMoney: stated('18.123', 'USD') })]);
      const before = (await world.timeline(link)).order;
      expect(before).toMatchObject({ state: 'paid', flags: ['duplicate_payment'] });
      const paid = before.entries.map(({ amountMinor, customerPaid }) => [amountMinor, customerPaid]);
      expect(paid).toEqual([
        [10_000, { amount: '112.40', currency: 'BRL' }],
        [10_000, { amount: '18.123', currency: 'USD' }],
      ]);
      await world.reopen();
      expect((await world.timeline(link)).order).toEqual(before);
    });

    it.each(['refunded', 'disputed'] as const)(
      'keeps the sum that a payment that is %s names, and who was told',
      async (kind) => {
        const link = await world.openNew();
        await world.settle(link, [said('completed')]);
        await world.settle(link, [said('completed', { paymentId: 'pay_2', quoteMoney: stated('1.005') })]);
        await world.settle(link, [said(kind)]);
        const later = await world.settle(link, [said(kind, { quoteMoney: stated('30') })]);
        expect(later).toMatchObject({ outcome: 'applied', rule: 'return_sum_named', notices: 0 });
        expect(await world.settle(link, [said(kind, { quoteMoney: stated('40') })])).toMatchObject({ notices: 0 });
        const before = await world.timeline(link);
        const named = before.order.entries.map((entry) => [entry.paymentKey, entry.amountMinor, entry.stated]);
        expect(named).toEqual([
          ['pay_1', 10_000, null],
          ['pay_2', 0, { amount: '1.005', currency: 'BRL' }],
          ['pay_1', -10_000, null],
          ['pay_1', 0, { amount: '30.00', currency: 'BRL' }],
        ]);
        const told = before.attention.filter(({ kind: matter }) => matter === 'amount_mismatch');
        expect(told).toMatchObject([{ count: 1, params: { said: { kind, amount: '30.00' } } }]);
        // A newer answer of the API corrects the sum, also to all of it.
        await world.answer(link, [said(kind, { quoteMoney: stated('40') })]);
        await world.answer(link, [said(kind, { quoteMoney: stated('100') })]);
        const corrected = (await world.timeline(link)).order;
        expect(corrected.entries.slice(4).map((entry) => entry.stated?.amount)).toEqual(['40.00', '100.00']);
        await world.reopen();
        expect((await world.timeline(link)).order).toEqual(corrected);
      },
    );

    it.each(['refund_due', 'duplicate_payment'] as const)(
      'keeps %s and its matter until all of what is owed is named as refunded',
      async (debt) => {
        const linked = await world.openNew();
        link = linked;
        const [first, owed] = debt === 'refund_due' ? [LITTLE, 'pay_1'] : [{}, 'pay_2'];
        await world.settle(link, [said('completed', first)]);
        if (debt === 'refund_due') await resolve('reject');
        else await world.settle(link, [said('completed', { paymentId: 'pay_2' })]);
        const back = (amount: string | null, paymentId = owed) =>
          said('refunded', { paymentId, ...first, quoteMoney: amount === null ? null : stated(amount) });
        const matterOf = async () =>
          (await world.timeline(link)).attention.find(({ kind }) => kind === debt)?.params as {
            owed?: { named: object[] };
            payments?: { named: object[] };
          };
        const listed = async () => {
          const params = await matterOf();
          return (params?.owed ?? params?.payments)?.named;
        };
        await world.settle(link, [back('20', 'pay_9')]);
        const beside = { id: 'pay_9', status: 'refunded', isBeside: true };
        expect(await listed()).toMatchObject([{ id: owed, status: 'completed' }, beside]);
        await world.settle(link, [back('30')]);
        await world.reopen();
        expect(await story()).toMatchObject({ flags: [debt], attention: expect.arrayContaining([debt]) });
        const partly = { id: owed, status: 'refunded', stated: { amount: '30.00', currency: 'BRL' } };
        expect(await listed()).toMatchObject([partly, beside]);
        await world.answer(linked, [back('40')]);
        expect((await story()).flags).toEqual([debt]);
        await world.answer(linked, [back(debt === 'refund_due' ? '60' : '100')]);
        expect([(await story()).flags, await listed()]).toEqual([[], undefined]);
        expect((await story()).attention).toEqual(['amount_mismatch']);
      },
    );

    it('corrects money that nobody had named of a payment that did not pay the order', async () => {
      await world.settle(link, [said('completed')]);
      await world.settle(link, [said('completed', { paymentId: 'pay_2', linkMoney: null })]);
      await world.settle(link, [said('completed', { paymentId: 'pay_3', linkMoney: null })]);
      await world.reopen();
      await world.settle(link, [said('completed', { paymentId: 'pay_2', quoteMoney: stated('60') })]);
      await world.settle(link, [said('completed', { paymentId: 'pay_3', linkMoney: stated('80', 'USD') })]);
      const { ledger, attention } = await story();
      expect(ledger).toEqual([
        'captured 10000 BRL pay_1',
        'captured 10000 BRL pay_2',
        'captured 10000 BRL pay_3',
        'captured -4000 BRL pay_2',
        'captured -10000 BRL pay_3',
        'captured 8000 USD pay_3',
      ]);
      expect(attention).toEqual(['duplicate_payment']);
      const again = await world.settle(link, [said('completed', { paymentId: 'pay_2', quoteMoney: stated('60') })]);
      expect(again).toMatchObject({ outcome: 'already_applied' });
    });
  });

  describe('resolveOrder', () => {
    it('accepts held money as it was captured', async () => {
      await world.settle(link, [said('completed', LITTLE)]);
      const resolved = await resolve('accept', 'the rest came in cash');
      const before = await world.timeline(link);
      expect(await resolve('accept')).toMatchObject({ outcome: 'already_applied', order: before.order });
      expect(await world.timeline(link)).toEqual(before);
      expect(resolved).toMatchObject({
        outcome: 'applied',
        rule: 'hold_accepted',
        order: { state: 'paid', holds: [], resolution: 'accept' },
      });
      expect(await story()).toMatchObject({
        state: 'paid',
        ledger: ['captured 6000 BRL pay_1'],
        notices: ['order.held', 'order.paid'],
      });
      const { order, history } = await world.timeline(link);
      expect(order).toEqual(resolved?.order);
      expect(order.settlement).toMatchObject({ paymentKey: 'pay_1', learnedBy: 'person' });
      expect(history.at(-1)).toMatchObject({
        what: 'hold_accepted',
        from: 'held',
        to: 'paid',
        cause: { kind: 'person', id: 'the rest came in cash' },
      });
    });

    it('ends the holds of its own order, and of no other', async () => {
      const other = await world.newLink();
      await world.settle(link, [said('completed', LITTLE)]);
      await world.settle(other, [said('completed', { ...LITTLE, paymentId: 'pay_2' })]);
      await resolve('accept');
      const { order } = await world.timeline(other);
      expect(order).toMatchObject({ state: 'held', holds: [{ reason: 'amount_mismatch' }] });
    });

    it('rejects held money: cancelled, with a refund due until it is read', async () => {
      await world.settle(link, [said('completed', LITTLE)]);
      expect(await resolve('reject')).toMatchObject({ outcome: 'applied', rule: 'hold_rejected' });
      expect(await story()).toMatchObject({ state: 'cancelled', flags: ['refund_due'], holds: [] });
      await world.settle(link, [said('refunded')]);
      expect(await story()).toMatchObject({ state: 'cancelled', flags: [] });
    });

    it('ignores a decision about an order that is not held, and finds no order by an unknown reference', async () => {
      const before = await world.timeline(link);
      expect(await resolve('accept')).toMatchObject({ outcome: 'ignored', rule: 'not_held' });
      expect(await world.timeline(link)).toEqual(before);
      expect(await world.resolve({ reference: 'nobody' }, 'accept')).toBeNull();
    });
  });
}
