import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { SaidFact } from '../../src/domain/fact.ts';
import { parseBody, parseBodyExactly } from '../../src/json.ts';
import { deliveryMac, readEnvelope, readEvent } from '../../src/paylink/events.ts';
import { runs, times } from '../support/timing.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
/** Reads a body as settlement does: from its bytes, numbers exact. */
const eventOf = (body: unknown) => readEvent(parseBodyExactly(bytes(JSON.stringify(body))));
const eventOfText = (text: string) => readEvent(parseBodyExactly(bytes(text)));
/** Reads a body as intake does. */
const envelopeOf = (body: unknown) => readEnvelope(parseBody(bytes(JSON.stringify(body))));

const PAYMENT_CHANGED = 'payment_link.payment_status_changed';
const STATUS_CHANGED = 'payment_link.status_changed';

/** The one fact of an event that holds one. */
function factOf(body: unknown): SaidFact {
  const { facts } = eventOf(body);
  expect(facts).toHaveLength(1);
  return facts[0] as SaidFact;
}

/** What is read of a body that says nothing. */
const NOTHING = {
  linkIds: [],
  facts: [],
  notUnderstood: 'it is no JSON object',
  linkChanged: false,
  linkStatus: null,
  details: [],
  expiresAtMs: null,
  link: null,
};

describe('events: the signed content', () => {
  it('is the timestamp, a point and the raw bytes', () => {
    // printf '1700000000000.{}' | openssl dgst -sha256 -hmac whole-secret-of-this-test
    const mac = deliveryMac('whole-secret-of-this-test', '1700000000000', bytes('{}'));
    expect(mac.toString('hex')).toBe('c5cca004b7cd8b81beb046287566ea9eb43846a5e1418259ec03e4aa59dc047c');
  });
});

describe('events: parsing a body', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);

  it.each([parseBody, parseBodyExactly])('reads 32 levels, and refuses 33', (parse) => {
    expect(parse(bytes(nested(32)))).toBeInstanceOf(Array);
    expect(parse(bytes(nested(33)))).toBeUndefined();
  });

  it('counts objects and lists alike', () => {
    const mixed = (depth: number) => '{"a":['.repeat(depth) + ']}'.repeat(depth);
    expect(parseBody(bytes(mixed(16)))).toBeDefined();
    expect(parseBody(bytes(mixed(17)))).toBeUndefined();
  });

  it('does not count brackets inside strings', () => {
    const text = JSON.stringify({ note: `"${'['.repeat(100)}\\` });
    expect(parseBody(bytes(text))).toEqual(JSON.parse(text));
  });

  it('counts neighbours as one level', () => {
    expect(parseBody(bytes(`[${Array(100).fill('{}').join(',')}]`))).toHaveLength(100);
  });

  it('refuses a flood of brackets', () => {
    expect(parseBody(bytes('['.repeat(256 * 1024)))).toBeUndefined();
  });

  it.each([
    ['bytes that are not UTF-8', Uint8Array.of(0x22, 0xff, 0x22)],
    ['an overlong encoding', Uint8Array.of(0x22, 0xc0, 0xa2, 0x22)],
    ['UTF-16', new Uint8Array(Buffer.from('{}', 'utf16le'))],
    ['an empty body', bytes('')],
    ['blanks', bytes(' \n')],
    ['half an object', bytes('{"id":')],
    ['two objects', bytes('{}{}')],
    ['a trailing comma', bytes('{"id":1,}')],
    ['a bare word', bytes('NaN')],
  ])('says undefined to %s', (_name, body) => {
    expect(parseBody(body)).toBeUndefined();
    expect(parseBodyExactly(body)).toBeUndefined();
  });

  it('takes the last of two equal names', () => {
    expect(eventOfText('{"paymentStatus":"PENDING","paymentStatus":"COMPLETED"}').facts).toMatchObject([
      { kind: 'completed' },
    ]);
  });
});

const TYPE_PLACES = ['type', 'event', 'eventType', 'kind'];

