import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FACT_KINDS, type FactKind } from '../../src/domain/fact.ts';
import { NO_DETAILS } from '../../src/domain/payment_details.ts';
import { Fault } from '../../src/fault.ts';
import { readReading } from '../../src/paylink/reading.ts';
import { startTestSandbox } from '../support/sandbox.ts';
import { times } from '../support/timing.ts';
import { API_KEY, LINK_DETAILS, NEW_LINK, openClient } from './peer.ts';

const LINK_MONEY = { amount: '100', currency: 'BRL' };
const QUOTE = { amount: 100, currency: 'BRL', paymentMethod: 'PIX', installments: 1, totalBRL: 250 };

const bytes = (body: unknown) => new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body));
const readingOf = (link: object) => readReading(bytes({ success: true, paymentLink: { ...LINK_DETAILS, ...link } }), 7);
/** The kinds of the facts of a reading whose payments have these statuses, and its link these words. */
const kindsOf = (link: object, ...statuses: unknown[]) => {
  const payments = statuses.map((status, index) => ({ id: `pay_${index}`, status, quote: QUOTE }));
  return readingOf({ payments, ...link }).facts.map(({ kind }) => kind);
};
const AGGREGATE = { paymentStatus: 'COMPLETED' };

describe('a reading: its facts', () => {
  it('say everything that a payment says, and never the total with interest', () => {
    const payments = [{ id: 'pay_1', status: 'completed', quote: QUOTE, customer: { email: 'a@b' } }];
    expect(readingOf({ ...AGGREGATE, status: 'INACTIVE', payments })).toEqual({
      linkIds: ['pl_1'],
      facts: [
        { kind: 'completed', paymentId: 'pay_1', linkMoney: LINK_MONEY, quoteMoney: LINK_MONEY, reference: 'order-1' },
      ],
      linkChanged: false,
      linkStatus: null,
      notUnderstood: null,
      details: [
        {
          ...NO_DETAILS,
          paymentId: 'pay_1',
          method: 'PIX',
          installments: 1,
          totalBrlMinor: 25_000,
          customerEmail: 'a@b',
        },
      ],
      expiresAtMs: null,
      link: { id: 'pl_1', url: null, shortUrl: null, status: 'INACTIVE', expiresAtMs: null },
    });
  });

  it('keep amounts by their own characters', () => {
    const body =
      '{"paymentLink":{"id":"pl_1","status":"ACTIVE","amount":100.50,"currency":"BRL","payments":[{"id":1,' +
      '"status":"COMPLETED","quote":{"amount":9007199254740993,"currency":"BRL"}}]}}';
    expect(readReading(bytes(body), 7).facts).toMatchObject([
      { paymentId: '1', linkMoney: { amount: '100.50' }, quoteMoney: { amount: '9007199254740993' } },
    ]);
  });

  it('have money of another type as unknown money', () => {
    expect(readingOf({ amount: [100], payments: [{ id: 'a', status: 'COMPLETED' }] }).facts).toMatchObject([
      { linkMoney: { amount: 'object', currency: 'BRL' }, quoteMoney: null },
    ]);
  });

  it.each([
    ['BRL\0', 'BRL?'],
    ['\u202eUSD\n', '?USD?'],
    ['\ud800', '?'],
    ['x'.repeat(40), 'X'.repeat(16)],
  ])('have a currency that can be stored and shown: %j', (currency, read) => {
    const payments = [{ id: 'a', status: 'COMPLETED', quote: { amount: 1, currency } }];
    expect(readingOf({ payments }).facts).toMatchObject([{ quoteMoney: { currency: read } }]);
  });

  it('name no money if none is named', () => {
    const payments = [{ id: 'a', status: 'COMPLETED', quote: {} }];
    expect(readingOf({ amount: null, currency: null, payments }).facts).toMatchObject([
      { linkMoney: null, quoteMoney: null },
    ]);
  });

  it.each([null, '', 'unnamed', 1.5, { id: 1 }, 'a\0'])('have no payment id if it is %j', (id) => {
    expect(readingOf({ ...AGGREGATE, payments: [{ id, status: 'COMPLETED' }] }).facts).toMatchObject([
      { kind: 'completed', paymentId: null },
    ]);
  });

  it('take nothing from names that objects inherit', () => {
    const body =
      '{"paymentLink":{"id":"pl_1","status":"ACTIVE","payments":[{"id":"a","status":"PENDING",' +
      '"__proto__":{"status":"COMPLETED"}}],"__proto__":{"paymentStatus":"COMPLETED","isExpired":true}}}';
    expect(readReading(bytes(body), 7).facts.map(({ kind }) => kind)).toEqual(['pending', 'unpaid']);
  });

  it('come in the order in which they are applied', () => {
    expect(kindsOf(AGGREGATE, 'PENDING', 'REFUNDED', 'DISPUTED', 'COMPLETED', 'PENDING', 'COMPLETED')).toEqual([
      'completed',
      'completed',
      'disputed',
      'refunded',
      'pending',
      'pending',
    ]);
  });
});

