import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { ROUTES } from '../../src/api/router.ts';
import { OPERATOR_TOKEN, SHOP_TOKEN } from '../support/app.ts';
import { sharedApp } from '../support/shared.ts';
import { problem } from './client.ts';

/** Every address of the private API with who may use it. Written out here, so that a new one is thought about. */
const WHO = [
  ['post', '/v1/orders', 'both'],
  ['post', '/v1/links', 'both'],
  ['get', '/v1/orders', 'both'],
  ['get', '/v1/orders/:reference', 'both'],
  ['get', '/v1/orders/:reference/timeline', 'both'],
  ['post', '/v1/orders/:reference/check', 'both'],
  ['post', '/v1/orders/:reference/cancel', 'both'],
  ['post', '/v1/orders/:reference/adopt', 'operator'],
  ['post', '/v1/orders/:reference/verify', 'operator'],
  ['post', '/v1/orders/:reference/resolve', 'operator'],
  ['get', '/v1/events', 'operator'],
  ['get', '/v1/events/:id', 'operator'],
  ['post', '/v1/events/:id/replay', 'operator'],
  ['get', '/v1/rejections', 'operator'],
  ['get', '/v1/attention', 'operator'],
  ['post', '/v1/attention/:id/end', 'operator'],
  ['get', '/v1/notices', 'operator'],
  ['get', '/v1/notices/:id', 'operator'],
  ['post', '/v1/notices/:id/resend', 'operator'],
  ['get', '/v1/feed', 'both'],
  ['get', '/v1/tail', 'operator'],
  ['get', '/v1/stats', 'operator'],
  ['post', '/v1/admin/backup', 'operator'],
  ['post', '/v1/admin/rotate-key', 'operator'],
  ['post', '/v1/admin/reconcile', 'operator'],
  ['get', '/v1/admin/doctor', 'operator'],
  ['get', '/metrics', 'operator'],
] as const;

const settled = sharedApp();

function call(method: 'get' | 'post', path: string, authorization?: string): request.Test {
  const asked = request(settled().apiUrl)[method](path.replace(/:\w+/, '1'));
  return authorization === undefined ? asked : asked.set('authorization', authorization);
}

describe('api: who may do what', () => {
  it('is decided for every route', () => {
    const routes = ROUTES.map(({ method, path, allowed }) => [
      method,
      path,
      allowed.length === 2 ? 'both' : allowed[0],
    ]);
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

  it.each(WHO)('%s %s lets the operator in', async (method, path) => {
    // Asked for what it does not know, none answers without end.
    const asked = `${path}?surprise=1`;
    expect([401, 403]).not.toContain((await call(method, asked, `Bearer ${OPERATOR_TOKEN}`)).status);
  });

  it.each(WHO.filter(([, , who]) => who === 'both'))('%s %s lets the shop in', async (method, path) => {
    expect([401, 403]).not.toContain((await call(method, path, `Bearer ${SHOP_TOKEN}`)).status);
  });

  it.each(WHO.filter(([, , who]) => who === 'operator'))('%s %s refuses the shop', async (method, path) => {
    problem(await call(method, path, `Bearer ${SHOP_TOKEN}`), 403, 'forbidden');
  });

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
