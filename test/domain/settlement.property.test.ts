import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { SettlementPolicy } from '../../src/domain/decision.ts';
import { FACT_KINDS, type PaymentFact } from '../../src/domain/fact.ts';
import { payments, UNNAMED } from '../../src/domain/ledger.ts';
import type { StatedMoney } from '../../src/domain/money.ts';
import { isOpen, type Order, type Settlement } from '../../src/domain/order.ts';
import {
  aFact,
  anOrder,
  balances,
  EVENT,
  instruction,
  NO_API,
  PERSON,
  reading,
  type Step,
  stated,
  step,
} from '../support/orders.ts';
import { runs } from '../support/timing.ts';

/** Calls `visit` with every order in which the items can come. Items that are the same object count as equal. */
function eachSequence<T>(items: readonly T[], visit: (sequence: readonly T[]) => void): void {
  const left = new Map<T, number>();
  for (const item of items) left.set(item, (left.get(item) ?? 0) + 1);
  const sequence: T[] = [];
  const extend = () => {
    if (sequence.length === items.length) return visit(sequence);
    for (const [item, count] of left) {
      if (count === 0) continue;
      left.set(item, count - 1);
      sequence.push(item);
      extend();
      sequence.pop();
      left.set(item, count);
    }
  };
  extend();
}

const LIFE = (['pending', 'completed', 'refunded', 'disputed', 'expired'] as const).map((kind) => aFact(kind));
const withoutId = (fact: PaymentFact): PaymentFact => ({ ...fact, paymentId: null });
const withoutMoney = (fact: PaymentFact): PaymentFact => ({ ...fact, linkMoney: null });

describe('settlement: the events of one payment', () => {
  const [, completed, refunded, disputed] = LIFE as [PaymentFact, PaymentFact, PaymentFact, PaymentFact];

  it.each([
    ['with an id', LIFE],
    ['without an id', LIFE.map(withoutId)],
    ['with and without an id', [...LIFE, withoutId(completed), withoutId(refunded)]],
    ['with and without money', [...LIFE, withoutMoney(completed), withoutMoney(disputed)]],
    ['each of the four twice', LIFE.slice(0, 4).flatMap((fact) => [fact, fact])],
    ['completed and expired three times', [...LIFE, ...LIFE, completed, refunded].filter((f) => f !== disputed)],
  ])('in every order count its money once: %s', (_name, facts) => {
    let sequences = 0;
    eachSequence(facts, (sequence) => {
      sequences++;
      const end = sequence.reduce(paidStaysPaid, anOrder());
      const captured = end.entries.filter(({ kind }) => kind === 'captured');
      const sum = captured.reduce((total, { amountMinor }) => total + amountMinor, 0);
      const told = sequence.map(({ kind, paymentId }) => `${kind} ${paymentId}`).join(', ');
      expect(sum, told).toBe(10_000);
      expect(balances(end.entries), told).toEqual([{ amountMinor: 0, currency: 'BRL' }]);
      expect(end.state, told).toBe('refunded');
      expect(payments(end), told).toHaveLength(1);
    });
    expect(sequences).toBeGreaterThanOrEqual(120);
  });

  it('in any order and number leave the order paid if nothing was returned', () => {
    const kept = LIFE.filter((fact) => fact !== refunded && fact !== disputed);
    const arbitrary = fc.array(fc.constantFrom(...kept), { maxLength: 12 });
    fc.assert(
      fc.property(arbitrary, (facts) => {
        const end = facts.reduce(paidStaysPaid, anOrder());
        expect(end.entries).toHaveLength(facts.includes(completed) ? 1 : 0);
        if (facts.includes(completed)) expect(end.state).toBe('paid');
      }),
    );
  });
});

function paidStaysPaid(order: Order, fact: PaymentFact, index: number): Order {
  const after = step(order, fact, NO_API, 1000 + index).order;
  if (order.settlement !== null && after.settlement !== order.settlement) {
    throw new Error(`the settlement of ${JSON.stringify(order)} changed`);
  }
  return after;
}

