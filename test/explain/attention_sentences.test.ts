import { expect, it } from 'vitest';
import type { SaidFact } from '../../src/domain/fact.ts';
import {
  ATTENTION_KINDS,
  type AttentionKind,
  type DecidedAttention,
  decidedParams,
  type MatterKind,
} from '../../src/domain/matter.ts';
import type { MatterGroup } from '../../src/domain/matter_money.ts';
import type { Order } from '../../src/domain/order.ts';
import { explainAttention } from '../../src/explain/attention_sentences.ts';
import { summarizeAttention, troubleSentence } from '../../src/explain/attention_summary.ts';
import { differences, type LastWord, lastSaid, whatServiceSays } from '../../src/explain/sides.ts';
import type { EventSummary } from '../../src/store/verbs/lists.ts';
import type { Timeline } from '../../src/store/verbs/timeline.ts';
import { SAMPLE_MATTERS } from '../support/matters.ts';
import { aFact, anOrder, instruction, orderAfter, orderIn, reading, second, stated } from '../support/orders.ts';

const SEVEN = { key: 7, canAsk: true };
const paid = orderIn('paid');
const twice = orderAfter(paid, second());
const lost = orderAfter(twice, aFact('disputed'));
const seventy = Array.from({ length: 70 }, (_, n) => aFact('completed', { paymentId: `pay_${n + 2}` }));

/** What a person reads of a matter that a decision raised. */
function decided(kind: DecidedAttention, order: Order): string {
  return explainAttention({ kind, subject: order.reference, params: decidedParams(kind, order) }, SEVEN);
}

const DECIDED: Record<string, [DecidedAttention, Order]> = {
  'the later of two payments': ['duplicate_payment', twice],
  'the one that pays no order': ['duplicate_payment', orderAfter(lost, aFact('completed', { authority: reading(1) }))],
  'the later of two that a person accepted': [
    'duplicate_payment',
    orderAfter(orderIn('held'), second(), instruction('accept')),
  ],
  'both, if the money of the order went back': ['duplicate_payment', { ...twice, state: 'refunded' }],
  'what is left of a cancelled order': [
    'refund_due',
    orderAfter(orderAfter(orderIn('held'), second(), aFact('refunded')), instruction('reject')),
  ],
  'the newest 20 of many': ['duplicate_payment', orderAfter(paid, ...seventy)],
  'the newest 20 of many, of a held order': ['duplicate_payment', orderAfter(orderIn('held'), ...seventy)],
  'both payments': ['amount_mismatch', twice],
  'each that may be meant': ['status_unclear', twice],
  'the order alone': ['link_disabled', twice],
  'what the order asks': ['money_unnamed', twice],
  'a payment without an id': [
    'service_disagrees',
    orderAfter(orderIn('awaiting_payment'), aFact('completed', { paymentId: null, linkMoney: stated('100') })),
  ],
};

