import { describe, expect, it } from 'vitest';
import type { PaymentFact } from '../../src/domain/fact.ts';
import type { Order } from '../../src/domain/order.ts';
import { differences, type LastWord, lastSaid, whatServiceSays } from '../../src/explain/sides.ts';
import type { EventSummary } from '../../src/store/verbs/lists.ts';
import type { Timeline } from '../../src/store/verbs/timeline.ts';
import { aFact, anOrder, orderIn, stated } from '../support/orders.ts';

const row = (over: Partial<EventSummary> = {}) =>
  ({ key: 7, status: 'done', rule: 'paid', fault: null, ...over }) as EventSummary;

/** How the three differ, given what the service said last. */
function differing(order: Order, facts: readonly PaymentFact[] | null, over: Partial<Timeline> = {}): string[] {
  const timeline = { order, events: [], attention: [], notices: [], ...over } as unknown as Timeline;
  return differences(timeline, { event: row(), facts }, { canTell: true });
}

function saying(order: Order, facts: readonly PaymentFact[] | null): string[] {
  return whatServiceSays(order, { event: row(), facts } as LastWord);
}

describe('what the service said last', () => {
  it('names the payment and its money', () => {
    expect(saying(orderIn('paid'), [aFact('completed')])).toEqual(['the payment is completed (pay_1): 100.00 BRL']);
    expect(saying(orderIn('awaiting_payment'), [aFact('pending', { paymentId: null })])).toEqual([
      'the customer has begun to pay',
    ]);
  });

  it('is what the money counts as, not what a customer paid with interest', () => {
    const fact = aFact('completed', { quoteMoney: stated('112.40') });
    expect(saying(orderIn('paid'), [fact])).toEqual(['the payment is completed (pay_1): 100.00 BRL']);
  });

  it('is the rule alone if its bytes were dropped', () => {
    expect(saying(orderIn('paid'), null)).toEqual(['the payment is completed and matches the order']);
  });

  it('is the newest that was settled and said something', () => {
    const events = [
      row({ key: 1 }),
      row({ key: 2, rule: 'older_reading' }),
      row({ key: 3, rule: null }),
      row({ key: 4, status: 'dead' }),
    ];
    expect(lastSaid({ events } as Timeline)?.key).toBe(1);
  });
});

describe('how service, settled and shop differ', () => {
  it('is nothing if they agree', () => {
    expect(differing(orderIn('paid'), [aFact('completed')])).toEqual([]);
    expect(differing(orderIn('refunded'), [aFact('refunded')])).toEqual([]);
    expect(differing(orderIn('awaiting_payment'), null)).toEqual([]);
  });

  it.each([
    [
      'more came than was counted',
      [aFact('completed', { linkMoney: stated('70.00') })],
      'says that pay_1 is 70.00 BRL, but settled counted 100.00',
    ],
    ['it is refunded', [aFact('refunded')], 'says that pay_1 is refunded, but settled counted it as completed'],
    [
      'it is another payment',
      [aFact('completed', { paymentId: 'pay_2' })],
      'says that pay_2 is completed, but settled counted nothing',
    ],
  ])('says so of a paid order if %s', (_name, facts, words) => {
    expect(differing(orderIn('paid'), facts)).toEqual([expect.stringContaining(words)]);
  });

  it('says what the order asks if less came', () => {
    const facts = [aFact('completed', { linkMoney: stated('60.00') })];
    expect(differing(orderIn('held'), facts)).toEqual([
      'The service says that pay_1 is 60.00 BRL, but the order asks for 100.00 BRL.',
    ]);
  });

  it('says that nothing was counted of a payment about which the service contradicts itself', () => {
    const facts = [aFact('unclear', { linkMoney: stated('150.00') })];
    const held = anOrder({ state: 'held', holds: [{ id: 'h', reason: 'status_unclear' }] });
    expect(saying(held, facts)).toEqual(['it contradicts itself about the payment (pay_1): 150.00 BRL']);
    expect(differing(held, facts)).toEqual([
      'The service contradicts itself about pay_1; settled counted nothing for it.',
    ]);
    expect(differing(anOrder({ state: 'paid', resolution: 'accept' }), facts)).toEqual([]);
  });

  it.each(['accept', 'reject'] as const)('is nothing more once a person decided to %s less money', (resolution) => {
    const facts = [aFact('completed', { linkMoney: stated('60.00') })];
    const held = orderIn('held');
    const state = resolution === 'accept' ? 'paid' : 'cancelled';
    expect(differing({ ...held, holds: [], state, resolution }, facts)).toEqual([]);
    expect(differing({ ...held, resolution }, facts)).toHaveLength(1);
  });

  it('names what came and is not settled', () => {
    const attention = [{ kind: 'event_dead', subject: '9' }] as Timeline['attention'];
    const events = [row({ key: 8, status: 'pending' }), row({ key: 9, status: 'dead' })];
    expect(differing(orderIn('paid'), null, { events, attention })).toEqual([
      'settled has not settled event 8 yet.',
      'settled could not settle event 9, and counted nothing for it.',
    ]);
  });

  it('says what the shop was not told', () => {
    const notices = [
      {
        status: 'pending',
        type: 'order.paid',
        version: 2,
        attempt: 0,
        fault: null,
        answer: null,
        dueAtMs: 1,
        endedAtMs: null,
      },
    ];
    expect(differing(orderIn('paid'), null, { notices } as Partial<Timeline>)).toEqual([
      'The shop has not been told yet that the order is paid.',
    ]);
  });
});
