import { describe, expect, it } from 'vitest';
import {
  type Evidence,
  examine,
  examineWithoutApi,
  type LedgerOrder,
  type Said,
  TOO_LATE,
} from '../../prove/stories/examiner.ts';
import { KINDS, planOf } from '../../prove/stories/plan.ts';

const PAID_AT = '2030-01-31T12:00:00.000Z';
const PAID_AT_MS = Date.parse(PAID_AT);
const MINUTES_3_MS = 180_000;

/** An order of 100.00 that is paid. */
function paid(): { ledger: LedgerOrder; said: Said } {
  return {
    ledger: {
      reference: 'order-1',
      asked: { cents: 10_000, currency: 'BRL' },
      counted: [{ paymentId: 'pay_1', cents: 10_000, currency: 'BRL' }],
      returned: [],
      linkStatus: 'INACTIVE',
      isMisnamed: false,
      hasExpired: false,
      acknowledged: [{ id: 'evt_1', completes: true }],
      eventsAreRight: true,
    },
    said: {
      state: 'paid',
      flags: [],
      paidAt: PAID_AT,
      sums: [{ currency: 'BRL', balance: '100.00' }],
      holds: [],
      attention: [],
      text: '',
      events: [{ eventId: 'evt_1', status: 'done' }],
    },
  };
}

/** What service, shop and settled say of that order. */
function seen(): Evidence {
  const { ledger, said } = paid();
  const told = { type: 'order.paid', reference: 'order-1', version: 2, atMs: PAID_AT_MS + 50, answered: 200 };
  return {
    ledger: [ledger],
    shop: {
      told: [{ ...told, id: 'msg_1', cents: 10_000, currency: 'BRL' }],
      opened: new Map([['order-1', { status: 201, code: null }]]),
      reopened: new Map(),
      cancelled: new Set(),
    },
    settled: new Map([['order-1', said]]),
    attention: [],
    summary: 'Nothing needs a person.',
    accepted: new Set(),
    shopWellAtMs: PAID_AT_MS,
    nowMs: PAID_AT_MS + 1_000,
  };
}

