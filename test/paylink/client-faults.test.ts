import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { Service, ServiceFault } from '../../src/paylink/service.ts';
import { freePort } from '../support/network.ts';
import { startTestSandbox } from '../support/sandbox.ts';
import {
  API_KEY,
  faultOf,
  LINK_DETAILS,
  NEW_LINK,
  openClient,
  startAnswering,
  startPeer,
  type TestClient,
} from './peer.ts';

const CREATE = 'POST /payment-links';
const SHOW = 'GET /payment-links/{id}';

const create = (service: Service) => service.createLink(NEW_LINK, 'create');
const show = (service: Service) => service.showLink('pl_1', 'confirm');

/** What asking for a link fails with. The slot was given back, and the key is in no message. */
async function failed(
  { service, budget, outcomes }: TestClient,
  call: (service: Service) => Promise<unknown>,
): Promise<ServiceFault> {
  const fault = await faultOf(call(service));
  expect(budget.taken.length).toBeGreaterThan(0);
  budget.last();
  expect(outcomes.at(-1)).toMatch(new RegExp(` ${fault.code}$`));
  const told = [fault.message, fault.stack, JSON.stringify(fault), String(fault.cause)].join();
  expect(told).not.toContain(API_KEY);
  expect(told).not.toContain(NEW_LINK.webhookSecret);
  return fault;
}

describe('paylink: an answer by its status', () => {
  it.each([
    [500, 'service_failed', 'transient', true, 'unknown'],
    [502, 'service_failed', 'transient', true, 'unknown'],
    [408, 'service_failed', 'transient', true, 'unknown'],
    [425, 'service_failed', 'transient', true, 'unknown'],
    [429, 'service_rate_limited', 'transient', false, 'unknown'],
    [401, 'service_key_refused', 'transient', false, 'api_key_refused'],
    [403, 'service_forbidden', 'transient', false, 'merchant_inactive'],
    [404, 'service_not_found', 'transient', false, 'well'],
    [409, 'service_conflict', 'terminal', false, 'well'],
    [400, 'service_refused', 'terminal', false, 'well'],
    [422, 'service_refused', 'terminal', false, 'well'],
    [405, 'service_refused', 'terminal', false, 'unknown'],
    [301, 'service_answer_unusable', 'transient', true, 'unknown'],
  ])('%i of a creation is %s', async (status, code, kind, mayHaveArrived, standing) => {
    const peer = await startAnswering(status, { error: { message: 'Because.' } });
    const client = openClient(peer.url);
    const fault = await failed(client, create);
    expect(fault).toMatchObject({ code, kind, status, mayHaveArrived });
    expect(fault.message).toContain(`${CREATE} answered ${status} (Because.).`);
    const { standing: learnt, failure } = client.budget.last();
    expect(learnt).toBe(standing);
    // Only an answer of the API says that settled can ask it.
    expect(failure?.code ?? null).toBe(
      kind === 'terminal' || standing === 'api_key_refused' || standing === 'merchant_inactive' ? null : code,
    );
  });

  it('404 of a link means that there is none', async () => {
    const peer = await startAnswering(404, {});
    const fault = await failed(openClient(peer.url), show);
    expect(fault).toMatchObject({ code: 'service_not_found', kind: 'terminal', mayHaveArrived: false });
    expect(fault.message).toBe(`${SHOW} answered 404. The service has no such link under this API key.`);
  });

  const PAGES: [string, string, string][] = [
    ['a page', '<!doctype html><title>Not allowed</title>', 'text/html'],
    ['a page that calls itself JSON', '<html></html>', 'application/json'],
    ['nothing', '', 'application/json'],
    ['a text in JSON', '"no"', 'application/json'],
    ['a list', '[]', 'application/json'],
    ['half of an object', '{"message":', 'application/json'],
  ];
  it.each(PAGES)('of %s is not the API’s, whatever its status', async (_name, text, type) => {
    for (const status of [400, 401, 402, 403, 404, 405, 409, 413, 414, 422, 431]) {
      const peer = await startAnswering(status, text, { 'content-type': type, 'retry-after': '7' });
      const list = (service: Service) => service.listLinks(1, 'janitor');
      for (const [call, mayHaveArrived] of [
        [create, true],
        [show, false],
        [list, false],
      ] as const) {
        const client = openClient(peer.url);
        const fault = await failed(client, call);
        expect(fault, `${status}`).toMatchObject({
          code: 'service_answer_unusable',
          kind: 'transient',
          status,
          mayHaveArrived,
        });
        expect(fault.retryAtMs).not.toBeNull();
        expect(client.budget.last()).toMatchObject({ standing: 'unknown', pause: null, failure: { code: fault.code } });
      }
    }
  });

  it('500 of a question has done nothing', async () => {
    const peer = await startAnswering(500, '');
    expect(await failed(openClient(peer.url), show)).toMatchObject({ mayHaveArrived: false });
  });

  it('a redirect is not followed: the key goes nowhere else', async () => {
    const elsewhere = await startAnswering(200, { paymentLink: LINK_DETAILS });
    for (const status of [301, 302, 303, 307, 308]) {
      const peer = await startAnswering(status, '', { location: elsewhere.url });
      const fault = await failed(openClient(peer.url), show);
      expect(fault).toMatchObject({ code: 'service_answer_unusable', kind: 'transient', status });
    }
    expect(elsewhere.requests).toEqual([]);
  });
});

