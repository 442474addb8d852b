import { describe, expect, it } from 'vitest';
import type { PaymentFact } from '../../src/domain/fact.ts';
import { payments } from '../../src/domain/ledger.ts';
import { decidedParams } from '../../src/domain/matter.ts';
import type { Order } from '../../src/domain/order.ts';
import {
  aFact,
  anOrder,
  deeds,
  EVENT,
  instruction,
  orderAfter,
  orderIn,
  reading,
  second,
  stated,
  step,
} from '../support/orders.ts';

/**
 * Money that is owed back, and what the service names as gone back: shapes × sums × debts. The oracle: nothing that is
 * owed ends before all of it is known to be back, whatever came first.
 */

/** Orders that owe 100.00 BRL of `payment` under the flag of their name, and one that owes nothing. */
const DEBTS = {
  refund_due: {
    payment: 'pay_1',
    order: orderAfter(anOrder(), instruction('cancel'), aFact('completed'), instruction('reject')),
  },
  duplicate_payment: { payment: 'pay_2', order: orderAfter(orderIn('paid'), second('completed')) },
  nothing: { payment: 'pay_1', order: orderIn('paid') },
} as const;
type Debt = keyof typeof DEBTS;

/** What a reversal names, and whether that is all of 100.00 BRL. */
const SUMS = [
  ['nothing', null, true],
  ['a part', stated('30.50'), false],
  ['nearly all', stated('99.99'), false],
  ['all', stated('100.00'), true],
  ['more', stated('150.00'), true],
  ['another currency', stated('100.00', 'USD'), false],
  ['nothing readable', stated('30.505'), false],
] as const;
const KINDS = ['refunded', 'disputed'] as const;

const CASES = Object.keys(DEBTS).flatMap((debt) =>
  KINDS.flatMap((kind) =>
    ['in place', 'beside'].flatMap((shape) =>
      SUMS.map(([sum, quoteMoney, isAll]) => ({ debt: debt as Debt, kind, shape, sum, quoteMoney, isAll })),
    ),
  ),
);

const debtsOf = ({ flags }: Order) => flags.filter((flag) => flag === 'refund_due' || flag === 'duplicate_payment');

/** What is still owed after a reversal in the payment's place: a dispute may be won, so it ends no `refund_due`. */
function owedAfter(debt: Debt, kind: (typeof KINDS)[number], isAll: boolean): Debt[] {
  return debt === 'nothing' || (isAll && (debt === 'duplicate_payment' || kind === 'refunded')) ? [] : [debt];
}

/** Decides a fact. The matter is raised again or ended with the flag. */
function decided(order: Order, fact: PaymentFact): Order {
  const { made, order: after } = step(order, fact);
  for (const debt of ['refund_due', 'duplicate_payment'] as const) {
    const [was, is] = [order, after].map(({ flags }) => flags.includes(debt));
    if (was && !is) expect(deeds(made)).toContain(`end_attention ${debt}`);
    if (!was && is) expect(deeds(made)).toContain(`attention ${debt}`);
    if (was && is && made.rule !== 'return_already_counted') expect(deeds(made)).toContain(`attention ${debt}`);
  }
  return after;
}

describe.each(CASES)('$debt is owed, and $sum of it is $kind $shape', ({ debt, kind, shape, quoteMoney, isAll }) => {
  const { order, payment } = DEBTS[debt];
  const paymentId = shape === 'beside' ? 'pay_9' : payment;
  const back = (over: Partial<PaymentFact> = {}) => aFact(kind, { paymentId, quoteMoney, ...over });

  it.each([EVENT, reading(2)])('says $by', (authority) => {
    const after = decided(order, back({ authority }));
    const wanted = shape === 'beside' ? debtsOf(order) : owedAfter(debt, kind, isAll);
    expect(debtsOf(after)).toEqual(wanted);
    const [owed] = wanted;
    if (owed === undefined || owed === 'nothing') return;
    const params = decidedParams(owed, after);
    const { named } = 'owed' in params ? params.owed : params.payments;
    const isPart = shape === 'beside' && quoteMoney !== null && quoteMoney.amount !== '30.505' && !isAll;
    const left = shape === 'beside' || !isAll ? [payment] : [];
    if (after.state !== 'held') expect(named.map(({ id }) => id)).toEqual([...left, ...(isPart ? ['pay_9'] : [])]);
    expect(named.filter(({ isBeside }) => isBeside).length).toBe(isPart ? 1 : 0);
  });

  if (shape === 'beside') return;

  it('when the sum is named only later', () => {
    const unnamed = decided(order, back({ quoteMoney: null }));
    expect(debtsOf(decided(unnamed, back()))).toEqual(owedAfter(debt, kind, isAll));
  });

  it('and a newer answer corrects that to all of it', () => {
    const after = decided(decided(order, back()), back({ authority: reading(3), quoteMoney: stated('100.00') }));
    expect(debtsOf(after)).toEqual(owedAfter(debt, kind, true));
    expect(payments(after).map(({ mayBeLeft }) => mayBeLeft)).not.toContain(true);
  });
});

