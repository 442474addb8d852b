import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { ROUTES } from '../../src/api/router.ts';
import { accessWords, namedToken, signIn, type TestSession } from '../support/access.ts';
import { OPERATOR_TOKEN, SHOP_TOKEN } from '../support/app.ts';
import { sharedApp } from '../support/shared.ts';
import { problem } from './client.ts';

/** Every address of the private API with who may use it. Written out here, so that a new one is thought about. */
const WHO = [
  ['post', '/v1/orders', 'operator or shop'],
  ['post', '/v1/links', 'operator or shop'],
  ['get', '/v1/orders', 'viewer or shop'],
  ['get', '/v1/orders.csv', 'viewer or shop'],
  ['get', '/v1/orders/:reference', 'viewer or shop'],
  ['get', '/v1/orders/:reference/timeline', 'viewer or shop'],
  ['post', '/v1/orders/:reference/check', 'operator or shop'],
  ['post', '/v1/orders/:reference/cancel', 'operator or shop'],
  ['post', '/v1/orders/:reference/adopt', 'operator'],
  ['post', '/v1/orders/:reference/verify', 'operator'],
  ['post', '/v1/orders/:reference/resolve', 'operator'],
  ['get', '/v1/events', 'viewer'],
  ['get', '/v1/events/:id', 'viewer'],
  ['post', '/v1/events/:id/replay', 'operator'],
  ['get', '/v1/rejections', 'viewer'],
  ['get', '/v1/hints', 'viewer'],
  ['get', '/v1/drift', 'viewer'],
  ['get', '/v1/checks', 'viewer'],
  ['get', '/v1/attention', 'viewer'],
  ['post', '/v1/attention/:id/end', 'operator'],
  ['get', '/v1/notices', 'viewer'],
  ['get', '/v1/notices/:id', 'viewer'],
  ['post', '/v1/notices/:id/resend', 'operator'],
  ['get', '/v1/bulk', 'viewer'],
  ['post', '/v1/bulk', 'operator'],
  ['get', '/v1/bulk/:id', 'viewer'],
  ['post', '/v1/bulk/:id/cancel', 'operator'],
  ['get', '/v1/feed', 'viewer or shop'],
  ['get', '/v1/tail', 'viewer'],
  ['get', '/v1/stats', 'viewer'],
  ['post', '/v1/admin/backup', 'admin'],
  ['post', '/v1/admin/rotate-key', 'admin'],
  ['post', '/v1/admin/reconcile', 'operator'],
  ['post', '/v1/admin/test-alerts', 'admin'],
  ['get', '/v1/admin/doctor', 'viewer'],
  ['get', '/v1/admin/installation', 'viewer'],
  ['get', '/v1/tokens', 'viewer'],
  ['post', '/v1/tokens', 'admin'],
  ['post', '/v1/tokens/:id/revoke', 'admin'],
  ['get', '/v1/sessions', 'viewer'],
  ['post', '/v1/sessions/:id/end', 'admin'],
  ['post', '/v1/sign-in-links', 'viewer'],
  ['get', '/v1/audit', 'viewer'],
  ['get', '/v1/audit/verification', 'viewer'],
  ['get', '/metrics', 'viewer'],
] as const;

const settled = sharedApp();

const ROLES = ['shop', 'viewer', 'operator', 'admin'] as const;
type AnyRole = (typeof ROLES)[number];

/** Every route with every role, and whether that may use it, as `WHO` says. */
const TABLE = WHO.flatMap(([method, path, who]) =>
  ROLES.map((role) => {
    const least = who.split(' ')[0] as AnyRole;
    const may = role === 'shop' ? who.endsWith('shop') : ROLES.indexOf(role) >= ROLES.indexOf(least);
    return [method, path, role, may] as const;
  }),
);

const sessions = new Map<AnyRole, Promise<TestSession>>();

/** A browser that a person of the role signed in. */
function sessionOf(role: AnyRole): Promise<TestSession> {
  const known = sessions.get(role) ?? tokenOf(role).then((token) => signIn(settled(), token));
  sessions.set(role, known);
  return known;
}

const made = new Map<AnyRole, Promise<string>>();