describe('paylink: an answer that cannot be used', () => {
  it.each([
    ['HTML', '<!doctype html><title>Welcome</title>', 'it is no JSON'],
    ['nothing', '', 'it is no JSON'],
    ['half of JSON', '{"success":true,"paymentLink":{', 'it is no JSON'],
    ['a list', [LINK_DETAILS], 'it is no JSON object'],
    ['success: false', { success: false, paymentLink: LINK_DETAILS }, 'its success is not true'],
    ['success: "true"', { success: 'true', paymentLink: LINK_DETAILS }, 'its success is not true'],
    ['no link', { success: true }, 'its paymentLink is no object'],
    ['a link that is text', { paymentLink: 'pl_1' }, 'its paymentLink is no object'],
    ['a link without an id', { paymentLink: { ...LINK_DETAILS, id: null } }, 'its paymentLink.id is no usable id'],
    ['an id with NUL', { paymentLink: { ...LINK_DETAILS, id: 'a\0' } }, 'its paymentLink.id is no usable id'],
    ['no status', { paymentLink: { ...LINK_DETAILS, status: null } }, 'its paymentLink.status is no text'],
    ['a status that is a number', { paymentLink: { ...LINK_DETAILS, status: 1 } }, 'its paymentLink.status is no text'],
    [
      'payments that are no list',
      { paymentLink: { ...LINK_DETAILS, payments: {} } },
      'its paymentLink.payments is no list',
    ],
    [
      'payments without end',
      { paymentLink: { ...LINK_DETAILS, payments: Array(1_001).fill({}) } },
      'its paymentLink.payments has more than 1000 items',
    ],
    [
      'not a word about payments',
      { paymentLink: { id: 'pl_1', status: 'ACTIVE' } },
      'its paymentLink says nothing of payments',
    ],
  ])('is one with %s', async (_name, body, flaw) => {
    const peer = await startAnswering(200, body);
    const client = openClient(peer.url);
    const fault = await failed(client, show);
    expect(fault).toMatchObject({ code: 'service_answer_unusable', kind: 'transient', status: 200 });
    expect(fault.message).toContain(`${SHOW} answered 200, but the answer cannot be used: ${flaw}.`);
    expect(client.budget.last().standing).toBe('unknown');
  });

  it.each([
    ['a profile', (service: Service) => service.profile('hint'), { merchant: {} }],
    ['a list', (service: Service) => service.listLinks(1, 'janitor'), { paymentLinks: {} }],
    ['an item', (service: Service) => service.listLinks(1, 'janitor'), { paymentLinks: [{ id: 'a' }, {}] }],
    ['a search', (service: Service) => service.findLinks('order-1', 'create'), { paymentLinks: null }],
    ['a creation', create, { success: true }],
  ])('is one if %s has another shape', async (_name, call, body) => {
    const peer = await startAnswering(200, body);
    expect(await failed(openClient(peer.url), call)).toMatchObject({ code: 'service_answer_unusable' });
  });

  it('leaves a creation in doubt', async () => {
    const peer = await startAnswering(201, 'Created');
    expect(await failed(openClient(peer.url), create)).toMatchObject({ mayHaveArrived: true });
  });

  it.each([
    ['as it is', {}, (bytes: Buffer) => bytes],
    ['packed into few bytes', { 'content-encoding': 'gzip' }, gzipSync],
  ])('is one of 10 MB, %s, of which little is read', async (_name, headers, pack) => {
    const bytes = pack(Buffer.alloc(10 * 1024 * 1024, ' '));
    const peer = await startPeer((_request, response) => response.writeHead(200, headers).end(bytes));
    const fault = await failed(openClient(peer.url), show);
    expect(fault).toMatchObject({ code: 'service_answer_too_large', kind: 'transient', status: 200 });
  });

  it('keeps its status if the words of a refusal never end', async () => {
    const peer = await startPeer((_request, response) =>
      response.writeHead(409).end(Buffer.alloc(10 * 1024 * 1024, ' ')),
    );
    expect(await failed(openClient(peer.url), create)).toMatchObject({
      code: 'service_answer_unusable',
      status: 409,
      kind: 'transient',
    });
  });
});

