import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { SettlementPolicy } from '../../src/domain/decision.ts';
import { FACT_KINDS, type PaymentFact } from '../../src/domain/fact.ts';
import type { Order } from '../../src/domain/order.ts';
import { readReading } from '../../src/paylink/reading.ts';
import { ALWAYS, API, anOrder, deeds, EVENT, NO_API, PERSON, reading, stated, step } from '../support/orders.ts';
import { details } from '../support/readings.ts';
import { times } from '../support/timing.ts';

const money = fc.oneof(
  { weight: 3, arbitrary: fc.constant(stated('100')) },
  fc.constant(null),
  fc.record({
    amount: fc.constantFrom('100', '60', '112.4', 'NaN', null),
    currency: fc.constantFrom('BRL', 'USD', null),
  }),
);
const fact: fc.Arbitrary<PaymentFact> = fc.record({
  kind: fc.oneof(fc.constantFrom(...FACT_KINDS), fc.constantFrom('completed', 'refunded', 'disputed')),
  authority: fc.oneof(fc.constant(EVENT), fc.integer({ min: 1, max: 9 }).map(reading), fc.constant(PERSON)),
  paymentId: fc.constantFrom('a', 'b', null, null),
  linkMoney: money,
  quoteMoney: money,
  reference: fc.constantFrom('order-1', 'order-1', null, 'order-2'),
});
const policy: fc.Arbitrary<SettlementPolicy> = fc.constantFrom(API, API, NO_API, ALWAYS);
const story = fc.array(fc.oneof(fact, fact, details), { maxLength: 7 });

/** The order after a reading, as a store applies it: fact after fact, and its number last. */
function read(order: Order, link: object, number: number, by: SettlementPolicy) {
  const body = new TextEncoder().encode(JSON.stringify({ success: true, paymentLink: link }));
  let after = order;
  const authority = reading(number);
  const done: string[] = [];
  for (const said of readReading(body, number).facts) {
    const { made, order: then } = step({ ...after, lastReading: order.lastReading }, { ...said, authority }, by);
    done.push(...deeds(made));
    after = then;
  }
  return { done, after: { ...after, lastReading: number } };
}

describe('any reading of any order', () => {
  it('that comes again, newer and the same, changes nothing and tells nothing', () => {
    fc.assert(
      fc.property(story, details, policy, (before, link, by) => {
        let order = anOrder();
        for (const [index, said] of before.entries()) {
          order = 'kind' in said ? step(order, said, by, 1000 + index).order : read(order, said, 10 + index, by).after;
        }
        const once = read(order, link, 100, by).after;
        const { after, done } = read(once, link, 101, by);
        expect({ ...after, lastReading: 100 }).toEqual(once);
        // A matter that stands is raised again: it ends if a reading does not raise it.
        expect(done.filter((deed) => !/^(attention|end_attention) /.test(deed))).toEqual([]);
      }),
      { numRuns: times(300, 1_000) },
    );
  });
});
