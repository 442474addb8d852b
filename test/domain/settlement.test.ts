import { describe, expect, it } from 'vitest';
import { payments } from '../../src/domain/ledger.ts';
import { ORDER_STATES, type Order, type OrderState } from '../../src/domain/order.ts';
import { decide } from '../../src/domain/settlement.ts';
import {
  API,
  aFact,
  anOrder,
  balances,
  deeds,
  EVENT,
  instruction,
  NO_API,
  orderAfter,
  orderIn,
  reading,
  second,
  stated,
  step,
  TOO_LITTLE,
} from '../support/orders.ts';

const OPEN = ['awaiting_payment', 'payment_pending', 'expired'] as const;
const other = (states: readonly OrderState[]) => ORDER_STATES.filter((state) => !states.includes(state));
const unnamed = (kind: Parameters<typeof aFact>[0] = 'completed') => aFact(kind, { paymentId: null });
const noMoney = (over = {}) => aFact('completed', { linkMoney: null, ...over });
const balanceOf = (order: Order) => balances(order.entries);

describe('settlement: a pending payment', () => {
  it('makes an awaiting order payment_pending and tells the shop', () => {
    const { made } = step(orderIn('awaiting_payment'), aFact('pending'));
    expect(made).toMatchObject({ outcome: 'applied', rule: 'payment_pending', state: 'payment_pending' });
    expect(deeds(made)).toEqual(['notice order.payment_pending']);
  });
});

describe('settlement: a completed payment on an open order', () => {
  it.each(OPEN)('of equal money pays an order that is %s', (state) => {
    const { made, order } = step(orderIn(state), aFact('completed'), API, 77);
    expect(made).toMatchObject({ outcome: 'applied', rule: 'paid', state: 'paid' });
    expect(order.settlement).toEqual({ paidAtMs: 77, paymentKey: 'pay_1', learnedBy: 'webhook' });
    expect(balanceOf(order)).toEqual([{ amountMinor: 10_000, currency: 'BRL' }]);
    expect(deeds(made)).toContain('notice order.paid');
    expect(order.flags).toEqual(state === 'expired' ? ['late'] : []);
  });

  it('of equal money said by a reading pays as well, learned by reconciliation', () => {
    const { order } = step(anOrder(), aFact('completed', { authority: reading(1) }));
    expect(order.state).toBe('paid');
    expect(order.settlement?.learnedBy).toBe('reconciliation');
  });

  it.each(OPEN)('of money that a webhook does not name pays an order that is %s, flagged, and asks', (state) => {
    const { made, order } = step(orderIn(state), noMoney(), API);
    expect(made).toMatchObject({ outcome: 'applied', rule: 'paid_money_unnamed', state: 'paid' });
    expect(order.flags).toContain('money_unnamed');
    expect(deeds(made)).toContain('check');
    expect(balanceOf(order)).toEqual([{ amountMinor: 10_000, currency: 'BRL' }]);
  });

  it('of unnamed money is a matter for a person if there is no API to ask, until it is named', () => {
    const { made, order } = step(anOrder(), noMoney(), NO_API);
    expect(made.state).toBe('paid');
    expect(deeds(made)).toContain('attention money_unnamed');
    expect(deeds(decide(anOrder(), noMoney(), API))).not.toContain('attention money_unnamed');
    const named = decide(order, aFact('completed'), NO_API);
    expect(deeds(named)).toContain('end_attention money_unnamed');
  });

  it.each([
    ["the order's amount without a currency", { linkMoney: stated('100.00', null) }, 'paid_money_unnamed'],
    ["the order's currency without an amount", { linkMoney: { amount: null, currency: 'BRL' } }, 'paid_money_unnamed'],
    ['more without a currency', { linkMoney: stated('150.00', null) }, 'asks_before_deciding'],
    ['more without a currency in its quote', { quoteMoney: stated('150.00', null) }, 'asks_before_deciding'],
    ['less without a currency in its quote', { quoteMoney: stated('50.00', null) }, 'asks_before_deciding'],
  ])('that names %s', (_what, money, rule) => {
    expect(decide(anOrder(), noMoney(money), API).rule).toBe(rule);
  });

  it('of money that a reading does not name is held', () => {
    const { made, order } = step(anOrder(), noMoney({ authority: reading(1) }), API);
    expect(made).toMatchObject({ outcome: 'held', state: 'held' });
    expect(order.holds.map(({ reason }) => reason)).toEqual(['amount_mismatch']);
  });

  it('loses the flag money_unnamed once a reading names the money', () => {
    const paid = orderAfter(anOrder(), noMoney());
    const { made, order } = step(paid, aFact('completed', { authority: reading(1) }), API);
    expect(made).toMatchObject({ outcome: 'applied', rule: 'money_named', state: 'paid' });
    expect(order.flags).toEqual([]);
    expect(order.entries).toHaveLength(1);
  });

  it('keeps its ledger if the quote named later is more: interest', () => {
    const paid = orderAfter(anOrder(), noMoney());
    const { made, order } = step(paid, aFact('completed', { quoteMoney: stated('120') }), API);
    expect(made.rule).toBe('money_named');
    expect(balanceOf(order)).toEqual([{ amountMinor: 10_000, currency: 'BRL' }]);
    expect(order.flags).toEqual([]);
    expect(payments(order)).toMatchObject([{ customerPaid: { amount: '120.00', currency: 'BRL' } }]);
    expect(deeds(made)).not.toContain('attention amount_mismatch');
  });

  it.each([
    ['the link named later is of more', { linkMoney: stated('120') }, 12_000],
    ['the money named later is less', { quoteMoney: stated('90') }, 9_000],
  ])('has its ledger corrected, and a matter raised, if %s', (_what, over, amountMinor) => {
    const paid = orderAfter(anOrder(), noMoney());
    const { made, order } = step(paid, aFact('completed', over), API);
    expect(deeds(made)).toContain(`captured ${amountMinor - 10_000} of pay_1`);
    expect(balanceOf(order)).toEqual([{ amountMinor, currency: 'BRL' }]);
    expect(order).toMatchObject({ state: 'paid', flags: [] });
    expect(deeds(made)).toContain('attention amount_mismatch');
  });

  it('keeps its ledger and its flag if the money named later cannot be read', () => {
    const paid = orderAfter(anOrder(), noMoney());
    const { made, order } = step(paid, noMoney({ quoteMoney: stated('1e999') }), API);
    expect(balanceOf(order)).toEqual([{ amountMinor: 10_000, currency: 'BRL' }]);
    expect(order.flags).toEqual(['money_unnamed']);
    expect(deeds(made)).toEqual(['attention amount_mismatch']);
  });

  it('has its ledger corrected into another currency that is named later, and a matter raised', () => {
    const paid = orderAfter(anOrder(), noMoney());
    const { made, order } = step(paid, aFact('completed', { linkMoney: stated('90', 'USD') }), API);
    expect(balanceOf(order)).toEqual([
      { amountMinor: 0, currency: 'BRL' },
      { amountMinor: 9000, currency: 'USD' },
    ]);
    expect(payments(order)).toMatchObject([{ captured: { amountMinor: 9000, currency: 'USD' } }]);
    expect(order.flags).toEqual([]);
    expect(deeds(made)).toContain('attention amount_mismatch');
    expect(orderAfter(order, aFact('refunded')).entries.at(-1)).toMatchObject({ amountMinor: -9000, currency: 'USD' });
  });

  it('keeps its ledger and its flag if the money of another payment is named', () => {
    const paid = orderAfter(anOrder(), noMoney());
    const { made, order } = step(paid, second('completed', { quoteMoney: stated('90') }), API);
    expect(made.rule).toBe('duplicate_payment');
    expect(payments(order).map(({ captured }) => captured.amountMinor)).toEqual([10_000, 9000]);
    expect(order.flags).toEqual(['money_unnamed', 'duplicate_payment']);
    // Nor does that payment name it when it is reported again.
    const again = step(order, second('completed', { quoteMoney: stated('90'), authority: reading(1) }), API);
    expect(again.made).toMatchObject({ outcome: 'already_applied', effects: [] });
    expect(again.order.flags).toContain('money_unnamed');
  });

  it.each(OPEN)('with interest in its quote pays an order that is %s, without a flag', (state) => {
    const { made, order } = step(orderIn(state), aFact('completed', { quoteMoney: stated('112.40') }), API);
    expect(made).toMatchObject({ outcome: 'applied', rule: 'paid', state: 'paid' });
    expect(order.flags).toEqual(state === 'expired' ? ['late'] : []);
    expect(balanceOf(order)).toEqual([{ amountMinor: 10_000, currency: 'BRL' }]);
    expect(payments(order)).toMatchObject([{ customerPaid: { amount: '112.40', currency: 'BRL' } }]);
    expect(deeds(made).filter((deed) => deed.startsWith('attention'))).toEqual([]);
  });
});

