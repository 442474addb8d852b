import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { errorAnswer } from '../../sandbox/api/errors.ts';
import { DEFAULT_SWITCHES } from '../../sandbox/options.ts';
import { rawConnection } from '../support/http.ts';
import { startTestSandbox, type TestSandbox } from '../support/sandbox.ts';
import { BARE, create, RICH } from './client.ts';

const PROFILE = '/merchant/profile';
const LINKS = '/payment-links';
/** A clock that stands still unless it is turned. */
const STILL = 1e-9;

/** [method, path, body, status of a request that is right], of a link's address. */
function everyEndpoint(link: string): [string, string, object | undefined, number][] {
  return [
    ['GET', PROFILE, undefined, 200],
    ['POST', LINKS, BARE, 201],
    ['GET', LINKS, undefined, 200],
    ['GET', link, undefined, 200],
  ];
}

describe('the API key', () => {
  it.each([
    ['one header with the key', { 'x-api-key': 'key' }, 200],
    ['the other header with the key', { authorization: 'Bearer key' }, 200],
    ['both headers with the key', { 'x-api-key': 'key', authorization: 'Bearer key' }, 200],
    ['a scheme in small letters', { authorization: 'bearer key' }, 200],
    ['two headers that disagree', { 'x-api-key': 'key', authorization: 'Bearer other' }, 401],
    ['two headers that disagree the other way', { 'x-api-key': 'other', authorization: 'Bearer key' }, 401],
    ['another scheme beside the key', { 'x-api-key': 'key', authorization: 'Basic a2V5' }, 401],
    ['the key without a scheme', { authorization: 'key' }, 401],
    ['an empty key', { 'x-api-key': '' }, 401],
    ['another key', { authorization: 'Bearer wrong' }, 401],
    ['the start of the key', { 'x-api-key': 'ke' }, 401],
    ['no header', {}, 401],
  ])('%s', async (_what, headers: Record<string, string>, status) => {
    const sandbox = await startTestSandbox({ apiKey: 'key' });
    const response = await fetch(`${sandbox.url}/api/v1${PROFILE}`, { headers });
    expect(response.status).toBe(status);
    expect(response.headers.get('www-authenticate')).toBe(status === 401 ? 'Bearer' : null);
    expect(response.headers.has('x-ratelimit-limit')).toBe(status === 200);
  });

  it.each(['production', 'sandbox'] as const)(
    'opens every endpoint in %s, and another answers 401',
    async (environment) => {
      const sandbox = await startTestSandbox({ environment });
      const link = `${LINKS}/${(await create(sandbox, BARE)).id}`;
      for (const [method, path, body, status] of everyEndpoint(link)) {
        const answer = await sandbox.call(path, { method, body });
        expect([path, answer.status]).toEqual([
          path,
          environment === 'sandbox' && path === LINKS && !body ? 403 : status,
        ]);
        const wrong = await sandbox.call(path, { method, body, headers: { 'x-api-key': 'wrong' } });
        expect(wrong.status).toBe(401);
      }
    },
  );

  it('of an inactive merchant opens no endpoint', async () => {
    const sandbox = await startTestSandbox({ merchantInactive: true });
    for (const [method, path, body] of everyEndpoint(`${LINKS}/pl_1`)) {
      const answer = await sandbox.call(path, { method, body });
      expect(answer).toMatchObject({ status: 403, body: { error: { code: 'merchant_inactive' } } });
    }
  });

  it('must be right in both headers if it is in both', async () => {
    const sandbox = await startTestSandbox({ apiKey: 'key' });
    const connection = await rawConnection(sandbox.url);
    const request = `GET /api/v1${PROFILE} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: key\r\nx-api-key: other\r\n\r\n`;
    connection.send(request);
    expect((await connection.answer()).status).toBe(401);
    connection.send(request.replace('other', 'key'));
    expect((await connection.answer()).status).toBe(200);
  });
});

