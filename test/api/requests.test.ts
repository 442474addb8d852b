import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { ROUTES } from '../../src/api/router.ts';
import { OPERATOR_TOKEN } from '../support/app.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import { get, orderPath, post, postText, problem } from './client.ts';

const settled = sharedApp();

describe('api: what a body must be', () => {
  const POSTS = [
    ['/v1/links', { reference: 'unused', amount: '30.00' }],
    ['/v1/orders/unused/resolve', { decision: 'accept', reason: 'seen' }],
    ['/v1/admin/backup', {}],
  ] as const;

  it.each(POSTS)('of POST %s: has no field that the route does not know', async (path, body) => {
    const response = await post(settled(), path, { ...body, surprise: 1, webhookUrl: 'https://x' });
    const detail = problem(response, 400, 'invalid_request');
    expect(detail).toContain('surprise');
    expect(response.body.errors).toEqual([
      { path: 'surprise', detail: 'there is no such field' },
      { path: 'webhookUrl', detail: 'there is no such field' },
    ]);
  });

  it.each([
    '',
    '{',
    'null',
    '"text"',
    '12',
    '[]',
    '{"reference":"a",}',
    "{'reference':1}",
    '\u0000',
    ...['__proto__', 'constructor', 'toString'].map((name) => `{"reference":"unused","amount":1,"${name}":{}}`),
  ])('of POST /v1/links: is refused as %j, by the name of a field that is too many', async (body) => {
    const [, surplus = ''] = /"(\w+)":\{\}/.exec(body) ?? [];
    expect(problem(await postText(settled(), '/v1/links', body), 400, 'invalid_request')).toContain(surplus);
  });

  it('is answered with every fault at once, each by its place', async () => {
    const response = await post(settled(), '/v1/links', {
      reference: 1,
      amount: true,
      currency: 2,
      id: '',
      webhookSecret: 'short',
    });
    problem(response, 400, 'invalid_request');
    const paths = response.body.errors.map(({ path }: { path: string }) => path);
    expect(new Set(paths)).toEqual(new Set(['reference', 'amount', 'currency', 'id', 'webhookSecret']));
  });

  it.each([
    ['15 bytes', 'x'.repeat(15)],
    ['513 characters', 'x'.repeat(513)],
    ['a control character', `${'x'.repeat(20)}\u0007`],
    ['what was not UTF-8', `${'x'.repeat(20)}\uFFFD`],
  ])('of POST /v1/links: takes no webhookSecret of %s', async (_name, webhookSecret) => {
    const asked = { reference: 'unused', amount: '30.00', id: 'pl_x', webhookSecret };
    const response = await post(settled(), '/v1/links', asked);
    expect(problem(response, 400, 'invalid_request')).toContain('webhookSecret');
    expect(JSON.stringify(response.body)).not.toContain('xxxx');
  });
});

describe('api: how the answer names the faults of a request', () => {
  /** Whatever takes fields or parameters; a stream takes none that others do not. */
  const READERS = ROUTES.filter(({ path }) => path !== '/v1/tail').map(({ method, path, id, operation }) => {
    const { body, query } = operation;
    const fields = Object.keys((method === 'post' ? body : query)?.shape ?? {});
    return { id, method, path: path.replace(/:\w+/, 'unused'), fields };
  });
  const WRONG = [undefined, null, 0, -1, 1e300, true, '', '\u0007', 'x'.repeat(2_600), [], ['a'], {}];

  async function told({ method, path }: (typeof READERS)[number], given: object): Promise<string[]> {
    const response = method === 'post' ? await post(settled(), path, given) : await get(settled(), path).query(given);
    return response.status === 400 ? response.body.errors.map(({ detail }: { detail: string }) => detail) : [];
  }

  it.each(READERS.filter(({ path }) => path.startsWith('/v1/')))('in plain words: $id', async (reader) => {
    const { fields, method } = reader;
    const given = [
      { surprise: 1 },
      ...WRONG.map((wrong) => Object.fromEntries(fields.map((field) => [field, wrong]))),
      ...(method === 'get' ? fields.map((field) => ({ [field]: ['a', 'b'] })) : [['a list']]),
    ];
    const details = (await Promise.all(given.map((one) => told(reader, one)))).flat();
    expect(details.length).toBeGreaterThan(fields.length);
    for (const detail of details) expect(detail).not.toMatch(/invalid|expected|received|cannot be used/i);
  });

  it.each([
    ['/v1/orders', {}, 'reference: is needed; title: is needed; amount: is needed'],
    ['/v1/orders', { reference: 'a', title: 1, amount: 1 }, 'title: must be text'],
    ['/v1/orders', { reference: 'a', title: 'A', amount: [] }, 'amount: must be a number or a decimal string'],
    ['/v1/orders', [], 'must be a JSON object'],
    ['/v1/admin/reconcile', { dryRun: 'yes' }, 'dryRun: must be true or false'],
    ['/v1/orders/unused/resolve', { decision: 'maybe', reason: 'seen' }, 'decision: must be one of accept, reject'],
    ['/v1/orders/unused/resolve', { decision: 'accept', reason: '' }, 'reason: must have 1 to 500 characters'],
    ['/v1/orders/unused/resolve', { decision: 'accept', reason: ' \u200b' }, 'reason: must have a visible character'],
  ])('of POST %s with %j: %s', async (path, body, expected) => {
    expect(problem(await post(settled(), path, body), 400, 'invalid_request')).toBe(expected);
  });
});

