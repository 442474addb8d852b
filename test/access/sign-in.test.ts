import { describe, expect, it } from 'vitest';
import { openClock } from '../../sandbox/clock.ts';
import { COMMANDS } from '../../src/cli/commands.ts';
import { namedToken, signIn } from '../support/access.ts';
import { OPERATOR_TOKEN, SHOP_TOKEN, startTestApp } from '../support/app.ts';
import { DOCUMENT } from '../support/document.ts';
import { freshReference, sharedApp } from '../support/shared.ts';

const settled = sharedApp();

const OWN = { 'sec-fetch-site': 'same-origin', 'content-type': 'application/x-www-form-urlencoded' };

/** Sends a form as a page of the console does, or with other headers. */
function send(
  path: string,
  fields: Record<string, string>,
  headers: Record<string, string> = OWN,
  url = settled().apiUrl,
) {
  return fetch(`${url}${path}`, { method: 'POST', redirect: 'manual', headers, body: new URLSearchParams(fields) });
}

function see(path: string, headers: Record<string, string> = {}, url = settled().apiUrl): Promise<Response> {
  return fetch(`${url}${path}`, { redirect: 'manual', headers });
}

describe('signing in', () => {
  it('leads a person who is not signed in to the form, and back to the page', async () => {
    const first = await see('/?x=1');
    expect([first.status, first.headers.get('location')]).toEqual([303, '/sign-in?back=%2F%3Fx%3D1']);
    const signed = await send('/sign-in', { token: OPERATOR_TOKEN, back: '/?x=1' });
    expect([signed.status, signed.headers.get('location')]).toEqual([303, '/?x=1']);
  });

  it('says with a page that there is no such page, and with JSON to programs', async () => {
    const page = await see('/nowhere', { accept: 'text/html,*/*;q=0.8' });
    expect([page.status, page.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
    const text = await page.text();
    expect(text).toContain('There is no page at this address.');
    expect(text).toContain('<a href="/sign-in">Sign in</a>');
    const { cookie } = await signIn(settled());
    const known = await (await see('/nowhere', { accept: 'text/html,*/*;q=0.8', cookie })).text();
    expect(known).toContain('There is no page at this address.');
    expect(known).toContain('<a href="/orders">Orders</a>');
    expect(known).not.toContain('Sign in</a>');
    const program = await see('/nowhere');
    expect([program.status, program.headers.get('content-type')]).toEqual([
      404,
      'application/problem+json; charset=utf-8',
    ]);
  });

  it('gives a session in a cookie that no script and no other site can use', async () => {
    const { headers } = await send('/sign-in', { token: OPERATOR_TOKEN });
    const port = new URL(settled().apiUrl).port;
    expect(headers.getSetCookie()).toEqual([
      expect.stringMatching(new RegExp(`^settled-${port}=[\\w-]{43}; Path=/; HttpOnly; SameSite=Lax$`)),
    ]);
  });

  it.each([
    '/.//elsewhere.example/x',
    '/%2e/%2e//elsewhere.example',
    '/..//elsewhere.example',
    '//elsewhere.example',
    '/\\elsewhere.example',
    'https://elsewhere.example/',
    'orders',
    '/a\nb',
    '',
  ])('leads to no other site: %j', async (back) => {
    expect((await send('/sign-in', { token: OPERATOR_TOKEN, back })).headers.get('location')).toBe('/');
  });

  it('keeps what the page says of this settled to the version', async () => {
    const text = await (await see('/sign-in')).text();
    expect(text).toContain(`Version ${DOCUMENT.info.version}`);
    await settled().reserve(freshReference());
    expect(await (await see('/sign-in')).text()).toBe(text);
    for (const secret of [settled().storePath, settled().hooksUrl, OPERATOR_TOKEN]) expect(text).not.toContain(secret);
    const known = COMMANDS.map(({ name }) => name);
    const named = [...text.matchAll(/<code>settled ([a-z]+(?: [a-z]+)?)/g)].map(([, words]) => words as string);
    expect(named.filter((words) => !known.includes(words))).toEqual([]);
  });

  it('refuses a wrong token and the token of the shop', async () => {
    const app = await startTestApp();
    expect((await send('/sign-in', { token: 'nobodys-token-000' }, OWN, app.apiUrl)).status).toBe(401);
    expect((await send('/sign-in', { token: SHOP_TOKEN }, OWN, app.apiUrl)).status).toBe(403);
  });

  it('makes no more than five attempts at once that may fail', async () => {
    const { apiUrl } = await startTestApp();
    const tries = Array.from({ length: 30 }, (_, n) =>
      send('/sign-in', { token: `nobodys-token-${n + 100}` }, OWN, apiUrl),
    );
    const statuses = (await Promise.all(tries)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 401)).toHaveLength(5);
    expect(statuses.filter((status) => status === 429)).toHaveLength(25);
  });

  it('limits guesses from an address to five a minute, and no right token or link: neither takes a guess back', async () => {
    const clock = openClock({ startMs: Date.now(), scale: 1 });
    const app = await startTestApp({ clock });
    const tries = async (fields: Record<string, string>) => {
      const { status, headers } = await send('/sign-in', fields, OWN, app.apiUrl);
      return status === 429 ? `429 after ${headers.get('retry-after')}` : status;
    };
    const guess = (n: number) =>
      tries(n % 2 === 0 ? { token: `nobodys-token-00${n}` } : { link: `nobodys-link-00${n}` });
    const right = async () => {
      const { link } = (await app.api('/v1/sign-in-links', { method: 'POST' })).body;
      const secret = new URL(link.url).searchParams.get('link') as string;
      return [await tries({ token: OPERATOR_TOKEN }), await tries({ link: secret })];
    };
    for (const n of [1, 2, 3, 4]) expect(await guess(n)).toBe(401);
    expect(await right()).toEqual([303, 303]);
    expect([await guess(5), await guess(6)]).toEqual([401, '429 after 60']);
    expect(await right()).toEqual([303, 303]);
    expect(await guess(7)).toBe('429 after 60');
    clock.advance(60_000);
    for (const n of [8, 9, 10, 11, 12]) expect(await guess(n)).toBe(401);
    expect(await guess(13)).toBe('429 after 60');
  });

  it.each([
    ['another site', { ...OWN, 'sec-fetch-site': 'cross-site' }],
    ['a sibling of the host', { ...OWN, 'sec-fetch-site': 'same-site' }],
    ['an older browser on another site', { 'content-type': OWN['content-type'], origin: 'https://elsewhere.example' }],
    ['nobody knows where', { 'content-type': OWN['content-type'] }],
  ])('refuses a form from %s', async (_name, headers) => {
    expect((await send('/sign-in', { token: OPERATOR_TOKEN }, headers)).status).toBe(403);
  });

  it('takes a form of an older browser from its own page', async () => {
    const headers = { 'content-type': OWN['content-type'], origin: settled().apiUrl };
    expect((await send('/sign-in', { token: OPERATOR_TOKEN }, headers)).status).toBe(303);
  });

  it('gives another session each time, and ends the one that the browser had', async () => {
    const before = await signIn(settled());
    const signed = await send('/sign-in', { token: OPERATOR_TOKEN }, { ...OWN, cookie: before.cookie });
    const cookie = signed.headers.getSetCookie()[0]?.split(';')[0] ?? '';
    expect(cookie).not.toBe(before.cookie);
    expect((await see('/', { cookie })).status).toBe(200);
    expect((await see('/', { cookie: before.cookie })).status).toBe(303);
  });

  it('takes no session id that a browser brings', async () => {
    const port = new URL(settled().apiUrl).port;
    expect((await see('/', { cookie: `settled-${port}=${'a'.repeat(43)}` })).status).toBe(303);
  });
});

describe('a session', () => {
  it('may do what the role of its token may, by the same routes', async () => {
    const viewer = await signIn(settled(), await namedToken(settled(), 'viewer', freshReference()));
    expect((await see('/v1/orders', viewer.own)).status).toBe(200);
    const form = { ...viewer.own, 'content-type': OWN['content-type'] };
    const refused = await send('/v1/orders/none/check', { back: '/' }, form);
    expect(refused.status).toBe(403);
    expect(await refused.text()).toContain('needs the role operator');
  });

  it('is nobody if its cookie comes twice, whichever is the right one', async () => {
    const { cookie } = await signIn(settled());
    const [name] = cookie.split('=');
    const planted = `${name}=${'a'.repeat(43)}`;
    for (const both of [`${cookie}; ${planted}`, `${planted}; ${cookie}`, `${cookie}; ${cookie}`]) {
      expect((await see('/v1/orders', { cookie: both })).status).toBe(401);
    }
    expect((await see('/v1/orders', { cookie: `other=1; ${cookie}` })).status).toBe(200);
  });

  it('ends when a person signs out', async () => {
    const { cookie } = await signIn(settled());
    const signedOut = await send('/sign-out', {}, { ...OWN, cookie });
    expect([signedOut.status, signedOut.headers.get('location')]).toEqual([303, '/sign-in']);
    expect(signedOut.headers.getSetCookie()[0]).toContain('Max-Age=0');
    expect((await see('/', { cookie })).status).toBe(303);
  });

  it('ends with its token', async () => {
    const name = freshReference();
    const { cookie } = await signIn(settled(), await namedToken(settled(), 'operator', name));
    expect((await see('/', { cookie })).status).toBe(200);
    await settled().api(`/v1/tokens/${name}/revoke`, { method: 'POST' });
    expect((await see('/', { cookie })).status).toBe(303);
  });

  it('ends when an admin ends it', async () => {
    const name = freshReference();
    const { cookie } = await signIn(settled(), await namedToken(settled(), 'viewer', name));
    const { body } = await settled().api('/v1/sessions');
    const { id } = body.sessions.find((one: { name: string }) => one.name === name);
    expect((await settled().api(`/v1/sessions/${id}/end`, { method: 'POST' })).status).toBe(200);
    expect((await see('/', { cookie })).status).toBe(303);
    expect((await settled().api(`/v1/sessions/${id}/end`, { method: 'POST' })).status).toBe(404);
  });

  it('may not be used under another name of the host', async () => {
    const { cookie } = await signIn(settled());
    const { body, status } = await hostile('GET', '/v1/orders', { cookie });
    expect([status, body.title]).toEqual([403, 'forbidden']);
    expect(body.detail).toContain('SETTLED_CONSOLE_URL');
  });

  it('changes nothing for another site', async () => {
    const { cookie } = await signIn(settled());
    const response = await send('/v1/admin/backup', {}, { cookie, 'sec-fetch-site': 'cross-site' });
    expect(response.status).toBe(403);
  });
});

/** A request under a name that an attacker points here. */
async function hostile(method: string, path: string, headers: Record<string, string>) {
  const { request } = await import('node:http');
  const { port } = new URL(settled().apiUrl);
  return new Promise<{ status: number | undefined; body: { title: string; detail: string } }>((resolve, reject) => {
    const options = { host: '127.0.0.1', port, method, path, headers: { ...headers, host: 'elsewhere.example' } };
    const sent = request(options, async (response) => {
      const chunks = [];
      for await (const chunk of response) chunks.push(chunk);
      resolve({ status: response.statusCode, body: JSON.parse(Buffer.concat(chunks).toString()) });
    });
    sent.on('error', reject).end();
  });
}

describe('a sign-in link', () => {
  it('signs in by a button, once', async () => {
    const { body, status } = await settled().api('/v1/sign-in-links', { method: 'POST' });
    expect(status).toBe(201);
    const url = new URL(body.link.url);
    expect(url.origin).toBe(settled().apiUrl);
    const link = url.searchParams.get('link') as string;
    for (let n = 0; n < 2; n++) expect((await see(`${url.pathname}${url.search}`)).status).toBe(200);
    const first = await send('/sign-in', { link });
    expect(first.status).toBe(303);
    const cookie = first.headers.getSetCookie()[0]?.split(';')[0] ?? '';
    expect((await see('/', { cookie })).status).toBe(200);
    expect((await send('/sign-in', { link })).status).toBe(401);
  });

  it('is not made by a browser', async () => {
    const { own } = await signIn(settled());
    expect((await send('/v1/sign-in-links', {}, { ...own, 'content-type': 'application/json' })).status).not.toBe(201);
  });
});

describe('a form', () => {
  it('of more than 100 fields is refused at once', async () => {
    const { own } = await signIn(settled());
    for (const count of [99, 100, 101, 5_000]) {
      const fields = Object.fromEntries(Array.from({ length: count }, (_, n) => [`a.b${n}`, '1']));
      const response = await send('/v1/orders/none/check', { ...fields, back: '/' }, { ...own, ...OWN });
      const text = await response.text();
      expect([count, text.includes('more than 100 fields')]).toEqual([count, count > 100]);
      if (count > 100) expect(response.status).toBe(400);
    }
  });

  it.each(['constructor', '__proto__', 'toString', '__proto__.name'])('has no field %s', async (name) => {
    const { own } = await signIn(settled());
    const fields = { [name]: 'true', name: 'eva', role: 'viewer' };
    const response = await send('/v1/tokens', fields, { ...own, ...OWN });
    expect(response.status).toBe(400);
  });
});

it('wrong tokens lock out no right one from the same address', async () => {
  const ask = async (token: string) => (await see('/v1/orders', { authorization: `Bearer ${token}` })).status;
  const wrong = await Promise.all(Array.from({ length: 100 }, (_, n) => ask(`nobodys-token-${n}`)));
  expect(new Set(wrong)).toEqual(new Set([401]));
  expect([await ask(SHOP_TOKEN), await ask(OPERATOR_TOKEN)]).toEqual([200, 200]);
});

it('credentials of another scheme, which a proxy passes on, keep nobody from signing in', async () => {
  const { cookie } = await signIn(settled());
  expect((await see('/v1/stats', { cookie, authorization: 'Basic YTpi' })).status).toBe(200);
  expect((await see('/v1/stats', { authorization: 'Basic YTpi' })).status).toBe(401);
});

it('what a browser gets for a person is kept nowhere', async () => {
  const { cookie } = await signIn(settled());
  expect((await see('/v1/orders', { cookie })).headers.get('cache-control')).toBe('no-store');
});