describe('events: the envelope', () => {
  it.each(TYPE_PLACES)('has its type in %s', (name) => {
    expect(envelopeOf({ id: 'evt_1', [name]: PAYMENT_CHANGED })).toMatchObject({
      eventId: 'evt_1',
      type: PAYMENT_CHANGED,
    });
  });

  it('names every type that it holds, each once', () => {
    expect(envelopeOf({ type: 7, event: { name: 'x' }, eventType: 'a', kind: 'a' }).type).toBe('7, a');
  });

  it('cuts an endless type', () => {
    expect(envelopeOf({ type: 'x'.repeat(1000) }).type).toHaveLength(255);
  });

  it.each([
    ['text', 'evt_1', 'evt_1'],
    ['a whole number', 42, '42'],
    ['255 characters', 'x'.repeat(255), 'x'.repeat(255)],
  ])('takes an event id that is %s', (_name, id, eventId) => {
    expect(envelopeOf({ id }).eventId).toBe(eventId);
  });

  it.each([
    ['empty', ''],
    ['too long', 'x'.repeat(256)],
    ['no whole number', 1.5],
    ['a number that is not exact', 2 ** 53],
    ['null', null],
    ['true', true],
    ['an object', { id: 'evt_1' }],
    ['half a character', '\ud800'],
    ['cut by a NUL', 'evt\0'],
  ])('has no event id if it is %s', (_name, id) => {
    expect(envelopeOf({ id }).eventId).toBeNull();
  });

  it.each([['[]'], ['[["evt_1"]]'], ['7'], ['"evt_1"'], ['null'], ['true']])('of %s holds nothing', (text) => {
    expect(readEnvelope(parseBody(bytes(text)))).toMatchObject({ eventId: null, type: null, linkIds: [] });
    expect(eventOfText(text)).toEqual(NOTHING);
  });

  it('of a body that could not be parsed holds nothing', () => {
    expect(readEnvelope(undefined)).toMatchObject({ eventId: null, type: null, linkIds: [] });
    expect(readEvent(undefined)).toEqual(NOTHING);
  });

  it('reads nothing through a __proto__ key', () => {
    const text = '{"__proto__":{"id":"evt_1","type":"t","paymentLinkId":"pl_1","paymentStatus":"COMPLETED"}}';
    expect(readEnvelope(parseBody(bytes(text)))).toMatchObject({ eventId: null, type: null, linkIds: [] });
    expect(eventOfText(text)).toMatchObject({ linkIds: [], facts: [] });
    expect(({} as Record<string, unknown>).paymentStatus).toBeUndefined();
  });

  it('reads own names only', () => {
    const inherited = Object.create({ id: 'evt_1', paymentStatus: 'COMPLETED' });
    expect(readEnvelope(inherited).eventId).toBeNull();
    expect(readEvent(inherited).facts).toEqual([]);
  });
});

/** The payload's three places: the root, and under `data` or `payload`. */
const PAYLOAD_PLACES: readonly [string, (payload: object) => object][] = [
  ['at the root', (payload) => payload],
  ['under data', (payload) => ({ data: payload })],
  ['under payload', (payload) => ({ payload })],
];

describe.each(PAYLOAD_PLACES)('wire: a payload %s', (_name, at) => {
  it.each([
    ['paymentLink.id', { paymentLink: { id: 'pl_1' } }],
    ['link.id', { link: { id: 'pl_1' } }],
    ['paymentLinkId', { paymentLinkId: 'pl_1' }],
    ['linkId', { linkId: 'pl_1' }],
  ])('names its link by %s', (_place, payload) => {
    expect(envelopeOf(at(payload)).linkIds).toEqual(['pl_1']);
    expect(eventOf(at(payload)).linkIds).toEqual(['pl_1']);
  });

  it.each([
    ['itself', (latestPayment: object) => ({ paymentStatus: 'COMPLETED', latestPayment })],
    ['its paymentLink', (latestPayment: object) => ({ paymentStatus: 'COMPLETED', paymentLink: { latestPayment } })],
    ['its link', (latestPayment: object) => ({ paymentStatus: 'COMPLETED', link: { latestPayment } })],
  ])('has the latestPayment, its id and its quote in %s', (_place, payload) => {
    const latestPayment = { id: 'pay_1', status: 'COMPLETED', quote: { amount: 101.5, currency: 'brl' } };
    expect(factOf(at(payload(latestPayment)))).toMatchObject({
      paymentId: 'pay_1',
      quoteMoney: { amount: '101.5', currency: 'BRL' },
    });
  });

  it.each([
    ['itself', { amount: 100, currency: 'BRL', externalReference: 'order-1' }],
    ['its paymentLink', { paymentLink: { amount: 100, currency: 'BRL', externalReference: 'order-1' } }],
    ['its link', { link: { amount: 100, currency: 'BRL', externalReference: 'order-1' } }],
  ])("has the link's money and externalReference in %s", (_place, payload) => {
    expect(factOf({ paymentStatus: 'COMPLETED', ...at(payload) })).toMatchObject({
      linkMoney: { amount: '100', currency: 'BRL' },
      reference: 'order-1',
    });
  });
});