describe('settlement: what the customer paid', () => {
  const withInterest = (amount: string, over = {}) => aFact('completed', { quoteMoney: stated(amount), ...over });
  const paidOf = (order: Order) => payments(order).map(({ customerPaid }) => customerPaid?.amount ?? null);

  it('may be said after the payment was counted: kept once, and no matter is raised', () => {
    const { made, order } = step(orderIn('paid'), withInterest('112.40'), API);
    expect(made).toMatchObject({ outcome: 'applied', rule: 'customer_paid_named', state: 'paid' });
    expect(deeds(made)).toEqual(['captured 0 of pay_1']);
    expect(paidOf(order)).toEqual(['112.40']);
    expect(decide(order, withInterest('112.40'), API).outcome).toBe('already_applied');
  });

  it('is corrected by a reading, and by no other event', () => {
    const paid = orderAfter(anOrder(), withInterest('10000'));
    expect(decide(paid, withInterest('112.40'), API).outcome).toBe('already_applied');
    const { made, order } = step(paid, withInterest('112.40', { authority: reading(1) }), API);
    expect(made.rule).toBe('customer_paid_named');
    expect(paidOf(order)).toEqual(['112.40']);
    expect(paidOf(orderAfter(order, withInterest('100', { authority: reading(2) })))).toEqual([null]);
  });

  it('is kept of a payment that does not pay the order, and of one that went back', () => {
    const twice = orderAfter(orderIn('paid'), second('completed', { quoteMoney: stated('120') }));
    expect(paidOf(twice)).toEqual([null, '120.00']);
    expect(paidOf(orderAfter(anOrder(), withInterest('112.40'), aFact('refunded')))).toEqual(['112.40']);
  });

  it('does not contradict an earlier version, which counted it', () => {
    const [entry] = orderIn('paid').entries;
    const counted = { ...orderIn('paid'), flags: ['overpaid' as const] };
    const before = { ...counted, entries: [{ ...(entry as NonNullable<typeof entry>), amountMinor: 11_240 }] };
    const made = decide(before, withInterest('112.40', { authority: reading(1) }), API);
    expect(made).toMatchObject({ outcome: 'already_applied', effects: [] });
  });
});

