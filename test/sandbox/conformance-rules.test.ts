import { describe, expect, it } from 'vitest';
import { startTestSandbox, type TestSandbox } from '../support/sandbox.ts';
import { BARE, create, RICH, startReceiver } from './client.ts';

/** The specification's sections 5, 7, 8 and 9, row by row, from the outside. */

const PROFILE = '/merchant/profile';
const LINKS = '/payment-links';
const ENDPOINTS: [string, string, object?][] = [
  ['GET', PROFILE],
  ['POST', LINKS, BARE],
  ['GET', LINKS],
  ['GET', `${LINKS}/{id}`],
];

describe('section 5', () => {
  it.each(['production', 'sandbox'] as const)(
    '1 to 3: the key is taken from either header in %s',
    async (environment) => {
      const sandbox = await startTestSandbox({ environment, apiKey: 'the-key' });
      for (const headers of [{ 'x-api-key': 'the-key' }, { authorization: 'Bearer the-key' }]) {
        expect((await bareCall(sandbox, 'GET', PROFILE, headers)).status).toBe(200);
      }
    },
  );

  it.each(ENDPOINTS)('4: %s %s is 401 without a key and with a wrong one', async (method, path, body) => {
    const sandbox = await startTestSandbox();
    const at = path.replace('{id}', (await create(sandbox, BARE)).id);
    for (const headers of [{}, { 'x-api-key': 'wrong' }, { authorization: 'Bearer wrong' }]) {
      expect((await bareCall(sandbox, method, at, headers, body)).status).toBe(401);
    }
  });

  it.each(ENDPOINTS)('4: %s %s is 403 for an inactive merchant', async (method, path, body) => {
    const sandbox = await startTestSandbox({ merchantInactive: true });
    const answer = await sandbox.call(path, { method, body });
    expect(answer).toMatchObject({ status: 403, body: { error: { code: 'merchant_inactive' } } });
  });

  it('5: an old key is refused once the sandbox has another', async () => {
    const [before, after] = [await startTestSandbox({ apiKey: 'old' }), await startTestSandbox({ apiKey: 'new' })];
    expect((await before.call(PROFILE)).status).toBe(200);
    expect((await after.call(PROFILE, { headers: { 'x-api-key': 'old' } })).status).toBe(401);
  });
});

describe('section 7', () => {
  it.each([
    ['title', { amount: 30 }],
    ['amount', { title: 'A', amount: 25 }],
    ['expiresAt', { ...BARE, expiresAt: '2020-01-01T00:00:00Z' }],
    ['webhookUrl', { ...BARE, webhookUrl: 'mailto:a@b.example' }],
  ])('400 for %s', async (field, body) => {
    const refused = await (await startTestSandbox()).call(LINKS, { body });
    expect(refused).toMatchObject({ status: 400, body: { error: { field } } });
  });

  it('404 for an unknown link', async () => {
    const sandbox = await startTestSandbox();
    expect((await sandbox.call(`${LINKS}/pl_unknown`)).status).toBe(404);
    expect((await sandbox.call(`${LINKS}/%E0%A4%A`)).status).toBe(404);
  });

  it('404 for an unknown payment', async () => {
    const sandbox = await startTestSandbox();
    const { id } = await create(sandbox, BARE);
    expect((await sandbox.control(`/links/${id}/refund`, { body: {} })).status).toBe(404);
  });

  it('409 for an externalReference that exists, and nothing is created', async () => {
    const sandbox = await startTestSandbox();
    await create(sandbox, { ...BARE, externalReference: 'order-1' });
    const { status, body } = await sandbox.call(LINKS, { body: { ...RICH, externalReference: 'order-1' } });
    expect([status, body.error.field]).toEqual([409, 'externalReference']);
    expect((await sandbox.call(LINKS)).body.pagination.total).toBe(1);
  });

  it.each(ENDPOINTS)('429 with Retry-After for %s %s over the limit', async (method, path, body) => {
    const sandbox = await startTestSandbox({ rateLimit: 1 });
    expect((await sandbox.call(PROFILE)).status).toBe(200);
    const { status, headers } = await sandbox.call(path, { method, body });
    expect(status).toBe(429);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  });
});

describe('section 8', () => {
  it('60 requests a minute, counted in the headers, then 429 until Retry-After has passed', async () => {
    const sandbox = await startTestSandbox();
    for (let left = 59; left >= 0; left--) {
      const { status, headers } = await sandbox.call(PROFILE);
      expect([status, headers.get('x-ratelimit-limit')]).toEqual([200, '60']);
      expect(headers.get('x-ratelimit-remaining')).toBe(String(left));
      expect(Number(headers.get('x-ratelimit-reset'))).toBeGreaterThan(0);
    }
    const { status, headers } = await sandbox.call(PROFILE);
    expect([status, headers.get('x-ratelimit-remaining')]).toEqual([429, '0']);
    await sandbox.clock.advance(Number(headers.get('retry-after')) * 1_000);
    expect((await sandbox.call(PROFILE)).status).toBe(200);
  });

  it('the least amount is more than 25', async () => {
    const sandbox = await startTestSandbox();
    const statuses: number[] = [];
    for (const amount of [24.99, 25, 25.01]) {
      statuses.push((await sandbox.call(LINKS, { body: { title: 'A', amount } })).status);
    }
    expect(statuses).toEqual([400, 400, 201]);
  });

  it('a page has 20 links if no pageSize is given', async () => {
    const sandbox = await startTestSandbox();
    for (let link = 0; link < 21; link++) await create(sandbox, BARE);
    const { paymentLinks, pagination } = (await sandbox.call(LINKS)).body;
    expect(paymentLinks).toHaveLength(20);
    expect(pagination).toEqual({ page: 1, pageSize: 20, total: 21, totalPages: 2 });
  });

  it('a delivery that is not acknowledged is retried after 1 min, 5 min, 15 min, 1 h, 4 h and 12 h', async () => {
    const { url, received } = await startReceiver(500);
    const sandbox = await startTestSandbox();
    await create(sandbox, { ...BARE, webhookUrl: url });
    await sandbox.idle();
    const counts = [received.length];
    for (const minutes of [1, 5, 15, 60, 240, 720, 10_000]) {
      await sandbox.control('/clock', { body: { advanceMs: minutes * 60_000 - 30_000 } });
      counts.push(received.length);
      await sandbox.control('/clock', { body: { advanceMs: 30_000 } });
      counts.push(received.length);
    }
    expect(counts).toEqual([1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 7]);
  });
});

describe('section 9', () => {
  it.each(['production', 'sandbox'] as const)('the version is the path prefix /api/v1 in %s', async (environment) => {
    const sandbox = await startTestSandbox({ environment });
    const headers = { 'x-api-key': sandbox.apiKey };
    const statuses = await Promise.all(
      ['/api/v1', '/api/v2', '/api', ''].map(async (prefix) => {
        return (await fetch(`${sandbox.url}${prefix}${PROFILE}`, { headers })).status;
      }),
    );
    expect(statuses).toEqual([200, 404, 404, 404]);
  });
});

async function bareCall(
  sandbox: TestSandbox,
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: object,
): Promise<Response> {
  const type = { 'content-type': 'application/json' };
  const content = body === undefined ? {} : { body: JSON.stringify(body) };
  return await fetch(`${sandbox.url}/api/v1${path}`, { method, headers: { ...type, ...headers }, ...content });
}