const anyMoney: fc.Arbitrary<StatedMoney | null> = fc.oneof(
  { weight: 4, arbitrary: fc.constant(stated('100.00')) },
  fc.constant(null),
  fc.record({
    amount: fc.constantFrom('100', '60', '140.5', '0', 'NaN', '1e999', '100.001', null),
    currency: fc.constantFrom('BRL', 'BRL', 'JPY', null),
  }),
);
const anyFact: fc.Arbitrary<PaymentFact> = fc.record({
  kind: fc.oneof(fc.constantFrom(...FACT_KINDS), fc.constantFrom('completed', 'refunded', 'disputed')),
  authority: fc.oneof(fc.constant(EVENT), fc.integer({ min: 1, max: 30 }).map(reading), fc.constant(PERSON)),
  paymentId: fc.constantFrom('a', 'a', 'b', 'c', null),
  linkMoney: anyMoney,
  quoteMoney: anyMoney,
  reference: fc.constantFrom('order-1', 'order-1', 'order-1', null, 'order-2'),
});
const anyPolicy: fc.Arbitrary<SettlementPolicy> = fc.record({ asks: fc.constantFrom('never', 'in-doubt', 'always') });
type Told = { fact: PaymentFact; policy: SettlementPolicy };
const anyStory: fc.Arbitrary<Told[]> = fc.array(fc.record({ fact: anyFact, policy: anyPolicy }), { maxLength: 14 });

/** Folds a story of facts, showing each step with the order before it. */
function tell(story: readonly Told[], show: (told: Step & Told & { before: Order }) => void): Order {
  let order = anOrder();
  for (const [index, { fact, policy }] of story.entries()) {
    const told = step(order, fact, policy, 1000 + index);
    show({ ...told, before: order, fact, policy });
    order = told.order;
  }
  return order;
}

/** Money that goes back before it is known whose it is, and comes again. */
const HARD: Told[] = (
  [
    ['completed', 'a'],
    ['refunded', null],
    ['completed', 'b'],
    ['accept', null],
    ['disputed', 'a'],
    ['completed', null],
    ['refunded', 'b'],
  ] as const
).map(([kind, paymentId]) => {
  const isPersons = kind === 'accept';
  return { fact: isPersons ? instruction(kind) : aFact(kind, { paymentId }), policy: { asks: 'never' } };
});
const RUNS = runs<[Told[]]>(70, 1_000, [[HARD]]);