describe('a reading: what the statuses say', () => {
  it.each<[string, object, unknown[], FactKind[]]>([
    ['nothing begun', { paymentStatus: 'NOT_STARTED' }, [], ['unpaid']],
    ['nothing begun, no list', { paymentStatus: 'NOT_STARTED', payments: null }, [], ['unpaid']],
    ['an empty list alone', { paymentStatus: null }, [], ['unpaid']],
    ['begun', { paymentStatus: 'PENDING' }, ['PENDING'], ['pending', 'unpaid']],
    ['begun, not listed', { paymentStatus: 'PENDING' }, [], ['pending', 'unpaid']],
    ['completed', AGGREGATE, ['COMPLETED'], ['completed']],
    ['completed after a first attempt', AGGREGATE, ['PENDING', 'COMPLETED'], ['completed', 'pending']],
    ['completed, not listed', AGGREGATE, [], ['completed']],
    ['completed, no list', { ...AGGREGATE, payments: null }, [], ['completed']],
    ['completed, no status over all', { paymentStatus: null }, ['COMPLETED'], ['completed']],
    ['refunded, still counted as completed', AGGREGATE, ['REFUNDED'], ['refunded']],
    ['refunded, counted as pending again', { paymentStatus: 'PENDING' }, ['REFUNDED'], ['refunded']],
    ['refunded by the status over all', { paymentStatus: 'REFUNDED' }, [], ['refunded']],
    ['disputed', AGGREGATE, ['DISPUTED'], ['disputed']],
    ['paid twice, one refunded', AGGREGATE, ['REFUNDED', 'COMPLETED'], ['completed', 'refunded']],
    ['completed, and none of those listed is', AGGREGATE, ['PENDING'], ['pending', 'unclear']],
    ['refunded, and none of those listed is', { paymentStatus: 'REFUNDED' }, ['PENDING'], ['pending', 'unclear']],
    ['a failed attempt', { paymentStatus: 'PENDING' }, ['PENDING', 'FAILED'], ['pending', 'unpaid']],
    ['a failed attempt alone', { paymentStatus: 'NOT_STARTED' }, ['FAILED'], ['unpaid']],
    ['a payment of another status, no status over all', { paymentStatus: null }, ['LOST'], ['unclear']],
    ['completed, and counted as not begun', { paymentStatus: 'NOT_STARTED' }, ['COMPLETED'], ['unclear']],
    ['completed, and counted as pending', { paymentStatus: 'PENDING' }, ['COMPLETED'], ['unclear']],
    ['a payment without a status', { paymentStatus: 'PENDING' }, [null], ['unclear']],
    ['a payment whose status is a number', AGGREGATE, [1], ['unclear']],
    ['one completed, one of another status', AGGREGATE, ['LOST', 'COMPLETED'], ['completed', 'unclear']],
    ['another status over all', { paymentStatus: 'SETTLED' }, [], ['unclear']],
    ['a status over all that is a number', { paymentStatus: 1 }, [], ['unclear']],
    ['another status over all, one completed', { paymentStatus: 'PART' }, ['COMPLETED'], ['completed', 'unclear']],
    ['several unclear things', { paymentStatus: 'PART' }, ['LOST', 'GONE'], ['unclear']],
  ])('%s', (_name, link, statuses, kinds) => {
    const payments = statuses.length === 0 && 'payments' in link ? [] : statuses;
    expect(kindsOf(link, ...payments)).toEqual(kinds);
  });

  it('are read in any case', () => {
    expect(kindsOf({ paymentStatus: 'Completed' }, ' completed ')).toEqual(['completed']);
  });

  it.each([null, 7, 'pay_1', ['pay_1']])('are unclear if a payment is %j', (payment) => {
    const kinds = readingOf({ ...AGGREGATE, payments: [payment] }).facts.map(({ kind }) => kind);
    expect(kinds).toEqual(['unclear']);
  });

  it.each([7, 'BRL 100', [QUOTE]])('are unclear if a completed payment has the quote %j', (quote) => {
    const payments = [{ id: 'a', status: 'COMPLETED', quote }];
    expect(readingOf({ ...AGGREGATE, payments }).facts).toMatchObject([{ kind: 'unclear', paymentId: 'a' }]);
  });

  it('ignore the quote of a pending payment', () => {
    const payments = [{ id: 'a', status: 'PENDING', quote: 7 }];
    const { facts } = readingOf({ paymentStatus: 'PENDING', payments });
    expect(facts.map(({ kind }) => kind)).toEqual(['pending', 'unpaid']);
  });
});

