import { beforeAll, describe, expect, it } from 'vitest';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { freePort } from '../support/network.ts';
import { act, startTestSandbox, type TestSandbox } from '../support/sandbox.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';
import { expectSaid, SAID } from './answers.ts';

const ORIGIN = 'https://sandbox.example.com';

/** A service whose brand is Acme, with settled; its address is known before it starts. */
const environment: Record<string, string> = { SETTLED_HEADER_PREFIX: 'X-Acme', SETTLED_HOOKS_CORS: ORIGIN };
let sandbox: TestSandbox;
beforeAll(async () => {
  const ends: (() => Promise<void>)[] = [];
  sandbox = await startTestSandbox({ headerPrefix: 'X-Acme', rateLimit: null, atEnd: (end) => ends.push(end) });
  const port = await freePort();
  environment.SETTLED_API_URL = sandbox.url;
  environment.SETTLED_API_KEY = sandbox.apiKey;
  environment.SETTLED_HOOKS_LISTEN = `127.0.0.1:${port}`;
  environment.SETTLED_PUBLIC_URL = `http://127.0.0.1:${port}`;
  return () => Promise.all(ends.map((end) => end()));
});
const settled = sharedApp({ environment });

/** The headers of a genuine delivery, under another brand. */
function branded(prefix: string, secret: string, body: string): Record<string, string> {
  const headers = Object.entries(signedHeaders(secret, body));
  return Object.fromEntries(headers.map(([name, value]) => [name.replace('x-service', prefix), value]));
}

describe('receive: SETTLED_HEADER_PREFIX', () => {
  it('names the headers of a delivery, in any case', async () => {
    for (const prefix of ['x-acme', 'X-ACME']) {
      const link = await settled().reserve(freshReference());
      const body = paymentEvent();
      const headers = branded(prefix, link.webhookSecret, body);
      await expectSaid(await settled().deliver(link, body, headers), SAID.recorded);
    }
  });

  it('takes the place of the name that the specification writes', async () => {
    const link = await settled().reserve(freshReference());
    await expectSaid(await settled().deliver(link, paymentEvent()), SAID.unauthorized);
  });

  it('names the headers that a page of the allowed origin may send', async () => {
    const link = await settled().reserve(freshReference());
    const asked = { origin: ORIGIN, 'access-control-request-method': 'POST' };
    const answer = await fetch(link.webhookUrl, { method: 'OPTIONS', headers: asked });
    expect(answer.headers.get('access-control-allow-headers')).toBe('content-type, x-acme-signature, x-acme-timestamp');
  });

  it("names the headers of doctor's own delivery", async () => {
    const { body } = await settled().api('/v1/admin/doctor');
    const address = body.checks.find(({ name }: { name: string }) => name === 'public address');
    expect(address).toMatchObject({ status: 'ok' });
  });

  it('is all that a service of another brand needs: an order that it opened is paid by webhook', async () => {
    const reference = freshReference();
    const opened = await settled().api('/v1/orders', { body: { reference, amount: '100.00', title: 'A chair' } });
    expect(opened.status).toBe(201);
    await act(sandbox, { id: opened.body.order.link.id }, 'pay');
    await sandbox.idle();
    await eventually(async () => {
      expect(await settled().order(reference)).toMatchObject({ state: 'paid', learnedBy: 'webhook' });
    });
  });
});