describe('settlement: unnamed money, of a payment that did not pay the order', () => {
  const duplicate = orderAfter(orderIn('paid'), second('completed', { linkMoney: null }));

  it('is counted as the order asks, and corrected when it is named', () => {
    const { made, order } = step(duplicate, second('completed', { quoteMoney: stated('60'), authority: reading(1) }));
    expect(made).toMatchObject({ outcome: 'applied', rule: 'money_named', state: 'paid' });
    expect(payments(order).map(({ captured }) => captured.amountMinor)).toEqual([10_000, 6000]);
    expect(deeds(made)).toEqual(['captured -4000 of pay_2', 'flag duplicate_payment', 'attention duplicate_payment']);
  });

  it('is corrected once, and is asked for no more when it was as assumed', () => {
    const named = step(duplicate, second('completed', { authority: reading(1) }));
    expect(deeds(named.made)).toEqual(['captured 0 of pay_2']);
    const other = second('completed', { quoteMoney: stated('60'), authority: reading(2) });
    expect(decide(named.order, other, API).rule).toBe('counted_money_differs');
  });

  it('is corrected into the currency that is named', () => {
    const named = orderAfter(duplicate, second('completed', { linkMoney: stated('80', 'USD') }));
    expect(balanceOf(named)).toEqual([
      { amountMinor: 10_000, currency: 'BRL' },
      { amountMinor: 8000, currency: 'USD' },
    ]);
  });

  it('is corrected while the order is held, and a person accepts what came', () => {
    const held = orderAfter(anOrder(), aFact('unclear'), noMoney());
    const named = orderAfter(held, aFact('completed', { quoteMoney: stated('60'), authority: reading(1) }));
    expect(named.state).toBe('held');
    expect(balanceOf(orderAfter(named, instruction('accept')))).toEqual([{ amountMinor: 6000, currency: 'BRL' }]);
  });

  it('is corrected when the order is paid by it, as a person accepted: a matter is raised', () => {
    const accepted = orderAfter(anOrder(), aFact('unclear'), noMoney(), instruction('accept'));
    const { made, order } = step(accepted, aFact('completed', { quoteMoney: stated('60') }), API);
    expect(balanceOf(order)).toEqual([{ amountMinor: 6000, currency: 'BRL' }]);
    expect(deeds(made)).toContain('attention amount_mismatch');
  });

  it('is corrected for rejected money, and the refund due is stated again', () => {
    const rejected = orderAfter(anOrder(), aFact('unclear'), noMoney(), instruction('reject'));
    const { made, order } = step(rejected, aFact('completed', { quoteMoney: stated('60') }), API);
    expect(order).toMatchObject({ state: 'cancelled', flags: ['refund_due'] });
    expect(deeds(made)).toContain('attention refund_due');
  });

  it('is corrected first by a refund that names more, and not by one that names less: that may be a part', () => {
    for (const [quote, entries] of [
      ['160', [6000, -16_000]],
      ['60', [-10_000]],
    ] as const) {
      const { order } = step(duplicate, second('refunded', { linkMoney: null, quoteMoney: stated(quote) }));
      expect(order.entries.slice(2).map(({ amountMinor }) => amountMinor)).toEqual(entries);
    }
  });

  it('is corrected if it could not be read at first', () => {
    const held = orderAfter(anOrder(), aFact('completed', { linkMoney: stated('NaN') }));
    expect(balanceOf(held)).toEqual([{ amountMinor: 0, currency: 'BRL' }]);
    const named = orderAfter(held, aFact('completed', { authority: reading(1) }));
    expect(balanceOf(named)).toEqual([{ amountMinor: 10_000, currency: 'BRL' }]);
  });
});

const MISMATCHES = [
  ['less', 'amount_mismatch', { linkMoney: stated('99.99') }],
  ['an amount that is no number', 'amount_mismatch', { linkMoney: stated('NaN') }],
  ['an amount beyond all money', 'amount_mismatch', { linkMoney: stated('1e999') }],
  ['an amount of zero', 'amount_mismatch', { linkMoney: stated('-0') }],
  ['an amount with too many decimals', 'amount_mismatch', { linkMoney: stated('100.001') }],
  ['less by its quote', 'amount_mismatch', { quoteMoney: stated('99.99') }],
  ['another currency', 'currency_mismatch', { linkMoney: stated('100.00', 'USD') }],
  ['another currency without an amount', 'currency_mismatch', { linkMoney: { amount: null, currency: 'USD' } }],
  ['more', 'amount_mismatch', { linkMoney: stated('100.01') }],
  ['more by link and quote', 'amount_mismatch', { linkMoney: stated('120'), quoteMoney: stated('120') }],
  ['more by its quote alone', 'amount_mismatch', { linkMoney: null, quoteMoney: stated('112.40') }],
  ['another unit', 'amount_mismatch', { linkMoney: stated('10000'), quoteMoney: stated('5000') }],
  [
    'another currency by its quote alone',
    'currency_mismatch',
    { linkMoney: null, quoteMoney: stated('100.00', 'USD') },
  ],
  ['another reference', 'reference_mismatch', { reference: 'order-2' }],
] as const;

describe('settlement: a completed payment that does not agree', () => {
  describe.each(MISMATCHES)('(%s)', (_name, reason, over) => {
    it.each(OPEN)('said by a webhook asks the API if the order is %s', (state) => {
      const { made, order } = step(orderIn(state), aFact('completed', over), API);
      expect(made).toMatchObject({ outcome: 'ask', rule: 'asks_before_deciding', state });
      expect(deeds(made)).toEqual(['check']);
      expect(order).toEqual(orderIn(state));
    });

    it.each(OPEN)('said by a webhook is held if no API can be asked and the order is %s', (state) => {
      const { made, order } = step(orderIn(state), aFact('completed', over), NO_API);
      expect(made).toMatchObject({ outcome: 'held', rule: 'money_does_not_agree', state: 'held' });
      expect(order.holds).toEqual([{ id: `hold_${order.version}`, reason }]);
      expect(deeds(made)).toContain('notice order.held');
      expect(payments(order).map(({ id }) => id)).toEqual(['pay_1']);
      expect(order.settlement).toBeNull();
    });

    it.each(OPEN)('said by a reading is held, not asked again, if the order is %s', (state) => {
      const fact = aFact('completed', { ...over, authority: reading(1) });
      const { made, order } = step(orderIn(state), fact, API);
      expect(made).toMatchObject({ outcome: 'held', state: 'held' });
      expect(order.holds.map((hold) => hold.reason)).toEqual([reason]);
    });
  });
});

