import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import {
  type Answer,
  OPERATIONS,
  type OperationName,
  payUrlOf,
  SettledError,
  settledClient,
} from '../../client/settled.ts';
import { ORDER_STATES } from '../../src/domain/order.ts';
import { SHOP_TOKEN } from '../support/app.ts';
import { DOCUMENT, DOCUMENTED, faultsBySchema, responseOf } from '../support/document.ts';
import { serveHere } from '../support/http.ts';
import { freePort } from '../support/network.ts';
import { act } from '../support/sandbox.ts';
import { freshReference, sharedShop } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';

const shop = sharedShop();
const client = () => settledClient({ url: shop().settled.apiUrl, token: SHOP_TOKEN });
const chair = (reference: string) => ({ reference, title: 'A chair', amount: '100.00' });

describe("the client's calls", () => {
  it('open an order, and the same one when they are repeated', async () => {
    const reference = freshReference();
    const { order, payUrl, opening } = await client().open({ ...chair(reference), metadata: { cart: 'ç' } });
    expect(payUrl).toMatch(new RegExp(`^${shop().sandbox.url}/pay/`));
    expect(order).toMatchObject({ reference, state: 'awaiting_payment', metadata: { cart: 'ç' } });
    expect(opening).toBeNull();
    expect(await client().open({ ...chair(reference), metadata: { cart: 'ç' } })).toEqual({ order, payUrl, opening });
  });

  it('give no address to pay at once the order is paid', async () => {
    const reference = freshReference();
    const { order } = await client().open(chair(reference));
    await act(shop().sandbox, { id: String(order.link?.id) }, 'pay');
    await eventually(async () => expect((await client().get(reference))?.state).toBe('paid'));
    expect(await client().open(chair(reference))).toMatchObject({ order: { state: 'paid' }, payUrl: null });
    await expect(client().cancel(reference)).rejects.toMatchObject({ code: 'not_cancellable', answered: 409 });
  });

  it('send nobody to pay who has begun to, whose link has ended, or who has no link', async () => {
    const { order } = await client().open(chair(freshReference()));
    const { link } = order as { link: NonNullable<typeof order.link> };
    expect(payUrlOf(order)).toBe(link.url);
    const others = ORDER_STATES.filter((state) => state !== 'awaiting_payment');
    for (const state of others) expect(payUrlOf({ ...order, state }), state).toBeNull();
    for (const status of ['EXPIRED', 'INACTIVE']) expect(payUrlOf({ ...order, link: { ...link, status } })).toBeNull();
    const endMs = Date.parse(String(link.expiresAt));
    expect([payUrlOf(order, endMs - 1), payUrlOf(order, endMs)]).toEqual([link.url, null]);
    expect(payUrlOf({ ...order, link: { ...link, expiresAt: null } }, endMs)).toBe(link.url);
    expect(payUrlOf({ ...order, link: null })).toBeNull();
  });

  it('ask the service, cancel, and say that a cancelled order opens no more', async () => {
    const reference = `${freshReference()}/ä?&#%`;
    await client().open(chair(reference));
    const checked = await client().check(reference);
    expect(checked).toMatchObject({
      order: { reference },
      service: { linkStatus: 'ACTIVE', paymentStatus: 'NOT_STARTED' },
    });
    expect(await client().cancel(reference)).toMatchObject({ reference, state: 'cancelled' });
    expect(await client().get(reference)).toMatchObject({ state: 'cancelled' });
    const refused = client().open(chair(reference));
    await expect(refused).rejects.toBeInstanceOf(SettledError);
    await expect(refused).rejects.toMatchObject({ code: 'order_cancelled', requestId: expect.any(String) });
  });

  it('know nothing of an order that settled does not know', async () => {
    expect(await client().get('nobodys')).toBeNull();
    await expect(client().check('nobodys')).rejects.toMatchObject({ code: 'not_found' });
  });

  it('say what is wrong with which field', async () => {
    const wrong = client().open({ ...chair(freshReference()), title: '' });
    await expect(wrong).rejects.toMatchObject({ code: 'invalid_request', errors: [{ path: 'title' }] });
  });

  it('reach every operation of the shop, and each answer is as documented', async () => {
    const { call } = client();
    const reference = freshReference();
    const path = { reference };
    const answers: { [Name in OperationName]: () => Promise<Answer<Name>> } = {
      openOrder: () => call('openOrder', { body: chair(reference) }),
      listOrders: () => call('listOrders', { query: { limit: 2, count: 'true', state: ['paid', 'awaiting_payment'] } }),
      registerLink: () => call('registerLink', { body: { reference: freshReference(), amount: 80 } }),
      ordersCsv: () => call('ordersCsv', { query: { q: reference } }),
      showOrder: () => call('showOrder', { path }),
      showTimeline: () => call('showTimeline', { path }),
      checkOrder: () => call('checkOrder', { path }),
      cancelOrder: () => call('cancelOrder', { path }),
      readFeed: () => call('readFeed', { query: { limit: 1000 } }),
    };
    const called: string[] = [];
    for (const [name, send] of Object.entries(answers)) {
      const answer = await send();
      const documented = DOCUMENTED.find(({ operation }) => operation.operationId === name);
      if (documented === undefined) throw new Error(`${name} is not in the document`);
      const { operation, method } = documented;
      expect(OPERATIONS[name as OperationName]).toBe(`${method.toUpperCase()} ${documented.path}`);
      const faults = ['200', '201'].map((status) => {
        const [content] = Object.values(responseOf(operation, status)?.content ?? {});
        return content && faultsBySchema(content.schema, answer, { named: DOCUMENT.components.schemas, strict: true });
      });
      expect([name, faults]).toEqual([name, expect.arrayContaining([[]])]);
      called.push(name);
    }
    expect(called.sort()).toEqual(Object.keys(OPERATIONS).sort());
    expect(await call('ordersCsv', { query: { q: reference } })).toContain(reference);
  });
});