describe('what service, shop and settled say of the same orders', () => {
  it('fits if an order is paid, counted and told', () => {
    expect(examine(seen())).toEqual([]);
  });

  it('fits if a payment of less is held and in the list of what needs a person', () => {
    const evidence = seen();
    const [order] = evidence.ledger as [LedgerOrder];
    order.counted = [{ paymentId: 'pay_1', cents: 4_000, currency: 'BRL' }];
    Object.assign(evidence.settled.get('order-1') as Said, {
      state: 'held',
      paidAt: null,
      holds: ['amount_mismatch'],
      attention: ['amount_mismatch'],
      sums: [{ currency: 'BRL', balance: '40.00' }],
    });
    evidence.shop.told.length = 0;
    evidence.attention.push('hold');
    evidence.summary = 'BRL 40.00 in 1 order needs a person.';
    expect(examine(evidence)).toEqual([]);
  });

  type Change = (given: { evidence: Evidence; order: LedgerOrder; said: Said }) => void;
  const refund = { paymentId: 'pay_1', cents: 3_013, why: 'REFUNDED' } as const;
  const planted: [string, Change, RegExp][] = [
    [
      'an order that is paid for less',
      ({ order }) => {
        order.counted = [{ paymentId: 'pay_1', cents: 4_000, currency: 'BRL' }];
      },
      /paid for 4000 cents of 10000 without a person/,
    ],
    [
      'an order that the service never completed, as after a forged delivery',
      ({ order }) => {
        order.counted = [];
      },
      /paid, and the service completed no payment/,
    ],
    [
      'an order of which the shop alone was told that it is paid',
      ({ order, said }) => {
        order.counted = [];
        Object.assign(said, { state: 'awaiting_payment', paidAt: null, sums: [] });
      },
      /paid, and the service completed no payment/,
    ],
    [
      'money that settled invents',
      ({ said }) => {
        said.sums = [{ currency: 'BRL', balance: '200.00' }];
      },
      /a balance of 20000 cents, and the service counted 10000/,
    ],
    [
      'a cent that nobody names',
      ({ said }) => {
        said.sums = [{ currency: 'BRL', balance: '99.99' }];
      },
      /a balance of 9999 cents of BRL, 10000 at the service, and nothing needs a person/,
    ],
    [
      'money that is counted in another currency',
      ({ order }) => {
        order.counted = [{ paymentId: 'pay_1', cents: 10_000, currency: 'USD' }];
      },
      /a balance of 0 cents of USD, 10000 at the service/,
    ],
    [
      'a second payment that nobody looks at',
      ({ order }) => {
        order.counted.push({ paymentId: 'pay_2', cents: 10_000, currency: 'BRL' });
      },
      /its money is wrong, it is paid, and nothing needs a person/,
    ],
    [
      'wrong money while the whole list is empty',
      ({ order }) => {
        order.isMisnamed = true;
      },
      /1 orders have wrong/,
    ],
    [
      'wrong money under a summary that says nothing is wrong',
      ({ order, evidence }) => {
        order.isMisnamed = true;
        evidence.attention = ['api_key_refused'];
      },
      /1 orders have wrong money, and the summary is: Nothing/,
    ],
    [
      'a refund whose sum is never named',
      ({ order, said }) => {
        order.returned = [refund];
        Object.assign(said, { attention: ['refund_differs'], text: 'refunded 130.13, 30.131 and 3013' });
      },
      /REFUNDED with 3013 cents, a sum that settled never names/,
    ],
    [
      'a dispute that settled never heard of',
      ({ order }) => {
        order.returned = [{ paymentId: 'pay_1', cents: 10_000, why: 'DISPUTED' }];
      },
      /by the ledger it is disputed/,
    ],
    [
      'money that arrived and never pays',
      ({ said }) => {
        said.paidAt = null;
      },
      /it was never paid/,
    ],
    [
      'an alarm without a reason',
      ({ said }) => {
        said.attention = ['event_conflict'];
      },
      /its money is right, and event/,
    ],
    [
      'a lost event',
      ({ said }) => {
        said.events = [];
      },
      /evt_1 was acknowledged, and settled does not have it/,
    ],
    [
      'an event that is never settled',
      ({ said }) => {
        said.events = [{ eventId: 'evt_1', status: 'leased' }];
      },
      /evt_1 was acknowledged, and is still leased/,
    ],
    [
      'a shop that is not told',
      ({ evidence }) => {
        evidence.shop.told = [];
        evidence.nowMs = PAID_AT_MS + MINUTES_3_MS;
      },
      /paid for 180 s, and the shop has not been told/,
    ],
    [
      'a shop that refused what it was told',
      ({ evidence }) => {
        evidence.shop.told = evidence.shop.told.map((one) => ({ ...one, answered: 400 }));
      },
      /the shop has not been told \(sent 1 times\)/,
    ],
    [
      'a shop that is told late',
      ({ evidence }) => {
        evidence.shop.told = evidence.shop.told.map((one) => ({ ...one, atMs: PAID_AT_MS + MINUTES_3_MS }));
      },
      /told 180 s late/,
    ],
    [
      'one notice under two ids',
      ({ evidence }) => evidence.shop.told.push({ ...firstOf(evidence), id: 'msg_2' }),
      /order.paid of order-1, version \d was told as msg_1, msg_2/,
    ],
    [
      'an order that is told as paid a second time',
      ({ evidence }) => evidence.shop.told.push({ ...firstOf(evidence), id: 'msg_2', version: 3 }),
      /order.paid of order-1 was told as msg_1, msg_2/,
    ],
    [
      'a notice that names more money than arrived',
      ({ evidence }) => evidence.shop.told.push({ ...firstOf(evidence), cents: 15_000 }),
      /msg_1 names 15000 cents of BRL, and 10000 arrived/,
    ],
    [
      'a notice that names money of a currency that did not arrive',
      ({ evidence }) => evidence.shop.told.push({ ...firstOf(evidence), currency: 'USD' }),
      /msg_1 names 10000 cents of USD, and 0 arrived/,
    ],
    [
      'an order that was opened too late, and paid',
      ({ evidence }) => {
        evidence.settled.clear();
        evidence.shop.opened.set('order-1', { status: 422, code: TOO_LATE });
      },
      /settled has no such order/,
    ],
    ['an order that settled does not have', ({ evidence }) => evidence.settled.clear(), /settled has no such order/],
    [
      'a sale that is refused although the service makes the link',
      ({ evidence }) => evidence.shop.opened.set('order-1', { status: 422, code: 'refused_by_service' }),
      /opening it answered 422 refused_by_service/,
    ],
    [
      'an expired link that the shop still sells',
      ({ evidence, order, said }) => {
        Object.assign(order, { counted: [], hasExpired: true });
        Object.assign(said, { state: 'payment_pending', paidAt: null, sums: [] });
        evidence.shop.told = [];
        evidence.shop.reopened.set('order-1', { status: 200, code: null });
      },
      /its link has expired, and opening it again answers 200/,
    ],
    [
      'a cancelled order that is not cancelled',
      ({ evidence, order, said }) => {
        order.counted = [];
        Object.assign(said, { state: 'expired', paidAt: null, sums: [] });
        evidence.shop.told = [];
        evidence.shop.cancelled.add('order-1');
      },
      /cancelled, and expired/,
    ],
  ];

  it.each(planted)('do not fit with %s', (_what, change, fault) => {
    const evidence = seen();
    const [order] = evidence.ledger as [LedgerOrder];
    change({ evidence, order, said: evidence.settled.get('order-1') as Said });
    expect(examine(evidence)).toContainEqual(expect.stringMatching(fault));
  });

  it('do not fit without the API if an acknowledged payment is not settled', () => {
    const evidence = seen();
    expect(examineWithoutApi(evidence)).toEqual([]);
    Object.assign(evidence.settled.get('order-1') as Said, {
      paidAt: null,
      events: [{ eventId: 'evt_1', status: 'pending' }],
    });
    expect(examineWithoutApi(evidence)).toEqual([
      'order-1: evt_1 was acknowledged, and is still pending',
      'order-1: acknowledged as paid, and not paid without the API',
    ]);
  });
});

function firstOf({ shop }: Evidence) {
  return shop.told[0] as Evidence['shop']['told'][number];
}

describe('the plan of a story', () => {
  it('follows from the seed and the number alone', () => {
    expect(planOf(5, 17)).toEqual(planOf(5, 17));
    expect(planOf(5, 17)).not.toEqual(planOf(5, 18));
  });

  it('has 4 to 12 orders and 1 to 4 kills, and a hundred of them have every kind of order', () => {
    const plans = Array.from({ length: 100 }, (_, number) => planOf(5, number));
    expect(plans.filter(({ orders }) => orders.length < 4 || orders.length > 12)).toEqual([]);
    expect(plans.filter(({ kills }) => kills.length < 1 || kills.length > 4)).toEqual([]);
    expect(new Set(plans.flatMap(({ orders }) => orders.map(({ kind }) => kind)))).toEqual(new Set(KINDS));
  });
});
