import { describe, expect, it } from 'vitest';
import type { SettlementPolicy } from '../../src/domain/decision.ts';
import { OUTCOMES, RULES } from '../../src/domain/decision.ts';
import { type Authority, FACT_KINDS, type FactKind, type PaymentFact } from '../../src/domain/fact.ts';
import { ORDER_STATES, type Order, type OrderState, TRANSITIONS } from '../../src/domain/order.ts';
import { explore } from '../support/explore.ts';
import {
  ALWAYS,
  API,
  aFact,
  DOUBTFUL_QUOTES,
  deeds,
  EVENT,
  NO_API,
  orderIn,
  PERSON,
  reading,
  stated,
  step,
} from '../support/orders.ts';

/** The moves of the settlement table, written down a second time: by kind of fact, from each state. */
const OPEN_TO = (...states: OrderState[]) => ({
  awaiting_payment: states,
  payment_pending: states,
  expired: states,
});
const MOVES: Record<FactKind, Partial<Record<OrderState, OrderState[]>>> = {
  pending: { awaiting_payment: ['payment_pending'] },
  completed: {
    ...OPEN_TO('paid', 'held'),
    cancelled: ['held'],
    refunded: ['held'],
    disputed: ['held', 'paid'],
  },
  unclear: OPEN_TO('held'),
  refunded: { ...OPEN_TO('refunded', 'held'), paid: ['refunded'], disputed: ['refunded'] },
  disputed: {
    ...OPEN_TO('disputed', 'held'),
    paid: ['disputed'],
    cancelled: ['held'],
    refunded: ['held'],
    disputed: ['held'],
  },
  expired: { awaiting_payment: ['expired'] },
  disabled: {},
  unpaid: {},
  unconfirmed: { ...OPEN_TO('held'), cancelled: ['held'] },
  cancel: { awaiting_payment: ['cancelled'], expired: ['cancelled'] },
  accept: { held: ['paid'] },
  reject: { held: ['cancelled'] },
};

const AUTHORITIES: readonly [string, Authority][] = [
  ['an event', EVENT],
  ['an older reading', reading(4)],
  ['the last reading', reading(5)],
  ['a newer reading', reading(6)],
  ['a person', PERSON],
];
const PAYMENT_IDS = [null, 'pay_1', 'pay_2'];
const MONEYS: Partial<PaymentFact>[] = [
  { linkMoney: stated('100') },
  { linkMoney: stated('120') },
  { linkMoney: stated('80') },
  { linkMoney: stated('100', 'USD') },
  { linkMoney: stated('1e999') },
  { linkMoney: null },
  { reference: 'order-2' },
  { quoteMoney: stated('90') },
  { quoteMoney: stated('100', 'USD') },
];

function factsOf(kind: FactKind, authority: Authority): PaymentFact[] {
  return PAYMENT_IDS.flatMap((paymentId) =>
    MONEYS.map((money) => aFact(kind, { authority, paymentId, ...money })),
  );
}

describe.each(FACT_KINDS)('the settlement matrix: %s', (kind) => {
  describe.each(ORDER_STATES)('on an order that is %s', (state) => {
    it.each(AUTHORITIES)('said by %s is decided by the table', (_name, authority) => {
      const order: Order = { ...orderIn(state), lastReading: 5 };
      const mayBecome = [state, ...(MOVES[kind][state] ?? [])];
      for (const policy of [NO_API, API, ALWAYS, DOUBTFUL_QUOTES]) {
        for (const fact of factsOf(kind, authority)) expectLawful(order, fact, policy, mayBecome);
      }
    });
  });
});

function expectLawful(
  order: Order,
  fact: PaymentFact,
  policy: SettlementPolicy,
  mayBecome: OrderState[],
): void {
  const { made, order: then } = step(order, fact, policy);
  expect(mayBecome).toContain(made.state);
  expect(OUTCOMES).toContain(made.outcome);
  expect(RULES).toContain(made.rule);
  expect(then.state).toBe(made.state);
  expect(made.outcome === 'ask').toBe(made.rule === 'asks_before_deciding');
  if (made.outcome === 'ask') {
    expect(policy).not.toBe(NO_API);
    expect(fact.authority).toBe(EVENT);
    expect(then).toEqual(order);
  }
  if (made.outcome === 'ask' || made.rule === 'older_reading') expect(then.entries).toEqual(order.entries);
  // Whatever moves an order tells the shop.
  if (made.state !== order.state) expect(deeds(made)).toContain(`notice order.${made.state}`);
  // Whatever is owed back is in the list of what waits for a person, for as long as it is.
  for (const debt of ['refund_due', 'duplicate_payment']) {
    expect(deeds(made).includes(`flag ${debt}`)).toBe(deeds(made).includes(`attention ${debt}`));
    expect(deeds(made).includes(`unflag ${debt}`)).toBe(deeds(made).includes(`end_attention ${debt}`));
  }
  if (made.outcome === 'already_applied') expect(made.effects).toEqual([]);
  expect(then.holds.length > 0).toBe(then.state === 'held');
  expect(then.settlement === null).toBe(order.settlement === null && !deeds(made).some(isSettling));
}

const isSettling = (deed: string) => deed.startsWith('settle ');

describe('the transition table', () => {
  const { moves, rules } = explore();

  it('reaches every state from awaiting_payment', () => {
    const reached = new Set([...moves.values()].map(({ to }) => to));
    expect(['awaiting_payment', ...reached].sort()).toEqual([...ORDER_STATES].sort());
  });

  it('lists the transitions that facts produce, every one and no other', () => {
    const listed = ORDER_STATES.flatMap((from) => TRANSITIONS[from].map((to) => `${from} → ${to}`));
    expect([...moves.keys()].sort()).toEqual(listed.sort());
  });

  it('has no rule that is never met', () => {
    expect(RULES.filter((rule) => !rules.has(rule))).toEqual([]);
  });
});