describe('settlement: a statement that contradicts itself about a completion', () => {
  it.each(ORDER_STATES)('asks if it can and the order is %s', (state) => {
    expect(decide(orderIn(state), aFact('unclear'), API)).toMatchObject({ outcome: 'ask', state });
  });

  it.each(OPEN)('is held if no API can be asked and the order is %s', (state) => {
    const { made, order } = step(orderIn(state), aFact('unclear'), NO_API);
    expect(made).toMatchObject({ outcome: 'held', rule: 'statement_unclear', state: 'held' });
    expect(order.holds.map(({ reason }) => reason)).toEqual(['status_unclear']);
  });

  it('is held if a reading makes it: asking again would never end', () => {
    const made = decide(anOrder(), aFact('unclear', { authority: reading(1) }), API);
    expect(made).toMatchObject({ outcome: 'held', state: 'held' });
  });

  it('said again of an order that is held for it changes nothing', () => {
    const held = orderAfter(anOrder(), aFact('unclear'));
    expect(decide(held, aFact('unclear'), NO_API)).toMatchObject({ outcome: 'already_applied', effects: [] });
  });

  it.each(other(OPEN))('raises a matter if no API can be asked and the order is %s', (state) => {
    const made = decide(orderIn(state), aFact('unclear'), NO_API);
    expect(made).toMatchObject({ outcome: 'ignored', state });
    expect(deeds(made)).toEqual(['attention status_unclear']);
  });
});

describe('settlement: a completed payment on a held order', () => {
  it('that is another payment is counted, with a further hold', () => {
    const held = orderIn('held');
    const { made, order } = step(held, second());
    expect(made).toMatchObject({ outcome: 'held', rule: 'completion_while_held', state: 'held' });
    expect(order.holds.map(({ reason }) => reason)).toEqual(['amount_mismatch', 'further_payment']);
    expect(order.holds[0]?.id).not.toBe(order.holds[1]?.id);
    expect(balanceOf(order)).toEqual([{ amountMinor: 16_000, currency: 'BRL' }]);
  });

  it('that is the first payment is counted without a further hold', () => {
    const held = orderAfter(anOrder(), aFact('unclear'));
    const { made, order } = step(held, aFact('completed'));
    expect(made).toMatchObject({ outcome: 'held', state: 'held' });
    expect(order.holds.map(({ reason }) => reason)).toEqual(['status_unclear']);
    expect(payments(order)).toHaveLength(1);
  });

  it('that is the held payment again changes nothing', () => {
    expect(decide(orderIn('held'), TOO_LITTLE, API)).toMatchObject({
      outcome: 'already_applied',
      state: 'held',
      effects: [],
    });
  });
});

describe('settlement: a completed payment on a cancelled order', () => {
  it('is held as paid_after_cancel', () => {
    const { made, order } = step(orderIn('cancelled'), aFact('completed'), API);
    expect(made).toMatchObject({ outcome: 'held', rule: 'paid_after_cancel', state: 'held' });
    expect(order.holds.map(({ reason }) => reason)).toEqual(['paid_after_cancel']);
    expect(balanceOf(order)).toEqual([{ amountMinor: 10_000, currency: 'BRL' }]);
    expect(order.settlement).toBeNull();
  });

  it('whose money is not named is held too, and asked for', () => {
    const { made } = step(orderIn('cancelled'), noMoney(), API);
    expect(made.state).toBe('held');
    expect(deeds(made)).toContain('check');
  });

  it('that a person rejected before changes nothing', () => {
    const rejected = orderAfter(orderIn('held'), instruction('reject'));
    expect(decide(rejected, TOO_LITTLE, API)).toMatchObject({ outcome: 'already_applied', effects: [] });
  });
});

describe('settlement: another completed payment', () => {
  it('on a paid order is counted and flagged as a duplicate; the order stays paid', () => {
    const paid = orderIn('paid');
    const { made, order } = step(paid, second());
    expect(made).toMatchObject({ outcome: 'applied', rule: 'duplicate_payment', state: 'paid' });
    expect(order.flags).toEqual(['duplicate_payment']);
    expect(deeds(made)).toEqual([
      'captured 10000 of pay_2',
      'flag duplicate_payment',
      'attention duplicate_payment',
      'notice payment.duplicate',
    ]);
    expect(order.settlement).toEqual(paid.settlement);
  });

  it.each(['refunded', 'disputed'] as const)('on a %s order is held as payment_after_refund', (state) => {
    const before = orderIn(state);
    const { made, order } = step(before, second());
    expect(made).toMatchObject({ outcome: 'held', rule: 'payment_after_refund', state: 'held' });
    expect(order.holds.map(({ reason }) => reason)).toEqual(['payment_after_refund']);
    expect(balanceOf(order)).toEqual([{ amountMinor: 10_000, currency: 'BRL' }]);
    expect(order.settlement).toEqual(before.settlement);
  });
});