describe.each(KINDS)('an order that first hears of its payment as %s', (kind) => {
  it.each([
    ['a quote of less', { quoteMoney: stated('30.50') }, 'held', true],
    ['a link of less', { linkMoney: stated('30.50') }, 'held', true],
    ['a link in another currency', { linkMoney: stated('100.00', 'USD') }, 'held', true],
    ['an unreadable quote', { quoteMoney: stated('30.505') }, 'held', true],
    ['a quote with interest', { quoteMoney: stated('150.00') }, kind, false],
    ['a quote of all', { quoteMoney: stated('100.00') }, kind, false],
  ] as const)('with %s keeps a matter of what may be left, if it is doubtful', (_, money, state, isDoubtful) => {
    const { made, order } = step(anOrder(), aFact(kind, money));
    expect(order.state).toBe(state);
    expect(deeds(made).includes('attention amount_mismatch')).toBe(isDoubtful);
    if (state === 'held')
      expect(deeds(step(order, instruction('reject')).made)).not.toContain('end_attention amount_mismatch');
  });
});

describe('what may be left of a payment', () => {
  const part = { quoteMoney: stated('30.50') };

  it('is owed too when a person decides only afterwards', () => {
    const held = orderAfter(orderIn('held'), aFact('refunded', { ...part, linkMoney: stated('60.00') }));
    expect(orderAfter(held, instruction('reject')).flags).toEqual(['refund_due']);
    const two = orderAfter(orderIn('held'), second('completed'), aFact('refunded', part));
    expect(orderAfter(two, instruction('accept')).flags).toEqual(['duplicate_payment']);
  });

  it('is not owed of the payment that paid a refunded order', () => {
    const small = aFact('completed', { paymentId: 'pay_2', linkMoney: stated('60.00') });
    const after = orderAfter(orderIn('paid'), small, aFact('refunded', part));
    expect([after.state, after.flags]).toEqual(['refunded', ['duplicate_payment']]);
    const all = aFact('refunded', { paymentId: 'pay_2', linkMoney: stated('60.00') });
    expect(orderAfter(after, all).flags).toEqual([]);
  });

  it('is owed of assumed and of unreadable money: a smaller sum of a refund corrects neither', () => {
    const orders = [
      orderAfter(orderIn('paid'), aFact('completed', { paymentId: 'pay_2', linkMoney: null })),
      orderAfter(orderIn('paid'), aFact('completed', { paymentId: 'pay_2', quoteMoney: stated('100.005') })),
    ];
    for (const order of orders) {
      const after = orderAfter(order, aFact('refunded', { paymentId: 'pay_2', ...part }));
      expect(after.flags).toEqual(['duplicate_payment']);
      expect(payments(after)[1]?.captured).toEqual(payments(order)[1]?.captured);
    }
  });

  it('is nothing of a payment that only its refund named, whatever sum is named later', () => {
    const beside = { paymentId: 'pay_9', authority: reading(2), ...part };
    const named = orderAfter(orderIn('paid'), aFact('refunded', beside));
    const less = { ...beside, authority: reading(3), quoteMoney: stated('20.00') };
    const [, other] = payments(orderAfter(named, aFact('refunded', less)));
    expect(other).toMatchObject({ isBeside: true, mayBeLeft: false, stated: { amount: '20.00' } });
  });

  it('is all of it once a dispute with a smaller sum is won', () => {
    const lost = orderAfter(orderIn('paid'), aFact('disputed', part));
    const [won] = payments(orderAfter(lost, aFact('completed', { authority: reading(2) })));
    expect(won).toMatchObject({ status: 'completed', mayBeLeft: false });
  });
});
