import { expect, it } from 'vitest';
import { CHECK_REASONS } from '../../src/domain/check_queue.ts';
import type { ShopFailures } from '../../src/domain/notice.ts';
import { type KnownDetails, NO_DETAILS } from '../../src/domain/payment_details.ts';
import { explain } from '../../src/explain/explain.ts';
import { headerNames } from '../../src/paylink/events.ts';
import type { EventSummary } from '../../src/store/verbs/lists.ts';
import type { NoticeSummary } from '../../src/store/verbs/notice_lists.ts';
import type { Timeline } from '../../src/store/verbs/timeline.ts';
import { aFact, anOrder, instruction, orderAfter, orderIn, reading, stated } from '../support/orders.ts';

const NOW = Date.UTC(2026, 0, 2, 12, 0, 0);
const MINUTE = 60_000;

const timeline = (over: Partial<Timeline> = {}): Timeline => ({
  order: anOrder(),
  history: [],
  events: [],
  hints: [],
  rejections: [],
  attention: [],
  notices: [],
  linkExpiresAtMs: null,
  check: null,
  nextCheckAtMs: null,
  checkFailures: 0,
  secretFlaw: null,
  opening: null,
  drift: [],
  reported: null,
  ...over,
});

/** What is known of `pay_1`. */
const said = (over: Partial<KnownDetails> = {}): KnownDetails => ({
  ...NO_DETAILS,
  key: 'pay_1',
  saidAtMs: NOW,
  isForgotten: false,
  ...over,
});

const row = (over: Partial<EventSummary> = {}): EventSummary => ({
  key: 7,
  eventId: 'reading:12',
  type: 'scheduled',
  reference: 'order-1',
  linkId: 'pl_1',
  status: 'done',
  outcome: 'ignored',
  rule: 'changes_nothing',
  attempt: 1,
  conflict: false,
  duplicates: 0,
  receivedAtMs: NOW - MINUTE,
  dueAtMs: NOW - MINUTE,
  endedAtMs: NOW - MINUTE,
  fault: null,
  reading: 12,
  ...over,
});

const opening = (over: Partial<NonNullable<Timeline['opening']>> = {}): Timeline['opening'] => ({
  status: 'pending',
  withheld: null,
  fault: null,
  foreignId: null,
  needsId: false,
  attempt: 1,
  dueAtMs: NOW + 5 * MINUTE,
  ...over,
});

/** What is known of an order, and what settled may do. */
type Story = Partial<Timeline> & { canAsk?: boolean; canTell?: boolean; prefix?: string; shopFailures?: ShopFailures };

/** All that a person is told. */
function tell({ canAsk = true, canTell = false, prefix = 'x-service', shopFailures = null, ...over }: Telling): string {
  const { answer, entries, next } = explain(timeline(over), {
    ...{ nowMs: NOW, canAsk, canTell, shopFailures, headerNames: headerNames(prefix) },
    ...{ notAnswered: null, unlisted: [], isDifferent: false },
  });
  const lines = entries.flatMap(({ at, kind, summary, details, about }) => {
    const of = about == null ? '' : ` [${Object.values(about).join(' ')}]`;
    return [`- ${at} ${kind}: ${summary}${of}`, ...details.map((detail) => `    ${detail}`)];
  });
  return [answer, ...lines, ...next.map((line) => `> ${line}`)].join('\n');
}

type Telling = Omit<Story, 'shopFailures'> & { shopFailures?: ShopFailures | null };

const FAULT = { code: 'bug', message: 'broken\nat x' };
const TIMEOUT = { code: 'service_timeout', message: 'POST /payment-links was not answered in 10 s.\nat x' };
const ANA = { customerName: 'Ana', customerEmail: 'ana@example.com' };
const check = (reason: string, inMs = 0) => ({ reason, requestedAtMs: NOW, dueAtMs: NOW + inMs });
const event = (over: Partial<EventSummary>) => row({ reading: null, ...over });
const paid = orderIn('paid');
const after = (...facts: Parameters<typeof orderAfter>[1][]) => orderAfter(anOrder(), ...facts);
const matters = (events: readonly EventSummary[]): Timeline['attention'] =>
  events.map(({ key }) => ({
    ...{ key, kind: 'event_dead', subject: String(key), reference: 'order-1', count: 1 },
    ...{ params: { code: 'bug', message: 'broken.' }, openedAtMs: NOW, lastAtMs: NOW },
  }));
const numbered = (count: number, over: Partial<EventSummary>) =>
  Array.from({ length: count }, (_, n) => event({ key: n + 1, ...over }));