describe('settlement: more payments than anybody pays', () => {
  /** The order after payments up to this one, counted from 1. */
  const paidUpTo = (order: Order, last: number) =>
    Array.from({ length: last - 1 }, (_, n) => `pay_${n + 2}`).reduce(
      (before, paymentId) => step(before, aFact('completed', { paymentId })).order,
      order,
    );
  const next = (n: number) => aFact('completed', { paymentId: `pay_${n}` });

  it('are told one by one up to the fiftieth; further ones are counted, and raise the one matter', () => {
    const before = paidUpTo(orderIn('paid'), 49);
    const fiftieth = step(before, next(50));
    expect(deeds(fiftieth.made)).toContain('notice payment.duplicate');
    const { made, order } = step(fiftieth.order, next(51));
    expect(made).toMatchObject({ outcome: 'applied', rule: 'duplicate_payment', state: 'paid' });
    expect(deeds(made)).toEqual(['captured 10000 of pay_51', 'flag duplicate_payment', 'attention duplicate_payment']);
    expect(order.entries).toHaveLength(51);
    expect(deeds(step(order, next(52)).made)).not.toContain('notice payment.duplicate');
  });

  it('of a held order open no more holds after the fiftieth, and raise a matter in place of them', () => {
    const before = paidUpTo(orderIn('held'), 49);
    const fiftieth = step(before, next(50));
    expect(deeds(fiftieth.made)).toEqual(['captured 10000 of pay_50', 'hold further_payment', 'notice order.held']);
    const { made, order } = step(fiftieth.order, next(51));
    expect(made).toMatchObject({ outcome: 'held', rule: 'completion_while_held', state: 'held' });
    expect(deeds(made)).toEqual(['captured 10000 of pay_51', 'flag duplicate_payment', 'attention duplicate_payment']);
    expect(order.holds).toHaveLength(50);
    expect(step(order, instruction('accept')).order).toMatchObject({ state: 'paid', holds: [] });
  });

  it('a refund of one of them still gets its notice', () => {
    const order = paidUpTo(orderIn('paid'), 60);
    const all = order.entries.map(({ paymentKey }) => paymentKey);
    const { made } = all.reduce((at, paymentId) => step(at.order, aFact('refunded', { paymentId })), {
      order,
      made: null,
    } as unknown as ReturnType<typeof step>);
    expect(deeds(made)).toContain('notice order.refunded');
  });
});

describe('settlement: the id of a payment', () => {
  it('is adopted by a payment first reported without one, and nothing is counted twice', () => {
    const { made, order } = step(orderAfter(anOrder(), unnamed()), aFact('completed'), API);
    expect(made).toMatchObject({ outcome: 'applied', rule: 'payment_id_adopted', state: 'paid' });
    expect(payments(order).map(({ id }) => id)).toEqual(['pay_1']);
    expect(order.entries).toHaveLength(1);
  });

  it('may be left out of a later report: already applied', () => {
    const made = decide(orderIn('paid'), unnamed(), API);
    expect(made).toMatchObject({ outcome: 'already_applied', state: 'paid', effects: [] });
  });

  it('left out of a later report means the payment that is as the report says', () => {
    const lost = orderAfter(orderIn('paid'), second(), aFact('disputed'));
    const made = decide(lost, aFact('completed', { paymentId: null, authority: reading(1) }), API);
    expect(made).toMatchObject({ outcome: 'already_applied', effects: [] });
  });

  it('once adopted makes a different id another payment', () => {
    const adopted = orderAfter(anOrder(), unnamed(), aFact('completed'));
    expect(decide(adopted, second(), API).rule).toBe('duplicate_payment');
  });

  it('brought by the refund of an unnamed payment is adopted with it', () => {
    const { made, order } = step(orderAfter(anOrder(), unnamed()), aFact('refunded'));
    expect(made.state).toBe('refunded');
    expect(order.adoptedPaymentId).toBe('pay_1');
    expect(order.entries.map(({ kind, paymentKey }) => [kind, paymentKey])).toEqual([
      ['captured', 'unnamed'],
      ['refunded', 'unnamed'],
    ]);
  });

  it('brought to a returned unnamed payment is adopted and asked about: it may be a second payment', () => {
    const refunded = orderAfter(anOrder(), unnamed(), unnamed('refunded'));
    const { made } = step(refunded, aFact('completed'), API);
    expect(deeds(made)).toEqual(['adopt pay_1', 'check']);
  });
});

describe.each(['refunded', 'disputed'] as const)('settlement: a %s payment', (kind) => {
  it('that was counted moves a paid order', () => {
    const { made, order } = step(orderIn('paid'), aFact(kind));
    expect(made).toMatchObject({ outcome: 'applied', rule: kind, state: kind });
    expect(deeds(made)).toEqual([`${kind} -10000 of pay_1`, `notice order.${kind}`]);
    expect(order.settlement).toEqual(orderIn('paid').settlement);
  });

  it('that was counted leaves the order paid while another captured payment covers it', () => {
    const { made, order } = step(orderAfter(orderIn('paid'), second()), aFact(kind));
    expect(made).toMatchObject({ outcome: 'applied', rule: 'still_covered', state: 'paid' });
    expect(order.flags).toEqual([]);
    expect(deeds(made)).toContain('end_attention duplicate_payment');
  });

  it('that was counted moves the order if the other payment is too small, and that one stays flagged', () => {
    const small = second('completed', { linkMoney: stated('40') });
    const { made, order } = step(orderAfter(orderIn('paid'), small), aFact(kind));
    expect(made.state).toBe(kind);
    expect(order.flags).toEqual(['duplicate_payment']);
  });

  it.each(OPEN)('that was never counted on an order that is %s is completed first, in one decision', (state) => {
    const { made, order } = step(orderIn(state), aFact(kind));
    expect(made).toMatchObject({ outcome: 'applied', state: kind });
    expect(deeds(made)).toEqual([
      'captured 10000 of pay_1',
      'settle by pay_1',
      ...(state === 'expired' ? ['flag late'] : []),
      'notice order.paid',
      `${kind} -10000 of pay_1`,
      `notice order.${kind}`,
    ]);
    expect(order.settlement).not.toBeNull();
  });

  it('that was never counted and does not agree asks first', () => {
    const made = decide(anOrder(), aFact(kind, { linkMoney: stated('60') }), API);
    expect(made).toMatchObject({ outcome: 'ask', state: 'awaiting_payment' });
  });

  it('that was never counted and does not agree is held if no API can be asked, both entries made', () => {
    const { made, order } = step(anOrder(), aFact(kind, { linkMoney: stated('60') }), NO_API);
    expect(made).toMatchObject({ outcome: 'held', rule: 'money_does_not_agree', state: 'held' });
    expect(order.entries.map((entry) => entry.amountMinor)).toEqual([6000, -6000]);
  });

  it('said twice is already applied', () => {
    expect(decide(orderIn(kind), aFact(kind), API)).toMatchObject({ outcome: 'already_applied', effects: [] });
  });

  it('without an id asks if it could be one of several', () => {
    const two = orderAfter(orderIn('paid'), second());
    expect(decide(two, unnamed(kind), API)).toMatchObject({ outcome: 'ask', state: 'paid' });
    expect(deeds(decide(two, unnamed(kind), NO_API))).toEqual(['attention status_unclear']);
  });

  it('that was never counted moves an order that a person accepted before any payment was counted', () => {
    const accepted = orderAfter(anOrder(), aFact('unclear'), instruction('accept'));
    const { made, order } = step(accepted, aFact(kind));
    expect(made.state).toBe(kind);
    expect(order.entries.map((entry) => entry.amountMinor)).toEqual([10_000, -10_000]);
  });
});