describe('api: what JSON may leave open', () => {
  it.each([
    ['{"reference":"twice","amount":30,"amount":3000}', 'amount'],
    ['{"reference":"twice","amount":30,"\\u0061mount":3000}', 'amount'],
    ['{"reference":"twice","amount":30,"__proto__":1,"__proto__":2}', '__proto__'],
  ])('refuses a field that stands twice: %s', async (body, name) => {
    const answer = await postText(settled(), '/v1/links', body);
    expect(problem(answer, 400, 'invalid_request')).toBe(`${name}: occurs more than once in the same object`);
  });

  it('the same name may stand in different objects, and in a text', async () => {
    const metadata = '{"a":{"a":[{"a":"\\"a\\":1,\\"a\\":2 {["},{"a":1}]}}';
    const body = `{"reference":"a","title":"A","amount":30,"metadata":${metadata}}`;
    problem(await postText(settled(), '/v1/orders', body), 503, 'api_not_configured');
    const twice = body.replace('{"a":1}', '{"a":1,"a":2}');
    expect(problem(await postText(settled(), '/v1/orders', twice), 400, 'invalid_request')).toMatch(/^a: /);
  });

  it.each([
    ['0.1234567890123456', 503],
    ['1.50', 503],
    ['1E2', 503],
    ['-0', 503],
    ['0.10000000000000001', 400],
    ['9007199254740993', 400],
    ['9007199254740993.0', 400],
  ])('a number of metadata is passed on as it is written, or refused: %s', async (written, status) => {
    const body = `{"reference":"a","title":"A","amount":30,"metadata":{"n":[${written}]}}`;
    expect((await postText(settled(), '/v1/orders', body)).status).toBe(status);
  });

  it.each(['[', '{"a":'])('nesting without end is refused: %s…', async (opened) => {
    const times = Math.floor(60_000 / opened.length);
    const closed = (opened === '[' ? ']' : '}').repeat(times);
    const deep = (count: number, end: string) => opened.repeat(count) + (opened === '[' ? '' : '1') + end;
    problem(await postText(settled(), '/v1/orders', deep(times, '')), 400, 'invalid_request');
    const half = Math.floor(times / 2);
    const whole = `{"metadata":${deep(half, closed.slice(0, half))}}`;
    problem(await postText(settled(), '/v1/orders', whole), 400, 'invalid_request');
  });
});

describe('api: how a body is sent', () => {
  const LINK = '{"reference":"unused","amount":"30.00"}';

  it.each([
    { 'content-type': 'text/plain' },
    { 'content-type': 'application/x-www-form-urlencoded' },
    { 'content-type': 'application/jsonp' },
    { 'content-type': 'multipart/form-data' },
    { 'content-type': 'application/json; charset=latin1' },
    { 'content-type': 'application/json; charset=utf-16' },
    { 'content-encoding': 'gzip' },
  ])('is not with %j', async (headers) => {
    problem(await postText(settled(), '/v1/links', LINK, headers), 415, 'content_type');
  });

  it('names a type', async () => {
    const response = await fetch(`${settled().apiUrl}/v1/links`, {
      method: 'POST',
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
      body: new TextEncoder().encode(LINK),
    });
    expect(response.status).toBe(415);
  });

  it.each([
    ['name UTF-8', '', 'application/json; charset=utf-8'],
    ['begin with a byte order mark', '\uFEFF', 'application/json'],
  ])('may %s', async (_name, mark, type) => {
    const body = mark + JSON.stringify({ reference: freshReference(), amount: 30 });
    expect((await postText(settled(), '/v1/links', body, { 'content-type': type })).status).toBe(201);
  });

  it('has at most 64 KiB', async () => {
    const padded = (bytes: number) => `${' '.repeat(bytes - 2)}{}`;
    problem(await postText(settled(), '/v1/admin/backup', padded(65_537)), 413, 'body_too_large');
    problem(await postText(settled(), '/v1/links', padded(65_536)), 400, 'invalid_request');
  });

  it('may be left out if no field is needed', async () => {
    const response = await request(settled().apiUrl)
      .post('/v1/admin/backup')
      .set('authorization', `Bearer ${OPERATOR_TOKEN}`);
    expect(response.status).toBe(201);
  });
});

