import { describe, expect, it } from 'vitest';
import { payments } from '../../src/domain/ledger.ts';
import { ORDER_STATES, type OrderState } from '../../src/domain/order.ts';
import { decide } from '../../src/domain/settlement.ts';
import {
  ALWAYS,
  API,
  aFact,
  anOrder,
  deeds,
  instruction,
  orderAfter,
  orderIn,
  read,
  reading,
  stated,
  step,
} from '../support/orders.ts';

const OPEN = ['awaiting_payment', 'payment_pending', 'expired'] as const;
const other = (states: readonly OrderState[]) => ORDER_STATES.filter((state) => !states.includes(state));
const UNCONFIRMED = read('unconfirmed', { authority: reading(1), paymentId: null });
const unconfirmed = () => orderAfter(anOrder(), UNCONFIRMED);

describe('asking always: an event on an open order', () => {
  describe.each(OPEN)('that is %s', (state) => {
    it.each([
      ['completed with equal money', aFact('completed')],
      ['completed with more', aFact('completed', { linkMoney: stated('140') })],
      ['completed with less', aFact('completed', { linkMoney: stated('60') })],
      ['completed with unnamed money', aFact('completed', { linkMoney: null })],
      ['refunded of a payment that was never counted', aFact('refunded')],
      ['disputed of a payment that was never counted', aFact('disputed')],
      ['that contradicts itself', aFact('unclear')],
    ])('%s asks, and changes nothing', (_name, fact) => {
      const { made, order } = step(orderIn(state), fact, ALWAYS);
      expect(made).toMatchObject({ outcome: 'ask', rule: 'asks_before_deciding', state });
      expect(deeds(made)).toEqual(['check']);
      expect(order).toEqual(orderIn(state));
    });

    it('is confirmed by a reading, which pays the order', () => {
      const { made, order } = step(orderIn(state), read('completed'), ALWAYS);
      expect(made).toMatchObject({ outcome: 'applied', rule: 'paid', state: 'paid' });
      expect(order.settlement?.learnedBy).toBe('reconciliation');
    });
  });

  it('pending needs no confirmation: it is not money', () => {
    expect(decide(anOrder(), aFact('pending'), ALWAYS).state).toBe('payment_pending');
  });

  it('refunded is applied with its completion once a reading says so', () => {
    const { order } = step(anOrder(), read('refunded'), ALWAYS);
    expect(order.state).toBe('refunded');
    expect(order.entries.map(({ amountMinor }) => amountMinor)).toEqual([10_000, -10_000]);
  });
});

describe('asking always: an event on an order that is not open', () => {
  const second = aFact('completed', { paymentId: 'pay_2' });

  it.each([
    ['held', 'completion_while_held', 'held'],
    ['paid', 'duplicate_payment', 'paid'],
    ['cancelled', 'paid_after_cancel', 'held'],
    ['refunded', 'payment_after_refund', 'held'],
    ['disputed', 'payment_after_refund', 'held'],
  ] as const)('%s: money is counted at once, and a matter is raised', (state, rule, then) => {
    const { made, order } = step(orderIn(state), second, ALWAYS);
    expect(made).toMatchObject({ rule, state: then });
    expect(payments(order).map(({ id }) => id)).toContain('pay_2');
    const told = deeds(made).some((deed) => /^(hold|attention) /.test(deed));
    expect(told).toBe(true);
  });

  it('that a person accepted without a counted payment is given the payment that they saw', () => {
    const accepted = orderAfter(unconfirmed(), instruction('accept'));
    expect(decide(accepted, aFact('completed'), ALWAYS).rule).toBe('payment_of_accepted_order');
  });
});