describe('events: link ids', () => {
  it('may be whole numbers', () => {
    expect(eventOf({ linkId: 7 }).linkIds).toEqual(['7']);
  });

  it('are named once if they agree', () => {
    expect(eventOf({ linkId: 'pl_1', data: { link: { id: 'pl_1' } } }).linkIds).toEqual(['pl_1']);
  });

  it('are all named if they disagree', () => {
    const body = { paymentLinkId: 'pl_1', data: { paymentLink: { id: 'pl_2' } }, payload: { linkId: 'pl_3' } };
    expect([...envelopeOf(body).linkIds].sort()).toEqual(['pl_1', 'pl_2', 'pl_3']);
  });

  it.each([[''], ['x'.repeat(256)], [null], [{}], [1.5], ['\udfff']])('are not named by %j', (linkId) => {
    expect(envelopeOf({ linkId }).linkIds).toEqual([]);
    expect(eventOf({ linkId }).linkIds).toEqual([]);
  });

  it('that are numbers read alike at intake and at settlement', () => {
    for (const text of ['1e3', '1000.0', '-0', '9007199254740993', '12345678901234567890']) {
      const body = bytes(`{"linkId":${text}}`);
      expect(readEvent(parseBodyExactly(body)).linkIds).toEqual(readEnvelope(parseBody(body)).linkIds);
    }
  });
});

describe('events: the type', () => {
  it('payment_link.created says nothing and asks nothing', () => {
    expect(eventOf({ type: 'payment_link.created', linkId: 'pl_1' })).toEqual({
      linkIds: ['pl_1'],
      facts: [],
      notUnderstood: null,
      linkChanged: false,
      linkStatus: null,
      details: [],
      expiresAtMs: null,
      link: null,
    });
  });

  it('payment_status_changed without a status asks', () => {
    expect(eventOf({ type: PAYMENT_CHANGED })).toMatchObject({ facts: [], notUnderstood: expect.any(String) });
    expect(eventOf({ type: PAYMENT_CHANGED, latestPayment: {} })).toMatchObject({
      facts: [],
      notUnderstood: expect.any(String),
    });
  });

  it.each([
    [{ paymentStatus: 'NOT_STARTED' }, null],
    [{ link: { status: 'INACTIVE' } }, null],
    [{}, null],
    [{ paymentStatus: 'SETTLING' }, expect.any(String)],
  ])('status_changed asks, and is doubtful only in unknown words: %j', (payload, notUnderstood) => {
    const read = { facts: [], notUnderstood, linkChanged: true };
    expect(eventOf({ type: STATUS_CHANGED, ...payload })).toMatchObject(read);
  });

  it.each([
    ['its paymentLink', { paymentLink: { status: 'EXPIRED' } }],
    ['its link, under data', { data: { link: { status: 'expired' } } }],
    ['itself', { status: 'EXPIRED' }],
  ])('status_changed says that a link expired, in %s', (_name, payload) => {
    const { facts, linkChanged } = eventOf({ type: STATUS_CHANGED, ...payload });
    expect(facts.map(({ kind }) => kind)).toEqual(['expired']);
    expect(linkChanged).toBe(true);
  });

  it.each([
    ['inactive', { paymentLink: { status: 'inactive' } }, 'INACTIVE'],
    ['a word of its own', { status: 'PAUSED' }, 'PAUSED'],
    ['none', { paymentStatus: 'COMPLETED' }, null],
    ['one that is no text', { status: 1 }, null],
  ])('status_changed names the status of its link: %s', (_name, payload, status) => {
    expect(eventOf({ type: STATUS_CHANGED, ...payload }).linkStatus).toBe(status);
  });

  it.each([PAYMENT_CHANGED, 'payment_link.created', 'payment_link.other', undefined])(
    '%s names no status of its link',
    (type) => {
      expect(eventOf({ type, link: { status: 'INACTIVE' }, paymentStatus: 'PENDING' }).linkStatus).toBeNull();
    },
  );

  it('payment_status_changed does not say that a link expired', () => {
    const { facts } = eventOf({ type: PAYMENT_CHANGED, paymentStatus: 'PENDING', link: { status: 'EXPIRED' } });
    expect(facts.map(({ kind }) => kind)).toEqual(['pending']);
  });
});