describe('paylink: no whole answer', () => {
  it('is a service that refuses connections: nothing arrived', async () => {
    const fault = await failed(openClient(`http://127.0.0.1:${await freePort()}`), create);
    expect(fault).toMatchObject({
      code: 'service_unreachable',
      kind: 'transient',
      status: null,
      mayHaveArrived: false,
    });
    expect(fault.message).toContain(`${CREATE} got no complete answer: ECONNREFUSED.`);
  });

  it('is a name that does not resolve: nothing arrived', async () => {
    const fault = await failed(openClient('http://service.invalid/api/v1'), create);
    expect(fault).toMatchObject({ code: 'service_unreachable', mayHaveArrived: false });
  });

  it('is a connection that ends before the answer', async () => {
    const peer = await startPeer((request) => request.socket.destroy());
    const fault = await failed(openClient(peer.url), create);
    expect(fault).toMatchObject({ code: 'service_unreachable', kind: 'transient', mayHaveArrived: true });
  });

  it('is a connection that ends in the middle of the body', async () => {
    const peer = await startPeer((_request, response) => {
      response.writeHead(200, { 'content-length': '1000', 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': '7' });
      response.write('{"paymentLink":{"id":"pl_1"', () => response.destroy());
    });
    const client = openClient(peer.url);
    expect(await failed(client, create)).toMatchObject({ code: 'service_unreachable', mayHaveArrived: true });
    // The headers came, and count.
    expect(client.budget.last().seen).toEqual({ limit: 60, remaining: 7 });
  });

  it('is a service that says nothing until the deadline', async () => {
    const peer = await startPeer(() => {});
    const fault = await failed(openClient(peer.url, { deadlineMs: 60 }), create);
    expect(fault).toMatchObject({ code: 'service_timeout', kind: 'transient', mayHaveArrived: true });
    expect(fault.message).toContain(`${CREATE} was not answered within 0.06 s.`);
  });

  it('is a body that dribbles beyond the deadline, which is one for all of it', async () => {
    const peer = await startPeer((_request, response) => {
      response.writeHead(200);
      const dribble = setInterval(() => response.write(' '), 10);
      response.on('close', () => clearInterval(dribble));
    });
    expect(await failed(openClient(peer.url, { deadlineMs: 120 }), show)).toMatchObject({
      code: 'service_timeout',
      mayHaveArrived: false,
    });
  });

  it('is a refusal whose words never end: its status counts', async () => {
    const peer = await startPeer((_request, response) => {
      response.writeHead(429, { 'retry-after': '7' }).write('{');
    });
    // Long enough for the status to arrive on a busy machine; the words never do.
    const client = openClient(peer.url, { deadlineMs: 2_000 });
    expect(await failed(client, create)).toMatchObject({ code: 'service_rate_limited' });
    expect(client.budget.last().pause).not.toBeNull();
  });

  it('is a client that is closed, which ends what is under way and takes nothing more', async () => {
    const arrived = Promise.withResolvers<void>();
    const peer = await startPeer(() => arrived.resolve());
    const client = openClient(peer.url, { deadlineMs: 600_000 });
    const failing = failed(client, create);
    await arrived.promise;
    client.service.close();
    expect(await failing).toMatchObject({ code: 'service_unreachable', mayHaveArrived: true });
    expect(await failed(client, create)).toMatchObject({ code: 'service_unreachable', mayHaveArrived: false });
    expect(client.budget.taken).toHaveLength(1);
  });
});

describe('paylink: what the service says of itself', () => {
  it.each(['object', 'error-text', 'message', 'errors', 'detail'])(
    'is kept if the service has error-body=%s',
    async (shape) => {
      const sandbox = await startTestSandbox({ apiKey: API_KEY, switches: [`error-body=${shape}`] });
      const client = openClient(`${sandbox.url}/api/v1`);
      const fault = await failed(client, (service) => service.createLink({ ...NEW_LINK, title: '' }, 'create'));
      expect(fault).toMatchObject({ code: 'service_refused', kind: 'terminal', status: 400 });
      expect(fault.message).toMatch(/^POST \/payment-links answered 400 \(title .+\)\. The same request/);
    },
  );

  it.each([
    ['the key', API_KEY],
    ['the key as an address has it', encodeURIComponent(API_KEY)],
    ['the key with something between', API_KEY.replace('of', 'o\u0000\u200bf')],
    ['the signing secret', NEW_LINK.webhookSecret],
    ['the token of the webhook', 'token-of-22-characters'],
  ])('never holds %s', async (_name, secret) => {
    const words = `"${secret}" is wrong: ${secret}`;
    for (const body of [{ error: { message: words } }, { error: words }, { errors: [words] }, words]) {
      const fault = await failed(openClient((await startAnswering(400, body)).url), create);
      expect(fault.message).toContain('answered 400 ("[hidden]" is wrong: [hidden]).');
    }
  });

  it.each([
    [{ errors: [{ message: 'too little' }] }, 'too little'],
    [{ errors: [{ field: 'amount', message: 'too little' }, 'and late', 7, null] }, 'amount: too little; and late'],
    [{ message: 'Invalid', errors: [{ path: 'amount', msg: 'too little' }] }, 'Invalid: amount: too little'],
    [
      { error: { errors: { amount: ['too little', 'no'], title: 'is long' } } },
      'amount: too little; amount: no; title: is long',
    ],
    [{ message: 'too little', errors: ['too little'] }, 'too little'],
    [{ detail: 'too little' }, 'too little'],
    [{ title: 'Bad Request', detail: 'too little' }, 'too little'],
    [{ title: 'Bad Request' }, 'Bad Request'],
    [{ error: 'invalid_request', error_description: 'too little' }, 'too little'],
    ['too\tlittle\n', 'too little'],
    [{ errors: Array.from({ length: 99 }, (_, at) => `e${at}`) }, 'e0; e1; e2; e3; e4; e5; e6; e7; e8; e9'],
  ])('is found in %j', async (body, words) => {
    const peer = await startAnswering(400, body);
    expect((await failed(openClient(peer.url), create)).message).toContain(` answered 400 (${words}). `);
  });

  it('holds no part of the key if it is cut', async () => {
    const peer = await startAnswering(400, { message: `${'x'.repeat(295)}${API_KEY}` });
    const { message } = await failed(openClient(peer.url), create);
    expect(message).toContain('x'.repeat(295));
    expect(message).not.toContain(API_KEY.slice(0, 3));
  });

  it('is 300 printable characters of one line at most', async () => {
    const peer = await startAnswering(400, { message: `no\n\tway\u0007\u202e ${'x'.repeat(400)}` });
    const { message } = await failed(openClient(peer.url), create);
    expect(message).toContain(`answered 400 (no way ${'x'.repeat(293)}).`);
  });

  it.each([
    ['HTML', '<h1>Bad Gateway</h1>'],
    ['no message', { error: { code: 7 } }],
    ['an empty one', { message: ' ', error: null }],
    ['a list', { message: ['no'] }],
  ])('is left out if it is %s', async (_name, body) => {
    const peer = await startAnswering(502, body);
    const { message } = await failed(openClient(peer.url), show);
    expect(message).toBe(`${SHOW} answered 502. The service failed; nothing is known to be wrong with the request.`);
  });

  it('is kept with anything that the shop wrote into its addresses', async () => {
    const link = { ...NEW_LINK, callbackUrl: 'https://shop.example/half-a-character-\ud800' };
    const peer = await startAnswering(400, { message: 'callbackUrl is wrong' });
    const fault = await failed(openClient(peer.url), (service) => service.createLink(link, 'create'));
    expect(fault.message).toContain('(callbackUrl is wrong)');
  });

  it('never holds a key that no header can carry', async () => {
    const readKey = () => `${API_KEY}\u2026`;
    const peer = await startAnswering(200, { paymentLink: LINK_DETAILS });
    expect(await failed(openClient(peer.url, { readKey }), show)).toMatchObject({ code: 'service_unreachable' });
  });
});

describe('paylink: what a fault promises', () => {
  it.each([200, 301, 400, 401, 403, 404, 408, 409, 422, 425, 429, 500, 503])(
    'is not that anybody tries again: an answer of %i',
    async (status) => {
      const peer = await startAnswering(status, 'no JSON');
      for (const call of [create, show, (service: Service) => service.listLinks(1, 'janitor')]) {
        expect((await failed(openClient(peer.url), call)).message).not.toMatch(/tri(ed|es) again|trying again/i);
      }
    },
  );

  it('does not include a retry: no answer', async () => {
    const silent = await startPeer(() => {});
    const late = await failed(openClient(silent.url, { deadlineMs: 20 }), show);
    const gone = await failed(openClient('http://127.0.0.1:1'), show);
    expect([late.code, gone.code]).toEqual(['service_timeout', 'service_unreachable']);
    for (const { message } of [late, gone]) expect(message).not.toMatch(/again/i);
  });
});

describe('paylink: the service as it fails', () => {
  const plan = async (fault: object) => {
    const sandbox = await startTestSandbox({ apiKey: API_KEY });
    expect((await sandbox.control('/faults', { body: fault })).status).toBe(201);
    return { sandbox, client: openClient(`${sandbox.url}/api/v1`, { deadlineMs: 1_000 }) };
  };

  it.each(['before', 'after'])('loses an answer %s it carries out the request', async (when) => {
    const { sandbox, client } = await plan({ fault: 'lose-response', with: { when } });
    expect(await failed(client, create)).toMatchObject({ code: 'service_unreachable', mayHaveArrived: true });
    const { links } = (await sandbox.control('/links')).body;
    expect(links).toHaveLength(when === 'after' ? 1 : 0);
  });

  it('answers after the deadline', async () => {
    const { client } = await plan({ fault: 'slow', with: { ms: 5_000 } });
    expect(await failed(client, create)).toMatchObject({ code: 'service_timeout', mayHaveArrived: true });
  });

  it('answers 503', async () => {
    const { client } = await plan({ fault: 'server-error' });
    const fault = await failed(client, create);
    expect(fault).toMatchObject({ code: 'service_failed', status: 503 });
    expect(fault.message).toContain('A planned fault: the service answers 503.');
  });

  it('knows the reference already', async () => {
    const { client } = await plan({ fault: 'server-error', skip: 2 });
    await create(client.service);
    expect(await failed(client, create)).toMatchObject({ code: 'service_conflict', kind: 'terminal' });
  });

  it('knows no such link', async () => {
    const { client } = await plan({ fault: 'server-error', skip: 1 });
    expect(await failed(client, show)).toMatchObject({ code: 'service_not_found', kind: 'terminal' });
  });
});