describe('asking: a completion that no reading shows', () => {
  it.each([...OPEN, 'cancelled'] as const)('holds an order that is %s', (state) => {
    const { made, order } = step(orderIn(state), UNCONFIRMED, ALWAYS);
    expect(made).toMatchObject({ outcome: 'held', rule: 'completion_unconfirmed', state: 'held' });
    expect(order.holds).toEqual([{ id: `hold_${order.version}`, reason: 'unconfirmed' }]);
    expect(deeds(made)).toEqual(['hold unconfirmed', 'notice order.held']);
    expect(order.entries).toEqual([]);
    expect(order.settlement).toBeNull();
  });

  it.each(other([...OPEN, 'cancelled']))('changes nothing if the order is %s', (state) => {
    const made = decide(orderIn(state), UNCONFIRMED, ALWAYS);
    expect(made).toMatchObject({ outcome: 'ignored', rule: 'changes_nothing', state, effects: [] });
  });

  it('is held once', () => {
    expect(orderAfter(unconfirmed(), UNCONFIRMED).holds).toHaveLength(1);
  });

  it('that a later reading shows is counted, and the order stays held for the person', () => {
    const { made, order } = step(unconfirmed(), read('completed'), ALWAYS);
    expect(made).toMatchObject({ outcome: 'held', rule: 'completion_while_held', state: 'held' });
    expect(order.holds.map(({ reason }) => reason)).toEqual(['unconfirmed']);
    expect(payments(order).map(({ id }) => id)).toEqual(['pay_1']);
  });

  it('that a person accepts pays the order, by no payment so far', () => {
    const { made, order } = step(unconfirmed(), instruction('accept'), ALWAYS, 77);
    expect(made).toMatchObject({ outcome: 'applied', rule: 'hold_accepted', state: 'paid' });
    expect(order.settlement).toEqual({ paidAtMs: 77, paymentKey: null, learnedBy: 'person' });
    expect(order.holds).toEqual([]);
  });

  it('that a person accepts after a reading showed it pays the order by that payment', () => {
    const accepted = orderAfter(unconfirmed(), read('completed'), instruction('accept'));
    expect(accepted).toMatchObject({ state: 'paid', flags: [], settlement: { paymentKey: 'pay_1' } });
  });

  it('that a person accepted, and a reading shows then, is not a second payment', () => {
    const { made, order } = step(orderAfter(unconfirmed(), instruction('accept')), read('completed'), ALWAYS);
    expect(made).toMatchObject({ outcome: 'applied', rule: 'payment_of_accepted_order', state: 'paid' });
    expect(order.flags).toEqual([]);
  });

  it('that a person accepted and no reading ever shows is brought to a person', () => {
    const accepted = orderAfter(unconfirmed(), instruction('accept'));
    expect(deeds(decide(accepted, read('unpaid'), ALWAYS))).toEqual(['attention service_disagrees']);
  });

  it('that a person rejects cancels the order and owes nothing', () => {
    const rejected = orderAfter(unconfirmed(), instruction('reject'));
    expect(rejected).toMatchObject({ state: 'cancelled', flags: [], holds: [] });
  });

  it('that a person rejected, and a reading shows then, needs a person again', () => {
    const rejected = orderAfter(unconfirmed(), instruction('reject'));
    const { order } = step(rejected, read('completed'), ALWAYS);
    expect(order.holds.map(({ reason }) => reason)).toEqual(['paid_after_cancel']);
  });

  it('said by an older reading holds nothing', () => {
    const made = decide({ ...anOrder(), lastReading: 2 }, UNCONFIRMED, ALWAYS);
    expect(made).toMatchObject({ rule: 'older_reading', state: 'awaiting_payment' });
  });
});

describe('a quote of less than its link', () => {
  const differing = { quoteMoney: stated('18.20') };

  it.each(['completed', 'refunded', 'disputed'] as const)(
    'of a payment that is %s never counts the money of the link',
    (kind) => {
      const { made, order } = step(anOrder(), read(kind, differing), API);
      expect(made).toMatchObject({ outcome: 'held', state: 'held' });
      expect(order.entries[0]).toMatchObject({ kind: 'captured', amountMinor: 1_820 });
    },
  );

  it('contradicts what was counted', () => {
    expect(decide(orderIn('paid'), read('completed', differing), API).rule).toBe('counted_money_differs');
  });
});
