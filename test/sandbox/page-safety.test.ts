import { describe, expect, it } from 'vitest';
import { postForm } from '../support/http.ts';
import { createLink, details, POLICY, sharedSandbox } from './page-order.ts';
import { PAYLOADS } from './page-payloads.ts';

const production = sharedSandbox('production');
const simulated = sharedSandbox('sandbox');

describe('what a link carries', () => {
  it('stands nowhere in the page as it was given, if it could run', async () => {
    const sandbox = simulated();
    expect(PAYLOADS.length).toBeGreaterThanOrEqual(50);
    for (const [at, payload] of PAYLOADS.entries()) {
      const link = await createLink(sandbox, carrying(payload, at));
      const text = await (await fetch(link.url)).text();
      if (/[<>"'`]/.test(payload)) expect(text, payload).not.toContain(payload.replaceAll('\0', ''));
      const shown = payload.replace(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`);
      expect(text.split(`<bdi>${shown}</bdi>`).length, payload).toBeGreaterThan(2);
    }
  });

  it('is escaped in the page: each character that could end a text or an attribute', async () => {
    const sandbox = production();
    const link = await createLink(sandbox, { title: `&<>"'\`` });
    const text = await (await fetch(link.url)).text();
    expect(text).toContain('<bdi>&#38;&#60;&#62;&#34;&#39;&#96;</bdi>');
  });

  it('is escaped after the payment too, when the browser follows the callbackUrl', async () => {
    const sandbox = production();
    for (const callback of [
      'https://shop.example/"><script>hit=1</script>',
      "https://shop.example/?';0;url=x",
      'https://shop.example/?a=1&copy=2&quot;3',
    ]) {
      const link = await createLink(sandbox, { callbackUrl: callback });
      const started = await postForm(`${link.url}/payments`, { method: 'PIX' });
      const payment = String(started.headers.get('location')).split('payment=')[1];
      await postForm(`${link.url}/complete`, { payment: String(payment) });
      const text = await (await fetch(`${link.url}?payment=${payment}`)).text();
      const refresh = /<meta http-equiv="refresh" content="([^"]*)">/.exec(text)?.[1];
      const address = new URL(callback).href.replaceAll('&', '&#38;').replaceAll("'", '&#39;');
      expect(refresh).toBe(`3;url=${address}`);
      expect(text).not.toContain('<script>hit');
    }
  });
});

describe('the callbackUrl in the environment sandbox', () => {
  it('is neither followed nor offered', async () => {
    const sandbox = simulated();
    const link = await createLink(sandbox, { callbackUrl: 'https://shop.example/thanks' });
    const headers = { 'content-type': 'application/json' };
    const body = '{"value":"COMPLETED"}';
    await fetch(`${link.url}/panel/payment`, { method: 'POST', headers, body });
    const [payment] = (await details(sandbox, link)).payments;
    for (const [query, heading] of [
      [`?payment=${payment.id}`, 'Payment complete'],
      ['', 'This link is already paid'],
    ]) {
      const text = await (await fetch(`${link.url}${query}`)).text();
      expect(text).toContain(`<h2>${heading}</h2>`);
      expect(text).not.toContain('http-equiv');
      expect(text).not.toContain('href="https://shop.example');
    }
  });
});

describe('a page of another site', () => {
  it.each([
    ['another origin', { origin: 'https://evil.example' }],
    ['another port of the same machine', { origin: 'http://127.0.0.1:1' }],
    ['an origin that is not told', { origin: 'null' }],
    ['another site', { 'sec-fetch-site': 'cross-site' }],
    ['a neighbour', { 'sec-fetch-site': 'same-site' }],
    ['a name that leads to loopback', { host: 'evil.example', origin: 'http://evil.example' }],
  ])('is refused with 403: %s', async (_name, headers) => {
    const sandbox = production();
    const link = await createLink(sandbox);
    expect((await postForm(`${link.url}/payments`, { method: 'PIX' }, headers)).status).toBe(403);
    expect((await details(sandbox, link)).paymentStatus).toBe('NOT_STARTED');
  });

  it.each([
    ['its own page', { 'sec-fetch-site': 'same-origin', origin: 'null' }],
    ['the address bar', { 'sec-fetch-site': 'none' }],
    ['a program', {}],
  ])('is distinguished from %s', async (_name, headers) => {
    const sandbox = production();
    const link = await createLink(sandbox);
    expect((await postForm(`${link.url}/payments`, { method: 'PIX' }, headers)).status).toBe(303);
  });
});

describe('the headers of a page', () => {
  it('allow what is the sandbox’s own, and the receiver if the panel sends to it', async () => {
    const webhookUrl = 'https://shop.example:8443/hook?x=1';
    for (const environment of ['production', 'sandbox'] as const) {
      const sandbox = (environment === 'production' ? production : simulated)();
      const link = await createLink(sandbox, { webhookUrl });
      const { headers } = await fetch(link.url);
      const expected =
        environment === 'production'
          ? POLICY
          : POLICY.replace("connect-src 'self'", "connect-src 'self' https://shop.example:8443");
      expect(headers.get('content-security-policy')).toBe(expected);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
      const missing = await fetch(`${sandbox.url}/pay/nobody`);
      expect(missing.headers.get('content-security-policy')).toBe(POLICY);
    }
  });

  it('cannot be bent by a webhookUrl', async () => {
    const sandbox = simulated();
    const link = await createLink(sandbox, { webhookUrl: "http://a;script-src,'unsafe-inline'/hook" });
    const policy = (await fetch(link.url)).headers.get('content-security-policy');
    expect(policy).toContain("connect-src 'self'; form-action");
    expect(policy).not.toContain('unsafe-inline');
  });
});

function carrying(payload: string, at: number): Record<string, unknown> {
  const inAddress = payload.replace(/\s/g, '');
  return {
    title: payload,
    description: payload,
    externalReference: `${payload}${at}`,
    metadata: { [payload]: payload },
    callbackUrl: `https://shop.example/${inAddress}`,
    webhookUrl: `https://shop.example/?${inAddress}`,
  };
}