describe('the rate limit', () => {
  it.each([
    ['seconds', 40, 40],
    ['epoch', 40, 40],
  ])('shows the reset as %s', async (reading, retryAfter, resetAfter) => {
    const sandbox = await startTestSandbox({ rateLimit: 2, timeScale: STILL, switches: [`rate-reset=${reading}`] });
    const startSeconds = reading === 'epoch' ? sandbox.clock.nowMs() / 1_000 : 0;
    const startReset = async () => Number((await sandbox.call(PROFILE)).headers.get('x-ratelimit-reset'));
    expect(await startReset()).toBe(Math.ceil(startSeconds + 60));
    await sandbox.clock.advance(20_000);
    const nowSeconds = reading === 'epoch' ? startSeconds + 20 : 0;
    expect(await startReset()).toBe(Math.ceil(nowSeconds + resetAfter));
    const { headers } = await sandbox.call(PROFILE);
    expect(headers.get('retry-after')).toBe(String(retryAfter));
    expect(headers.get('x-ratelimit-reset')).toBe(String(Math.ceil(nowSeconds + resetAfter)));
  });

  it('counts requests refused after it, and not those refused before it', async () => {
    const sandbox = await startTestSandbox({ timeScale: STILL });
    await sandbox.call('/unknown');
    await sandbox.call(PROFILE, { headers: { 'x-api-key': 'wrong' } });
    await sandbox.call(LINKS, { body: {} });
    await sandbox.call(`${LINKS}/unknown`);
    await sandbox.call(PROFILE, { method: 'DELETE' });
    expect((await sandbox.call(PROFILE)).headers.get('x-ratelimit-remaining')).toBe('56');
  });

  it('holds for every endpoint', async () => {
    const sandbox = await startTestSandbox({ rateLimit: 1 });
    expect((await sandbox.call(PROFILE)).status).toBe(200);
    for (const [method, path, body] of everyEndpoint(`${LINKS}/pl_1`)) {
      const { status, headers } = await sandbox.call(path, { method, body });
      expect([status, Number(headers.get('retry-after')) > 0]).toEqual([429, true]);
    }
  });

  it('sends no headers if it is off', async () => {
    const sandbox = await startTestSandbox({ rateLimit: null });
    for (let request = 0; request < 70; request++) {
      const { status, headers } = await sandbox.call(PROFILE);
      expect([status, headers.has('x-ratelimit-limit')]).toEqual([200, false]);
    }
  });
});

describe('a body that cannot be read', () => {
  const large = JSON.stringify({ ...BARE, description: 'x'.repeat(102_400) });
  it.each([
    ['malformed JSON', '{"title":', {}, 'body'],
    ['nothing', '', {}, 'body'],
    ['an array', '[]', {}, 'body'],
    ['null', 'null', {}, 'body'],
    ['text', '"title"', {}, 'body'],
    ['more than 100 KB', large, {}, 'body'],
    ['another type', JSON.stringify(BARE), { 'content-type': 'text/plain' }, 'content-type'],
    ['a packed body', JSON.stringify(BARE), { 'content-encoding': 'gzip' }, 'content-encoding'],
  ])('%s is 400', async (_what, body, headers: Record<string, string>, field) => {
    const sandbox = await startTestSandbox();
    const answer = await sandbox.call(LINKS, { method: 'POST', body, headers });
    expect(answer).toMatchObject({ status: 400, body: { error: { field } } });
    expect(answer.body.error.message).toContain(field);
  });

  it('bytes that are not UTF-8 are 400', async () => {
    const sandbox = await startTestSandbox();
    const answer = await postBytes(sandbox, Buffer.from('{"title":"\xff","amount":30}', 'latin1'));
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining('UTF-8')]);
  });
});