describe('a reading: payments that are listed twice', () => {
  const twice = (one: object, other: object) => {
    const payments = [
      { id: 'a', status: 'COMPLETED', quote: QUOTE, ...one },
      { id: 'a', status: 'COMPLETED', quote: QUOTE, ...other },
    ];
    return readingOf({ ...AGGREGATE, payments }).facts.map(({ kind }) => kind);
  };

  it('count once if they say the same', () => {
    expect(twice({}, {})).toEqual(['completed']);
  });

  it('are unclear if their statuses differ', () => {
    expect(twice({}, { status: 'REFUNDED' })).toEqual(['unclear']);
    expect(twice({ status: 'PENDING' }, {})).toEqual(['unclear']);
  });

  it('are unclear if their money differs', () => {
    expect(twice({}, { quote: { ...QUOTE, amount: 90 } })).toEqual(['unclear']);
  });

  it('stay unclear when a third agrees with the first', () => {
    const payment = (status: string) => ({ id: 'a', status });
    const payments = [payment('COMPLETED'), payment('PENDING'), payment('COMPLETED')];
    expect(readingOf({ payments }).facts.map(({ kind }) => kind)).toEqual(['unclear']);
  });

  it('are unclear if one of several that brought money has no id', () => {
    const payments = [
      { id: 'a', status: 'COMPLETED' },
      { id: null, status: 'COMPLETED' },
    ];
    expect(readingOf({ ...AGGREGATE, payments }).facts).toMatchObject([
      { kind: 'completed', paymentId: 'a' },
      { kind: 'unclear' },
    ]);
  });

  it.each([
    [
      'beside one that has an id',
      [{ id: 'a', status: 'COMPLETED' }, { status: 'DISPUTED' }],
      ['completed a', 'unclear null'],
    ],
    [
      'beside others without one: the first that says most for the merchant',
      [{ status: 'REFUNDED' }, { status: 'COMPLETED' }, { status: 'COMPLETED' }],
      ['completed null', 'unclear null'],
    ],
    ['alone', [{ status: 'DISPUTED' }], ['disputed null']],
    ['beside one that only began', [{ id: 'a', status: 'PENDING' }, { status: 'COMPLETED' }], ['completed null']],
    [
      'that only began, beside one that came',
      [{ id: 'a', status: 'COMPLETED' }, { status: 'PENDING' }],
      ['completed a'],
    ],
  ])('speak of no other payment by one without an id %s', (_name, payments, facts) => {
    const found = readingOf({ ...AGGREGATE, payments }).facts;
    expect(found.map(({ kind, paymentId }) => `${kind} ${paymentId}`)).toEqual(facts);
  });
});

