import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { createApp, healthRoutes } from '../../src/http/app.ts';
import { openLog } from '../../src/observe/log.ts';
import { OPERATOR_TOKEN, SHOP_TOKEN } from '../support/app.ts';
import { sharedApp } from '../support/shared.ts';

const app = sharedApp();

const listeners = () => [app().hooksUrl, app().apiUrl];

describe('http: health', () => {
  it('says on both listeners, without a token, that the process lives and is ready', async () => {
    for (const url of listeners()) {
      for (const [path, said] of [
        ['/livez', { live: true }],
        ['/readyz', { ready: true }],
      ] as const) {
        const answer = await fetch(url + path);
        expect([path, answer.status, await answer.json()]).toEqual([path, 200, said]);
      }
    }
  });

  it.each(['/livez/', '/Livez', '/readyz/', '/READYZ'])('is at its own address only, not at %s', async (path) => {
    for (const url of listeners()) expect((await fetch(url + path)).status).toBe(404);
  });
});

describe('http: the health check of the image', () => {
  const check = fileURLToPath(new URL('../../bin/ready.mjs', import.meta.url));
  const run = promisify(execFile);
  const ask = (environment: Record<string, string>) =>
    run(process.execPath, [check], { env: environment }).then(
      () => 0,
      ({ code }) => code,
    );

  it('asks the private listener, at the address that is configured', async () => {
    const { host, port } = new URL(app().apiUrl);
    const hooks = new URL(app().hooksUrl).host;
    const answers = await Promise.all([
      ask({ SETTLED_OPERATOR_LISTEN: host }),
      ask({ SETTLED_OPERATOR_LISTEN: `0.0.0.0:${port}`, SETTLED_HOOKS_LISTEN: '127.0.0.1:1' }),
      ask({ SETTLED_OPERATOR_LISTEN: '127.0.0.1:1', SETTLED_HOOKS_LISTEN: hooks }),
    ]);
    expect(answers).toEqual([0, 0, 1]);
  });
});

describe('http: health of a process that is not ready', () => {
  it('is explained on the private listener alone', async () => {
    const fault = 'The database at db.internal:5432 does not answer.';
    const app = createApp({
      routers: [healthRoutes(() => ({ ready: false, reason: fault }))],
      log: openLog('silent'),
      newId: () => 'made-here',
    });
    const answer = await request(app).get('/readyz');
    expect([answer.status, answer.body]).toEqual([503, { ready: false }]);
  });
});

describe('http: metrics', () => {
  const scrape = (token?: string) =>
    fetch(`${app().apiUrl}/metrics`, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } });

  it.each([
    ['nobody', undefined, 401],
    ['who has a wrong token', 'another-token-of-the-tests', 401],
    ['the shop', SHOP_TOKEN, 403],
  ])('are not shown to %s', async (_name, token, status) => {
    const answer = await scrape(token);
    expect(answer.status).toBe(status);
    expect(await answer.text()).not.toContain('settled_deliveries_total');
  });

  it('are not on the public listener, not even with a token', async () => {
    const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` };
    expect((await fetch(`${app().hooksUrl}/metrics`, { headers })).status).toBe(404);
  });
});

describe('http: the public listener', () => {
  it.each(['/', '/v1/orders', '/v1/stats', '/v1/links', '/v1/admin/doctor', '/openapi.json'])(
    'has nothing of the private one: %s',
    async (path) => {
      const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` };
      const answer = await fetch(app().hooksUrl + path, { headers });
      expect(answer.status).toBe(404);
      expect(await answer.json()).toMatchObject({ title: 'not_found' });
    },
  );
});
