import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Effect, SettlementPolicy } from '../../src/domain/decision.ts';
import { FACT_KINDS, type FactKind, type PaymentFact } from '../../src/domain/fact.ts';
import { payments } from '../../src/domain/ledger.ts';
import { ORDER_STATES, type Order, type OrderState } from '../../src/domain/order.ts';
import {
  API,
  aFact,
  anOrder,
  deeds,
  instruction,
  NO_API,
  orderAfter,
  orderIn,
  reading,
  type Step,
  second,
  stated,
  step,
} from '../support/orders.ts';

const OPEN = ['awaiting_payment', 'payment_pending', 'expired'] as const;
const other = (states: readonly OrderState[]) => ORDER_STATES.filter((state) => !states.includes(state));

/** A fact as a story writes it: `completed(id=2 link=90USD quote=150.00? r1)`; `?` stands for what is not named. */
function readFact(written: string): PaymentFact {
  const [, kind = '', parts = ''] = /^(\w+)(?:\((.*)\))?$/.exec(written) ?? [];
  if (!FACT_KINDS.includes(kind as FactKind)) throw new Error(`no fact: ${written}`);
  if (kind === 'cancel' || kind === 'accept' || kind === 'reject') return instruction(kind);
  let fact = aFact(kind as FactKind);
  for (const part of parts === '' ? [] : parts.split(' ')) {
    const [name = '', value = ''] = part.split('=');
    if (name === 'id') fact = { ...fact, paymentId: value === 'none' ? null : `pay_${value}` };
    else if (name === 'link') fact = { ...fact, linkMoney: readMoney(value) };
    else if (name === 'quote') fact = { ...fact, quoteMoney: readMoney(value) };
    else if (/^r\d+$/.test(part)) fact = { ...fact, authority: reading(Number(part.slice(1))) };
    else throw new Error(`no part of a fact: ${part}`);
  }
  return fact;
}

function readMoney(written: string): PaymentFact['linkMoney'] {
  if (written === 'none') return null;
  const [, amount = '', currency = ''] = /^(NaN|1e\d+|[0-9.]*|\?)(\?|[A-Z]{3})?$/.exec(written) ?? [];
  return { amount: amount === '?' ? null : amount, currency: currency === '?' ? null : currency || 'BRL' };
}

type Story = { about: string; title: string; given: string; told: string };

/** The stories of a file: a title, the order with the facts it is told, and all that the last fact does. */
function readStories(text: string): Story[] {
  const stories: Story[] = [];
  let about = '';
  for (const part of text.trim().split(/\n(?=\S)/)) {
    const [title = '', given = '', told = ''] = part.split('\n').map((line) => line.trim());
    if (title.startsWith('# ')) about = title.slice(2);
    else stories.push({ about, title, given, told });
  }
  return stories;
}

/** Earlier facts are told without an API to ask; `@api`: the last one is told with one. */
function tell(given: string): Step {
  const [, state = '', told = '', api] = /^(\w+): (.*?)( @api)?$/.exec(given) ?? [];
  const facts = told.split(', ').map(readFact);
  const before = orderAfter(orderIn(state as OrderState), ...facts.slice(0, -1));
  return step(before, facts.at(-1) as PaymentFact, api === undefined ? NO_API : API);
}

/** All that a decision says and does, in words. */
function wordsOf({ made }: Step): string {
  const done = deeds(made).map((deed, index) => `${deed}${moreOf(made.effects[index] as Effect)}`);
  return `= ${made.outcome} ${made.rule}, ${[made.state, ...done].join('; ')}`;
}

/** What `deeds` leaves out. */
function moreOf(effect: Effect): string {
  if (effect.do === 'settle') return `, learned by ${effect.learnedBy}`;
  if (effect.do !== 'entry') return '';
  const { currency, customerPaid, stated: said, isAssumed } = effect.entry;
  return [
    currency === 'BRL' ? '' : ` in ${currency}`,
    isAssumed ? ', assumed' : '',
    customerPaid === null ? '' : `, customer paid ${customerPaid.amount} ${customerPaid.currency}`,
    said === null ? '' : `, stated ${said.amount} ${said.currency}`,
  ].join('');
}

const STORIES = readStories(readFileSync(new URL('../vectors/settlement.txt', import.meta.url), 'utf8'));