const dead = (count: number) => numbered(count, { status: 'dead', fault: FAULT });
const DRIFT = {
  ...{ atMs: NOW, reading: 12, learnedBy: 'listed', rule: 'paid', rightSide: 'service' as const },
  ...{ ours: 'awaiting_payment', theirs: 'paid, 100.00 BRL' },
};

const ASKED: Record<string, Story> = {
  'an answer that paid the order': { events: [row({ outcome: 'applied', rule: 'paid' })] },
  'an answer that waits': { events: [row({ status: 'pending' })] },
  'an answer that is being settled': { events: [row({ status: 'leased' })] },
  'an answer that could not be settled': { events: [row({ status: 'dead', fault: FAULT })] },
  'an answer that is tried again': { events: [row({ status: 'pending', fault: FAULT })] },
  'an answer about no payment': { events: [row({ rule: null })] },
  'the newest of two answers': { events: [row(), row({ key: 8, receivedAtMs: NOW - 2 * MINUTE })] },
  'an answer that was too old': { events: [row({ status: 'pending' }), row({ rule: 'older_reading' })] },
  'an answer that needs a person': { events: [row({ status: 'dead' })], attention: matters([row()]) },
  'an answer whose matter a person has ended': { events: [row({ status: 'dead' })] },
  ...Object.fromEntries([9, 10, 11].map((n) => [`${n} dead events`, { events: dead(n), attention: matters(dead(n)) }])),
  ...Object.fromEntries(
    [5, 6].map((types) => {
      const rows = Array.from({ length: types }, (_, n) => event({ key: n, type: `type_${n + 1}`, rule: null }));
      return [`deliveries of ${types} types`, { events: [...rows, { ...(rows[2] as EventSummary), key: 9 }] }];
    }),
  ),
  'an event that came again': { events: [event({ eventId: 'evt_again', duplicates: 2 })] },
  'a disagreement': { order: paid, drift: [DRIFT] },
  'a disagreement that a person must decide': { drift: [{ ...DRIFT, rightSide: 'undecided' }] },
  ...Object.fromEntries(CHECK_REASONS.map((type) => [`asked because: ${type}`, { events: [row({ type })] }])),
};

const refused = (lastAtMs = NOW): Timeline['rejections'] => [
  {
    ...{ key: 1, reference: 'order-1', reason: 'signature_missing', count: 4, firstAtMs: lastAtMs, lastAtMs },
    diagnosis: JSON.stringify({
      code: 'other_header_names',
      names: ['x-acme-signature', 'x-acme-timestamp'],
      wanted: ['x-service-signature', 'x-service-timestamp'],
      prefix: 'x-acme',
    }),
  },
];
const ASKS = event({ type: 'x', outcome: 'ask', rule: 'asks_before_deciding' });
const LINK = { id: 'pl_1', url: null, shortUrl: null, status: 'ACTIVE', expiresAtMs: null };
const cancelled = orderIn('cancelled');

const NEXT: Record<string, Story> = {
  'deliveries under other header names': { rejections: refused() },
  'the same once the setting was changed': { rejections: refused(), prefix: 'x-acme' },
  'the same once a delivery verified': { rejections: refused(NOW - 1), events: [event({ receivedAtMs: NOW })] },
  'a check that waits': { check: check('stale', 3 * MINUTE), nextCheckAtMs: NOW + MINUTE },
  'a check that is due': { check: check('doubtful_money') },
  'the schedule': { nextCheckAtMs: NOW + 8 * MINUTE },
  'the schedule of a paid order': { order: paid, nextCheckAtMs: NOW + 24 * 60 * MINUTE },
  'a paid order that nothing follows for': { order: paid },
  'the schedule of a cancelled order': { order: cancelled, nextCheckAtMs: NOW + 5 * MINUTE },
  ...Object.fromEntries(
    [{ status: 'INACTIVE' }, { status: 'EXPIRED' }, { expiresAtMs: NOW - MINUTE }].map((over) => [
      `the same with a link of ${JSON.stringify(over)}`,
      { order: { ...cancelled, link: { ...LINK, ...over } }, nextCheckAtMs: NOW + MINUTE },
    ]),
  ),
  'the schedule of a rejected order whose money went back': {
    order: orderAfter(orderIn('held'), instruction('reject'), aFact('refunded')),
    nextCheckAtMs: NOW + MINUTE,
  },
  'asking that has failed': { checkFailures: 1, nextCheckAtMs: NOW + MINUTE },
  'asking that has failed since an answer': { events: [row()], checkFailures: 3, nextCheckAtMs: NOW + MINUTE },
  'asking that has failed of a paid order': { order: paid, checkFailures: 3 },
  'seconds that are rounded up': { nextCheckAtMs: NOW + 95_706 },
  'few seconds that are rounded up': { nextCheckAtMs: NOW + 2_061 },
  'a schedule that is over': { order: orderIn('expired') },
  'no API to ask': { check: check('doubtful_money'), nextCheckAtMs: NOW + MINUTE, canAsk: false },
  'an event that waits for an answer': { events: [ASKS], check: check('doubtful_money') },
  'an event that asked, and nothing asks': { events: [ASKS] },
};