describe('a creation', () => {
  it.each([
    ['title', [undefined, null, '', '  ', 7, 'a\ud800']],
    ['amount', [undefined, null, '30', '30.00', 25, 0, -30, 30.001, 1e13, true, [30]]],
    ['externalReference', ['', 7, {}]],
    ['description', [7, []]],
    [
      'expiresAt',
      [
        '',
        'tomorrow',
        '2099-01-01',
        '2099-01-01T00:00:00',
        '2099-02-30T00:00:00Z',
        '2020-01-01T00:00:00Z',
        4_102_444_800_000,
      ],
    ],
    ['metadata', ['{}', [], 7]],
    [
      'webhookUrl',
      [
        '',
        'x',
        'ftp://shop.example',
        'mailto:a@b.example',
        'http://',
        'http://a b',
        'http://a:99999',
        'javascript:alert(1)',
        7,
      ],
    ],
    ['webhookSecret', ['', 7]],
    ['callbackUrl', ['', 'javascript:alert(1)', 'data:text/html,x', 7]],
  ] as [string, unknown[]][])('with a wrong %s is 400 and names it in every shape', async (field, wrongs) => {
    const sandbox = await startTestSandbox({ rateLimit: null });
    for (const shape of ['object', 'error-text', 'message']) {
      await sandbox.control('/silences', { body: { 'error-body': shape } });
      for (const wrong of wrongs) {
        const answer = await sandbox.call(LINKS, { body: { ...BARE, [field]: wrong } });
        expect(answer.status).toBe(400);
        expect(messageOf(answer.body, shape)).toMatch(new RegExp(`^${field} `));
      }
    }
    expect((await sandbox.call(LINKS)).body.pagination.total).toBe(0);
  });

  it('names everything that is wrong at once', async () => {
    const sandbox = await startTestSandbox();
    const { body } = await sandbox.call(LINKS, { body: { amount: 3, webhookUrl: 'x' } });
    expect(body.error.message).toMatch(/title .*amount .*webhookUrl /);
  });

  it('ignores fields that the spec does not name, the currency among them', async () => {
    const sandbox = await startTestSandbox();
    const link = await create(sandbox, { ...BARE, currency: 'USD', isMultiUse: true, status: 'EXPIRED', x: 1 });
    expect(link).toMatchObject({ currency: 'BRL', isMultiUse: false, status: 'ACTIVE' });
    expect(link).not.toHaveProperty('x');
  });

  it('with an externalReference that exists is 409, and creates nothing', async () => {
    const sandbox = await startTestSandbox();
    await create(sandbox, { ...BARE, externalReference: 'order-1' });
    const { status, body } = await sandbox.call(LINKS, { body: { ...RICH, externalReference: 'order-1' } });
    expect([status, body.error.field]).toEqual([409, 'externalReference']);
    expect((await sandbox.call(LINKS)).body.pagination.total).toBe(1);
  });

  it('takes null as a field that is not given', async () => {
    const sandbox = await startTestSandbox();
    const nothing = Object.fromEntries(Object.keys(RICH).map((field) => [field, null]));
    const link = await create(sandbox, { ...nothing, ...BARE });
    expect(link).toMatchObject({ externalReference: null, metadata: null, webhookSecret: expect.any(String) });
  });

  it.each(['200', '201'])('answers %s if the switch says so', async (status) => {
    const sandbox = await startTestSandbox({ switches: [`creation-status=${status}`] });
    expect((await sandbox.call(LINKS, { body: BARE })).status).toBe(Number(status));
  });

  it.each([
    ['in-link', ['success', 'paymentLink'], ['paymentLink', 'webhookSecret']],
    ['beside-link', ['success', 'paymentLink', 'webhookSecret'], ['webhookSecret']],
    ['bare', null, ['webhookSecret']],
  ])('answers in the envelope %s', async (envelope, names, secretPath) => {
    const sandbox = await startTestSandbox({ switches: [`creation-envelope=${envelope}`] });
    const { body } = await sandbox.call(LINKS, { body: { ...BARE, webhookSecret: 'chosen' } });
    expect(body).toHaveProperty(secretPath, 'chosen');
    expect(JSON.stringify(body).split('"chosen"')).toHaveLength(2);
    const link = body.paymentLink ?? body;
    expect(link).toMatchObject({ title: 'A table', url: expect.any(String), shortUrl: expect.any(String) });
    if (names !== null) expect(Object.keys(body)).toEqual(names);
    else expect(body).not.toHaveProperty('success');
  });
});