describe('settlement: any story of several payments', () => {
  it('settles an order at most once and never changes the settlement', () => {
    fc.assert(
      fc.property(anyStory, (story) => {
        let settled: Settlement | null = null;
        tell(story, ({ order, made }) => {
          if (settled !== null) {
            expect(order.settlement).toBe(settled);
            expect(made.effects.some((effect) => effect.do === 'settle')).toBe(false);
          }
          if (order.state === 'paid') expect(order.settlement).not.toBeNull();
          settled = order.settlement;
        });
      }),
      RUNS,
    );
  });

  it('never makes two ledger rows of the same payment, kind and occurrence', () => {
    fc.assert(
      fc.property(anyStory, (story) => {
        const { entries } = tell(story, () => {});
        const rows = entries.map(({ paymentKey, kind, occurrence }) => `${paymentKey} ${kind} ${occurrence}`);
        expect(new Set(rows).size).toBe(rows.length);
      }),
      RUNS,
    );
  });

  it('only ever adds to the ledger, and the balance is its sum', () => {
    fc.assert(
      fc.property(anyStory, (story) => {
        const end = tell(story, ({ before, order }) => {
          expect(order.entries.slice(0, before.entries.length)).toEqual(before.entries);
        });
        const sums = new Map<string, bigint>();
        for (const { currency, amountMinor } of end.entries) {
          sums.set(currency, (sums.get(currency) ?? 0n) + BigInt(amountMinor));
        }
        const balance = balances(end.entries).map((m) => [m.currency, BigInt(m.amountMinor)] as const);
        expect(new Map(balance)).toEqual(sums);
      }),
      RUNS,
    );
  });

  it('leaves nothing of a returned payment, and of a completed one what it captured', () => {
    fc.assert(
      fc.property(anyStory, (story) => {
        for (const { status, balance, captured } of payments(tell(story, () => {}))) {
          expect(balance.amountMinor).toBe(status === 'completed' ? captured.amountMinor : 0);
          expect(captured.amountMinor).toBeGreaterThanOrEqual(0);
        }
      }),
      RUNS,
    );
  });

  it('loses no capture: each completed payment that was not asked about is in the ledger', () => {
    fc.assert(
      fc.property(anyStory, (story) => {
        const answered = new Set<string | null>();
        const end = tell(story, ({ made, fact }) => {
          const put = made.outcome === 'ask' || made.rule === 'older_reading';
          if (fact.kind === 'completed' && !put) answered.add(fact.paymentId);
        });
        const counted = payments(end);
        for (const id of answered) {
          expect(counted.some((payment) => (id === null ? true : payment.id === id))).toBe(true);
        }
        expect(counted.filter(({ key }) => key === UNNAMED).length).toBeLessThanOrEqual(1);
        expect(new Set(counted.map(({ id }) => id)).size).toBe(counted.length);
      }),
      RUNS,
    );
  });

  it('moves no money when a fact comes again right after itself', () => {
    fc.assert(
      fc.property(anyStory, (story) => {
        tell(story, ({ order, fact, policy }) => {
          const again = step(order, fact, policy).order;
          expect(again.entries).toEqual(order.entries);
          expect(again.state).toBe(order.state);
          expect(again.holds).toEqual(order.holds);
        });
      }),
      RUNS,
    );
  });

  it('has open holds exactly while the order is held, each with a different id', () => {
    fc.assert(
      fc.property(anyStory, (story) => {
        const ids: string[] = [];
        tell(story, ({ made, order }) => {
          expect(order.holds.length > 0).toBe(order.state === 'held');
          for (const effect of made.effects) if (effect.do === 'hold') ids.push(effect.hold.id);
        });
        expect(new Set(ids).size).toBe(ids.length);
      }),
      RUNS,
    );
  });

  it('raises the version with each change that a shop can see, by one for each of its notices, and only then', () => {
    fc.assert(
      fc.property(anyStory, (story) => {
        tell(story, ({ before, order, made }) => {
          const shown = ({ version: _, lastReading: __, ...rest }: Order) => JSON.stringify(rest);
          const notices = made.effects.filter((effect) => effect.do === 'notice').length;
          expect(order.version - before.version).toBe(shown(order) === shown(before) ? 0 : Math.max(1, notices));
        });
      }),
      RUNS,
    );
  });

  it('always says where the money is: a paid order is covered, or a person or a check knows', () => {
    fc.assert(
      fc.property(anyStory, (story) => {
        const end = tell(story, () => {});
        const left = payments(end).filter(({ status }) => status === 'completed');
        if (end.state === 'refunded' || end.state === 'disputed') {
          expect(left.length === 0 || end.flags.includes('duplicate_payment')).toBe(true);
        }
        if (end.state === 'paid' && end.entries.length > 0) expect(left).not.toEqual([]);
        if (end.state === 'cancelled' && left.length > 0) expect(end.flags).toContain('refund_due');
        if (left.length > 1 && end.state === 'paid') expect(end.flags).toContain('duplicate_payment');
        if (end.state === 'awaiting_payment' || end.state === 'expired') expect(end.entries).toEqual([]);
      }),
      RUNS,
    );
  });

  it('pays no open order by an event alone if each completion is to be asked about', () => {
    fc.assert(
      fc.property(anyStory, (story) => {
        const asking = story.map(({ fact }) => ({ fact, policy: { asks: 'always' } as const }));
        tell(asking, ({ before, made, fact }) => {
          if (fact.authority.by !== 'event' || !isOpen(before.state)) return;
          if (!['completed', 'unclear', 'refunded', 'disputed'].includes(fact.kind)) return;
          expect(made.outcome).toBe('ask');
          expect(made.effects).toEqual([{ do: 'check' }]);
        });
      }),
      RUNS,
    );
  });

  it('never asks if no API can be asked, nor again about what a reading said', () => {
    fc.assert(
      fc.property(anyStory, (story) => {
        tell(story, ({ made, fact, policy }) => {
          if (policy.asks === 'never' || fact.authority.by !== 'event') expect(made.outcome).not.toBe('ask');
        });
      }),
      RUNS,
    );
  });
});