const ended = { ...LINK, status: 'EXPIRED' };
const begun = orderIn('payment_pending');
const other = { quoteMoney: stated('30.00') };
const reads = (...facts: ReturnType<typeof aFact>[]) =>
  after(...facts.map((fact, n) => ({ ...fact, authority: reading(n + 1) })));
const twice = ['pay_2', 'pay_3'].map((paymentId) => aFact('completed', { paymentId }));

const BECAME: Record<string, Story> = {
  'begun, and its link has ended': { order: begun, linkExpiresAtMs: NOW - MINUTE },
  'the same, as the service says': { order: { ...begun, link: ended }, linkExpiresAtMs: NOW + MINUTE },
  'the same, at a time that nobody said': { order: { ...begun, link: ended } },
  'not begun, and its link has ended': { order: orderIn('awaiting_payment'), linkExpiresAtMs: NOW - MINUTE },
  'begun, and its link goes on': { order: begun, linkExpiresAtMs: NOW + MINUTE },
  'paid, and its link has ended': { order: paid, linkExpiresAtMs: NOW - MINUTE },
  'held, because no reading showed its completion': { order: after(aFact('unconfirmed', { authority: reading(1) })) },
  pending: { order: after(aFact('pending')) },
  expired: { order: after(aFact('expired')) },
  'paid late': { order: after(aFact('expired'), aFact('completed')) },
  'paid with interest': { order: after(aFact('completed', { quoteMoney: stated('112.4') })) },
  'paid in another currency': { order: after(aFact('completed', { quoteMoney: stated('18.2', 'USD') })) },
  'held for a link of more': { order: after(aFact('completed', { linkMoney: stated('101.00') })) },
  'held for less, which is there': { order: reads(aFact('completed', other)) },
  'held for less, refunded since': { order: reads(aFact('completed', other), aFact('refunded')) },
  'held for less, disputed since': { order: reads(aFact('completed', other), aFact('disputed')) },
  'held for less, first heard of as refunded': { order: reads(aFact('refunded', other)) },
  'paid three times, and one went back': {
    order: orderAfter(paid, ...twice, aFact('refunded', { paymentId: 'pay_2' })),
    canTell: true,
  },
};

const taken = (message: string, foreignId: string | null = null) =>
  opening({ status: 'taken', fault: { code: 'service_conflict', message }, foreignId });

const OPENED: Record<string, Story> = {
  'is being opened': { opening: opening({ status: 'leased' }), nextCheckAtMs: NOW + MINUTE },
  'waits, and is tried again': { opening: opening({ fault: TIMEOUT }) },
  'waits for an API': { opening: opening({ fault: TIMEOUT }), canAsk: false },
  'whose reference is taken': { order: anOrder({ reference: 'a chair' }), opening: taken('Link pl_9 has it') },
  'whose reference is taken by a link that is known': {
    opening: taken('The service has a link pl 9 of this reference that settled did not make.', 'pl 9'),
  },
  'is withheld': {
    opening: opening({ status: 'done', withheld: 'The service made the link in BRL, and the order is in USD.' }),
  },
  'is open': { opening: opening({ status: 'done' }) },
  'of a paid order': { order: paid, opening: opening({ fault: TIMEOUT }) },
};

const notice = (over: Partial<NoticeSummary> = {}): NoticeSummary => ({
  ...{ key: 4, id: 'msg_4_x', reference: 'order-1', type: 'order.paid', version: 2, isSuperseded: false },
  ...{ status: 'pending', attempt: 0, createdAtMs: NOW - MINUTE, dueAtMs: NOW - MINUTE, endedAtMs: null },
  ...{ fault: null, answer: null },
  ...over,
});
const earlier = (over: Partial<NoticeSummary>) =>
  notice({ key: 3, id: 'msg_3_x', type: 'order.payment_pending', version: 1, ...over });
