import { describe, expect, it } from 'vitest';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import { expectSaid, SAID } from './answers.ts';

const ORIGIN = 'https://sandbox.example.com';
const open = sharedApp({ environment: { SETTLED_HOOKS_CORS: ORIGIN } });
const closed = sharedApp();

const ASKS = {
  'access-control-request-method': 'POST',
  'access-control-request-headers': 'content-type,x-service-signature,x-service-timestamp',
};

function corsHeaders(answer: Response): Record<string, string> {
  return Object.fromEntries(
    [...answer.headers].filter(([name]) => name.startsWith('access-control-') || name === 'vary'),
  );
}

describe('receive: a page of the allowed origin', () => {
  it('may ask whether it may deliver, on both routes', async () => {
    const link = await open().reserve(freshReference());
    for (const url of [link.webhookUrl, `${open().hooksUrl}/hooks`]) {
      const answer = await fetch(url, { method: 'OPTIONS', headers: { origin: ORIGIN, ...ASKS } });
      expect([answer.status, await answer.text()]).toEqual([204, '']);
      expect(corsHeaders(answer)).toEqual({
        'access-control-allow-origin': ORIGIN,
        'access-control-allow-methods': 'POST',
        'access-control-allow-headers': 'content-type, x-service-signature, x-service-timestamp',
        'access-control-max-age': '600',
        vary: 'origin',
      });
    }
  });

  it('may read the answer to its delivery', async () => {
    const link = await open().reserve(freshReference());
    const body = paymentEvent();
    const answer = await open().deliver(link, body, { ...signedHeaders(link.webhookSecret, body), origin: ORIGIN });
    expect(corsHeaders(answer)).toEqual({ 'access-control-allow-origin': ORIGIN, vary: 'origin' });
    await expectSaid(answer, SAID.recorded);
  });

  it('may read that its delivery was refused', async () => {
    const link = await open().reserve(freshReference());
    const answer = await open().deliver(link, paymentEvent(), { origin: ORIGIN });
    expect(corsHeaders(answer)).toEqual({ 'access-control-allow-origin': ORIGIN, vary: 'origin' });
    await expectSaid(answer, SAID.unauthorized);
  });

  it('needs a signature like any other sender', async () => {
    const link = await open().reserve(freshReference());
    const answer = await open().deliver(link, paymentEvent(), { origin: ORIGIN, 'x-service-signature': 'x' });
    await expectSaid(answer, SAID.unauthorized);
  });
});

describe('receive: a page of another origin', () => {
  it.each(['https://evil.example', 'https://sandbox.example.com.evil.example', 'http://sandbox.example.com', 'null'])(
    'is allowed nothing: %s',
    async (origin) => {
      const link = await open().reserve(freshReference());
      const answer = await fetch(link.webhookUrl, { method: 'OPTIONS', headers: { origin, ...ASKS } });
      expect(answer.headers.has('access-control-allow-origin')).toBe(false);
      const body = paymentEvent();
      const headers = { ...signedHeaders(link.webhookSecret, body), origin };
      expect(corsHeaders(await open().deliver(link, body, headers))).toEqual({ vary: 'origin' });
    },
  );
});

describe('receive: if no origin is allowed', () => {
  it('a preflight is answered as an unknown method', async () => {
    const link = await closed().reserve(freshReference());
    const answer = await fetch(link.webhookUrl, { method: 'OPTIONS', headers: { origin: ORIGIN, ...ASKS } });
    expect(corsHeaders(answer)).toEqual({});
    await expectSaid(answer, SAID.methodNotAllowed);
  });

  it('an answer does not mention origins', async () => {
    const link = await closed().reserve(freshReference());
    const body = paymentEvent();
    const headers = { ...signedHeaders(link.webhookSecret, body), origin: ORIGIN };
    expect(corsHeaders(await closed().deliver(link, body, headers))).toEqual({});
  });
});
