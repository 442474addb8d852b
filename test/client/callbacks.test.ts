import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { NotGenuineError, settledClient } from '../../client/settled.ts';
import { startTestApp } from '../support/app.ts';
import { SHOP_SECRET, startCallback } from '../support/callback.ts';
import { paymentEvent } from '../support/deliveries.ts';

const OTHER_SECRET = `whsec_${Buffer.alloc(24, 9).toString('base64')}`;
const NOW_MS = 1_900_000_000_000;
const ID = 'msg_1_a';
const BODY =
  '{"type":"order.paid","timestamp":"2030-01-31T12:00:00.000Z","data":{"order":{"title":"Cadeira ç 🪑"},"version":2}}';
const HEADERS = headersOf(SHOP_SECRET);
const NOTICE = { id: ID, ...JSON.parse(BODY) };

const withSecret = (secret?: string) => settledClient({ url: 'http://127.0.0.1:8788', token: 't', secret });

function headersOf(secret: string, { id = ID, body = BODY, atMs = NOW_MS } = {}): Record<string, string> {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(atMs / 1_000)),
    'webhook-signature': new Webhook(secret).sign(id, new Date(atMs), body),
  };
}

function without(name: string) {
  return Object.fromEntries(Object.entries(HEADERS).filter(([key]) => key !== `webhook-${name}`));
}

describe('verify', () => {
  it('takes what settled sends, as it comes', async () => {
    const callback = await startCallback();
    const settled = await startTestApp({ environment: callback.environment });
    const link = await settled.reserve('order-1');
    await settled.deliver(link, paymentEvent({}));
    const { body, headers, id } = await callback.nth(1);
    const notice = withSecret(SHOP_SECRET).verify(body, headers);
    expect(notice).toEqual({ id, ...JSON.parse(body) });
    expect(notice).toMatchObject({ type: 'order.paid', data: { order: { reference: 'order-1', state: 'paid' } } });
  });

  it.each([
    ['text', BODY, HEADERS],
    ['a Buffer', Buffer.from(BODY), HEADERS],
    ['bytes', new TextEncoder().encode(BODY), HEADERS],
    ['headers of the Fetch API', BODY, new Headers(HEADERS)],
    [
      'headers in capitals',
      BODY,
      Object.fromEntries(Object.entries(HEADERS).map(([key, one]) => [key.toUpperCase(), one])),
    ],
    [
      'a signature among others',
      BODY,
      { ...HEADERS, 'webhook-signature': `v1,AAAA v2,x ${HEADERS['webhook-signature']}` },
    ],
    ['the first second', BODY, headersOf(SHOP_SECRET, { atMs: NOW_MS - 300_000 })],
    ['the last second', BODY, headersOf(SHOP_SECRET, { atMs: NOW_MS + 300_000 })],
  ])('takes %s', (_, body, headers) => {
    expect(withSecret(SHOP_SECRET).verify(body, headers, NOW_MS)).toEqual(NOTICE);
  });

  it('takes nothing by a clock that is none', () => {
    const { verify } = withSecret(SHOP_SECRET);
    for (const nowMs of [Number.NaN, Number.POSITIVE_INFINITY, 'now' as unknown as number]) {
      expect(() => verify(BODY, HEADERS, nowMs)).toThrow(NotGenuineError);
    }
  });

  it('takes both secrets while one takes the place of the other', () => {
    for (const secret of [SHOP_SECRET, OTHER_SECRET]) {
      for (const both of [`${OTHER_SECRET} ${SHOP_SECRET}`, `${SHOP_SECRET}\n${OTHER_SECRET}\n`]) {
        expect(withSecret(both).verify(BODY, headersOf(secret), NOW_MS)).toEqual(NOTICE);
      }
    }
  });

  it.each([
    ['no headers', BODY, {}, /missing/],
    // Express has none for a request without a body, or of another type: anyone can send that.
    ['neither headers nor a body', undefined as unknown as string, {}, /missing/],
    ['no id', BODY, without('id'), /missing/],
    ['no time', BODY, without('timestamp'), /missing/],
    ['no signature', BODY, without('signature'), /missing/],
    ['another secret', BODY, headersOf(OTHER_SECRET), /signature is wrong/],
    ['another id', BODY, { ...HEADERS, 'webhook-id': 'msg_1_b' }, /signature is wrong/],
    ['another time', BODY, { ...HEADERS, 'webhook-timestamp': String(NOW_MS / 1_000 + 1) }, /signature is wrong/],
    ['another body', BODY.replace('paid', 'held'), HEADERS, /signature is wrong/],
    ['a body that was parsed and written again', `${BODY}\n`, HEADERS, /not the bytes that came/],
    [
      'another version',
      BODY,
      { ...HEADERS, 'webhook-signature': `${HEADERS['webhook-signature']}`.replace('v1,', 'v2,') },
      /wrong/,
    ],
    ['an empty signature', BODY, { ...HEADERS, 'webhook-signature': 'v1,' }, /signature is wrong/],
    ['a time that is none', BODY, { ...HEADERS, 'webhook-timestamp': 'NaN' }, /not a number/],
    ['a time long past', BODY, headersOf(SHOP_SECRET, { atMs: NOW_MS - 302_000 }), /5 minutes/],
    ['a time ahead', BODY, headersOf(SHOP_SECRET, { atMs: NOW_MS + 302_000 }), /5 minutes/],
  ])('rejects %s, as 401 in a framework', (_, body, headers, message) => {
    const verify = () => withSecret(SHOP_SECRET).verify(body, headers, NOW_MS);
    expect(verify).toThrow(NotGenuineError);
    expect(verify).toThrow(message);
    expect(verify).toThrow(expect.objectContaining({ status: 401, statusCode: 401 }));
  });

  it('says what to change if it cannot verify at all', () => {
    const parsed = JSON.parse(BODY);
    expect(() => withSecret(SHOP_SECRET).verify(parsed, HEADERS, NOW_MS)).toThrow(/not parsed: in Express/);
    expect(() => withSecret(SHOP_SECRET).verify(parsed, HEADERS, NOW_MS)).toThrow(TypeError);
    expect(() => withSecret().verify(BODY, HEADERS, NOW_MS)).toThrow(/SETTLED_SHOP_SECRET/);
  });
});