describe('settlement: returns', () => {
  it('a refund of the disputed payment makes a disputed order refunded', () => {
    const { made, order } = step(orderIn('disputed'), aFact('refunded'));
    expect(made).toMatchObject({ outcome: 'applied', rule: 'refunded', state: 'refunded' });
    expect(order.entries.map((entry) => entry.amountMinor)).toEqual([10_000, -10_000, 0]);
  });

  it('a dispute of a refunded payment takes nothing twice, and raises a matter', () => {
    const made = decide(orderIn('refunded'), aFact('disputed'), API);
    expect(made).toMatchObject({ outcome: 'ignored', rule: 'service_disagrees', state: 'refunded' });
    expect(deeds(made)).toEqual(['attention service_disagrees']);
  });

  it('an order whose other payment is refunded stays disputed while its first is in dispute', () => {
    const disputed = orderAfter(orderIn('paid'), second('completed', { linkMoney: stated('40') }), aFact('disputed'));
    const { made } = step(disputed, second('refunded'));
    expect(made).toMatchObject({ outcome: 'applied', rule: 'return_recorded', state: 'disputed' });
  });

  it('a paid order becomes disputed if the payment that covered it is refunded and the other is in dispute', () => {
    const covered = orderAfter(orderIn('paid'), second(), aFact('disputed'));
    expect(covered.state).toBe('paid');
    expect(step(covered, second('refunded')).order.state).toBe('disputed');
  });

  it('the refund of a duplicate leaves an order paid that a person accepted for less', () => {
    const accepted = orderAfter(
      orderIn('held'),
      instruction('accept'),
      second('completed', { linkMoney: stated('60') }),
    );
    const { made, order } = step(accepted, second('refunded'));
    expect(made).toMatchObject({ rule: 'still_covered', state: 'paid' });
    expect(order.flags).toEqual([]);
  });

  it('the refund of a disputed payment leaves an order paid that a person accepted without it', () => {
    const less = second('completed', { linkMoney: stated('60') });
    const accepted = orderAfter(orderIn('disputed'), less, instruction('accept'));
    expect(step(accepted, aFact('refunded')).order.state).toBe('paid');
  });

  it('the refund of an uncounted payment is kept whole on a paid order, which stays paid', () => {
    const { made, order } = step(orderIn('paid'), second('refunded'));
    expect(made).toMatchObject({ outcome: 'applied', rule: 'return_recorded', state: 'paid' });
    expect(order.entries.map((entry) => entry.amountMinor)).toEqual([10_000, 10_000, -10_000]);
  });
});

describe('settlement: a dispute that was won', () => {
  const won = (number: number) => aFact('completed', { authority: reading(number) });
  const disputedAt = (lastReading: number | null) => ({ ...orderIn('disputed'), lastReading });

  it('pays the order again, by a reading newer than the last applied', () => {
    const { made, order } = step(disputedAt(4), won(5));
    expect(made).toMatchObject({ outcome: 'applied', rule: 'dispute_won', state: 'paid' });
    expect(balanceOf(order)).toEqual([{ amountMinor: 10_000, currency: 'BRL' }]);
    expect(order.settlement).toEqual(orderIn('paid').settlement);
    expect(deeds(made)).toEqual(['captured 10000 of pay_1', 'notice order.paid']);
  });

  it('is believed of the first reading that is applied', () => {
    expect(decide(disputedAt(null), won(1), API).state).toBe('paid');
  });

  it('is not believed of a webhook: it moves a payment only forward', () => {
    const made = decide(disputedAt(1), aFact('completed'), API);
    expect(made).toMatchObject({ outcome: 'already_applied', rule: 'payment_moves_forward_only', effects: [] });
  });

  it('makes a duplicate again of a payment that another one had replaced', () => {
    const covered = orderAfter(orderIn('paid'), second(), aFact('disputed'));
    expect(covered.flags).toEqual([]);
    const { made, order } = step(covered, won(1));
    expect(made).toMatchObject({ rule: 'dispute_won', state: 'paid' });
    expect(order.flags).toEqual(['duplicate_payment']);
    expect(deeds(made)).toContain('attention duplicate_payment');
  });

  it('is held if the order counts as refunded meanwhile', () => {
    const small = second('completed', { linkMoney: stated('40') });
    const refunded = orderAfter(orderIn('paid'), small, aFact('refunded'), second('disputed'));
    expect(refunded.state).toBe('refunded');
    const { order } = step(refunded, second('completed', { authority: reading(1) }));
    expect(order.holds.map(({ reason }) => reason)).toEqual(['payment_after_refund']);
  });

  it('may bring the money that was not named before', () => {
    const disputed = orderAfter(anOrder(), noMoney(), aFact('disputed', { linkMoney: null }));
    const { order } = step(disputed, aFact('completed', { quoteMoney: stated('60'), authority: reading(1) }));
    expect(balanceOf(order)).toEqual([{ amountMinor: 6000, currency: 'BRL' }]);
    expect(order.flags).toEqual([]);
  });

  it('is owed back if a person had rejected the payment', () => {
    const rejected = orderAfter(orderIn('held'), aFact('disputed'), instruction('reject'));
    expect(rejected.flags).toEqual([]);
    const { made, order } = step(rejected, won(1));
    expect(order).toMatchObject({ state: 'cancelled', flags: ['refund_due'] });
    expect(deeds(made)).toContain('attention refund_due');
  });

  it('of a small payment does not pay an order whose first payment is still in dispute', () => {
    const small = second('completed', { linkMoney: stated('40') });
    const both = orderAfter(orderIn('paid'), small, aFact('disputed'), second('disputed'));
    const { made, order } = step(both, second('completed', { authority: reading(1) }));
    expect(made).toMatchObject({ rule: 'dispute_won', state: 'disputed' });
    expect(order.flags).toEqual(['duplicate_payment']);
  });

  it('cannot be won by a refund taken back: a matter is raised', () => {
    const made = decide({ ...orderIn('refunded'), lastReading: 1 }, won(2), API);
    expect(made).toMatchObject({ outcome: 'ignored', state: 'refunded' });
    expect(deeds(made)).toEqual(['attention service_disagrees']);
  });
});