const REFUSED = {
  fault: { code: 'shop_refused', message: 'The shop answered 500.' },
  answer: { status: 500, body: 'out of order\nsince Monday' },
};
const took = { status: 'done', attempt: 1, endedAtMs: NOW - 1_000, answer: { status: 204, body: '' } } as const;
const failed = { status: 'pending', attempt: 3, dueAtMs: NOW + 5 * MINUTE, ...REFUSED } as const;
const gaveUp = { status: 'dead', attempt: 9, endedAtMs: NOW - 1_000, ...REFUSED } as const;
const FAILURES: ShopFailures = { ...REFUSED, answer: null, attempts: 3, sinceMs: NOW - MINUTE, lastAtMs: NOW };

const TOLD: Record<string, Story> = Object.fromEntries(
  Object.entries<[NoticeSummary[], Story?]>({
    'that the shop took': [[notice(took)]],
    'that the shop did not take so far': [[notice(failed)]],
    'of a shop that takes none': [[notice()], { shopFailures: FAILURES }],
    'that is on its way to a shop that takes none': [[notice({ status: 'leased' })], { shopFailures: FAILURES }],
    'that a shop took that takes none since': [[notice(took)], { shopFailures: FAILURES }],
    'of a shop without a callback, which took none': [[notice()], { shopFailures: FAILURES, canTell: false }],
    'of a shop that refused two': [[notice()], { shopFailures: { ...FAILURES, attempts: 2 } }],
    'of a shop that refused one, two minutes ago': [
      [notice()],
      { shopFailures: { ...FAILURES, attempts: 1, sinceMs: NOW - 2 * MINUTE } },
    ],
    'that the shop never took': [[notice(gaveUp)]],
    'with a long answer': [[notice({ ...gaveUp, answer: { status: 500, body: `${'x'.repeat(300)}\nsecond line` } })]],
    'after one that the shop does not take': [[earlier(failed), notice({ dueAtMs: null })]],
    'that the shop took without the earlier one': [[earlier(gaveUp), notice(took)]],
    'that the shop took, and gets again': [[notice({ answer: took.answer })]],
    'that is due': [[notice()]],
    'that is sent': [[notice({ status: 'leased', attempt: 1, dueAtMs: null })]],
    'that is sent again after it was given up': [[notice(REFUSED)]],
    'in the feed of a shop without a callback': [[notice()], { canTell: false }],
  }).map(([title, [notices, over = {}]]) => [title, { order: paid, notices, canTell: true, ...over }]),
);

const ids = ['pay_1', 'pay_2', 'pay_3', 'pay_4'];
const PAYERS: Record<string, Story> = {
  ...Object.fromEntries(
    [
      {},
      { totalBrlMinor: 10_240, createdAtMs: NOW, completedAtMs: NOW },
      { ...ANA, method: 'PIX' },
      { customerName: 'Ana' },
      { customerEmail: 'ana@example.com', installments: 1 },
      { method: 'CREDIT_CARD', installments: 2 },
      { ...ANA, totalBrlMinor: 10_000 },
      { ...ANA, totalBrlMinor: 10_240 },
      { ...ANA, completedAtMs: NOW },
    ].map((over) => [JSON.stringify(over), { order: { ...paid, details: [said(over)] } }]),
  ),
  'the newest of two who began to pay': {
    order: {
      ...begun,
      details: [
        said({ ...ANA, createdAtMs: NOW }),
        said({ key: 'pay_0', customerName: 'Bia', createdAtMs: NOW - MINUTE, saidAtMs: NOW + MINUTE }),
      ],
    },
  },
  'three of four payments at most, first the one that paid the order': {
    order: {
      ...after(...ids.map((paymentId) => aFact('completed', { paymentId }))),
      details: ids.map((key) => said({ key, customerName: `Customer of ${key}` })),
      settlement: { paidAtMs: NOW, paymentKey: 'pay_3', learnedBy: 'webhook' },
    },
  },
};

const STORIES = {
  'What came, and what settled asked': ASKED,
  'What follows': NEXT,
  'What became of an order': BECAME,
  'A link that settled opens': OPENED,
  'A notice': TOLD,
  'Who paid, and how': PAYERS,
};

/**
 * Read every change of it. `npm run tests -- --mode quick --project shared test/explain -u` writes it anew, and attention.txt.
 */
it('why: each story is told as test/vectors/why.txt has it', async () => {
  const parts = Object.entries(STORIES).flatMap(([part, stories]) =>
    Object.entries(stories).map(([title, story]) => `## ${part}: ${title}\n\n${tell(story)}\n`),
  );
  await expect(parts.join('\n')).toMatchFileSnapshot('../vectors/why.txt');
});