/** A token of the role; for an admin a named one as well. */
function tokenOf(role: AnyRole): Promise<string> {
  if (role === 'shop') return Promise.resolve(SHOP_TOKEN);
  const known = made.get(role) ?? namedToken(settled(), role);
  made.set(role, known);
  return known;
}

function call(method: 'get' | 'post', path: string, authorization?: string): request.Test {
  const asked = request(settled().apiUrl)[method](path.replace(/:\w+/, '1'));
  return authorization === undefined ? asked : asked.set('authorization', authorization);
}

describe('api: who may do what', () => {
  it('is decided for every route', () => {
    const routes = ROUTES.map(({ method, path, allowed }) => [method, path, accessWords(allowed)]);
    expect(routes).toEqual(WHO);
  });

  it.each(WHO)('%s %s answers 401 without a token', async (method, path) => {
    const response = await call(method, path);
    problem(response, 401, 'unauthorized');
    expect(response.headers['www-authenticate']).toBe('Bearer realm="settled"');
  });

  it.each(WHO)('%s %s answers 401 to a wrong token', async (method, path) => {
    problem(await call(method, path, `Bearer ${OPERATOR_TOKEN}x`), 401, 'unauthorized');
  });

  it.each(TABLE)('%s %s: %s %s', async (method, path, role, may) => {
    // Asked for what it does not know, none answers without end, and none changes anything.
    const response = await call(method, `${path}?surprise=1`, `Bearer ${await tokenOf(role)}`);
    if (may) expect([401, 403]).not.toContain(response.status);
    else problem(response, 403, 'forbidden');
  });

  it.each(TABLE.filter(([, , role]) => role !== 'shop'))(
    '%s %s: a browser of a %s %s',
    async (method, path, role, may) => {
      const { cookie, own } = await sessionOf(role);
      const place = `${path.replace(/:\w+/, '1')}?surprise=1`;
      const form = 'application/x-www-form-urlencoded';
      const sent = request(settled().apiUrl)[method](place).set(own).redirects(0);
      const response = await (method === 'post' ? sent.set('content-type', form).send('surprise=1') : sent);
      if (may) expect([401, 403]).not.toContain(response.status);
      else expect(response.status).toBe(403);
      if (method === 'get') return;
      const elsewhere = request(settled().apiUrl).post(place).set({ cookie, 'sec-fetch-site': 'cross-site' });
      expect((await elsewhere).status).toBe(403);
    },
  );

  it.each([
    ['another scheme', `Basic ${OPERATOR_TOKEN}`],
    ['no scheme', OPERATOR_TOKEN],
    ['an empty token', 'Bearer '],
    ['the beginning of the token', `Bearer ${OPERATOR_TOKEN.slice(0, -1)}`],
    ['both tokens at once', `Bearer ${OPERATOR_TOKEN} ${SHOP_TOKEN}`],
    ['the token in other capitals', `Bearer ${OPERATOR_TOKEN.toUpperCase()}`],
  ])('refuses %s', async (_name, authorization) => {
    problem(await call('get', '/v1/orders', authorization), 401, 'unauthorized');
  });

  it('takes the scheme in any capitals, as RFC 9110 has it', async () => {
    expect((await call('get', '/v1/orders', `bearer ${OPERATOR_TOKEN}`)).status).toBe(200);
  });

  it('tells nothing of what is there before it knows who asks', async () => {
    await settled().reserve('known');
    const [known, unknown] = [await call('get', '/v1/orders/known'), await call('get', '/v1/orders/unknown')];
    expect(known.status).toBe(401);
    expect(known.body).toEqual(unknown.body);
  });

  it.each(['/livez', '/readyz'])('answers %s to anyone, on both listeners', async (path) => {
    for (const url of [settled().apiUrl, settled().hooksUrl]) {
      expect((await request(url).get(path)).status).toBe(200);
    }
  });

  it.each(WHO)('keeps %s %s off the public listener', async (method, path) => {
    const response = await request(settled().hooksUrl)
      [method](path.replace(/:\w+/, '1'))
      .set('authorization', `Bearer ${OPERATOR_TOKEN}`);
    problem(response, 404, 'not_found');
  });
});