type Step = (response: ServerResponse) => void;

/** A server that answers one request after the other with these; the last one again and again. */
async function scripted(...steps: Step[]) {
  const asked: string[] = [];
  const url = await serveHere((request, response) => {
    request.resume().on('end', () => {
      asked.push(`${request.method} ${request.url}`);
      steps[Math.min(asked.length, steps.length) - 1]?.(response);
    });
  });
  return { url, asked };
}
const answer =
  (status: number, headers: Record<string, string>, body: string): Step =>
  (response) =>
    response.writeHead(status, headers).end(body);
const json = (body: object) => answer(200, { 'content-type': 'application/json' }, JSON.stringify(body));
const problem = (status: number, title: string, headers = {}) =>
  answer(
    status,
    { 'content-type': 'application/problem+json', ...headers },
    JSON.stringify({ title, detail: 'So it is.' }),
  );
const found = json({ order: { reference: 'order-1' } });
const html = { 'content-type': 'text/html' };

const PASSING: [what: string, step: Step][] = [
  ['503 with Retry-After', problem(503, 'unavailable', { 'retry-after': '0' })],
  ['429 with Retry-After', problem(429, 'rate_limited', { 'retry-after': '0' })],
  ["a proxy's 502", answer(502, html, '<h1>Bad gateway</h1>')],
  ["a proxy's 504", answer(504, html, '')],
  ["a proxy's own problem", problem(503, 'Service Unavailable')],
  ['a connection that breaks', (response) => void response.destroy()],
  [
    'an answer that is cut off',
    (response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' });
      response.write('{"order":', () => response.destroy());
    },
  ],
  ['no answer within the time of an attempt', () => {}],
];

/** More than the client takes, and still not its end. */
const endless: Step = (response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  const part = Buffer.alloc(13 * 1024 * 1024, ' ');
  for (let parts = 0; parts < 5; parts++) response.write(part);
};