it('settlement: the file has 150 stories', () => expect(STORIES).toHaveLength(150));

describe.each([...Map.groupBy(STORIES, ({ about }) => about)])('settlement: %s', (_about, stories) => {
  it.each(stories)('$title', ({ given, told }) => {
    expect(wordsOf(tell(given))).toBe(told);
  });
});

describe('settlement: the order after a decision', () => {
  it('has the settlement, its holds and its flags as the decision says', () => {
    const paid = step(orderIn('expired'), aFact('completed', { linkMoney: null }), API, 77).order;
    const settlement = { paidAtMs: 77, paymentKey: 'pay_1', learnedBy: 'webhook' };
    expect(paid).toMatchObject({ state: 'paid', flags: ['late', 'money_unnamed'], settlement });
    const twice = orderAfter(paid, second());
    expect([...twice.flags, twice.settlement]).toEqual(['late', 'money_unnamed', 'duplicate_payment', settlement]);
    const held = orderAfter(orderIn('held'), second());
    expect(held.holds.map(({ reason }) => reason)).toEqual(['amount_mismatch', 'further_payment']);
    expect(new Set(held.holds.map(({ id }) => id)).size).toBe(2);
    const accepted = step(held, instruction('accept'), API, 88).order;
    expect(accepted).toMatchObject({ holds: [], settlement: { paidAtMs: 88, learnedBy: 'person' } });
    const again = step(orderAfter(orderIn('refunded'), second()), instruction('accept'), API, 99).order;
    expect(again).toMatchObject({ state: 'paid', settlement: orderIn('paid').settlement });
    expect(orderAfter(anOrder(), aFact('unclear'), instruction('accept')).entries).toEqual([]);
  });

  it('has its payments as its ledger sums them up', () => {
    const interest = aFact('completed', { quoteMoney: stated('112.40') });
    const paidOf = (...facts: PaymentFact[]) =>
      payments(orderAfter(anOrder(), ...facts)).map(({ customerPaid }) => customerPaid?.amount ?? null);
    expect(paidOf(interest, aFact('refunded'))).toEqual(['112.40']);
    expect(paidOf(interest, aFact('completed', { quoteMoney: stated('100'), authority: reading(1) }))).toEqual([null]);
    const unnamed = aFact('completed', { linkMoney: null });
    const inDollars = orderAfter(anOrder(), unnamed, aFact('completed', { linkMoney: stated('90', 'USD') }));
    expect(payments(inDollars)).toMatchObject([{ captured: { amountMinor: 9000, currency: 'USD' } }]);
    const named = orderAfter(anOrder(), aFact('completed', { paymentId: null }), aFact('refunded'));
    expect(payments(named)).toMatchObject([{ key: 'unnamed', id: 'pay_1', status: 'refunded' }]);
  });

  it('that an earlier version counted is not contradicted by what the customer paid', () => {
    const [entry] = orderIn('paid').entries;
    const entries = [{ ...(entry as NonNullable<typeof entry>), amountMinor: 11_240 }];
    const interest = aFact('completed', { quoteMoney: stated('112.40'), authority: reading(1) });
    const before: Order = { ...orderIn('paid'), flags: ['overpaid'], entries };
    expect(step(before, interest, API).made).toMatchObject({ outcome: 'already_applied', effects: [] });
  });

  it("counts digits of the order's currency", () => {
    const yen = anOrder({ amount: { amountMinor: 100, currency: 'JPY' } });
    expect(step(yen, aFact('completed', { linkMoney: stated('100', 'JPY') }), API).made.rule).toBe('paid');
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
  ['another currency by its quote', 'currency_mismatch', { linkMoney: null, quoteMoney: stated('100.00', 'USD') }],
  ['another reference', 'reference_mismatch', { reference: 'order-2' }],
] as const;

describe.each(MISMATCHES)('settlement: a completed payment that does not agree (%s)', (_name, reason, over) => {
  const told = (state: OrderState, policy: SettlementPolicy, more: Partial<PaymentFact> = {}) =>
    step(orderIn(state), aFact('completed', { ...over, ...more }), policy);

  it.each(OPEN)('said by a webhook asks the API if the order is %s', (state) => {
    const { made, order } = told(state, API);
    expect(made).toMatchObject({ outcome: 'ask', rule: 'asks_before_deciding', state, effects: [{ do: 'check' }] });
    expect(order).toEqual(orderIn(state));
  });

  it.each(OPEN)('said by a webhook is held if no API can be asked and the order is %s', (state) => {
    const { made, order } = told(state, NO_API);
    expect(made).toMatchObject({ outcome: 'held', rule: 'money_does_not_agree', state: 'held' });
    expect(order.holds).toEqual([{ id: `hold_${order.version}`, reason }]);
    expect(deeds(made)).toContain('notice order.held');
    expect(order).toMatchObject({ entries: [{ paymentKey: 'pay_1' }], settlement: null });
  });

  it.each(OPEN)('said by a reading is held, not asked again, if the order is %s', (state) => {
    const { made, order } = told(state, API, { authority: reading(1) });
    expect(made).toMatchObject({ outcome: 'held', state: 'held' });
    expect(order.holds.map((hold) => hold.reason)).toEqual([reason]);
  });
});

describe('settlement: in each state', () => {
  it.each(ORDER_STATES)('an unclear statement asks if it can: %s', (state) => {
    expect(step(orderIn(state), aFact('unclear'), API).made).toMatchObject({ outcome: 'ask', state });
  });

  it.each(OPEN)('an unclear statement is held if no API can be asked: %s', (state) => {
    const { made, order } = step(orderIn(state), aFact('unclear'), NO_API);
    expect(made).toMatchObject({ outcome: 'held', rule: 'statement_unclear', state: 'held' });
    expect(order.holds.map(({ reason }) => reason)).toEqual(['status_unclear']);
  });

  it.each(other(OPEN))('an unclear statement raises a matter if no API can be asked: %s', (state) => {
    const { made } = step(orderIn(state), aFact('unclear'), NO_API);
    expect(made).toMatchObject({ outcome: 'ignored', state });
    expect(deeds(made)).toEqual(['attention status_unclear']);
  });

  it.each(other(['awaiting_payment', 'expired', 'cancelled']))('cancelling is refused: %s', (state) => {
    const { made } = step(orderIn(state), instruction('cancel'), API);
    expect(made).toMatchObject({ outcome: 'ignored', rule: 'not_cancellable', state, effects: [] });
  });
});

describe('settlement: more payments than anybody pays', () => {
  const next = (n: number) => aFact('completed', { paymentId: `pay_${n}` });
  /** The order after payments up to this one, counted from 1. */
  const paidUpTo = (order: Order, last: number) =>
    orderAfter(order, ...Array.from({ length: last - 1 }, (_, n) => next(n + 2)));
  const COUNTED = ['captured 10000 of pay_51', 'flag duplicate_payment', 'attention duplicate_payment'];

  it('are told one by one up to the fiftieth; further ones are counted, and raise the one matter', () => {
    const fiftieth = step(paidUpTo(orderIn('paid'), 49), next(50));
    expect(deeds(fiftieth.made)).toContain('notice payment.duplicate');
    const { made, order } = step(fiftieth.order, next(51));
    expect(made).toMatchObject({ outcome: 'applied', rule: 'duplicate_payment', state: 'paid' });
    expect(deeds(made)).toEqual(COUNTED);
    expect(order.entries).toHaveLength(51);
    expect(deeds(step(order, next(52)).made)).not.toContain('notice payment.duplicate');
  });

  it('of a held order open no more holds after the fiftieth, and raise a matter in place of them', () => {
    const fiftieth = step(paidUpTo(orderIn('held'), 49), next(50));
    expect(deeds(fiftieth.made)).toEqual(['captured 10000 of pay_50', 'hold further_payment', 'notice order.held']);
    const { made, order } = step(fiftieth.order, next(51));
    expect(made).toMatchObject({ outcome: 'held', rule: 'completion_while_held', state: 'held' });
    expect(deeds(made)).toEqual(COUNTED);
    expect(order.holds).toHaveLength(50);
    expect(step(order, instruction('accept')).order).toMatchObject({ state: 'paid', holds: [] });
  });

  it('a refund of one of them still gets its notice', () => {
    const many = paidUpTo(orderIn('paid'), 60);
    const refunds = many.entries.map(({ paymentKey }) => aFact('refunded', { paymentId: paymentKey }));
    const last = refunds.pop() as PaymentFact;
    expect(deeds(step(orderAfter(many, ...refunds), last).made)).toContain('notice order.refunded');
  });
});
