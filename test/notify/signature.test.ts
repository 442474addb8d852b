import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { parseShopSecrets } from '../../src/config/parsers.ts';
import { signedHeaders } from '../../src/http/target.ts';
import { SHOP_SECRET } from '../support/callback.ts';
import { startStage } from './stage.ts';

const NEW_SECRET = `whsec_${Buffer.alloc(24, 9).toString('base64')}`;
const NICE = { id: 'msg_1_a', body: '{"type":"order.paid"}' };

/** Text as people write it: outside the first plane, combining, from right to left, line ends of any kind, quotes. */
const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom('🪑', 'é', 'שלום', '\u202e', '\u2028\u2029', '"\\\'', '\0', '\ufeff', '\ud800', '\r\n', 'ß', '％00'),
);
const document = fc.record({ reference: text, title: text, metadata: fc.dictionary(text, fc.jsonValue()) });

function signed(secrets: string, { id, body, nowMs = Date.now() }: { id: string; body: string; nowMs?: number }) {
  return signedHeaders(parseShopSecrets(secrets), { id, body, nowMs });
}

describe('a notice', () => {
  it('verifies with the standardwebhooks package, for any text in it', () => {
    fc.assert(
      fc.property(document, (data) => {
        const body = JSON.stringify({ type: 'order.paid', data });
        const said = new Webhook(SHOP_SECRET).verify(Buffer.from(body), signed(SHOP_SECRET, { id: 'msg_1_a', body }));
        expect(said).toEqual(JSON.parse(body));
      }),
    );
  });

  it('has the second in which it is sent, and never one that is still to come', () => {
    for (const nowMs of [1_760_000_000_000, 1_760_000_000_001, 1_760_000_000_999]) {
      expect(signed(SHOP_SECRET, { ...NICE, nowMs })['webhook-timestamp']).toBe('1760000000');
    }
  });

  it('verifies as it arrives, with a reference of any letters', async () => {
    const { shop, clock, newOrder, happen, quiet } = await startStage();
    const reference = `Zoë 🪑 "e\u0301" שלום \u2028 ' \\ ﷽`;
    await happen(await newOrder(reference));
    await quiet();
    const [notice] = shop.notices;
    if (notice === undefined) throw new Error('no notice came');
    const at = new Date(clock.nowMs());
    expect(notice.headers['webhook-signature']).toBe(new Webhook(SHOP_SECRET).sign(notice.id, at, notice.body));
    expect(JSON.parse(notice.body).data.order.reference).toBe(reference);
    expect(notice.headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(notice.body)),
    });
  });

  const headers = signed(SHOP_SECRET, NICE);
  it.each([
    ['another body', { body: `${NICE.body} ` }],
    ['another id', { headers: { ...headers, 'webhook-id': 'msg_1_b' } }],
    [
      'another time',
      { headers: { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) + 1) } },
    ],
    ['another key', { secret: NEW_SECRET }],
    ['a time long past', { headers: signed(SHOP_SECRET, { ...NICE, nowMs: Date.now() - 301_000 }) }],
    ['no signature', { headers: { ...headers, 'webhook-signature': '' } }],
  ])('does not verify with %s', (_, over: { body?: string; headers?: Record<string, string>; secret?: string }) => {
    expect(new Webhook(SHOP_SECRET).verify(NICE.body, headers)).toEqual({ type: 'order.paid' });
    const webhook = new Webhook(over.secret ?? SHOP_SECRET);
    expect(() => webhook.verify(over.body ?? NICE.body, over.headers ?? headers)).toThrow();
  });

  it('verifies with the new secret and with the old one while both are given, and then with the new one alone', () => {
    const both = signed(`${NEW_SECRET} ${SHOP_SECRET}`, NICE);
    expect(both['webhook-signature']?.split(' ')).toHaveLength(2);
    for (const secret of [NEW_SECRET, SHOP_SECRET]) {
      expect(new Webhook(secret).verify(NICE.body, both)).toEqual({ type: 'order.paid' });
    }
    const after = signed(NEW_SECRET, NICE);
    expect(new Webhook(NEW_SECRET).verify(NICE.body, after)).toEqual({ type: 'order.paid' });
    expect(() => new Webhook(SHOP_SECRET).verify(NICE.body, after)).toThrow('No matching signature');
  });
});