describe("a reading: the link's own status", () => {
  it.each<[string, object, unknown[], FactKind[]]>([
    ['expired', { status: 'EXPIRED' }, [], ['unpaid', 'expired']],
    ['expired, even by isExpired alone', { isExpired: true }, [], ['unpaid', 'expired']],
    ['not expired by a text', { isExpired: 'true' }, [], ['unpaid']],
    ['expired while a payment is pending', { status: 'EXPIRED' }, ['PENDING'], ['pending', 'unpaid', 'expired']],
    ['expired after it was paid', { status: 'EXPIRED', ...AGGREGATE }, ['COMPLETED'], ['completed', 'expired']],
    ['inactive and unpaid', { status: 'INACTIVE' }, [], ['unpaid', 'disabled']],
    ['inactive, in small letters', { status: 'inactive' }, [], ['unpaid', 'disabled']],
    ['inactive because it was paid', { status: 'INACTIVE', ...AGGREGATE }, ['COMPLETED'], ['completed']],
    ['inactive and refunded', { status: 'INACTIVE', ...AGGREGATE }, ['REFUNDED'], ['refunded']],
    ['inactive and unclear', { status: 'INACTIVE', ...AGGREGATE }, ['PENDING'], ['pending', 'unclear']],
    ['an unknown word', { status: 'ARCHIVED' }, [], ['unpaid']],
    ['active whatever isActive says', { isActive: false }, [], ['unpaid']],
  ])('%s', (_name, link, statuses, kinds) => {
    expect(kindsOf(link, ...statuses)).toEqual(kinds);
  });
});

describe('a reading: bytes that are none', () => {
  it.each([
    ['no JSON', 'hello'],
    ['a list', '[]'],
    ['no link', '{}'],
    ['details that say nothing of payments', { paymentLink: { id: 'a', status: 'ACTIVE' } }],
    ['a refusal', { success: false, paymentLink: LINK_DETAILS }],
  ])('%s', (_name, body) => {
    expect(() => readReading(bytes(body), 7)).toThrow(
      expect.objectContaining({ code: 'unreadable_event', kind: 'terminal' }),
    );
  });
});

describe('a reading: of anything', () => {
  const status = fc.oneof(
    fc.constantFrom('PENDING', 'COMPLETED', 'REFUNDED', 'DISPUTED', 'completed', 'NOT_STARTED', 'LOST'),
    fc.jsonValue(),
  );
  const odd = <T>(usual: fc.Arbitrary<T>) =>
    fc.oneof({ arbitrary: usual, weight: 6 }, { arbitrary: fc.jsonValue(), weight: 1 });
  const quote = fc.record({ amount: odd(fc.nat()), currency: odd(fc.constant('BRL')) }, { requiredKeys: [] });
  const payment = fc.record(
    { id: odd(fc.constantFrom('a', 'b', 'c')), status, quote: odd(quote) },
    { requiredKeys: [] },
  );
  const link = fc.record(
    {
      id: odd(fc.constantFrom('pl_1', 7)),
      externalReference: odd(fc.string()),
      amount: odd(fc.double({ noNaN: true, noDefaultInfinity: true })),
      currency: odd(fc.constantFrom('BRL', 'USD')),
      status: odd(fc.constantFrom('ACTIVE', 'INACTIVE', 'EXPIRED')),
      paymentStatus: status,
      payments: odd(fc.array(odd(payment), { maxLength: 5 })),
      isExpired: odd(fc.boolean()),
      url: odd(fc.webUrl()),
      expiresAt: odd(fc.date({ noInvalidDate: true }).map((date) => date.toISOString())),
    },
    { requiredKeys: ['id', 'status', 'payments'] },
  );
  const body = fc.oneof(
    {
      arbitrary: fc.record(
        { success: odd(fc.constant(true)), paymentLink: odd(link) },
        { requiredKeys: ['paymentLink'] },
      ),
      weight: 9,
    },
    { arbitrary: fc.jsonValue(), weight: 1 },
  );

  /** What can be said by a reading, how often at most, and in which order. */
  const SAID: readonly FactKind[] = [
    'completed',
    'disputed',
    'refunded',
    'pending',
    'unclear',
    'unpaid',
    'expired',
    'disabled',
  ];
  let readable = 0;

  function check(text: string | Uint8Array): void {
    let reading: ReturnType<typeof readReading>;
    try {
      reading = readReading(typeof text === 'string' ? bytes(text) : text, 7);
    } catch (error) {
      expect(error).toBeInstanceOf(Fault);
      expect(error).toMatchObject({ code: 'unreadable_event', kind: 'terminal' });
      return;
    }
    readable++;
    const kinds = reading.facts.map(({ kind }) => kind);
    const ranks = kinds.map((kind) => SAID.indexOf(kind));
    expect(ranks).toEqual(ranks.toSorted((one, other) => one - other));
    expect(ranks).not.toContain(-1);
    expect(reading.facts.length).toBeGreaterThan(0);
    for (const kind of SAID.slice(4)) expect(kinds.filter((it) => it === kind).length).toBeLessThan(2);
    const moneyCame = kinds.some((kind) => SAID.indexOf(kind) < 3);
    expect(kinds.includes('unpaid')).toBe(!moneyCame && !kinds.includes('unclear'));
    expect(reading).toMatchObject({ notUnderstood: null, linkChanged: false });
    expect(reading.linkIds).toEqual([reading.link.id]);
  }

  it('is read, or refused by name; its facts are few kinds in one order', () => {
    fc.assert(
      fc.property(body, (value) => check(JSON.stringify(value))),
      { numRuns: times(500, 3_000) },
    );
    // The property is about readings: most of what was made must be one.
    expect(readable).toBeGreaterThan(times(150, 1_000));
  });

  it('is read, or refused by name, even if it is not JSON', () => {
    fc.assert(fc.property(fc.oneof(fc.string(), fc.uint8Array()), check), { numRuns: times(300, 1_000) });
  });

  it('never says a completion if the answer has no such word', () => {
    const isCompletion = (value: unknown) => /"completed"/i.test(JSON.stringify(value));
    fc.assert(
      fc.property(body, (value) => {
        fc.pre(!isCompletion(value));
        try {
          const { facts } = readReading(bytes(value), 7);
          expect(facts.filter(({ kind }) => kind === 'completed')).toEqual([]);
        } catch (error) {
          expect(error).toMatchObject({ code: 'unreadable_event' });
        }
      }),
    );
  });

  it('says no kind that only a person or settled itself says', () => {
    expect(FACT_KINDS.filter((kind) => !SAID.includes(kind))).toEqual(['unconfirmed', 'cancel', 'accept', 'reject']);
  });
});

