import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EventContent } from '../../src/domain/fact.ts';
import { NO_DETAILS, type SaidDetails } from '../../src/domain/payment_details.ts';
import { parseBodyExactly } from '../../src/json.ts';
import { readEvent } from '../../src/paylink/events.ts';
import { readReading } from '../../src/paylink/reading.ts';
import { times } from '../support/timing.ts';
import { LINK_DETAILS } from './peer.ts';

const bytes = (body: unknown) => new TextEncoder().encode(JSON.stringify(body));
const eventOf = (body: unknown) => readEvent(parseBodyExactly(bytes(body)));
const readingOf = (payments: unknown) =>
  readReading(bytes({ success: true, paymentLink: { ...LINK_DETAILS, paymentStatus: 'COMPLETED', payments } }), 7);

/** As the specification writes it (section 2). */
const PAYMENT = {
  id: 'pay_1',
  status: 'COMPLETED',
  createdAt: '2026-11-20T12:30:00.000Z',
  completedAt: '2026-11-20T09:34:56-03:00',
  availableAt: '2026-12-20T12:34:56.789Z',
  customer: { name: 'Ana Souza', email: 'Ana@example.com' },
  quote: { amount: 100, currency: 'BRL', paymentMethod: 'credit_card', installments: 6, totalBRL: 112.4 },
};
const DETAILS: SaidDetails = {
  paymentId: 'pay_1',
  method: 'CREDIT_CARD',
  installments: 6,
  totalBrlMinor: 11_240,
  customerName: 'Ana Souza',
  customerEmail: 'Ana@example.com',
  createdAtMs: Date.UTC(2026, 10, 20, 12, 30),
  completedAtMs: Date.UTC(2026, 10, 20, 12, 34, 56),
  availableAtMs: Date.UTC(2026, 11, 20, 12, 34, 56, 789),
};

const event = (latestPayment: unknown, more: object = {}) => ({
  id: 'evt_1',
  type: 'payment_link.payment_status_changed',
  data: {
    paymentLink: { id: 'pl_1', amount: 100, currency: 'BRL' },
    paymentStatus: 'COMPLETED',
    latestPayment,
    ...more,
  },
});