const LASTING: [what: string, step: Step, code: string, message: RegExp][] = [
  ['a wrong token', problem(401, 'unauthorized'), 'unauthorized', /So it is\..*SETTLED_SHOP_TOKEN/],
  ['503 without Retry-After', problem(503, 'api_not_configured'), 'api_not_configured', /^So it is\.$/],
  ['503 with a long Retry-After', problem(503, 'unavailable', { 'retry-after': '299' }), 'unavailable', /./],
  ['a bug', problem(500, 'internal'), 'internal', /./],
  ['a page', answer(404, html, '<h1>Not here</h1>'), 'not_settled', /answered 404.*private API \(port 8788/],
  ['a page in the place of an answer', answer(200, html, '<h1>Sign in</h1>'), 'not_settled', /answered 200/],
  ['a redirect', answer(301, { location: 'https://elsewhere.example/' }, ''), 'not_settled', /301 and leads to https:/],
  ['JSON that is none', answer(200, { 'content-type': 'application/json' }, '{'), 'not_settled', /answered 200/],
  ['JSON that is nothing', answer(200, { 'content-type': 'application/json' }, 'null'), 'not_settled', /answered 200/],
  ["another program's JSON", json({ status: 'ok' }), 'not_settled', /answered 200/],
  ['a table in the place of an order', answer(200, { 'content-type': 'text/csv' }, 'a,b'), 'not_settled', /200/],
  ['a problem without a title', problem(404, null as unknown as string), 'not_settled', /answered 404/],
  ['an answer that never ends', endless, 'not_settled', /200 with more than 64 MiB\. Ask for less/],
  ["another program's problem", problem(404, 'Not Found'), 'not_settled', /answered 404/],
];

describe("the client's retries", () => {
  it.each(PASSING)('repeat a call after %s', async (_, step) => {
    const { url, asked } = await scripted(step, found);
    const retried: SettledError[] = [];
    const settled = settledClient({
      // With what an environment or a file may have around it.
      url: ` ${url}/?\n`,
      token: 't',
      attemptMsMax: 500,
      onRetry: (one) => retried.push(one),
    });
    expect(await settled.get('order-1')).toEqual({ reference: 'order-1' });
    // More than two if this machine takes longer for one than an attempt may.
    expect(asked.length).toBeGreaterThanOrEqual(2);
    expect(new Set(asked)).toEqual(new Set(['GET /v1/orders/order-1']));
    expect(retried).toEqual(Array(asked.length - 1).fill(expect.any(SettledError)));
  });

  it.each(LASTING)('do not repeat a call after %s', async (_, step, code, message) => {
    const { url, asked } = await scripted(step);
    const settled = settledClient({ url, token: 't' });
    await expect(settled.get('order-1')).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    expect(asked).toHaveLength(1);
  });

  it('become rarer although the answer says: at once', async () => {
    const { url, asked } = await scripted(problem(503, 'unavailable', { 'retry-after': '0' }));
    const waits: number[] = [];
    const settled = settledClient({ url, token: 't', callMsMax: 2_000, onRetry: (_, waitMs) => waits.push(waitMs) });
    await expect(settled.get('order-1')).rejects.toMatchObject({ code: 'unavailable' });
    expect(asked).toHaveLength(waits.length + 1);
    expect(waits.map((waitMs, at) => waitMs >= 125 * 2 ** at)).toEqual(waits.map(() => true));
  });

  it('end with what settled said if the process had no time until the call was over', async () => {
    const { url, asked } = await scripted(problem(503, 'unavailable', { 'retry-after': '1' }));
    const onRetry = () => {
      const endMs = performance.now() + 1_600;
      while (performance.now() < endMs);
    };
    const settled = settledClient({ url, token: 't', callMsMax: 1_500, onRetry });
    await expect(settled.get('order-1')).rejects.toMatchObject({ name: 'SettledError', code: 'unavailable' });
    expect(asked).toHaveLength(1);
  });

  it('end with the time of the call, and say what to look at', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const retried: number[] = [];
    const settled = settledClient({ url, token: 't', callMsMax: 1_000, onRetry: (_, waitMs) => retried.push(waitMs) });
    const failed = settled.open(chair('order-1'));
    await expect(failed).rejects.toMatchObject({ code: 'no_answer', answered: null });
    await expect(failed).rejects.toThrow(`${url} did not answer (ECONNREFUSED). Is settled running`);
    expect(retried.length).toBeGreaterThanOrEqual(1);
    expect(retried.reduce((sum, one) => sum + one, 0)).toBeLessThan(1_000);
  });
});

describe('options that cannot be right', () => {
  const right = { url: 'http://127.0.0.1:8788', token: 't' };
  it.each([
    ['url', { ...right, url: '127.0.0.1:8788' }, /^url: .*such as http/],
    ['url', { ...right, url: 'ftp://127.0.0.1' }, /^url: /],
    ['url', { ...right, url: 'http://shop:canary@127.0.0.1:8788' }, /^url: (?!.*canary)/],
    ['url', { ...right, url: 'ftp://shop:canary@127.0.0.1:8788' }, /^url: (?!.*canary)/],
    ['url', { ...right, url: 'http://127.0.0.1:8788/?a=b' }, /^url: /],
    ['url', { ...right, url: 'http://127.0.0.1:8788/#a' }, /^url: /],
    ['token', { ...right, token: '' }, /^token: .*SETTLED_SHOP_TOKEN/],
    ['token', { ...right, token: 'a\n' }, /^token: /],
    ['secret', { ...right, secret: '' }, /^secret: .*SETTLED_SHOP_SECRET/],
    ['secret', { ...right, secret: 'whsec_c2hvcnQ=' }, /^secret: .*24 to 64 bytes/],
    ['secret', { ...right, secret: 'x'.repeat(40) }, /^secret: /],
  ])('are told at the start: %s', (_, options, message) => {
    expect(() => settledClient(options)).toThrow(message);
    expect(() => settledClient(options)).toThrow(TypeError);
  });
});
