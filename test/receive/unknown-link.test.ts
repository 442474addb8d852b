import { Hmac } from 'node:crypto';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { spiedCrypto } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { rawConnection } from '../support/http.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';
import { expectSaid, SAID } from './answers.ts';

const hmacs = spiedCrypto('createHmac');
const hashed = vi.spyOn(Hmac.prototype, 'update');
afterAll(() => hashed.mockRestore());

const app = sharedApp();
const BODY = paymentEvent();
const FORGED = { 'x-service-signature': 'ab'.repeat(32), 'x-service-timestamp': String(Date.now()) };
const unknownPath = `/hooks/${'A'.repeat(32)}`;

describe('receive: a delivery for no link of ours', () => {
  it('costs one code over its body, like a forged one for a link that exists', async () => {
    const reference = freshReference();
    const link = await app().reserve(reference);
    // The first one is also diagnosed, after it was answered; the next ones of the link are not for a while.
    await expectSaid(await app().deliver(link, BODY, FORGED), SAID.unauthorized);
    await eventually(async () => {
      const { rejections } = (await app().api(`/v1/rejections?reference=${reference}`)).body;
      expect(rejections).toMatchObject([{ diagnosis: { code: expect.any(String) } }]);
    });
    hmacs.mockClear();
    await expectSaid(await app().deliver(link, BODY, FORGED), SAID.unauthorized);
    expect(hmacs).toHaveBeenCalledTimes(1);
    hmacs.mockClear();
    const unknown = { ...link, webhookUrl: app().hooksUrl + unknownPath };
    await expectSaid(await app().deliver(unknown, BODY, FORGED), SAID.unauthorized);
    expect(hmacs).toHaveBeenCalledTimes(1);
  });

  it('costs one code on the shared route too', async () => {
    const answer = await fetch(`${app().hooksUrl}/hooks`, { method: 'POST', body: BODY, headers: FORGED });
    await expectSaid(answer, SAID.unauthorized);
    expect(hmacs).toHaveBeenCalledTimes(1);
  });

  it('is not answered before its body is read', async () => {
    const connection = await rawConnection(app().hooksUrl);
    const lines = Object.entries({
      Host: 'localhost',
      'Content-Length': String(BODY.length),
      ...signedHeaders('some-secret-of-24-bytes!', BODY),
      Expect: '100-continue',
    }).map(([name, value]) => `${name}: ${value}`);
    connection.send(`POST ${unknownPath} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    await connection.continued();
    let answered = false;
    const answer = connection.answer().then((said) => {
      answered = true;
      return said;
    });
    // Another delivery is answered meanwhile; this one is not, as long as a byte is missing.
    connection.send(BODY.slice(0, -1));
    const other = await fetch(`${app().hooksUrl}${unknownPath}`, { method: 'POST', body: BODY, headers: FORGED });
    await expectSaid(other, SAID.unauthorized);
    expect(answered).toBe(false);
    connection.send(BODY.slice(-1));
    const { status, body } = await answer;
    expect([status, JSON.parse(body)]).toEqual([401, SAID.unauthorized.body]);
  });
});

describe('receive: what a forged delivery can have tried', () => {
  const ALGORITHMS = [16, 20, 32, 48, 64].map((bytes) => 'ab'.repeat(bytes)).join(',');
  const nested = (depth: number, inside: string) => '['.repeat(depth) + inside + ']'.repeat(depth);
  const now = String(Date.now());
  const signed = (signature: string, timestamp: string) => ({
    'x-service-signature': signature,
    'x-service-timestamp': timestamp,
  });

  it.each<[string, string, Record<string, string>]>([
    ['nested brackets, that indenting would make megabytes of', nested(3000, ''), FORGED],
    ['lines nested just so deep that they are written anew', nested(32, '1,'.repeat(3000)), FORGED],
    ['an ordinary body and five algorithms', BODY, signed(ALGORITHMS, now)],
    ['a large body and five algorithms', `"${'é'.repeat(120_000)}"`, signed(ALGORITHMS, now)],
    ['a timestamp of thousands of digits', '{}', signed('ab'.repeat(32), '1'.repeat(5000))],
    ['a short timestamp and nothing else', '', signed(ALGORITHMS, now)],
  ])('%s: is bounded by what is hashed, all together', async (_what, body, headers) => {
    const link = await app().reserve(freshReference());
    hashed.mockClear();
    hmacs.mockClear();
    await expectSaid(await app().deliver(link, body, headers), SAID.unauthorized);
    await eventually(async () => {
      const { rejections } = (await app().api(`/v1/rejections?reference=${link.reference}`)).body;
      expect(rejections).toMatchObject([{ diagnosis: { code: expect.any(String) } }]);
    });
    expect(hmacs.mock.calls.length).toBeGreaterThan(0);
    expect(hmacs.mock.calls.length).toBeLessThan(2000);
    const bytes = hashed.mock.calls.map(([data]) => Buffer.byteLength(data as string | Buffer));
    expect(bytes.reduce((sum, one) => sum + one, 0)).toBeLessThan(2_000_000 + 2 * body.length);
  });
});
