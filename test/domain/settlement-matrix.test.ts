import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { OUTCOMES, RULES, type Rule, type SettlementPolicy } from '../../src/domain/decision.ts';
import { type Authority, FACT_KINDS, type FactKind, type PaymentFact } from '../../src/domain/fact.ts';
import { ORDER_STATES, type Order, type OrderState, TRANSITIONS } from '../../src/domain/order.ts';
import {
  ALWAYS,
  API,
  aFact,
  deeds,
  EVENT,
  explore,
  NO_API,
  orderIn,
  PERSON,
  reading,
  stated,
  step,
} from '../support/orders.ts';

/** The moves of the settlement table, written down a second time: by kind of fact, from each state. */
const OPEN_TO = (...states: OrderState[]) => ({ awaiting_payment: states, payment_pending: states, expired: states });
const MOVES: Record<FactKind, Partial<Record<OrderState, OrderState[]>>> = {
  pending: { awaiting_payment: ['payment_pending'] },
  completed: { ...OPEN_TO('paid', 'held'), cancelled: ['held'], refunded: ['held'], disputed: ['held', 'paid'] },
  unclear: OPEN_TO('held'),
  refunded: { ...OPEN_TO('refunded', 'held'), paid: ['refunded'], disputed: ['refunded'] },
  disputed: {
    ...OPEN_TO('disputed', 'held'),
    paid: ['disputed'],
    cancelled: ['held'],
    refunded: ['held'],
    disputed: ['held'],
  },
  expired: { awaiting_payment: ['expired'], payment_pending: ['expired'] },
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
  { quoteMoney: stated('112.40') },
  { quoteMoney: stated('100', 'USD') },
];

/** What moves an order, or says nothing, if an event says it. */
const QUIET: readonly FactKind[] = ['pending', 'expired', 'disabled'];
/** Of a decision about an order that is not held. */
const REFUSALS: readonly Rule[] = ['not_held', 'older_reading'];

function factsOf(kind: FactKind, authority: Authority): PaymentFact[] {
  return PAYMENT_IDS.flatMap((paymentId) => MONEYS.map((money) => aFact(kind, { authority, paymentId, ...money })));
}

describe.each(FACT_KINDS)('the settlement matrix: %s', (kind) => {
  describe.each(ORDER_STATES)('on an order that is %s', (state) => {
    it.each(AUTHORITIES)('said by %s is decided by the table', (_name, authority) => {
      const order: Order = { ...orderIn(state), lastReading: 5 };
      const mayBecome = [state, ...(MOVES[kind][state] ?? [])];
      const broken: object[] = [];
      for (const policy of [NO_API, API, ALWAYS]) {
        for (const fact of factsOf(kind, authority)) {
          const laws = brokenLaws(order, fact, policy, mayBecome);
          if (laws.length > 0) broken.push({ laws, fact, policy });
        }
      }
      expect(broken).toEqual([]);
    });
  });
});

/** The laws that a decision breaks. Half a million are checked: an `expect` for each would take most of the time. */
function brokenLaws(order: Order, fact: PaymentFact, policy: SettlementPolicy, mayBecome: OrderState[]): string[] {
  const { made, order: then } = step(order, fact, policy);
  const { outcome, rule } = made;
  const done = new Set(deeds(made));
  const asks = outcome === 'ask';
  const isMoved = made.state !== order.state;
  const isDecision = fact.kind === 'accept' || fact.kind === 'reject';
  const isPersons = isDecision || fact.kind === 'cancel';
  const laws: Record<string, boolean> = {
    [`may become ${made.state}`]: mayBecome.includes(made.state),
    'an outcome that is known': OUTCOMES.includes(outcome),
    'a rule that is known': RULES.includes(rule),
    'the order is as was decided': then.state === made.state,
    'asks by the rule for it, and by no other': asks === (rule === 'asks_before_deciding'),
    'asks only if an API can be asked': !asks || policy !== NO_API,
    'asks because of an event': !asks || fact.authority === EVENT,
    'asking changes nothing': !asks || isDeepStrictEqual(then, order),
    'a reading that is not newer than the last, and no other, is put aside':
      (rule === 'older_reading') === (fact.authority.by === 'reading' && fact.authority.number <= 5),
    'what is put aside, was applied before or is refused has no effects':
      !(rule === 'older_reading' || outcome === 'already_applied' || (isPersons && !isMoved)) ||
      made.effects.length === 0,
    'an event of no payment that moves no order has no effects':
      isMoved || fact.authority !== EVENT || !QUIET.includes(fact.kind) || made.effects.length === 0,
    'a link that is unpaid says something of a paid order alone':
      fact.kind !== 'unpaid' || order.state === 'paid' || made.effects.length === 0,
    'a decision is refused by the rule for it': !isDecision || order.state === 'held' || REFUSALS.includes(rule),
    'whatever moves an order tells the shop': made.state === order.state || done.has(`notice order.${made.state}`),
    'holds while it is held': then.holds.length > 0 === (then.state === 'held'),
    'never overpaid: no decision says so any more': !done.has('flag overpaid'),
    'a link for other money pays nothing':
      fact.linkMoney === null ||
      (Number(fact.linkMoney.amount) === 100 && fact.linkMoney.currency === 'BRL') ||
      made.state !== 'paid' ||
      order.state === 'paid' ||
      rule === 'hold_accepted',
    'has the settlement that was decided':
      (then.settlement === null) === (order.settlement === null && ![...done].some(isSettling)),
  };
  // Whatever is owed back is in the list of what waits for a person, for as long as it is.
  for (const debt of ['refund_due', 'duplicate_payment']) {
    laws[`${debt} is flagged and waits`] = done.has(`flag ${debt}`) === done.has(`attention ${debt}`);
    laws[`${debt} ends as a flag and waits no more`] = done.has(`unflag ${debt}`) === done.has(`end_attention ${debt}`);
  }
  return Object.keys(laws).filter((law) => !laws[law]);
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
