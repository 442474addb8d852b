import { describe, expect, it } from 'vitest';
import { payments } from '../../src/domain/ledger.ts';
import { decidedParams } from '../../src/domain/matter.ts';
import type { Order } from '../../src/domain/order.ts';
import { decide } from '../../src/domain/settlement.ts';
import {
  API,
  aFact,
  anOrder,
  balances,
  deeds,
  instruction,
  orderAfter,
  orderIn,
  read,
  second,
  stated,
  step,
} from '../support/orders.ts';

const saidOf = (order: Order, fact: Parameters<typeof step>[1]) =>
  step(order, fact).made.effects.flatMap((effect) => (effect.do === 'attention' ? [effect] : []));

describe('a counted payment that is named again', () => {
  it.each([
    ['by the link, in another currency', { linkMoney: stated('100.00', 'USD') }],
    ['by the quote, in another currency', { linkMoney: null, quoteMoney: stated('100.00', 'USD') }],
    ['by the link, with less', { linkMoney: stated('60.00') }],
  ])('%s, is not counted again, and a person is told', (_name, over) => {
    for (const fact of [aFact('completed', over), read('completed', over)]) {
      const made = decide(orderIn('paid'), fact, API);
      expect([made.rule, deeds(made)]).toEqual(['counted_money_differs', ['attention amount_mismatch']]);
    }
  });
});

describe('the first payment of an order that a person accepted', () => {
  it.each([
    ['in another currency', { linkMoney: stated('100.00', 'USD') }],
    ['of another reference', { reference: 'order-2' }],
    ['with more', { linkMoney: stated('500.00') }],
  ])('%s is counted, and a person is told', (_name, over) => {
    const accepted = orderAfter(anOrder(), aFact('unclear'), instruction('accept'));
    const { made, order } = step(accepted, aFact('completed', over));
    expect([made.rule, order.state]).toEqual(['payment_of_accepted_order', 'paid']);
    expect(deeds(made)).toContain('attention amount_mismatch');
  });
});

describe('the advice to refund', () => {
  it('names no payment that is refunded or disputed', () => {
    const third = aFact('completed', { paymentId: 'pay_3' });
    const paid = orderAfter(orderIn('paid'), second(), third, second('refunded'));
    const { owed, kept } = decidedParams('duplicate_payment', paid);
    expect([owed.named.map(({ id }) => id), kept?.named.map(({ id }) => id)]).toEqual([['pay_3'], ['pay_1']]);
    const held = orderAfter(orderIn('held'), second(), third, second('refunded'));
    expect(decidedParams('duplicate_payment', held).owed.named.map(({ id }) => id)).toEqual(['pay_1', 'pay_3']);
    const rejected = orderAfter(held, instruction('reject'));
    expect(decidedParams('refund_due', rejected).payments.named.map(({ id }) => id)).toEqual(['pay_1', 'pay_3']);
  });

  it('stands while another payment is disputed: its money may come back', () => {
    const rejected = orderAfter(orderIn('held'), second(), instruction('reject'));
    const once = orderAfter(rejected, aFact('disputed'));
    const { made, order } = step(once, second('refunded'));
    expect(order.flags).toEqual(['refund_due']);
    expect(deeds(made)).not.toContain('end_attention refund_due');
  });
});

describe('a dispute that was won', () => {
  it('pays an order that its payment covers, although another one is still in dispute', () => {
    const small = second('completed', { linkMoney: stated('40.00') });
    const both = orderAfter(
      orderIn('paid'),
      small,
      aFact('disputed'),
      second('disputed', { linkMoney: stated('40.00') }),
    );
    const { made, order } = step(both, read('completed'));
    expect([made.rule, order.state]).toEqual(['dispute_won', 'paid']);
  });
});

