import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type ReservedLink, startTestApp, type TestApp } from '../support/app.ts';
import { paymentEvent, signatureHex, signedHeaders } from '../support/deliveries.ts';
import { rawConnection } from '../support/http.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import { pass, startShop } from '../support/shop.ts';
import { eventually } from '../support/timing.ts';

const settled = sharedApp();

/** What is kept of an order's refused deliveries. */
async function rejectionsOf(reference: string) {
  return (await settled().api(`/v1/rejections?reference=${reference}`)).body.rejections;
}

async function why(reference: string): Promise<{ answer: string; next: string[] }> {
  return (await settled().api(`/v1/orders/${reference}/timeline`)).body;
}

const renamed = (secret: string, body: string, prefix: string) => {
  const { 'x-service-signature': signature = '', 'x-service-timestamp': timestamp = '' } = signedHeaders(secret, body);
  return { [`${prefix}-signature`]: signature, [`${prefix}-timestamp`]: timestamp };
};

type Sent = { body?: string; headers: Record<string, string> };
type Case = [
  what: string,
  send: (link: ReservedLink, body: string) => Sent,
  kept: { reason: string; diagnosis: object | null },
  answer: RegExp,
  next: RegExp,
];

const BODY = paymentEvent({ amount: '100.00' });
const nowText = () => String(Date.now());

const CASES: Case[] = [
  [
    'whose body was written anew',
    ({ webhookSecret }, body) => ({
      body: JSON.stringify(JSON.parse(body), null, 2),
      headers: signedHeaders(webhookSecret, body),
    }),
    { reason: 'signature_wrong', diagnosis: { code: 'altered_body' } },
    /does not match.*The signature matches the body without the white space in its JSON/,
    /Find what changes it between the service and settled/,
  ],
  [
    'that lost its end',
    ({ webhookSecret }, body) => ({ body: body.slice(0, -3), headers: signedHeaders(webhookSecret, body) }),
    { reason: 'signature_wrong', diagnosis: { code: 'altered_body', details: { damage: 'no_json' } } },
    /the body is not JSON, so it was cut or changed on its way/,
    /Find what changes it/,
  ],
  [
    'whose secret was decoded first',
    ({ webhookSecret }, body) => {
      const timestamp = nowText();
      const key = Buffer.from(webhookSecret.replace(/^whsec_/, ''), 'base64');
      const mac = createHmac('sha256', key).update(`${timestamp}.${body}`).digest('hex');
      return { headers: { 'x-service-signature': mac, 'x-service-timestamp': timestamp } };
    },
    { reason: 'signature_wrong', diagnosis: { code: 'wrong_secret' } },
    /matches the secret decoded as base64/,
    /settled links add/,
  ],
  [
    'with another secret',
    (_link, body) => ({ headers: signedHeaders('the-secret-of-another-link', body) }),
    { reason: 'signature_wrong', diagnosis: { code: 'wrong_secret_or_altered_body' } },
    /nor any of the usual mistakes/,
    /settled verify --order order-\d+ --body FILE --signature TEXT --timestamp TEXT$/m,
  ],
  [
    'stamped in seconds',
    ({ webhookSecret }, body) => ({ headers: signedHeaders(webhookSecret, body, nowText().slice(0, 10)) }),
    { reason: 'timestamp_malformed', diagnosis: { details: { fault: { fault: 'digits', length: 10 } } } },
    /has 10 digits, so it seems to be in seconds/,
    /Apart from that the signature is right/,
  ],
  [
    'with a prefix that is not known',
    ({ webhookSecret }, body) => {
      const timestamp = nowText();
      const signature = `acme=${signatureHex(webhookSecret, timestamp, body)}`;
      return { headers: { 'x-service-signature': signature, 'x-service-timestamp': timestamp } };
    },
    { reason: 'signature_malformed', diagnosis: { details: { fault: { fault: 'prefix', prefix: 'acme=' } } } },
    /has the prefix `acme=`/,
    /Apart from that the signature is right/,
  ],
  [
    'with nothing at all',
    () => ({ headers: {} }),
    { reason: 'signature_missing', diagnosis: null },
    /no signature header/,
    /sends a rejected delivery again/,
  ],
  [
    'with headers that only may be the signature',
    () => ({ headers: { 'X-Hook-Sig': 'ab'.repeat(32), 'x-sent-timestamp': '1', 'x-request-id': 'r' } }),
    {
      reason: 'signature_missing',
      diagnosis: { code: 'other_header_names', details: { names: ['x-hook-sig', 'x-sent-timestamp'] } },
    },
    /carried `x-hook-sig` and `x-sent-timestamp`, and settled looked for `x-service-signature`/,
    /set SETTLED_HEADER_PREFIX to what comes before/,
  ],
];

