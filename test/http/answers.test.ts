import express, { type RequestHandler } from 'express';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Fault } from '../../src/fault.ts';
import { createApp } from '../../src/http/app.ts';
import { openConnections } from '../../src/http/connections.ts';
import { listen } from '../../src/http/server.ts';
import { openLog } from '../../src/observe/log.ts';
import { systemClock } from '../../src/work/clock.ts';
import { rawConnection } from '../support/http.ts';
import { freshReference, sharedApp } from '../support/shared.ts';

const app = sharedApp();

/** Serves one route as settled serves its own; returns its address. */
async function serve(handle: RequestHandler): Promise<string> {
  const router = express.Router().get('/', handle);
  const server = await listen({
    address: { host: '127.0.0.1', port: 0 },
    handler: createApp({ routers: [router], log: openLog('silent'), newId: () => 'made-here' }),
    refuseContinue: () => false,
    clock: systemClock,
    connections: openConnections({ clock: systemClock, max: 8, spare: 4, onUnreadable: () => {} }),
  });
  onTestFinished(() => server.destroy());
  return `http://127.0.0.1:${server.address.port}/`;
}

describe('http: the request id', () => {
  const ask = (id?: string) =>
    fetch(`${app().hooksUrl}/livez`, { headers: id === undefined ? {} : { 'x-request-id': id } });

  it.each(['abc', 'A-1.b_2', 'x'.repeat(64)])('is the caller’s own if it is plain: %s', async (id) => {
    expect((await ask(id)).headers.get('x-request-id')).toBe(id);
  });

  it.each(['', 'two words', 'x'.repeat(65), '<script>', 'a,b', 'ção'])(
    'is made if the caller’s is not plain: "%s"',
    async (id) => {
      const made = (await ask(encodeURI(id) === id ? id : Buffer.from(id).toString('latin1'))).headers.get(
        'x-request-id',
      );
      expect(made).not.toBe(id);
      expect(made).toMatch(/^[0-9a-f-]{36}$/);
    },
  );

  it('is made if there is none, another each time', async () => {
    const ids = await Promise.all([1, 2, 3].map(async () => (await ask()).headers.get('x-request-id')));
    expect(new Set(ids).size).toBe(3);
  });

  it('is made if the caller gives two', async () => {
    const connection = await rawConnection(app().hooksUrl);
    connection.send('GET /livez HTTP/1.1\r\nHost: x\r\nX-Request-Id: a\r\nX-Request-Id: b\r\n\r\n');
    expect((await connection.answer()).headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
  });
});

it('http: an answer of any kind has a request id, does not say what made it, and lets nothing guess its type', async () => {
  const { hooksUrl, apiUrl, api, deliver } = app();
  const link = await app().reserve(freshReference());
  const answers = [
    ...['/livez', '/nothing', '/hooks/x', '/hooks/%zz'].map((path) => fetch(hooksUrl + path)),
    ...['/livez', '/readyz', '/openapi.json', '/v1/orders', '/nothing', '/sign-in'].map((path) => fetch(apiUrl + path)),
    ...['/metrics', '/v1/orders', '/v1/orders?format=csv', '/v1/orders/nothing'].map((path) => api(path)),
    fetch(`${apiUrl}/livez`, { method: 'DELETE' }),
    api('/v1/orders', { token: 'wrong' }),
    deliver(link, '{}'),
    deliver(link, '{}', {}),
  ];
  for (const { headers } of await Promise.all(answers)) {
    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    for (const name of ['x-powered-by', 'server', 'etag']) expect(headers.has(name)).toBe(false);
  }
});

/** What must not be read by a caller: where the code is, what the database was asked, what was found in it. */
const INSIDE = /\bat .*[:(]|node_modules|\.ts\b|SELECT|SQLITE|UPDATE link|sealed|canary/i;

describe('http: an error answer', () => {
  it('of a bug tells the request id and nothing else', async () => {
    const url = await serve(() => {
      throw new Error("SQLITE_ERROR: near 'SELECT sealed_secret FROM link': canary");
    });
    const answer = await fetch(url);
    expect([answer.status, await answer.json()]).toEqual([
      500,
      {
        type: 'urn:settled:problem:internal',
        title: 'internal',
        status: 500,
        detail: 'Something is wrong here; the log has request made-here.',
      },
    ]);
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
  });

  it('of a bug in a promise is the same', async () => {
    const url = await serve(async () => {
      throw new TypeError('canary');
    });
    const answer = await fetch(url);
    expect(answer.status).toBe(500);
    expect(await answer.text()).not.toMatch(INSIDE);
  });

  it.each([
    ['a text', 'canary'],
    ['null', null],
    ['undefined', undefined],
    ['a number', 404],
  ])('of what is thrown and no error, as %s, is the same or none', async (_name, thrown) => {
    const url = await serve((_request, _response, next) => next(thrown));
    const answer = await fetch(url);
    expect([404, 500]).toContain(answer.status);
    expect(await answer.text()).not.toMatch(INSIDE);
  });

  it('of a fault that passes is 503 with its sentence and when to come again', async () => {
    const url = await serve(() => {
      throw new Fault('transient', 'store_busy', 'The database does not keep up.', { cause: new Error('canary') });
    });
    const answer = await fetch(url);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
    expect(await answer.json()).toMatchObject({ title: 'unavailable', detail: 'The database does not keep up.' });
  });

  it('of a fault that does not pass hides its sentence, which is the operator’s', async () => {
    const url = await serve(() => {
      throw new Fault('terminal', 'store_corrupt', 'canary');
    });
    const answer = await fetch(url);
    expect(answer.status).toBe(500);
    expect(await answer.text()).not.toMatch(INSIDE);
  });

  it.each<[string, () => Promise<Response>, number]>([
    ['an address that cannot be decoded', () => fetch(`${app().hooksUrl}/hooks/%zz`, { method: 'POST' }), 400],
    ['an address that is not UTF-8', () => fetch(`${app().hooksUrl}/hooks/%ff`, { method: 'POST' }), 400],
    ['nothing there', () => fetch(`${app().apiUrl}/nothing`), 404],
    ['no token', () => fetch(`${app().apiUrl}/v1/orders`), 401],
  ])('never shows the inside: %s', async (_name, ask, status) => {
    const answer = await ask();
    expect(answer.status).toBe(status);
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(await answer.text()).not.toMatch(INSIDE);
  });

  it.each([
    '{',
    'not JSON',
    '"\\ud800',
    '[]',
    'null',
    '{"__proto__":{"reference":"x"}}',
    `{"reference":"' OR 1=1 --"}`,
  ])('never shows the inside, for the body %s', async (body) => {
    const answer = await fetch(`${app().apiUrl}/v1/links`, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json', authorization: 'Bearer operator-token-of-the-tests' },
    });
    expect(answer.status).toBe(400);
    expect(await answer.text()).not.toMatch(INSIDE);
  });
});