describe('settlement: an expired link', () => {
  it.each(['awaiting_payment', 'payment_pending'] as const)(
    'expires an order that is %s and tells the shop',
    (state) => {
      const { made } = step(orderIn(state), aFact('expired'));
      expect(made).toMatchObject({ outcome: 'applied', rule: 'expired', state: 'expired' });
      expect(deeds(made)).toEqual(['notice order.expired']);
    },
  );
});

describe('settlement: a link that is inactive and unpaid', () => {
  const disabled = aFact('disabled', { authority: reading(1) });

  it.each(OPEN)('by a reading raises a matter if the order is %s', (state) => {
    const made = decide(orderIn(state), disabled, API);
    expect(made).toMatchObject({ outcome: 'ignored', rule: 'link_disabled', state });
    expect(deeds(made)).toEqual(['attention link_disabled']);
  });
});

describe('settlement: a reading without a completed payment', () => {
  it.each(['unpaid', 'disabled', 'pending'] as const)('(%s) leaves a paid order, and raises a matter', (kind) => {
    const made = decide(orderIn('paid'), aFact(kind, { authority: reading(1) }), API);
    expect(made).toMatchObject({ outcome: 'ignored', rule: 'service_disagrees', state: 'paid' });
    expect(deeds(made)).toEqual(['attention service_disagrees']);
  });

  it('that shows another payment pending disagrees with nothing', () => {
    const made = decide(orderIn('paid'), second('pending', { authority: reading(1) }), API);
    expect(made).toMatchObject({ rule: 'changes_nothing', effects: [] });
  });
});

describe('settlement: cancel', () => {
  it.each(['awaiting_payment', 'expired'] as const)('cancels an order that is %s', (state) => {
    const { made } = step(orderIn(state), instruction('cancel'));
    expect(made).toMatchObject({ outcome: 'applied', rule: 'cancelled', state: 'cancelled' });
    expect(deeds(made)).toEqual(['notice order.cancelled']);
  });

  it.each(other(['awaiting_payment', 'expired', 'cancelled']))('is refused if the order is %s', (state) => {
    const made = decide(orderIn(state), instruction('cancel'), API);
    expect(made).toMatchObject({ outcome: 'ignored', rule: 'not_cancellable', state, effects: [] });
  });

  it('said again changes nothing', () => {
    const made = decide(orderIn('cancelled'), instruction('cancel'), API);
    expect(made).toMatchObject({ rule: 'already_cancelled', state: 'cancelled', effects: [] });
  });
});