describe('receive: a refused delivery is looked at when it is refused', () => {
  it.each(CASES)('one %s: what it is, and what to do', async (_what, send, kept, answer, next) => {
    const link = await settled().reserve(freshReference());
    const { body = BODY, headers } = send(link, BODY);
    expect((await settled().deliver(link, body, headers)).status).toBe(401);
    await eventually(async () => expect(await rejectionsOf(link.reference)).toMatchObject([{ count: 1, ...kept }]));
    const told = await why(link.reference);
    expect(told.answer).toMatch(answer);
    expect(told.next.join('\n')).toMatch(next);
    const everything = JSON.stringify([await rejectionsOf(link.reference), told]);
    const { 'x-service-signature': signature = 'none' } = headers;
    expect(everything).not.toContain(link.webhookSecret);
    if (/^[0-9a-f]{64}$/.test(signature)) expect(everything).not.toContain(signature);
  });

  it('names headers in bounds: eight at most, none long, no value', async () => {
    const link = await settled().reserve(freshReference());
    const many = Array.from({ length: 12 }, (_, i) => [`x-brand${i}-signature`, 'a-value-that-stays-unknown']);
    const headers = { ...Object.fromEntries(many), [`${'x'.repeat(70)}-signature`]: '1', 'x`a$-signature': '1' };
    await settled().deliver(link, BODY, headers);
    await eventually(async () => {
      const [{ diagnosis }] = await rejectionsOf(link.reference);
      expect(diagnosis.details.names).toEqual(many.slice(0, 8).map(([name]) => name));
      expect(JSON.stringify(diagnosis)).not.toContain('a-value');
    });
  });
});

