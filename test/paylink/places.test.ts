import { describe, expect, it } from 'vitest';
import type { SaidFact } from '../../src/domain/fact.ts';
import { parseBody, parseBodyExactly } from '../../src/json.ts';
import { readEnvelope, readEvent, readUnverifiedLinkIds } from '../../src/paylink/events.ts';

const PAYMENT_CHANGED = 'payment_link.payment_status_changed';

const bytes = (text: string) => new TextEncoder().encode(text);
/** Reads a body as settlement does: from its bytes, numbers exact. */
const eventOf = (body: unknown) => readEvent(parseBodyExactly(bytes(JSON.stringify(body))));
/** Reads a body as intake does. */
const envelopeOf = (body: unknown) => readEnvelope(parseBody(bytes(JSON.stringify(body))));

/** The one fact of an event that holds one. */
function factOf(body: unknown): SaidFact {
  const { facts } = eventOf(body);
  expect(facts).toHaveLength(1);
  return facts[0] as SaidFact;
}

const SAID = {
  paymentLink: { id: 'pl_1', amount: 100.5, currency: 'BRL', externalReference: 'order-1' },
  paymentStatus: 'COMPLETED',
  latestPayment: { id: 'pay_1', status: 'COMPLETED', quote: { amount: 100.5, currency: 'BRL' } },
};
describe('places: wrappings', () => {
  it.each([
    ['a list of one', (event: object) => [event]],
    ['event', (event: object) => ({ event })],
    ['event within a list', (event: object) => [{ event: JSON.stringify(event) }]],
  ])('%s hold the id and the type of an event', (_name, wrapped) => {
    const event = wrapped({ id: 'evt_1', type: PAYMENT_CHANGED, ...SAID });
    expect(envelopeOf(event)).toMatchObject({ eventId: 'evt_1', type: PAYMENT_CHANGED, linkIds: ['pl_1'] });
  });

  it.each([
    ['a list within a list', [[SAID]]],
    ['text that is no JSON', { data: `${JSON.stringify(SAID)}}` }],
    [
      'text that is nested too deep',
      { data: `{"data":${JSON.stringify(SAID)},"x":${'['.repeat(40)}${']'.repeat(40)}}` },
    ],
  ])('are no places: %s', (_name, body) => {
    expect(eventOf(body)).toMatchObject({ facts: [], notUnderstood: expect.any(String) });
  });

  it('keep the amounts of their texts as they were sent', () => {
    const { facts } = eventOf({ paymentStatus: 'COMPLETED', data: '{"amount":9007199254740993.10,"currency":"BRL"}' });
    expect(facts[0]?.linkMoney?.amount).toBe('9007199254740993.10');
  });

  it('say one thing, or the event is unclear', () => {
    for (const other of [
      { paymentStatus: 'PENDING' },
      { amount: 1 },
      { currency: 'USD' },
      { external_reference: 'order-2' },
      { latest_payment: { id: 'pay_2' } },
      { latest_payment: { quote: { amount: 1 } } },
    ]) {
      for (const at of ['object', 'data', 'payload', 'event', 'resource'] as const) {
        const body = { type: PAYMENT_CHANGED, ...SAID, [at]: other };
        expect([at, eventOf(body)]).toMatchObject([at, { facts: [{ kind: 'unclear' }] }]);
      }
    }
    const twoTypes = { type: PAYMENT_CHANGED, eventType: 'payment_link.created', ...SAID };
    expect(eventOf(twoTypes)).toMatchObject({ facts: [{ kind: 'unclear' }] });
    const twoLinks = { ...SAID, resource: { link: { id: 'pl_2' } } };
    expect(eventOf(twoLinks).linkIds).toEqual(['pl_1', 'pl_2']);
  });

  it('make the event unclear if one lies too deep to be read', () => {
    const deep = { ...SAID, data: { data: { data: { data: { amount: 1 } } } } };
    expect(factOf(deep).kind).toBe('unclear');
    expect(factOf({ ...SAID, data: { data: { data: { amount: 100.5 } } } }).kind).toBe('completed');
  });

  it('that are lists of several: the longest is reported', () => {
    for (const lists of [
      { data: [{}, {}, {}], payload: [{}, {}] },
      { data: [{}, {}], payload: [{}, {}, {}] },
    ]) {
      expect(eventOf(lists).notUnderstood).toMatch(/^it is a list of 3,/);
    }
  });
});

describe('places: payments', () => {
  it('that are a count, or an object that has no part of one, say nothing of a payment', () => {
    const changed = { type: 'payment_link.status_changed', status: 'ACTIVE' };
    for (const payments of [0, { count: 0 }]) {
      expect(eventOf({ ...changed, payments })).toMatchObject({ facts: [], notUnderstood: null });
    }
    expect(eventOf({ ...changed, payments: [{}] })).toMatchObject({ notUnderstood: expect.any(String) });
  });
});

describe('places: an id of what is neither text nor a number', () => {
  it('does not keep a pending payment from being told', () => {
    expect(factOf({ paymentStatus: 'PENDING', externalReference: {} }).kind).toBe('pending');
  });
});

describe("places: an id that is the link's own is not an event id", () => {
  const eventId = (body: unknown, linkId: string | null = null) =>
    readEnvelope(parseBody(bytes(JSON.stringify(body))), { linkId }).eventId;

  it.each([
    ['by its route', { id: 'pl_1', paymentStatus: 'COMPLETED' }, 'pl_1'],
    ['by its link', { id: 'pl_1', paymentLink: { id: 'pl_1' } }, null],
    ['by its paymentLinkId, wrapped', { event: { id: 'pl_1', data: { payment_link_id: 'pl_1' } } }, null],
    ['by being the link itself', { id: 'pl_1', status: 'INACTIVE', shortUrl: 'https://pay.example/s/1' }, null],
  ])('known %s', (_name, body, linkId) => {
    expect(eventId(body, linkId)).toBeNull();
  });

  it.each([
    ['another id', { id: 'evt_1', paymentLinkId: 'pl_1' }, 'pl_1'],
    ['another id beside fields of a link', { id: 'evt_1', paymentLinkId: 'pl_1', isActive: true }, null],
    ['an id of which nothing more is known', { id: 'evt_1', paymentStatus: 'COMPLETED' }, null],
  ])('%s is one', (_name, body, linkId) => {
    expect(eventId(body, linkId)).toBe('evt_1');
  });

  it('two ids that differ are none', () => {
    expect(eventId({ id: 'evt_1', event: { id: 'evt_2' } })).toBeNull();
    expect(eventId({ id: 'evt_1', event: { id: 'evt_1' } })).toBe('evt_1');
  });
});

describe('places: before a body is verified', () => {
  it('the link is looked for in objects, and in no text', () => {
    const named = (body: unknown) => readUnverifiedLinkIds(bytes(JSON.stringify(body)));
    expect(named([{ event: { resource: { payment_link: { id: 'pl_1' } } } }])).toEqual(['pl_1']);
    expect(named({ data: JSON.stringify({ linkId: 'pl_1' }) })).toEqual([]);
    expect(named(JSON.stringify({ linkId: 'pl_1' }))).toEqual([]);
  });
});