describe('a dispute that was won with other money than was counted', () => {
  const disputed = () => orderAfter(orderIn('paid'), aFact('disputed'));
  it.each([
    ['a quote of less', disputed(), { quoteMoney: stated('30.00') }, 'amount_mismatch', 3_000],
    ['nothing readable', disputed(), { quoteMoney: stated('30.005') }, 'amount_mismatch', 0],
    ['a link of less', disputed(), { linkMoney: stated('60.00') }, 'amount_mismatch', 6_000],
    ['another currency', disputed(), { linkMoney: stated('100.00', 'USD') }, 'currency_mismatch', 10_000],
    [
      'less, when it is the first to name any',
      orderAfter(anOrder(), aFact('disputed', { linkMoney: null })),
      { quoteMoney: stated('30.00') },
      'amount_mismatch',
      3_000,
    ],
    [
      'less, of a payment that had no id',
      orderAfter(anOrder(), aFact('completed', { paymentId: null }), aFact('disputed', { paymentId: null })),
      { quoteMoney: stated('30.00') },
      'amount_mismatch',
      3_000,
    ],
  ] as const)(
    'by %s pays nothing: a person decides about what is named',
    (_what, before, over, reason, amountMinor) => {
      const { made, order } = step(before, read('completed', over));
      expect([made.rule, order.state, order.flags]).toEqual(['money_does_not_agree', 'held', []]);
      expect(order.holds.map((hold) => hold.reason)).toEqual([reason]);
      const counted = payments(order);
      expect(counted.map(({ captured, id }) => [captured.amountMinor, id])).toEqual([[amountMinor, 'pay_1']]);
      expect(deeds(made)).not.toContain('notice order.paid');
      expect(step(order, instruction('accept')).order.state).toBe('paid');
    },
  );

  it('pays an order that was accepted for that money', () => {
    const less = { quoteMoney: stated('30.00') };
    const accepted = orderAfter(anOrder(), aFact('completed', less), instruction('accept'), aFact('disputed', less));
    expect(step(accepted, read('completed', less)).order.state).toBe('paid');
  });
});

describe.each(['refunded', 'disputed'] as const)('a payment that is %s', (kind) => {
  it.each([
    ['less', stated('30.00')],
    ['more', stated('150.00')],
    ['more in another currency', stated('300.00', 'USD')],
    ['nothing readable', stated('30.005')],
  ])('with a quote of %s than was captured goes back whole, and a person is told of both sums', (_name, quoteMoney) => {
    for (const fact of [aFact(kind, { quoteMoney }), read(kind, { quoteMoney })]) {
      const { order } = step(orderIn('paid'), fact);
      expect([order.state, balances(order.entries)]).toEqual([kind, [{ amountMinor: 0, currency: 'BRL' }]]);
      const expected = { kind, paymentId: 'pay_1', ...quoteMoney };
      const told = saidOf(orderIn('paid'), fact);
      expect(told.map(({ said }) => said)).toMatchObject([expected]);
      expect(saidOf(order, fact)).toEqual([]);
    }
  });

  it.each([
    ['the sum that was captured', { quoteMoney: stated('100.00') }],
    ['what the customer paid', { quoteMoney: stated('112.40') }],
    ['no sum', { quoteMoney: null }],
  ])('with %s raises nothing', (_name, over) => {
    const paid = orderAfter(anOrder(), aFact('completed', over));
    expect(saidOf(paid, read(kind, over))).toEqual([]);
  });

  it('and whose own money it is the first to name goes back whole, and the one matter says it', () => {
    const paid = orderAfter(anOrder(), aFact('completed', { linkMoney: null }));
    const { order } = step(paid, aFact(kind, { quoteMoney: stated('30.00') }));
    expect([order.state, balances(order.entries)]).toEqual([kind, [{ amountMinor: 0, currency: 'BRL' }]]);
    const told = saidOf(paid, aFact(kind, { quoteMoney: stated('30.00') }));
    expect(told.filter(({ kind: matter }) => matter === 'amount_mismatch')).toMatchObject([
      { said: { kind, paymentId: 'pay_1', amount: '30.00', currency: 'BRL' } },
    ]);
  });

  it('and was never counted, beside one that pays the order, is a matter if it names another sum', () => {
    const other = { paymentId: 'pay_2', quoteMoney: stated('30.00') };
    const { order } = step(orderIn('paid'), read(kind, other));
    expect(order.state).toBe('paid');
    expect(saidOf(orderIn('paid'), read(kind, other)).at(-1)).toMatchObject({
      kind: 'amount_mismatch',
      said: { kind, paymentId: 'pay_2', amount: '30.00', currency: 'BRL', isBeside: true },
    });
    const same = { ...other, quoteMoney: stated('100.00') };
    expect(saidOf(orderIn('paid'), read(kind, same)).map(({ kind: matter }) => matter)).not.toContain(
      'amount_mismatch',
    );
  });
});