describe('receive: a delivery that is refused unread', () => {
  const large = Buffer.alloc(300_000, ' ');
  it.each<[string, RequestInit, number, object, RegExp]>([
    [
      'with PUT',
      { method: 'PUT', body: BODY },
      405,
      { reason: 'method_not_allowed', diagnosis: { details: { method: 'PUT' } } },
      /unread: not sent with POST.*sent with PUT/,
    ],
    [
      'by the question of a page',
      { method: 'OPTIONS', headers: { origin: 'https://pay.example.com' } },
      405,
      {
        reason: 'method_not_allowed',
        diagnosis: { advice: [expect.stringContaining('SETTLED_HOOKS_CORS=https://pay.example.com')] },
      },
      /A page of https:\/\/pay\.example\.com asked/,
    ],
    [
      'compressed',
      { method: 'POST', body: BODY, headers: { 'content-encoding': 'gzip' } },
      415,
      { reason: 'content_encoding', diagnosis: { details: { encoding: 'gzip' } } },
      /Content-Encoding: gzip/,
    ],
    [
      'too large, as announced',
      { method: 'POST', body: large },
      413,
      { reason: 'body_too_large', diagnosis: { details: { bytes: 300_000 } } },
      /has 300000 bytes/,
    ],
  ])('%s: is kept with its reason, and the service is asked', async (_what, request, status, kept, answer) => {
    const link = await settled().reserve(freshReference());
    expect((await fetch(link.webhookUrl, request)).status).toBe(status);
    await eventually(async () => expect(await rejectionsOf(link.reference)).toMatchObject([{ count: 1, ...kept }]));
    const told = await why(link.reference);
    expect(told.answer).toMatch(answer);
    expect(told.next.join('\n')).toContain('(rejected)');
  });

  it.each<[string, (token: string) => string]>([
    ['something after it', (token) => `/hooks/${token}/extra`],
    ['another case', (token) => `/Hooks/${token}`],
    ['a prefix that the proxy was to take away', (token) => `/pay/hooks/${token}?from=proxy`],
    ['two slashes', (token) => `//hooks/${token}`],
    ['no /hooks', (token) => `/${token}`],
  ])('at an address with the token and %s: is kept as sent to a wrong address', async (_what, pathOf) => {
    const link = await settled().reserve(freshReference());
    const path = pathOf(link.webhookUrl.split('/').at(-1) ?? '');
    const headers = signedHeaders(link.webhookSecret, BODY);
    expect((await fetch(settled().hooksUrl + path, { method: 'POST', body: BODY, headers })).status).toBe(404);
    await eventually(async () =>
      expect(await rejectionsOf(link.reference)).toMatchObject([{ reason: 'wrong_address', count: 1 }]),
    );
    expect((await why(link.reference)).answer).toMatch(/unread: sent to an address that has the token of this link/);
  });

  it.each(['/', '/?from=proxy', '?from=proxy'])('is none with %s at the end of its address', async (end) => {
    const link = await settled().reserve(freshReference());
    const headers = signedHeaders(link.webhookSecret, BODY);
    expect((await fetch(link.webhookUrl + end, { method: 'POST', body: BODY, headers })).status).toBe(200);
    expect(await rejectionsOf(link.reference)).toEqual([]);
  });

  it('is kept however many were looked up before, of known and of unknown links', async () => {
    const { promise: stops, resolve: atEnd } = Promise.withResolvers<() => void>();
    const before = await startTestApp({ atEnd });
    const links = await Promise.all(Array.from({ length: 6 }, () => before.reserve(freshReference())));
    (await stops)();
    // Started anew it has to look every link up: it remembers those that it made.
    const app = await eventually(() => startTestApp({ storePath: before.storePath }));
    for (const [n, { reference, webhookUrl }] of links.entries()) {
      await fetch(`${app.hooksUrl}/hooks/${String(n).repeat(32)}`, { method: 'PUT' });
      await fetch(app.hooksUrl + new URL(webhookUrl).pathname, { method: 'PUT' });
      await eventually(async () => {
        const { rejections } = (await app.api(`/v1/rejections?reference=${reference}`)).body;
        expect(rejections).toMatchObject([{ reason: 'method_not_allowed', count: 1 }]);
      });
    }
  });

  it('too large, as it comes in pieces', async () => {
    const link = await settled().reserve(freshReference());
    const connection = await rawConnection(link.webhookUrl);
    const { pathname } = new URL(link.webhookUrl);
    connection.send(`POST ${pathname} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`);
    connection.send(`${(300_000).toString(16)}\r\n${' '.repeat(300_000)}\r\n0\r\n\r\n`);
    expect((await connection.answer()).status).toBe(413);
    await eventually(async () =>
      expect(await rejectionsOf(link.reference)).toMatchObject([{ reason: 'body_too_large', count: 1 }]),
    );
  });

  it('and waits for 100 Continue: the same', async () => {
    const link = await settled().reserve(freshReference());
    const connection = await rawConnection(link.webhookUrl);
    const { pathname } = new URL(link.webhookUrl);
    connection.send(`POST ${pathname} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 300000\r\n\r\n`);
    expect((await connection.answer()).status).toBe(413);
    await eventually(async () =>
      expect(await rejectionsOf(link.reference)).toMatchObject([{ reason: 'body_too_large', count: 1 }]),
    );
  });

  it('on the shared address: leaves nothing', async () => {
    const before = (await settled().api('/v1/rejections')).body.rejections;
    for (const [method, headers] of [
      ['PUT', {}],
      ['POST', { 'content-encoding': 'gzip' }],
    ] as const) {
      await fetch(`${settled().hooksUrl}/hooks`, { method, headers, body: '{}' });
    }
    expect((await settled().api('/v1/rejections')).body.rejections).toEqual(before);
  });
});

async function refusalsOf(app: TestApp) {
  const { attention } = (await app.api('/v1/attention')).body;
  return attention.filter(({ kind }: { kind: string }) => kind === 'deliveries_refused');
}

describe('receive: attention to refused deliveries of one link', () => {
  const invented = sharedApp();

  it.each<[string, string[]]>([
    ['one name of a signature', ['x-acme-signature']],
    ['one name of a timestamp', ['x-acme-timestamp']],
    ['names that do not belong together', ['x-acme-signature', 'x-other-timestamp']],
    ['two whole pairs', ['x-acme-signature', 'x-acme-timestamp', 'x-other-signature', 'x-other-timestamp']],
  ])('is not raised by what anyone can invent: %s', async (_what, names) => {
    const link = await invented().reserve(freshReference());
    await invented().deliver(link, BODY, Object.fromEntries(names.map((name) => [name, '1'])));
    await eventually(async () => {
      const { rejections } = (await invented().api(`/v1/rejections?reference=${link.reference}`)).body;
      expect(rejections).toMatchObject([{ count: 1, diagnosis: { details: { names, prefix: null } } }]);
    });
    expect(await refusalsOf(invented())).toEqual([]);
    await invented().deliver(link, BODY);
  });
});