describe('a request for an unknown address', () => {
  it('names no link: 404 with the right key', async () => {
    const sandbox = await startTestSandbox();
    expect((await sandbox.call(`${LINKS}/pl_unknown`)).status).toBe(404);
    expect((await sandbox.call(`${LINKS}/%E0%A4%A`)).status).toBe(404);
  });

  it.each(['', '/', '/unknown', `${LINKS}/`, `${LINKS}/a/b`, '/Payment-Links'])('%j is 404', async (path) => {
    const sandbox = await startTestSandbox();
    const answer = await sandbox.call(path, { headers: { 'x-api-key': 'wrong' } });
    expect(answer).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } });
  });

  it.each([
    [PROFILE, 'POST', 'GET, HEAD'],
    [LINKS, 'DELETE', 'GET, HEAD, POST'],
    [`${LINKS}/pl_1`, 'PATCH', 'GET, HEAD'],
  ])('%s by %s is 405 and names the allowed methods', async (path, method, allow) => {
    const sandbox = await startTestSandbox();
    const { status, headers } = await sandbox.call(path, { method });
    expect([status, headers.get('allow')]).toEqual([405, allow]);
    const unknown = await sandbox.call(path, { method, headers: { 'x-api-key': 'wrong' } });
    expect(unknown.status).toBe(401);
  });
});

describe('a failure', () => {
  it('that is unexpected goes to stderr, and the caller learns nothing of it', () => {
    const told = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    onTestFinished(() => told.mockRestore());
    const { status, body } = errorAnswer(new Error('disk on fire'), DEFAULT_SWITCHES);
    expect([status, JSON.stringify(body)]).toEqual([500, expect.not.stringMatching(/disk|at /)]);
    expect(told).toHaveBeenCalledWith(expect.stringMatching(/disk on fire\n +at /));
  });

  it('is not what an address with an impossible port leads to', async () => {
    const sandbox = await startTestSandbox({ apiKey: 'key' });
    const connection = await rawConnection(sandbox.url);
    connection.send(
      `GET http://a:99999/api/v1${LINKS}?pageSize=7 HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: key\r\n\r\n`,
    );
    const { status, body } = await connection.answer();
    expect([status, JSON.parse(body).pagination.pageSize]).toEqual([200, 7]);
  });

  it('names no framework', async () => {
    const { headers } = await (await startTestSandbox()).call('/unknown');
    expect(headers.has('x-powered-by')).toBe(false);
  });
});

describe('the list', () => {
  it.each([
    ['page=0', 1, 20],
    ['page=-1&pageSize=-1', 1, 20],
    ['page=2.5&pageSize=x', 1, 20],
    ['page=&pageSize=', 1, 20],
    ['page=1e3', 1, 20],
    ['page=99999999999999999999', 1, 20],
    ['page=999999999&pageSize=100', 999_999_999, 100],
    ['pageSize=0', 1, 20],
    ['pageSize=101', 1, 100],
    ['page=3&page=4', 3, 20],
    ['page[a]=3', 1, 20],
  ])('takes %s', async (query, page, pageSize) => {
    const sandbox = await startTestSandbox();
    await create(sandbox, BARE);
    const { status, body } = await sandbox.call(`${LINKS}?${query}`);
    expect(status).toBe(200);
    expect(body.pagination).toEqual({ page, pageSize, total: 1, totalPages: 1 });
  });

  it('finds an externalReference that holds a question mark', async () => {
    const sandbox = await startTestSandbox();
    for (const externalReference of ['a?b', 'a']) await create(sandbox, { ...BARE, externalReference });
    const { body } = await sandbox.call(`${LINKS}?externalReference=a?b&pageSize=7`);
    const found = body.paymentLinks.map((link: { externalReference: string }) => link.externalReference);
    expect([found, body.pagination.pageSize]).toEqual([['a?b'], 7]);
  });

  it('has no pages if there are no links', async () => {
    const { body } = await (await startTestSandbox()).call(LINKS);
    expect(body.pagination).toEqual({ page: 1, pageSize: 20, total: 0, totalPages: 0 });
  });
});

// biome-ignore lint/suspicious/noExplicitAny: the shape is what is tested
function messageOf(body: any, shape: string): string {
  expect(body.success).toBe(false);
  if (shape === 'object') return body.error.message;
  return shape === 'error-text' ? body.error : body.message;
}

async function postBytes(sandbox: TestSandbox, body: Uint8Array<ArrayBuffer>): Promise<Response> {
  const headers = { 'x-api-key': sandbox.apiKey, 'content-type': 'application/json' };
  return await fetch(`${sandbox.url}/api/v1${LINKS}`, { method: 'POST', headers, body });
}