describe('events: the payment status', () => {
  it.each([
    ['PENDING', 'pending'],
    ['COMPLETED', 'completed'],
    ['completed', 'completed'],
    ['REFUNDED', 'refunded'],
    ['DISPUTED', 'disputed'],
  ])('%s is a fact: %s', (paymentStatus, kind) => {
    expect(factOf({ type: PAYMENT_CHANGED, paymentStatus }).kind).toBe(kind);
    const agreed = eventOf({ paymentStatus, latestPayment: { status: paymentStatus.toLowerCase() } });
    expect(agreed).toMatchObject({ facts: [{ kind }], notUnderstood: null });
  });

  it('NOT_STARTED is not a fact and asks nothing', () => {
    expect(eventOf({ paymentStatus: 'NOT_STARTED' })).toMatchObject({ facts: [], notUnderstood: null });
  });

  it.each([['FAILED'], ['']])('%j is not a fact and asks', (paymentStatus) => {
    expect(eventOf({ paymentStatus })).toMatchObject({ facts: [], notUnderstood: expect.any(String) });
  });

  it.each([[null], [true], [{}], [['COMPLETED']]])('%j is not a status', (paymentStatus) => {
    expect(eventOf({ paymentStatus })).toMatchObject({ facts: [], notUnderstood: expect.any(String) });
  });

  it('that contradicts itself without a completion is not a fact, and asks', () => {
    const body = { paymentStatus: 'NOT_STARTED', latestPayment: { status: 'PENDING' } };
    expect(eventOf(body)).toMatchObject({ facts: [], notUnderstood: expect.any(String) });
  });

  it("is the link's alone if the latest payment has none", () => {
    const body = { paymentStatus: 'COMPLETED', latestPayment: { id: 'pay_1', status: null } };
    expect(factOf(body)).toMatchObject({ kind: 'completed', paymentId: 'pay_1' });
  });
});

describe("events: the payment's id", () => {
  const idOf = (id: unknown) => factOf({ paymentStatus: 'COMPLETED', latestPayment: { id } }).paymentId;

  it.each([
    ['pay_1', 'pay_1'],
    [7, '7'],
    ['x'.repeat(255), 'x'.repeat(255)],
  ])('is %s', (id, paymentId) => {
    expect(idOf(id)).toBe(paymentId);
  });

  it.each([['unnamed'], [''], ['x'.repeat(256)], [null], [{}], ['\ud800'], [1.5]])('is not %j', (id) => {
    expect(idOf(id)).toBeNull();
  });

  it('is not named under a name that is not a place', () => {
    expect(factOf({ paymentStatus: 'COMPLETED', charge: { id: 'pay_1' } }).paymentId).toBeNull();
  });
});