describe('receive: attention to refused deliveries', () => {
  const other = sharedApp();
  const matters = refusalsOf;

  it('is raised at once if deliveries carry both headers under another name, and says which setting to change', async () => {
    const link = await other().reserve(freshReference());
    await other().deliver(link, BODY, renamed(link.webhookSecret, BODY, 'x-acme'));
    await eventually(async () => {
      expect(await matters(other())).toMatchObject([{ subject: 'signature_missing', reference: null, count: 1 }]);
    });
    const [{ detail }] = await matters(other());
    expect(detail).toContain('carried `x-acme-signature` and `x-acme-timestamp`');
    expect(detail).toContain("If these are the service's own, set SETTLED_HEADER_PREFIX=x-acme and restart settled.");
    const { next } = (await other().api(`/v1/orders/${link.reference}/timeline`)).body;
    expect(next).toContain("If these are the service's own, set SETTLED_HEADER_PREFIX=x-acme and restart settled.");
  });

  it('is not raised for headers that one link names once a delivery verified: anyone may send those', async () => {
    const { settled: app, sandbox } = await startShop({ api: false });
    const links = [];
    for (let n = 1; n <= 4; n++) links.push(await app.reserve(`order-${n}`));
    const [genuine, ...forged] = links as [ReservedLink, ...ReservedLink[]];
    const now = String(sandbox.clock.nowMs());
    const signed = signedHeaders(genuine.webhookSecret, BODY, now);
    expect((await app.deliver(genuine, BODY, signed)).status).toBe(200);
    for (const link of forged) {
      expect(await matters(app)).toEqual([]);
      await app.deliver(link, BODY, { 'x-evil-signature': '1', 'x-evil-timestamp': '1' });
      await eventually(async () => {
        const { rejections } = (await app.api(`/v1/rejections?reference=${link.reference}`)).body;
        expect(rejections).toHaveLength(1);
      });
    }
    expect(await matters(app)).toMatchObject([{ subject: 'signature_missing', count: 1 }]);
  });

  it('of deliveries without a signature ends when one of any link verifies: it is one setting for all', async () => {
    const shop = await startShop({ api: false });
    const app = shop.settled;
    const now = () => String(shop.sandbox.clock.nowMs());
    const [link, another] = [await app.reserve('order-1'), await app.reserve('order-2')];
    await app.deliver(link, BODY, renamed(link.webhookSecret, BODY, 'x-acme'));
    await eventually(async () => expect(await matters(app)).toHaveLength(1));
    await pass(shop, 61_000, 20_000);
    expect(await matters(app)).toHaveLength(1);
    const genuine = signedHeaders(another.webhookSecret, BODY, now());
    expect((await app.deliver(another, BODY, genuine)).status).toBe(200);
    await pass(shop, 61_000, 20_000);
    expect(await matters(app)).toEqual([]);
    const next = async () => (await app.api('/v1/orders/order-1/timeline')).body.next.join('\n');
    expect(await next()).toContain('SETTLED_HEADER_PREFIX');
    const own = signedHeaders(link.webhookSecret, BODY, now());
    expect((await app.deliver(link, BODY, own)).status).toBe(200);
    expect(await next()).not.toContain('SETTLED_HEADER_PREFIX');
  });

  it('is raised once three links had deliveries refused for one reason, and ends when one of them verifies', async () => {
    const shop = await startShop({ api: false });
    const app = shop.settled;
    const links = [];
    for (let n = 1; n <= 3; n++) {
      expect(await matters(app)).toEqual([]);
      const link = await app.reserve(`order-${n}`);
      await app.deliver(
        link,
        BODY,
        signedHeaders('the-secret-of-another-link', BODY, String(shop.sandbox.clock.nowMs())),
      );
      await eventually(async () =>
        expect((await app.api(`/v1/rejections?reference=order-${n}`)).body.rejections).toHaveLength(1),
      );
      links.push(link);
    }
    expect(await matters(app)).toMatchObject([{ subject: 'signature_wrong', count: 1 }]);
    await pass(shop, 61_000, 20_000);
    expect(await matters(app)).toHaveLength(1);
    const [link] = links as [ReservedLink];
    const genuine = signedHeaders(link.webhookSecret, BODY, String(shop.sandbox.clock.nowMs()));
    expect((await app.deliver(link, BODY, genuine)).status).toBe(200);
    await pass(shop, 61_000, 20_000);
    expect(await matters(app)).toEqual([]);
  });
});