describe('api: addresses and methods', () => {
  it.each([
    ['get', '/v1/links', 'POST'],
    ['delete', '/v1/orders', 'POST, GET, HEAD'],
    ['options', '/v1/orders', 'POST, GET, HEAD'],
    ['put', '/v1/orders/1', 'GET, HEAD'],
    ['post', '/v1/orders/1/timeline', 'GET, HEAD'],
    ['get', '/v1/orders/1/resolve', 'POST'],
    ['get', '/v1/orders/1/check', 'POST'],
    ['get', '/v1/orders/1/cancel', 'POST'],
    ['get', '/v1/orders/1/adopt', 'POST'],
    ['post', '/v1/events', 'GET, HEAD'],
    ['patch', '/v1/events/1', 'GET, HEAD'],
    ['get', '/v1/events/1/replay', 'POST'],
    ['post', '/v1/rejections', 'GET, HEAD'],
    ['post', '/v1/attention', 'GET, HEAD'],
    ['post', '/v1/stats', 'GET, HEAD'],
    ['get', '/v1/admin/backup', 'POST'],
    ['post', '/v1/admin/doctor', 'GET, HEAD'],
    ['post', '/metrics', 'GET, HEAD'],
  ] as const)('%s %s is not allowed; the answer says what is', async (method, path, allow) => {
    const response = await request(settled().apiUrl)[method](path);
    problem(response, 405, 'method_not_allowed');
    expect(response.headers.allow).toBe(allow);
  });

  it('HEAD answers as GET does, without a body', async () => {
    const response = await request(settled().apiUrl)
      .head('/v1/orders')
      .set('authorization', `Bearer ${OPERATOR_TOKEN}`);
    expect([response.status, response.text]).toEqual([200, undefined]);
  });

  it.each<[number, string, string]>([
    [404, '//', ''],
    [404, '/v1', ''],
    [404, '/v1/', ''],
    [404, '/v1/orders/', ''],
    [404, '/V1/orders', ''],
    [404, '/v1/Orders', ''],
    [404, '/v1/nothing', ''],
    [404, '/v1/orders/1/2/3', ''],
    [400, '/v1/orders/%E0%A4%A', 'address'],
    [400, '/v1/orders/%', 'address'],
    [400, '/v1/orders/%zz', 'address'],
    [400, '/v1/orders/%C0%AF', 'address'],
    [400, '/v1/orders?limit=5&page=2', 'page'],
    [400, '/v1/events?limit=5&page=2', 'page'],
    [400, '/v1/rejections?limit=5&page=2', 'page'],
    [400, '/v1/attention?limit=5&page=2', 'page'],
    ...['0', '201', '-1', '1.5', '0x10', '1e2', '', 'ten', '5&limit=6'].map((limit): [number, string, string] => [
      400,
      `/v1/orders?limit=${limit}`,
      'limit: ',
    ]),
  ])('answers %i to GET %s, and names the %s', async (status, path, words) => {
    const detail = problem(await get(settled(), path), status, status === 404 ? 'not_found' : 'invalid_request');
    expect(detail).toContain(words);
  });

  it.each([
    ['a slash', 'a/b'],
    ['a percent sign', '50%'],
    ['an escape of its own', '%2F'],
    ['spaces', ' two words '],
    ['marks of addresses', 'a?b=c#d&e+f'],
    ['other scripts', 'ação-注文-🧾'],
    ['quotes and brackets', `"'<>{}[]\\`],
    ['128 characters', 'x'.repeat(128)],
    ['the name of a route', 'timeline'],
    ['three dots', '...'],
  ])('a reference may have %s', async (_name, reference) => {
    const made = await post(settled(), '/v1/links', { reference, amount: '30.00' });
    expect([made.status, made.body.order.reference]).toEqual([201, reference]);
    expect((await get(settled(), orderPath(reference))).body.order.reference).toBe(reference);
    expect((await get(settled(), `${orderPath(reference)}/timeline`)).body.order.reference).toBe(reference);
    const resolved = await post(settled(), `${orderPath(reference)}/resolve`, { decision: 'accept', reason: 'x' });
    problem(resolved, 409, 'not_held');
  });

  it.each([
    ['129 characters', 'x'.repeat(129)],
    ['a line break', 'a\nb'],
    ['a NUL', 'a\0b'],
    ['what was not UTF-8', 'a\uFFFDb'],
    ['half of a character', 'a\ud83e'],
  ])('a reference has no %s', async (_name, reference) => {
    const made = await post(settled(), '/v1/links', { reference, amount: '30.00' });
    expect(problem(made, 400, 'invalid_request')).toMatch(/^reference: /);
    if (!reference.isWellFormed()) return;
    const asked = await get(settled(), orderPath(reference));
    expect(problem(asked, 400, 'invalid_request')).toMatch(/^reference: /);
  });

  it("keeps the caller's request id if it is plain, and makes one if it is not", async () => {
    const mine = await get(settled(), '/v1/stats').set('x-request-id', 'my-request.1');
    expect(mine.headers['x-request-id']).toBe('my-request.1');
    const made = await get(settled(), '/v1/stats').set('x-request-id', 'two words');
    expect(made.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('says nothing of what it is made with', async () => {
    const { headers } = await get(settled(), '/v1/stats');
    expect(Object.keys(headers)).not.toContain('x-powered-by');
    expect(headers.server).toBeUndefined();
  });
});