describe('events: money', () => {
  const moneyOf = (text: string) => eventOfText(`{"paymentStatus":"COMPLETED",${text}}`).facts[0]?.linkMoney;

  it.each([['1.50'], ['1e999'], ['9007199254740993'], ['-0'], ['100'], ['0.1e1']])(
    'keeps %s as it was sent',
    (text) => {
      expect(moneyOf(`"amount":${text}`)).toEqual({ amount: text, currency: null });
      const { facts } = eventOfText(`{"paymentStatus":"COMPLETED","latestPayment":{"quote":{"amount":${text}}}}`);
      expect(facts[0]?.quoteMoney?.amount).toBe(text);
    },
  );

  it('may be text', () => {
    expect(moneyOf('"amount":"100.50","currency":"BRL"')).toEqual({ amount: '100.50', currency: 'BRL' });
  });

  it.each([
    ['"amount":true', { amount: 'boolean', currency: null }],
    ['"amount":{"value":100}', { amount: 'object', currency: null }],
    ['"amount":[100]', { amount: 'object', currency: null }],
    ['"amount":100,"currency":986', { amount: '100', currency: '986' }],
    ['"amount":100,"currency":{}', { amount: '100', currency: 'OBJECT' }],
    ['"currency":"USD"', { amount: null, currency: 'USD' }],
  ])('that is odd is kept, so that it does not count as unnamed: %s', (text, money) => {
    expect(moneyOf(text)).toEqual(money);
  });

  it.each([['"x":1'], ['"amount":null'], ['"amount":null,"currency":null']])('is not named by %s', (text) => {
    expect(moneyOf(text)).toBeNull();
  });

  it('is put together if one place names the amount and another the currency', () => {
    expect(moneyOf('"amount":1,"link":{"currency":"USD"}')).toEqual({ amount: '1', currency: 'USD' });
  });

  it('of the payload serves if the link names a currency only', () => {
    expect(moneyOf('"amount":1,"currency":"BRL","link":{"currency":"BRL"}')).toEqual({ amount: '1', currency: 'BRL' });
  });

  it('does not keep an endless currency', () => {
    expect(moneyOf(`"amount":1,"currency":"${'x'.repeat(9999)}"`)?.currency).toHaveLength(16);
  });

  it('never is the total with interest', () => {
    const quote = { totalBRL: 130, amount: 100, currency: 'BRL' };
    const { quoteMoney } = factOf({ paymentStatus: 'COMPLETED', latestPayment: { quote } });
    expect(quoteMoney).toEqual({ amount: '100', currency: 'BRL' });
    expect(factOf({ paymentStatus: 'COMPLETED', latestPayment: { quote: { totalBRL: 130 } } }).quoteMoney).toBeNull();
  });
});

describe('events: the reference', () => {
  const referenceOf = (externalReference: unknown) =>
    factOf({ paymentStatus: 'COMPLETED', externalReference }).reference;

  it.each([
    ['order-1', 'order-1'],
    ['', ''],
    [1234, '1234'],
    [null, null],
    [{}, null],
  ])('%j is read as %j', (said, reference) => {
    expect(referenceOf(said)).toBe(reference);
  });
});

describe('events: what is said in several places', () => {
  const link = { amount: 100, currency: 'BRL', externalReference: 'order-1' };
  const payment = { id: 'pay_1', status: 'COMPLETED', quote: { amount: 100, currency: 'BRL' } };

  it.each([['REFUNDED'], ['DISPUTED']])('is unclear of a payment %s too', (paymentStatus) => {
    const body = { paymentStatus, link, amount: 1 };
    expect(eventOf(body)).toMatchObject({ facts: [{ kind: 'unclear' }], notUnderstood: null });
  });

  it('moves no money while the payment is pending', () => {
    expect(factOf({ paymentStatus: 'PENDING', link, amount: 1 }).kind).toBe('pending');
  });

  it('names the payment if one of them does', () => {
    const body = { paymentStatus: 'COMPLETED', latestPayment: {}, link: { latestPayment: payment } };
    expect(factOf(body)).toMatchObject({ paymentId: 'pay_1', quoteMoney: { amount: '100', currency: 'BRL' } });
  });
});