const snake = (value: unknown): unknown =>
  typeof value !== 'object' || value === null
    ? value
    : Object.fromEntries(
        Object.entries(value).map(([name, inner]) => [
          name === 'totalBRL' ? 'total_brl' : name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`),
          snake(inner),
        ]),
      );

/** What both read of a payment whose quote, customer or own fields are other ones. */
function both(over: object): SaidDetails | undefined {
  const payment = { ...PAYMENT, ...over };
  const [said] = eventOf(event(payment)).details;
  expect(readingOf([payment]).details[0]).toEqual(said);
  return said;
}
const withQuote = (over: object) => both({ quote: { ...PAYMENT.quote, ...over } });
const withCustomer = (customer: unknown) => both({ customer });

describe('details of a payment', () => {
  it('are read from an event and from a reading alike', () => {
    expect(both({})).toEqual(DETAILS);
    expect(eventOf(snake(event(PAYMENT))).details).toEqual([DETAILS]);
  });

  it('that are not there are null, and a payment that says none has none', () => {
    expect(both({ customer: null, quote: null, completedAt: null, availableAt: null })).toEqual({
      ...NO_DETAILS,
      paymentId: 'pay_1',
      createdAtMs: DETAILS.createdAtMs,
    });
    expect(eventOf(event({ id: 'pay_1', status: 'COMPLETED' })).details).toEqual([]);
    expect(readingOf([{ id: 'pay_1', status: 'COMPLETED' }]).details).toEqual([]);
  });

  it.each([
    ['PIX ', 'PIX'],
    ['boleto\u0000', 'BOLETO'],
    ['x'.repeat(64), 'X'.repeat(64)],
    ['x'.repeat(65), null],
    ['', null],
    [' \u200b\n', null],
    [7, null],
    [{ name: 'PIX' }, null],
    [['PIX'], null],
  ])('have the method %j as %j', (paymentMethod, method) => {
    expect(withQuote({ paymentMethod })?.method).toBe(method);
  });

  it.each([
    [1, 1],
    ['12', 12],
    [12.0, 12],
    [999, 999],
    [1000, null],
    [0, null],
    [-1, null],
    [1.5, null],
    ['', null],
    ['six', null],
    [true, null],
    [null, null],
    [[6], null],
  ])('have %j instalments as %j', (installments, count) => {
    expect(withQuote({ installments })?.installments).toBe(count);
  });

  it.each([
    [112.4, 11_240],
    ['112.40', 11_240],
    [1e2, 10_000],
    [112.401, null],
    [0, null],
    [-5, null],
    ['R$ 5', null],
    [9_999_999_999_999.99, 999_999_999_999_999],
    ['99999999999999.99', null],
    [{}, null],
  ])('have the total %j as %j centavos', (totalBRL, minor) => {
    expect(withQuote({ totalBRL })?.totalBrlMinor).toBe(minor);
  });

  it.each([
    ['Ana  Souza\t', 'Ana Souza'],
    ['Ana\nSouza', 'Ana Souza'],
    ['\u202eauzuoS anA\u202c', 'auzuoS anA'],
    ['A\u0000na \u001b[31mSouza', 'Ana [31mSouza'],
    ['Jose\u0301', 'José'],
    ['李小龙 🦊', '李小龙 🦊'],
    ['A\ud800na', 'Ana'],
    ['n'.repeat(255), 'n'.repeat(255)],
    ['n'.repeat(256), null],
    ['n'.repeat(200_000), null],
    [{ first: 'Ana' }, null],
    [12, null],
  ])('have the name %j as %j', (name, read) => {
    expect(withCustomer({ name, email: PAYMENT.customer.email })?.customerName).toBe(read);
  });

  it.each([
    [' ana@example.com ', 'ana@example.com'],
    ['ana@exämple.com', 'ana@exämple.com'],
    [`${'a'.repeat(242)}@example.com`, `${'a'.repeat(242)}@example.com`],
    [`${'a'.repeat(243)}@example.com`, null],
    ['ana', null],
    ['ana@', null],
    ['@example.com', null],
    ['ana souza@example.com', null],
    ['a@b@c', null],
    [['ana@example.com'], null],
  ])('have the e-mail address %j as %j', (email, read) => {
    expect(withCustomer({ name: 'Ana', email })?.customerEmail).toBe(read);
  });

  it.each([
    ['2026-11-20T12:30Z', Date.UTC(2026, 10, 20, 12, 30)],
    ['2026-11-20T12:30:00', null],
    ['2026-11-20', null],
    ['2026-13-20T12:30:00Z', null],
    ['0001-01-01T00:00:00Z', null],
    ['9999-12-31T23:59:59Z', null],
    ['yesterday', null],
    [1_700_000_000_000, null],
    [{}, null],
  ])('have the time %j as %j', (completedAt, ms) => {
    expect(both({ completedAt })?.completedAtMs).toBe(ms);
  });

  it.each(['Ana', 7, ['Ana'], [], true])('have no customer if there is %j in its place', (customer) => {
    expect(withCustomer(customer)).toEqual({ ...DETAILS, customerName: null, customerEmail: null });
  });
});

describe('details of an event', () => {
  it('also stand at the payment itself, and those on which two places differ are null', () => {
    const { quote, ...payment } = PAYMENT;
    const { amount, currency, ...own } = quote;
    expect(eventOf(event({ ...payment, ...own, quote: { amount, currency } })).details).toEqual([DETAILS]);
    const said = eventOf(event({ ...PAYMENT, paymentMethod: 'PIX', installments: 6 })).details;
    expect(said).toEqual([{ ...DETAILS, method: null }]);
  });

  it('are those of one payment: of several, or of one with two ids, there are none', () => {
    const two = { payments: [PAYMENT, { ...PAYMENT, id: 'pay_2' }] };
    expect(eventOf(event(undefined, two)).details).toEqual([]);
    expect(eventOf(event(undefined, { payments: [PAYMENT, { ...PAYMENT, id: null }] })).details).toEqual([]);
    expect(eventOf(event(PAYMENT, { payment: { ...PAYMENT, id: 'pay_2' } })).details).toEqual([]);
    expect(eventOf(event({ ...PAYMENT, id: { is: 'odd' } })).details).toEqual([]);
    expect(eventOf(event(PAYMENT, { payments: [PAYMENT] })).details).toEqual([DETAILS]);
    expect(eventOf(event({ ...PAYMENT, id: null })).details).toEqual([{ ...DETAILS, paymentId: null }]);
  });

  it('make no payment of a count of payments', () => {
    const payments = { total: 0, createdAt: PAYMENT.createdAt, customer: PAYMENT.customer, installments: 1 };
    const { data, ...envelope } = event(undefined, { paymentStatus: 'NOT_STARTED', payments });
    expect(eventOf({ ...envelope, data })).toMatchObject({ facts: [], notUnderstood: null, details: [] });
  });

  it('are none of an event that is not understood', () => {
    expect(eventOf({ ...event(PAYMENT), type: 'payment.created' })).toMatchObject({ facts: [], details: [] });
  });

  it.each([
    ['2030-02-03T12:00:00.000Z', Date.UTC(2030, 1, 3, 12)],
    ['soon', null],
    [7, null],
  ])('name when the link expires: %j', (expiresAt, ms) => {
    const { data } = event(PAYMENT);
    const paymentLink = { ...data.paymentLink, expiresAt };
    expect(eventOf(event(PAYMENT, { paymentLink })).expiresAtMs).toBe(ms);
    expect(eventOf({ type: 'payment_link.created', data: { paymentLink } }).expiresAtMs).toBe(ms);
  });
});

describe('details of a reading', () => {
  it('are those of each payment, but for one that is listed twice, or without an id among others', () => {
    const other = { ...PAYMENT, id: 'pay_2', customer: { name: 'Bia', email: null } };
    const named = (payments: unknown[]) => readingOf(payments).details.map(({ paymentId }) => paymentId);
    expect(named([PAYMENT, other])).toEqual(['pay_1', 'pay_2']);
    expect(named([PAYMENT, other, { ...other, status: 'PENDING' }])).toEqual(['pay_1']);
    expect(named([PAYMENT, { ...other, id: undefined }])).toEqual(['pay_1']);
    expect(named([{ ...PAYMENT, id: undefined }])).toEqual([null]);
    expect(named([PAYMENT, 'odd', null, 7])).toEqual(['pay_1']);
  });
});

/** What an event or a reading settles by. */
const settledBy = ({ details: _details, expiresAtMs: _expiry, ...rest }: EventContent) => rest;

describe('details, whatever they hold', () => {
  const anything = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.string({ unit: 'binary', maxLength: 300 }),
    fc.constantFrom('{"id":"pay_9","status":"REFUNDED"}', '[1]', 'x'.repeat(2_000), '2026-11-20T12:30:00Z', 1e308),
  );
  const hostile = fc.record(
    {
      createdAt: anything,
      completedAt: anything,
      availableAt: anything,
      customer: fc.oneof(anything, fc.record({ name: anything, email: anything })),
      paymentMethod: anything,
      installments: anything,
      totalBRL: anything,
    },
    { requiredKeys: [] },
  );

  it('change nothing of what is settled, and are null or within their bounds', () => {
    const bare = { id: 'pay_1', status: 'COMPLETED', quote: { amount: 100, currency: 'BRL' } };
    fc.assert(
      fc.property(hostile, anything, (over, expiresAt) => {
        const { paymentMethod, installments, totalBRL, ...own } = over;
        const quote = { ...bare.quote, ...JSON.parse(JSON.stringify({ paymentMethod, installments, totalBRL })) };
        const payment = { ...bare, ...own, quote };
        const read = eventOf(event(payment, { expiresAt }));
        expect(settledBy(read)).toEqual(settledBy(eventOf(event(bare))));
        const answer = readingOf([payment]);
        expect(settledBy(answer)).toEqual(settledBy(readingOf([bare])));
        for (const said of [...read.details, ...answer.details]) expectBounded(said);
        expect(answer.details).toEqual(read.details);
      }),
      { numRuns: times(500, 20_000) },
    );
  });
});

function expectBounded(said: SaidDetails): void {
  const { method, customerName, customerEmail, installments, totalBrlMinor } = said;
  for (const text of [method, customerName, customerEmail]) {
    if (text === null) continue;
    expect(text).toMatch(/^\P{C}{1,255}$/u);
    expect(text).toBe(text.trim());
  }
  for (const number of [installments, totalBrlMinor]) if (number !== null) expect(number).toBeGreaterThan(0);
  for (const ms of [said.createdAtMs, said.completedAtMs, said.availableAtMs]) {
    if (ms !== null) expect(new Date(ms).toISOString()).toMatch(/^2[01]\d\d-/);
  }
}
