import request from 'supertest';
import { expect } from 'vitest';
import { OPERATOR_TOKEN, SHOP_TOKEN, type TestApp } from '../support/app.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { expectDocumented } from '../support/document.ts';
import { freshReference } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';

type Token = 'operator' | 'shop';

/** Calls the private API as the operator, or as the shop. */
export function get(settled: TestApp, path: string, token: Token = 'operator'): request.Test {
  return request(settled.apiUrl).get(path).set('authorization', bearer(token)).expect(documented);
}

export function post(settled: TestApp, path: string, body: object, token: Token = 'operator'): request.Test {
  return request(settled.apiUrl).post(path).set('authorization', bearer(token)).send(body).expect(documented);
}

/** Sends a body exactly as it is written, as JSON unless told otherwise. */
export function postText(
  settled: TestApp,
  path: string,
  body: string,
  headers: Record<string, string> = {},
): request.Test {
  return request(settled.apiUrl)
    .post(path)
    .set({ authorization: bearer('operator'), 'content-type': 'application/json', ...headers })
    .send(body)
    .expect(documented);
}

/** What a browser that is signed in sends if a page of another site makes it, under a name that leads here. */
export function crossSite(settled: TestApp, method: 'get' | 'post', path: string, cookie: string): request.Test {
  return request(settled.apiUrl)[method](path).set({ cookie, host: 'elsewhere.example' }).expect(documented);
}

/** What a page of the console sends for a person who is signed in. */
export function bySession(
  settled: TestApp,
  method: 'get' | 'post',
  path: string,
  own: Record<string, string>,
): request.Test {
  return request(settled.apiUrl)[method](path).set(own).expect(documented);
}

/** Every answer is one that the API's document has. */
function documented({ status, headers, body, text, request }: Readonly<request.Response> & Asked): void {
  const type = headers['content-type'] ?? null;
  const { method, path } = request.req;
  const header = (name: string) => headers[name];
  const isJson = type?.includes('json') === true;
  expectDocumented({ method, path, status, contentType: type, body: isJson ? body : text, header });
}

type Asked = { request: { req: { method: string; path: string } } };

function bearer(token: Token): string {
  return `Bearer ${token === 'operator' ? OPERATOR_TOKEN : SHOP_TOKEN}`;
}

/** Expects an error answer as RFC 9457 has it, and returns its sentence. */
export function problem(response: request.Response, status: number, code: string): string {
  expect(response.body).toMatchObject({
    type: `urn:settled:problem:${code}`,
    title: code,
    status,
    detail: expect.stringMatching(/./),
  });
  expect(response.status).toBe(status);
  expect(response.headers['content-type']).toMatch(/^application\/problem\+json/);
  return response.body.detail;
}

export function orderPath(reference: string): string {
  return `/v1/orders/${encodeURIComponent(reference)}`;
}

/** Reserves an order of 100.00 BRL and delivers an event for it, then waits until the order is in the state. */
async function orderIn(
  settled: TestApp,
  state: string,
  event: Parameters<typeof paymentEvent>[0],
  reference = freshReference(),
): Promise<{ reference: string; link: Awaited<ReturnType<TestApp['reserve']>> }> {
  const link = await settled.reserve(reference);
  await deliverAndSee(settled, link, paymentEvent({ linkId: `pl_${reference}`, ...event }), state);
  return { reference, link };
}

export async function deliverAndSee(
  settled: TestApp,
  link: Awaited<ReturnType<TestApp['reserve']>>,
  body: string,
  state: string,
): Promise<void> {
  expect((await settled.deliver(link, body)).status).toBe(200);
  await eventually(async () => expect((await settled.order(link.reference)).state).toBe(state));
}

/** An order for 100.00 of which 60.00 came: held for a person. */
export function heldOrder(settled: TestApp, reference = freshReference()) {
  return orderIn(settled, 'held', { amount: '60.00', paymentId: `pay_${reference}` }, reference);
}

export function paidOrder(settled: TestApp, reference = freshReference()) {
  return orderIn(settled, 'paid', { amount: '100.00', paymentId: `pay_${reference}` }, reference);
}
