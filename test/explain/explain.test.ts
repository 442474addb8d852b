import { describe, expect, it } from 'vitest';
import { CHECK_REASONS } from '../../src/domain/check_queue.ts';
import type { ShopFailures } from '../../src/domain/notice.ts';
import type { Order } from '../../src/domain/order.ts';
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

const told = (
  over: Partial<Timeline>,
  canAsk = true,
  canTell = false,
  prefix = 'x-service',
  shopFailures: ShopFailures | null = null,
) => {
  const { answer, entries, next } = explain(timeline(over), {
    nowMs: NOW,
    canAsk,
    notAnswered: null,
    unlisted: [],
    canTell,
    shopFailures,
    headerNames: headerNames(prefix),
    isDifferent: false,
  });
  return { answer, entries, next: next.join('\n') };
};

describe('why: what the service answered when it was asked', () => {
  it('tells the reason for asking, what followed, and where the answer is kept', () => {
    const { entries } = told({ events: [row({ outcome: 'applied', rule: 'paid' })] });
    expect(entries).toEqual([
      {
        at: '2026-01-02T11:59:00.000Z',
        kind: 'reading',
        summary:
          'settled asked the service, on schedule; it answered: the payment is completed and matches the ' +
          'order (rule paid)',
        details: ['reading 12, kept as event 7'],
        about: { what: 'event', id: '7', status: 'done' },
      },
    ]);
  });

  it.each(CHECK_REASONS)('has words for asking because of %s', (type) => {
    const [entry] = told({ events: [row({ type })] }).entries;
    expect(entry?.summary).toMatch(/^settled asked the service, because .{12}/);
  });

  it.each([
    [row({ status: 'pending' }), /waits to be settled/],
    [row({ status: 'leased' }), /is being settled/],
    [row({ status: 'dead', fault: { code: 'bug', message: 'broken\nat x' } }), /could not be settled \(dead\)/],
    [row({ status: 'pending', fault: { code: 'bug', message: 'broken' } }), /try again/],
    [row({ rule: null }), /nothing about a payment/],
  ])('tells what becomes of the answer (%#)', (event, expected) => {
    expect(told({ events: [event] }).entries[0]?.summary).toMatch(expected);
  });

  it('says of an unpaid order when it was asked last, and that no payment was known', () => {
    const events = [row(), row({ key: 8, receivedAtMs: NOW - 2 * MINUTE })];
    const { answer } = told({ events });
    expect(answer).toMatch(
      /settled last asked the service at 2026-01-02T11:59:00\.000Z; the service knew of no completed payment/,
    );
    expect(answer).toMatch(/no authentic delivery/);
  });

  it.each([
    [9, ': settled events replay 1 2 3 4 5 6 7 8 9$'],
    [10, ': settled events replay 1 2 3 4 5 6 7 8 9 10$'],
    [11, ', first the last 10 of 11: settled events replay 2 3 4 5 6 7 8 9 10 11$'],
  ])('advises to settle ten events again at most, and says of how many: of %d', (count, words) => {
    const fault = { code: 'bug', message: 'broken' };
    const events = Array.from({ length: count }, (_, n) => row({ key: n + 1, reading: null, status: 'dead', fault }));
    const attention = events.map(({ key }) => ({
      key,
      kind: 'event_dead' as const,
      subject: String(key),
      reference: 'order-1',
      detail: 'It could not be settled.',
      params: null,
      count: 1,
      openedAtMs: NOW,
      lastAtMs: NOW,
    }));
    const { next } = told({ events, attention });
    expect(next).toMatch(new RegExp(`settle again those that could be read${words}`, 'm'));
  });

  it.each([
    [5, 'type_1, type_2, type_3 (2 times), type_4, type_5.'],
    [6, 'type_1, type_2, type_3 (2 times), type_4, type_5, others.'],
  ])('names five types of deliveries at most: of %d', (types, words) => {
    const rows = Array.from({ length: types }, (_, n) =>
      row({ key: n, type: `type_${n + 1}`, reading: null, rule: null }),
    );
    expect(told({ events: [...rows, { ...(rows[2] as EventSummary), key: 9 }] }).answer).toContain(
      `settled received: ${words}`,
    );
  });

  it('does not say so of an answer that is not settled, or was too old', () => {
    const events = [row({ status: 'pending' }), row({ rule: 'older_reading' })];
    expect(told({ events }).answer).not.toMatch(/last asked/);
  });

  it('does not count answers as deliveries', () => {
    const matter = { kind: 'event_dead', subject: '7', reference: 'order-1', params: null, detail: 'It is dead.' };
    const open = { ...matter, key: 1, count: 1, openedAtMs: NOW, lastAtMs: NOW };
    const { answer, next } = told({ events: [row({ status: 'dead' })], attention: [open] });
    expect(answer).toMatch(/could not settle an answer of the service/);
    expect(answer).not.toMatch(/delivery came/);
    expect(next).toMatch(/could not settle the service's answer \(event 7\)\. .*\n.*settled events replay 7/);
  });

  it('says nothing more of what could not be settled once a person has ended its matter', () => {
    const { answer, next } = told({ events: [row({ status: 'dead' })] });
    expect(answer).not.toMatch(/could not be settled/);
    expect(next).not.toMatch(/could not settle/);
  });

  it('tells of a disagreement: both sides, who was right, and how it was learned', () => {
    const drift = {
      atMs: NOW,
      reading: 12,
      learnedBy: 'listed',
      ours: 'awaiting_payment',
      theirs: 'paid, 100.00 BRL',
      rule: 'paid',
      rightSide: 'service' as const,
    };
    const [entry] = told({ order: orderIn('paid'), drift: [drift] }).entries;
    expect(entry).toMatchObject({
      kind: 'drift',
      summary:
        'settled and the service differed. settled had: awaiting_payment. The service had: paid, 100.00 BRL. The service was right',
      details: ["by reading 12, because the service's list showed the link with another status", 'rule paid'],
    });
    const [undecided] = told({ drift: [{ ...drift, rightSide: 'undecided' }] }).entries;
    expect(undecided?.summary).toMatch(/A person must/);
  });
});

describe('why: deliveries that came under other header names', () => {
  const refused = (lastAtMs = NOW) => ({
    key: 1,
    reference: 'order-1',
    reason: 'signature_missing',
    count: 4,
    diagnosis: JSON.stringify({
      code: 'other_header_names',
      names: ['x-acme-signature', 'x-acme-timestamp'],
      wanted: ['x-service-signature', 'x-service-timestamp'],
      prefix: 'x-acme',
    }),
    firstAtMs: lastAtMs,
    lastAtMs,
  });

  it('says what was looked for, and which setting to change', () => {
    const { answer, next } = told({ rejections: [refused()] });
    expect(answer).toContain('settled rejected 4 deliveries as not authentic: no signature header (');
    expect(answer).toContain('carried `x-acme-signature` and `x-acme-timestamp`, and settled looked for `x-service');
    expect(answer).not.toContain('Now it');
    expect(next).toContain("If these are the service's own, set SETTLED_HEADER_PREFIX=x-acme and restart settled.");
  });

  it('advises nothing if the setting has been changed since', () => {
    const { answer, next } = told({ rejections: [refused()] }, true, false, 'x-acme');
    expect(answer).toMatch(/settled looked for `x-service.* Now it looks for those that they carried\./);
    expect(next).not.toContain('SETTLED_HEADER_PREFIX');
  });

  it('advises nothing if a delivery of the link verified since', () => {
    const { next } = told({ rejections: [refused(NOW - 1)], events: [row({ reading: null, receivedAtMs: NOW })] });
    expect(next).not.toMatch(/SETTLED_HEADER_PREFIX|rejected/);
  });
});

describe('why: when the service is asked next', () => {
  it('says when and why if a check waits', () => {
    const check = { reason: 'stale', requestedAtMs: NOW, dueAtMs: NOW + 3 * MINUTE };
    const { next } = told({ check, nextCheckAtMs: NOW + MINUTE });
    expect(next).toMatch(/asks the service at 2026-01-02T12:03:00\.000Z, in 3 min, because .*stale.*\(stale\)/);
    expect(next).toMatch(/settled orders check order-1/);
    expect(next).not.toMatch(/schedule|panel/);
  });

  it('says that a due one waits for the budget only', () => {
    const check = { reason: 'doubtful_money', requestedAtMs: NOW, dueAtMs: NOW };
    expect(told({ check }).next).toMatch(/as soon as the API budget allows/);
  });

  it("says the schedule's next time if no check waits", () => {
    expect(told({ nextCheckAtMs: NOW + 8 * MINUTE }).next).toMatch(
      /asks the service at 2026-01-02T12:08:00\.000Z, in 8 min, on schedule\. To ask now/,
    );
  });

  it('says of a paid order what the schedule asks for, and that nothing else is left to do', () => {
    const { next } = told({ order: orderIn('paid'), nextCheckAtMs: NOW + 24 * 60 * MINUTE });
    expect(next).toMatch(/^settled asks the service at .*refunds, disputes and second payments/);
    expect(next).not.toMatch(/To ask now/);
  });

  it('says nothing of a paid order that nothing follows for', () => {
    expect(told({ order: orderIn('paid') }).next).toBe('Nothing more to do: the order is complete.');
  });

  it('says of a cancelled order why settled still asks about it', () => {
    const { next } = told({ order: orderIn('cancelled'), nextCheckAtMs: NOW + 5 * MINUTE });
    expect(next).toMatch(/^settled asks the service at .*the customer might still pay\.$/);
    const link = { id: 'pl_1', url: null, shortUrl: null, status: 'ACTIVE', expiresAtMs: null };
    for (const over of [{ status: 'INACTIVE' }, { status: 'EXPIRED' }, { expiresAtMs: NOW - MINUTE }]) {
      const order = { ...orderIn('cancelled'), link: { ...link, ...over } };
      expect(told({ order, nextCheckAtMs: NOW + MINUTE }).next).toMatch(/, on schedule\.$/);
    }
    const order = orderAfter(orderIn('held'), instruction('reject'), aFact('refunded'));
    expect(order.state).toBe('cancelled');
    expect(told({ order, nextCheckAtMs: NOW + MINUTE }).next).toMatch(/may send no webhook for refunds/);
  });

  it('says of an unpaid order that asking failed, how often, and that it is asked again', () => {
    const never = told({ checkFailures: 1, nextCheckAtMs: NOW + MINUTE });
    expect(never.answer).toMatch(/Asking the service has failed once so far\.$/);
    expect(never.next).toMatch(/settled asks the service again at 2026-01-02T12:01:00\.000Z, in 60 s/);
    const since = told({ events: [row()], checkFailures: 3, nextCheckAtMs: NOW + MINUTE });
    expect(since.answer).toMatch(/last asked the service at .* Asking the service again has failed 3 times so far\.$/);
    expect(told({ nextCheckAtMs: NOW + MINUTE }).answer).not.toMatch(/failed/);
    expect(told({ order: orderIn('paid'), checkFailures: 3 }).answer).not.toMatch(/failed/);
  });

  it('says how long it waits in whole seconds, rounded up', () => {
    expect(told({ nextCheckAtMs: NOW + 95_706 }).next).toMatch(/, in 96 s,/);
    expect(told({ nextCheckAtMs: NOW + 2_061 }).next).toMatch(/, in 3 s,/);
  });

  it('says of an unpaid order that the schedule is over', () => {
    expect(told({ order: orderIn('expired') }).next).toMatch(
      /no longer asks the service on schedule.*settled orders check/,
    );
  });

  it('says that there is no API to ask, and what to look at instead', () => {
    const check = { reason: 'doubtful_money', requestedAtMs: NOW, dueAtMs: NOW };
    const { next } = told({ check, nextCheckAtMs: NOW + MINUTE }, false);
    expect(next).toMatch(/service's panel \(doubtful_money\).*no API is configured/);
    expect(next).toMatch(/If no webhook comes.*SETTLED_API_URL/);
    expect(next).not.toMatch(/is asked|orders check/);
  });

  it('says that an event waits for the answer', () => {
    const event = row({ reading: null, type: 'x', outcome: 'ask', rule: 'asks_before_deciding' });
    const check = { reason: 'doubtful_money', requestedAtMs: NOW, dueAtMs: NOW };
    const { answer, next } = told({ events: [event], check });
    expect(answer).toMatch(
      /is not paid\. A webhook says that the payment is completed\. settled asks the service before it counts anything/,
    );
    expect(`${answer}${next}`).not.toMatch(/No delivery so far|When the service reports/);
    expect(told({ events: [event] }).answer).not.toMatch(/is asked before/);
  });
});

describe('why: an order that waits, and whose link has ended', () => {
  const linkExpiresAtMs = NOW - MINUTE;
  const expired = (state: 'awaiting_payment' | 'payment_pending') => ({
    ...orderIn(state),
    link: { id: 'pl_1', url: null, shortUrl: null, status: 'EXPIRED', expiresAtMs: null },
  });

  it('says when it ended, that a payment that was begun may never be completed, and that the shop is told', () => {
    const { answer, next } = told({ order: orderIn('payment_pending'), linkExpiresAtMs });
    expect(answer).toMatch(/link has expired at 2026-01-02T11:59:00\.000Z: .* may never be completed\.$/);
    expect(next).toMatch(
      /expired, the order expires, and settled tells the shop\. If the customer still completes the payment/,
    );
    expect(next).not.toMatch(/When the service reports/);
  });

  it('says the same if the service says it before our clock does', () => {
    const { answer, next } = told({ order: expired('payment_pending'), linkExpiresAtMs: NOW + MINUTE });
    expect(answer).toMatch(/link has expired at .* may never be completed/);
    expect(next).toMatch(/If the customer still completes the payment, the order is paid/);
    expect(told({ order: expired('payment_pending') }).answer).toMatch(/link has expired: no new payment/);
  });

  it('says of one that no customer began to pay that the service decides', () => {
    const { answer, next } = told({ order: orderIn('awaiting_payment'), linkExpiresAtMs });
    expect(answer).toMatch(/link has expired at .* no new payment can begin there\. The service has reported nothing/);
    expect(next).toMatch(/^If the service says that the link was not paid, the order expires/);
  });

  it('says nothing of it before the end, and of an order that waits for nothing', () => {
    const later = { linkExpiresAtMs: NOW + MINUTE };
    expect(told({ order: orderIn('payment_pending'), ...later }).answer).not.toMatch(/expired/);
    expect(told({ order: orderIn('paid'), linkExpiresAtMs }).answer).not.toMatch(/expired/);
  });
});

describe('why: an order whose completion no reading showed', () => {
  const order = orderAfter(anOrder(), aFact('unconfirmed', { authority: reading(1) }));

  it('is held for a person, who is sent to look before accepting', () => {
    const { answer, next } = told({ order });
    expect(answer).toMatch(/is held.*webhook said.*10 minutes.*\(unconfirmed\)/);
    expect(next).toMatch(/did not confirm.*settled orders check order-1\nTo mark the order paid, although/);
  });
});

describe('why: what became of an order', () => {
  it.each([
    ['pending', [aFact('pending')], /^Order order-1 is not paid yet\. The customer has begun to pay 100\.00 BRL/],
    ['expired', [aFact('expired')], /is not paid: its payment link has expired/],
    ['paid late', [aFact('expired'), aFact('completed')], /is paid\. .*after its link had expired/],
    [
      'paid with interest',
      [aFact('completed', { quoteMoney: stated('112.4') })],
      /is paid\. The service reported 100\.00 BRL.*the customer paid 112\.40 BRL: the rest is instalment interest/,
    ],
    [
      'paid in another currency',
      [aFact('completed', { quoteMoney: stated('18.2', 'USD') })],
      /is paid\. The service reported 100\.00 BRL.*the customer paid 18\.20 USD: the service converts/,
    ],
    [
      'held for a link of more',
      [aFact('completed', { linkMoney: stated('101.00') })],
      /: 101\.00 BRL came, 1\.00 BRL more than it asks for \(amount_mismatch\)\. A person must decide\./,
    ],
  ])('%s', (_what, facts, words) => {
    const order = orderAfter(anOrder(), ...facts);
    expect(told({ order }).answer).toMatch(words);
    if (order.state === 'paid') expect(told({ order }).next).not.toMatch(/[Rr]efund it|panel/);
  });

  it('counts how often an event came again', () => {
    const [entry] = told({ events: [row({ reading: null, eventId: 'evt_again', duplicates: 2 })] }).entries;
    expect(entry?.details.join('; ')).toMatch(/evt_again.*delivered again 2 times; settled did nothing twice/);
  });
});

describe('why: an order held for other money than it asks for', () => {
  const other = { quoteMoney: stated('30.00') };
  it.each([
    ['is there', [aFact('completed', other)], '30.00 BRL came, 70.00 BRL less'],
    [
      'was refunded since',
      [aFact('completed', other), aFact('refunded')],
      '30.00 BRL came (refunded since), 70.00 BRL less',
    ],
    ['is disputed', [aFact('completed', other), aFact('disputed')], '30.00 BRL came (disputed since), 70.00 BRL less'],
    [
      'was refunded when it was first heard of',
      [aFact('refunded', other)],
      '30.00 BRL came (refunded since), 70.00 BRL less',
    ],
  ])('says of money that %s what became of it', (_what, facts, words) => {
    const order = orderAfter(anOrder(), ...facts.map((fact, n) => ({ ...fact, authority: reading(n + 1) })));
    expect(order.state).toBe('held');
    expect(told({ order }).answer).toContain(words);
  });
});

describe('why: a link that settled opens', () => {
  const fault = { code: 'service_timeout', message: 'POST /payment-links was not answered in 10 s.\nat x' };

  it('is being opened', () => {
    const { answer, next } = told({ opening: opening({ status: 'leased' }), nextCheckAtMs: NOW + MINUTE });
    expect(answer).toMatch(/is not paid\. settled is opening its payment link\.$/);
    expect(next).toBe('settled is opening the link now.');
  });

  it('waits: says why, and when it is tried again', () => {
    const { answer, next } = told({ opening: opening({ fault }) });
    expect(answer).toMatch(
      /link is not open yet \(service_timeout\): POST \/payment-links was not answered in 10 s\.$/,
    );
    expect(next).toBe('settled tries again to open the link at 2026-01-02T12:05:00.000Z, in 5 min.');
  });

  it('waits for an API if it is no longer configured', () => {
    expect(told({ opening: opening({ fault }) }, false).next).toMatch(/cannot open the link: no API is configured/);
  });

  it('was not opened because the reference is taken: says how to adopt the link that has it', () => {
    const order = anOrder({ reference: 'a chair' });
    const taken = opening({ status: 'taken', fault: { code: 'service_conflict', message: 'Link pl_9 has it' } });
    const { answer, next } = told({ order, opening: taken });
    expect(answer).toMatch(/did not open its payment link: Link pl_9 has it\.$/);
    expect(next).toMatch(/settled orders adopt 'a chair' --id ID/);
    expect(next).not.toMatch(/webhook|is asked/);
  });

  it('was not opened because the reference is taken by a link that is known: names it', () => {
    const message = 'The service has a link pl 9 of this reference that settled did not make.';
    const { next } = told({
      opening: opening({ status: 'taken', fault: { code: 'service_conflict', message }, foreignId: 'pl 9' }),
    });
    expect(next).toMatch(/^Look at link pl 9 .*settled orders adopt order-1 --id 'pl 9'$/);
  });

  it('is withheld: says why, and what to do', () => {
    const withheld = 'The service made the link in BRL, and the order is in USD.';
    const { answer, next } = told({ opening: opening({ status: 'done', withheld }) });
    expect(answer).toMatch(
      /does not show its payment link to the shop: the service made the link in BRL, and the order is in USD\.$/,
    );
    expect(next).toMatch(/Switch the link off.*SETTLED_CURRENCY/);
    expect(next).not.toMatch(/paid at once/);
  });

  it('is open: nothing is said of it', () => {
    const { answer, next } = told({ opening: opening({ status: 'done' }) });
    expect(answer).toMatch(/is not paid\. The service has reported nothing/);
    expect(next).toMatch(/paid at once/);
  });

  it('is of no interest once the order is paid', () => {
    const { answer, next } = told({ order: orderIn('paid'), opening: opening({ fault }) });
    expect(answer).not.toMatch(/link/);
    expect(next).toBe('Nothing more to do: the order is complete.');
  });
});

describe('why: what the shop was told', () => {
  const refused = { code: 'shop_refused', message: 'The shop answered 500.' };
  const answered = { status: 500, body: 'out of order\nsince Monday' };
  const taken = { status: 'done', attempt: 1, endedAtMs: NOW - 1_000, answer: { status: 204, body: '' } } as const;
  const failed = {
    status: 'pending',
    attempt: 3,
    dueAtMs: NOW + 5 * MINUTE,
    fault: refused,
    answer: answered,
  } as const;
  const dead = { status: 'dead', attempt: 9, endedAtMs: NOW - 1_000, fault: refused, answer: answered } as const;

  const notice = (over: Partial<NoticeSummary> = {}): NoticeSummary => ({
    key: 4,
    id: 'msg_4_x',
    reference: 'order-1',
    type: 'order.paid',
    version: 2,
    status: 'pending',
    isSuperseded: false,
    attempt: 0,
    createdAtMs: NOW - MINUTE,
    dueAtMs: NOW - MINUTE,
    endedAtMs: null,
    fault: null,
    answer: null,
    ...over,
  });
  const earlier = (over: Partial<NoticeSummary>) =>
    notice({ key: 3, id: 'msg_3_x', type: 'order.payment_pending', version: 1, ...over });

  /** Of a paid order. */
  const shop = (
    notices: NoticeSummary[],
    { canTell = true, failures = null }: { canTell?: boolean; failures?: ShopFailures | null } = {},
  ) => {
    const over = { order: orderIn('paid'), notices };
    const { answer, entries, next } = told(over, true, canTell, 'x-service', failures);
    return { answer, next, entries: entries.map(({ summary }) => summary) };
  };

  it('that it took: when, and nothing is left to do', () => {
    const { answer, next, entries } = shop([notice(taken)]);
    expect(entries).toEqual([
      'order.paid, to tell the shop that the order is paid: the shop accepted it at 2026-01-02T11:59:59.000Z (attempt 1)',
    ]);
    expect(answer).toMatch(/ At 2026-01-02T11:59:59\.000Z, settled told the shop that the order is paid\.$/);
    expect(next).toBe('Nothing more to do: the order is complete.');
  });

  it('that it did not take so far: how often, why, when settled tells it again, and how to do that at once', () => {
    const { answer, next, entries } = shop([notice(failed)]);
    expect(entries[0]).toMatch(/: attempt 3 failed; the next one is at 2026-01-02T12:05:00\.000Z$/);
    expect(answer).toMatch(
      /is paid\..* The shop has not been told yet that the order is paid\. Telling it has failed 3 times so far: The shop answered 500\.$/,
    );
    expect(next).toMatch(
      /^settled tells the shop that the order is paid at 2026-01-02T12:05:00\.000Z, in 5 min\. .*: settled notices resend msg_4_x$/,
    );
  });

  it('that it did not take, as it takes none of any order: says so, while something is owed, as the doctor does', () => {
    const refused = { fault: { code: 'shop_refused', message: 'The shop answered 500.' }, answer: null };
    const failures = { ...refused, attempts: 3, sinceMs: NOW - MINUTE, lastAtMs: NOW };
    const line =
      /^The shop does not accept notices: 3 attempts in a row failed since 2026-01-02T11:59:00.000Z\. .*: settled doctor$/m;
    const next = (notices: NoticeSummary[], over: Partial<ShopFailures> = {}, canTell = true) =>
      shop(notices, { canTell, failures: { ...failures, ...over } }).next;
    expect(next([notice({ attempt: 0 })])).toMatch(line);
    expect(next([notice({ status: 'leased' })])).toMatch(line);
    expect(next([notice(taken)])).toBe('Nothing more to do: the order is complete.');
    expect(next([notice({ attempt: 0 })], {}, false)).not.toMatch(line);
    expect(next([notice({ attempt: 0 })], { attempts: 2 })).not.toContain('not accept notices');
    expect(next([notice({ attempt: 0 })], { attempts: 1, sinceMs: NOW - 2 * MINUTE })).toContain(
      '1 attempt failed, at 2026-01-02T11:58:00.000Z',
    );
  });

  it('that it never took: says so, and how to tell it', () => {
    const { answer, next, entries } = shop([notice(dead)]);
    expect(entries[0]).toMatch(
      /settled gave up: The shop answered 500\. Send it again: settled notices resend msg_4_x$/,
    );
    expect(answer).toMatch(
      /was not told that the order is paid, and settled no longer tries to tell it: The shop answered 500\.$/,
    );
    expect(next).toMatch(/tell it that the order is paid: settled notices resend msg_4_x$/);
  });

  it('shows the beginning of what the shop answered', () => {
    const body = `${'x'.repeat(300)}\nsecond line`;
    const { entries } = told({ notices: [notice({ ...dead, answer: { status: 500, body } })] });
    expect(entries[0]?.details).toEqual([
      'notice msg_4_x, order version 2',
      'shop_refused: The shop answered 500.',
      `the shop answered 500: ${'x'.repeat(200)}`,
    ]);
  });

  it('after what it does not take: waits for its turn', () => {
    const { answer, next, entries } = shop([earlier(failed), notice({ dueAtMs: null })]);
    expect(entries[1]).toMatch(/: waits until the shop has accepted an earlier notice of this order$/);
    expect(answer).toMatch(/not been told yet that the order is paid\. Telling it has failed 3 times/);
    expect(next.split('\n')).toEqual([
      expect.stringMatching(/^settled tells the shop that the customer has begun to pay at/),
      "settled tells the shop that the order is paid after this order's earlier notices.",
    ]);
  });

  it('by a later notice: it knows the order, even without the earlier ones', () => {
    const { answer, next } = shop([earlier(dead), notice(taken)]);
    expect(answer).toMatch(/At 2026.*, settled told the shop that the order is paid/);
    expect(next).toMatch(/settled notices resend msg_3_x$/);
  });

  it('that it took and gets again: it knew before', () => {
    expect(shop([notice({ answer: taken.answer })]).answer).not.toMatch(/shop/);
  });

  it.each([
    ['is due', notice(), /is sent next$/, /tells the shop that the order is paid as soon as the shop accepts notices/],
    [
      'is sent',
      notice({ status: 'leased', attempt: 1, dueAtMs: null }),
      /is being sent \(attempt 1\)$/,
      /is telling the shop/,
    ],
    [
      'is sent again after it was given up',
      notice({ fault: refused, answer: answered }),
      /is sent next$/,
      /as soon as/,
    ],
  ])('that %s: has not been told yet', (_what, given, way, then) => {
    const { answer, next, entries } = shop([given]);
    expect(entries[0]).toMatch(way);
    expect(answer).toMatch(/The shop has not been told yet that the order is paid\.$/);
    expect(next).toMatch(then);
  });

  it('if it has no callback: that it is in the feed', () => {
    const { answer, next, entries } = shop([notice()], { canTell: false });
    expect(entries[0]).toMatch(/: waits in the feed for the shop to read it \(SETTLED_SHOP_URL is not set\)$/);
    expect(answer).not.toMatch(/shop/);
    expect(next).toBe('Nothing more to do: the order is complete.');
  });
});

describe('explain: who paid, and how', () => {
  const paid = orderIn('paid');
  const answerOf = (order: Order) => told({ order }).answer;
  const ANA = { customerName: 'Ana', customerEmail: 'ana@example.com' };

  it.each([
    [{ ...ANA, method: 'PIX' }, 'Ana <ana@example.com> paid with PIX.'],
    [{ customerName: 'Ana' }, 'Ana paid.'],
    [{ customerEmail: 'ana@example.com', installments: 1 }, 'ana@example.com paid.'],
    [{ method: 'CREDIT_CARD', installments: 2 }, 'the customer paid with CREDIT_CARD in 2 instalments.'],
    [{ ...ANA, totalBrlMinor: 10_000 }, 'Ana <ana@example.com> paid.'],
    [{ ...ANA, totalBrlMinor: 10_240 }, 'Ana <ana@example.com> paid, 102.40 BRL in total with any interest.'],
    [
      { ...ANA, completedAtMs: NOW },
      'Ana <ana@example.com> paid, and that the payment was completed at 2026-01-02T12:00:00.000Z.',
    ],
  ])('says %j', (over, sentence) => {
    expect(answerOf({ ...paid, details: [said(over)] })).toContain(` The service says that ${sentence}`);
  });

  it.each([{}, { totalBrlMinor: 10_240, createdAtMs: NOW, completedAtMs: NOW }])('says nothing of %j', (over) => {
    expect(answerOf({ ...paid, details: [said(over)] })).not.toContain('The service says that');
  });

  it('names who began to pay, and of several attempts the newest', () => {
    const details = [
      said({ ...ANA, createdAtMs: NOW }),
      said({ key: 'pay_0', customerName: 'Bia', createdAtMs: NOW - MINUTE, saidAtMs: NOW + MINUTE }),
    ];
    const answer = answerOf({ ...orderIn('payment_pending'), details });
    expect(answer).toContain('The service says that Ana <ana@example.com> began to pay.');
    expect(answer).not.toContain('Bia');
  });

  it('says it of each of several payments, the one that paid the order first, and of three at most', () => {
    const ids = ['pay_1', 'pay_2', 'pay_3', 'pay_4'];
    const order = orderAfter(anOrder(), ...ids.map((paymentId) => aFact('completed', { paymentId })));
    const details = ids.map((key) => said({ key, customerName: `Customer of ${key}` }));
    const settlement = { paidAtMs: NOW, paymentKey: 'pay_3', learnedBy: 'webhook' } as const;
    const answer = answerOf({ ...order, details, settlement });
    expect(answer.match(/Customer of pay_\d/g)).toEqual(['pay_3', 'pay_1', 'pay_2'].map((id) => `Customer of ${id}`));
    expect(answer).toContain('The service says about payment pay_1 that Customer of pay_1 paid.');
  });
});

describe('what follows for an order that was paid twice', () => {
  it('names the payment that is still to refund, and none that went back', () => {
    const more = ['pay_2', 'pay_3'].map((paymentId) => aFact('completed', { paymentId }));
    const order = orderAfter(orderIn('paid'), ...more, aFact('refunded', { paymentId: 'pay_2' }));
    const { next } = told({ order }, true, true);
    const advice = next.split('\n').find((line) => line.startsWith('Refund'));
    expect(advice).toMatch(/payment pay_3 of 100\.00 BRL\.$/);
    expect(advice).not.toContain('pay_2');
  });
});