describe('a reading: of the sandbox', () => {
  it.each(['not-expired', 'status-active'])('tells the life of a link with is-active=%s', async (isActive) => {
    const sandbox = await startTestSandbox({ apiKey: API_KEY, switches: [`is-active=${isActive}`] });
    const { service } = openClient(`${sandbox.url}/api/v1`);
    const { id } = (await service.createLink(NEW_LINK, 'create')).value;
    const told = async () => {
      const { body, number } = await service.showLink(id, 'janitor');
      const { facts, link } = readReading(body, number);
      return [link.status, ...facts.map(({ kind }) => kind)];
    };
    const act = (action: string, body: object = {}) => sandbox.control(`/links/${id}/${action}`, { body });
    expect(await told()).toEqual(['ACTIVE', 'unpaid']);
    await act('pay', { complete: false, method: 'CREDIT_CARD', installments: 3 });
    expect(await told()).toEqual(['ACTIVE', 'pending', 'unpaid']);
    await act('complete');
    expect(await told()).toEqual(['INACTIVE', 'completed']);
    const { body, number } = await service.showLink(id, 'janitor');
    expect(readReading(body, number).facts).toMatchObject([
      {
        paymentId: expect.stringMatching(/./),
        linkMoney: { amount: '120.5', currency: 'BRL' },
        quoteMoney: { amount: '120.5', currency: 'BRL' },
        reference: 'order-1',
      },
    ]);
    await act('dispute');
    expect(await told()).toEqual(['INACTIVE', 'disputed']);
  });

  it.each([
    ['refund', ['INACTIVE', 'refunded']],
    ['expire', ['EXPIRED', 'unpaid', 'expired']],
    ['disable', ['INACTIVE', 'unpaid', 'disabled']],
  ])('tells what %s did', async (action, expected) => {
    const sandbox = await startTestSandbox({ apiKey: API_KEY });
    const { service } = openClient(`${sandbox.url}/api/v1`);
    const { id } = (await service.createLink(NEW_LINK, 'create')).value;
    if (action === 'refund') await sandbox.control(`/links/${id}/pay`, { body: {} });
    expect(await sandbox.control(`/links/${id}/${action}`, { body: {} })).toMatchObject({ status: 200 });
    const { body, number } = await service.showLink(id, 'janitor');
    const { facts, link } = readReading(body, number);
    expect([link.status, ...facts.map(({ kind }) => kind)]).toEqual(expected);
  });
});