/** A matter of the kind with these params over those of its sample. */
function sample(kind: AttentionKind, over: object = {}, canAsk = true): string {
  const [subject, params] = SAMPLE_MATTERS[kind];
  const kept = JSON.parse(JSON.stringify({ ...params, ...over }));
  expect(kept).toEqual({ ...params, ...over });
  const sentence = explainAttention({ kind, subject, params: kept }, { key: 7, canAsk });
  expect(sentence).not.toMatch(/undefined|null|NaN|\[object| ID --reason/);
  return sentence;
}

const returned = (kind: string) => ({ said: { kind, paymentId: 'pay_1', amount: '30.00', currency: 'BRL' } });
const LATER = { kind: 'of_a_later_version', subject: 'x', params: { some: 'thing' } };
const trouble = (kind: AttentionKind, sinceMs?: number) =>
  troubleSentence({ ...{ key: 1, subject: 'shop', openedAtMs: 9_000, kind }, params: { sinceMs } });

const MATTERS: [title: string, sentence: () => string][] = [
  ...Object.entries(DECIDED).map(([what, [kind, order]]): [string, () => string] => [
    `${kind}, ${what}`,
    () => decided(kind, order),
  ]),
  ...ATTENTION_KINDS.map((kind): [string, () => string] => [kind, () => sample(kind)]),
  ...ATTENTION_KINDS.map((kind): [string, () => string] => [`${kind} without an API`, () => sample(kind, {}, false)]),
  ...[0, 1, 1_000, 1_001].map((unpaid): [string, () => string] => [
    `service_unanswered with ${unpaid} unpaid orders`,
    () => sample('service_unanswered', { unpaid }),
  ]),
  ...['refunded', 'disputed'].map((kind): [string, () => string] => [
    `amount_mismatch of a payment that is ${kind}`,
    () => sample('amount_mismatch', returned(kind)),
  ]),
  [
    'link_not_known for a list that cannot be read',
    () => sample('link_not_known', { restoredFromMs: 0, why: 'it has no list' }),
  ],
  ['a kind of a later version', () => explainAttention(LATER, SEVEN)],
  ['money_untold since its first attempt', () => trouble('money_untold', 1_000)],
  ['shop_refuses_notices since its first attempt', () => trouble('shop_refuses_notices', 1_000)],
  ['api_key_refused since it is a matter', () => trouble('api_key_refused')],
];

const NOW_MS = 10 * 60_000;
const group = (kind: string, minutes: number, count = 1): MatterGroup => ({
  ...{ kind: kind as MatterKind, reason: null, count, oldestAtMs: NOW_MS - minutes * 60_000, sums: [] },
});
const sum = (currency: string, balance: bigint, reported = 0n) => ({ currency, asked: 10_000n, balance, reported });
const sums = [sum('BRL', 1n), sum('EUR', 0n), sum('USD', -250n)];
type Money = Parameters<typeof summarizeAttention>[0]['money'];

function summary(groups: MatterGroup[], money: Partial<Money> = {}): string {
  const none = { orders: 0, sums: [], isWhole: true, hasMisread: false, hasUnreadable: false };
  return summarizeAttention(
    { groups, money: { ...none, withBalance: money.orders ?? 0, ...money } },
    { nowMs: NOW_MS, isFiltered: false, unlisted: [] },
  );
}

const SUMMARIES: [string, () => string][] = [
  ['the oldest of all', () => summary([group('hold', 2, 3), group('link_disabled', 9), group('link_missing', 4)])],
  ['balances of three currencies', () => summary([group('hold', 1, 2)], { orders: 2, sums })],
  ['no balance', () => summary([group('hold', 1)], { orders: 1, sums: [sum('EUR', 0n)] })],
  [
    'a balance of some',
    () => summary([group('hold', 3, 8)], { orders: 8, withBalance: 3, sums: [sum('BRL', 1n), sum('R$', 100n)] }),
  ],
  [
    'what webhooks reported',
    () => summary([group('hold', 1)], { orders: 1, withBalance: 0, sums: [sum('BRL', 0n, 6_000n)] }),
  ],
  ['what is left out', () => summary([group('hold', 1)], { orders: 1, sums, hasMisread: true })],
  [
    'more than was summed',
    () => summary([group('hold', 1, 10_001)], { orders: 10_000, sums: [sum('BRL', 500n)], isWhole: false }),
  ],
  ...[...ATTENTION_KINDS, 'of_a_later_version'].map((kind): [string, () => string] => [
    `of ${kind} alone`,
    () => summary([group(kind, 1)]),
  ]),
  ['of two that hide each other', () => summary([group('api_key_refused', 1), group('event_dead', 1)])],
];

const row = (over: Partial<EventSummary> = {}) =>
  ({ key: 7, status: 'done', rule: 'paid', fault: null, ...over }) as EventSummary;

/** What the service said last of an order, and how the three differ. */
function sides(order: Order, facts: readonly SaidFact[] | null, over: Partial<Timeline> = {}): string {
  const word: LastWord = { event: row(), facts };
  const timeline = { order, events: [], attention: [], notices: [], ...over } as unknown as Timeline;
  const differing = differences(timeline, word, { canTell: true });
  return [...whatServiceSays(order, word), ...differing.map((line) => `! ${line}`)].join('\n');
}

const less = [aFact('completed', { linkMoney: stated('60.00') })];
const unclear = [aFact('unclear', { linkMoney: stated('150.00') })];
const NOTICES = [
  {
    ...{ status: 'pending', type: 'order.paid', version: 2, attempt: 0, fault: null, answer: null },
    ...{ dueAtMs: 1, endedAtMs: null },
  },
] as Timeline['notices'];
const UNSETTLED = {
  attention: [{ kind: 'event_dead', subject: '9' }] as Timeline['attention'],
  events: [row({ key: 8, status: 'pending' }), row({ key: 9, status: 'dead' })],
};
const SIDES: [string, () => string][] = [
  ['paid, and so it says', () => sides(paid, [aFact('completed')])],
  ['paid with interest', () => sides(paid, [aFact('completed', { quoteMoney: stated('112.40') })])],
  ['paid, by bytes that were dropped', () => sides(paid, null)],
  ['refunded, and so it says', () => sides(orderIn('refunded'), [aFact('refunded')])],
  ['waiting, and it said nothing', () => sides(orderIn('awaiting_payment'), null)],
  ['waiting, and begun', () => sides(orderIn('awaiting_payment'), [aFact('pending', { paymentId: null })])],
  ['paid, and less came', () => sides(paid, [aFact('completed', { linkMoney: stated('70.00') })])],
  ['paid, and it is refunded', () => sides(paid, [aFact('refunded')])],
  ['paid, and it is another payment', () => sides(paid, [aFact('completed', { paymentId: 'pay_2' })])],
  ['held, because less came', () => sides(orderIn('held'), less)],
  [
    'held, because it contradicts itself',
    () => sides(anOrder({ state: 'held', holds: [{ id: 'h', reason: 'status_unclear' }] }), unclear),
  ],
  ['accepted, although it contradicts itself', () => sides(anOrder({ state: 'paid', resolution: 'accept' }), unclear)],
  ...(['accept', 'reject'] as const).flatMap((resolution): [string, () => string][] => {
    const state = resolution === 'accept' ? 'paid' : 'cancelled';
    const held = orderIn('held');
    return [
      [`decided, ${resolution}`, () => sides({ ...held, holds: [], state, resolution }, less)],
      [`decided, ${resolution}, and held again`, () => sides({ ...held, resolution }, less)],
    ];
  }),
  ['paid, and more is not settled', () => sides(paid, null, UNSETTLED)],
  ['paid, and the shop was not told', () => sides(paid, null, { notices: NOTICES })],
];

/** Read every change of it. The test of why.txt, in explain.test.ts, says how both are written anew. */
it('each sentence about what needs a person is as test/vectors/attention.txt has it', async () => {
  const parts = { 'A matter': MATTERS, 'All that needs a person': SUMMARIES, 'Service, settled and shop': SIDES };
  const told = Object.entries(parts).flatMap(([part, stories]) =>
    stories.map(([title, sentence]) => `## ${part}: ${title}\n\n${sentence()}\n`),
  );
  await expect(told.join('\n')).toMatchFileSnapshot('../vectors/attention.txt');
});

it('what the service said last is the newest that was settled and said something', () => {
  const events = [
    row({ key: 1 }),
    row({ key: 2, rule: 'older_reading' }),
    row({ key: 3, rule: null }),
    row({ key: 4, status: 'dead' }),
  ];
  expect(lastSaid({ events } as Timeline)?.key).toBe(1);
});