describe('settlement: resolve', () => {
  it('accept pays a held order with the captured amount as it was', () => {
    const { made, order } = step(orderIn('held'), instruction('accept'), API, 88);
    expect(made).toMatchObject({ outcome: 'applied', rule: 'hold_accepted', state: 'paid' });
    expect(balanceOf(order)).toEqual([{ amountMinor: 6000, currency: 'BRL' }]);
    expect(order.settlement).toEqual({ paidAtMs: 88, paymentKey: 'pay_1', learnedBy: 'person' });
    expect(order.holds).toEqual([]);
    expect(deeds(made)).toContain('notice order.paid');
  });

  it('accept of several payments flags the duplicate', () => {
    const order = orderAfter(orderIn('held'), second(), instruction('accept'));
    expect(order).toMatchObject({ state: 'paid', flags: ['duplicate_payment'], holds: [] });
  });

  it('accept of a payment after a rejected one owes the first as a duplicate, no longer as a refund', () => {
    const again = orderAfter(orderIn('held'), instruction('reject'), second());
    expect(again).toMatchObject({ state: 'held', flags: ['refund_due'] });
    const { made, order } = step(again, instruction('accept'));
    expect(order.flags).toEqual(['duplicate_payment']);
    expect(deeds(made)).toContain('end_attention refund_due');
  });

  it('accept keeps the time at which the order was first paid', () => {
    const held = orderAfter(orderIn('refunded'), second());
    const { order } = step(held, instruction('accept'), API, 99);
    expect(order.state).toBe('paid');
    expect(order.settlement).toEqual(orderIn('paid').settlement);
  });

  it('accept pays by the remaining payment if the first went back', () => {
    const again = orderAfter(orderIn('held'), second(), aFact('refunded'));
    const { made, order } = step(again, instruction('accept'));
    expect(made.rule).toBe('hold_accepted');
    expect(order.settlement?.paymentKey).toBe('pay_2');
    expect(order.flags).toEqual([]);
    expect(step(order, second('refunded')).order.state).toBe('refunded');
  });

  it('accept is refused if the held money has gone back', () => {
    const made = decide(orderAfter(orderIn('held'), aFact('refunded')), instruction('accept'), API);
    expect(made).toMatchObject({ outcome: 'ignored', rule: 'nothing_left_to_accept', state: 'held' });
  });

  it('accept of a hold without a counted payment takes the payment that follows as the accepted one', () => {
    const accepted = orderAfter(anOrder(), aFact('unclear'), instruction('accept'));
    expect(accepted).toMatchObject({ state: 'paid', entries: [] });
    const { made } = step(accepted, aFact('completed'));
    expect(made).toMatchObject({ outcome: 'applied', rule: 'payment_of_accepted_order', state: 'paid' });
    expect(deeds(made)).toEqual(['captured 10000 of pay_1']);
  });

  it('accept of a hold without a counted payment still tells a person of a payment that does not agree', () => {
    const accepted = orderAfter(anOrder(), aFact('unclear'), instruction('accept'));
    expect(deeds(step(accepted, TOO_LITTLE).made)).toContain('attention amount_mismatch');
  });

  it('reject cancels a held order and owes the refund', () => {
    const { made, order } = step(orderIn('held'), instruction('reject'));
    expect(made).toMatchObject({ outcome: 'applied', rule: 'hold_rejected', state: 'cancelled' });
    expect(order).toMatchObject({ flags: ['refund_due'], holds: [], settlement: null });
    expect(deeds(made)).toEqual(expect.arrayContaining(['attention refund_due', 'notice order.cancelled']));
  });

  it('reject owes nothing if no money was captured', () => {
    const { made, order } = step(orderAfter(anOrder(), aFact('unclear')), instruction('reject'));
    expect(order.flags).toEqual([]);
    expect(deeds(made)).not.toContain('attention refund_due');
  });

  it('reject of two payments owes until both are refunded', () => {
    const rejected = orderAfter(orderIn('held'), second(), instruction('reject'));
    const once = orderAfter(rejected, aFact('refunded'));
    expect(once.flags).toEqual(['refund_due']);
    expect(orderAfter(once, second('refunded')).flags).toEqual([]);
  });

  it.each(['accept', 'reject'] as const)('%s said again changes nothing', (wanted) => {
    const resolved = orderAfter(orderIn('held'), instruction(wanted));
    const made = decide(resolved, instruction(wanted), API);
    expect(made).toMatchObject({ outcome: 'already_applied', rule: 'already_resolved', effects: [] });
  });

  it('accept said again after the refund changes nothing either', () => {
    const refunded = orderAfter(orderIn('held'), instruction('accept'), aFact('refunded'));
    expect(decide(refunded, instruction('accept'), API).outcome).toBe('already_applied');
  });

  it.each([
    ['accept', 'reject'],
    ['reject', 'accept'],
  ] as const)('%s is refused after %s was decided otherwise', (wanted, decided) => {
    const resolved = orderAfter(orderIn('held'), instruction(decided));
    expect(decide(resolved, instruction(wanted), API)).toMatchObject({ outcome: 'ignored', rule: 'not_held' });
  });
});

describe('settlement: identity', () => {
  it('a webhook moves a payment only forward', () => {
    for (const state of ['paid', 'refunded', 'disputed'] as const) {
      for (const kind of ['pending', 'completed'] as const) {
        expect(decide(orderIn(state), aFact(kind), API)).toMatchObject({ state, effects: [] });
      }
    }
  });

  it('a payment without an id is keyed as unnamed', () => {
    expect(orderAfter(anOrder(), unnamed()).entries.map(({ paymentKey }) => paymentKey)).toEqual(['unnamed']);
  });
});

describe('settlement: money', () => {
  const said = (linkMoney: ReturnType<typeof stated> | null, quoteMoney: ReturnType<typeof stated> | null) =>
    decide(anOrder(), aFact('completed', { linkMoney, quoteMoney, authority: EVENT }), NO_API);

  it.each([
    ['agrees if link and quote both do', stated('100'), stated('1e2'), 'paid'],
    ['is in doubt by the link even if the quote agrees', stated('99'), stated('100'), 'money_does_not_agree'],
    ['is in doubt by the quote even if the link agrees', stated('100'), stated('99'), 'money_does_not_agree'],
    ['is in doubt if the link asks for more than came', stated('120'), stated('100'), 'money_does_not_agree'],
    ["has the link's currency if the quote has none", stated('100'), stated('100', null), 'paid'],
    ['and not the one of the order', stated('100', 'USD'), stated('100', null), 'money_does_not_agree'],
  ])('%s', (_what, link, quote, rule) => {
    expect(said(link, quote).rule).toBe(rule);
  });

  it.each([
    ['what the quote says was captured, if that is less', '60', 6_000],
    ['what the link says, if the quote says more', '130', 10_000],
  ])('counts %s', (_what, quote, captured) => {
    expect(deeds(said(stated('100'), stated(quote)))).toContain(`captured ${captured} of pay_1`);
  });

  it("counts digits of the order's currency", () => {
    const yen = anOrder({ amount: { amountMinor: 100, currency: 'JPY' } });
    expect(decide(yen, aFact('completed', { linkMoney: stated('100', 'JPY') }), API).rule).toBe('paid');
  });
});
