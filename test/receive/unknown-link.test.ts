import { createHmac } from 'node:crypto';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { eventually } from '../support/eventually.ts';
import { rawConnection } from '../support/raw.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import { expectSaid, SAID } from './answers.ts';

vi.mock('node:crypto', async (importOriginal) => {
  const crypto = await importOriginal<typeof import('node:crypto')>();
  return { ...crypto, createHmac: vi.fn(crypto.createHmac) };
});
const hmacs = vi.mocked(createHmac);

const app = sharedApp();
const BODY = paymentEvent();
const FORGED = {
  'x-service-signature': 'ab'.repeat(32),
  'x-service-timestamp': String(Date.now()),
};
const unknownPath = `/hooks/${'A'.repeat(32)}`;

describe('receive: a delivery for no link of ours', () => {
  beforeEach(() => {
    hmacs.mockClear();
  });

  it('costs one code over its body, like a forged one for a link that there is', async () => {
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
    const other = await fetch(`${app().hooksUrl}${unknownPath}`, {
      method: 'POST',
      body: BODY,
      headers: FORGED,
    });
    await expectSaid(other, SAID.unauthorized);
    expect(answered).toBe(false);
    connection.send(BODY.slice(-1));
    const { status, body } = await answer;
    expect([status, JSON.parse(body)]).toEqual([401, SAID.unauthorized.body]);
  });
});