describe('events: an event is not understood', () => {
  it.each([
    ['its type alone', { type: 'payment_link.viewed', link: { id: 'pl_1', amount: 100 } }, /its type/],
    ['a status that is unknown', { paymentStatus: 'FAILED' }, /payment status FAILED/],
    ['a latest payment without a status', { type: STATUS_CHANGED, latestPayment: { id: 'p' } }, /without a status/],
    ['a latest payment that is no object', { type: STATUS_CHANGED, latestPayment: 'pay_1' }, /without a status/],
    [
      'a payment of an order without a begun payment',
      { paymentStatus: 'NOT_STARTED', latestPayment: {} },
      /contradicts/,
    ],
    ['no status in an event about one', { type: PAYMENT_CHANGED }, /names no payment status/],
    ['two types', { type: PAYMENT_CHANGED, event: 'webhook', paymentStatus: 'PENDING' }, /several types: .*, webhook$/],
    [
      'two statuses of its link',
      { type: STATUS_CHANGED, status: 'ACTIVE', link: { status: 'EXPIRED' } },
      /several link st/,
    ],
  ])('because of %s', (_name, body, why) => {
    expect(eventOf(body)).toMatchObject({ facts: [], notUnderstood: expect.stringMatching(why) });
  });

  it.each([
    ['a link that changed', { type: STATUS_CHANGED, link: { status: 'INACTIVE' } }],
    ['NOT_STARTED', { type: STATUS_CHANGED, paymentStatus: 'NOT_STARTED', latestPayment: null }],
    ['a link that was made', { type: 'payment_link.created', link: { id: 'pl_1', amount: 100 } }],
    ['a payment that is unclear', { latestPayment: { status: 'COMPLETED' } }],
  ])('but for %s it is', (_name, body) => {
    expect(eventOf(body).notUnderstood).toBeNull();
  });

  it('says so in printable words of bounded length', () => {
    const { notUnderstood } = eventOf({ type: `\u202e\u0007${'x'.repeat(9999)}` });
    expect(notUnderstood).toMatch(/^settled does not know its type x{120}…$/);
  });
});

/** JSON values made of the names that are read, at any of their places, and of anything. */
const { json } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 5, depthSize: 'large' },
    fc.jsonValue(),
    fc.constantFrom('COMPLETED', 'PENDING', 'REFUNDED', 'EXPIRED', PAYMENT_CHANGED, STATUS_CHANGED, 'BRL', 100),
    fc.dictionary(
      fc.constantFrom(
        ...['id', 'type', 'event', 'data', 'payload', 'paymentLink', 'link', 'linkId', 'paymentLinkId'],
        ...['object', 'resource', 'payment_link', 'payment_status', 'latest_payment', 'external_reference'],
        ...['paymentStatus', 'latestPayment', 'quote', 'amount', 'currency', 'externalReference', 'status'],
        ...['__proto__', 'constructor', 'hasOwnProperty', 'toString'],
      ),
      tie('json'),
      { maxKeys: 8 },
    ),
  ),
}));

describe('events: any body', () => {
  it('is read without a throw, and alike by intake and settlement', () => {
    fc.assert(
      fc.property(json, (value) => {
        const body = bytes(JSON.stringify(value));
        const exact = readEvent(parseBodyExactly(body));
        const envelope = readEnvelope(parseBody(body));
        expect(exact.linkIds).toEqual(envelope.linkIds);
        expect(() => readEvent(value)).not.toThrow();
      }),
      runs<[unknown]>(400, 2_000, [
        [{ paymentStatus: 'PENDING', data: { payment_status: 'COMPLETED', payload: '{"paymentStatus":"COMPLETED"}' } }],
      ]),
    );
  });

  it('of any bytes is read without a throw', () => {
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.string({ unit: 'binary' }).map(bytes)), (body) => {
        readEvent(parseBodyExactly(body));
        readEnvelope(parseBody(body));
      }),
      { numRuns: times(400, 2_000) },
    );
  });

  it('says a completion only if a paymentStatus COMPLETED was sent', () => {
    fc.assert(
      fc.property(json, (value) => {
        const text = JSON.stringify(value);
        const { facts } = readEvent(parseBodyExactly(bytes(text)));
        if (facts.some(({ kind }) => kind === 'completed'))
          expect(text).toMatch(/"(paymentStatus|payment_status)":"COMPLETED"/);
      }),
      runs<[unknown]>(400, 2_000, [
        // A status of the link, or one without its name.
        [{ type: PAYMENT_CHANGED, status: 'COMPLETED', link: { id: 'pl_1', status: 'COMPLETED' } }],
        [{ type: PAYMENT_CHANGED, latestPayment: { id: 'pay_1', status: 'COMPLETED' } }],
      ]),
    );
  });
});
