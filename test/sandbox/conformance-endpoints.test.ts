import { describe, expect, it } from 'vitest';
import { startTestSandbox } from '../support/sandbox.ts';
import { act, BARE, create, deliveredKinds, details, RICH, startReceiver } from './client.ts';

/** The specification's sections 1 and 4, row by row, from the outside. */

const PROFILE = '/merchant/profile';
const LINKS = '/payment-links';

describe('section 1', () => {
  it('payments are embedded in the details; they have no separate endpoint', async () => {
    const sandbox = await startTestSandbox();
    const { id } = await create(sandbox, BARE);
    const { payments } = await act(sandbox, id, 'pay');
    expect((await details(sandbox, id)).payments).toEqual(payments);
    for (const path of ['/payments', `/payments/${payments[0].id}`, `${LINKS}/${id}/payments`]) {
      expect((await sandbox.call(path)).status).toBe(404);
    }
  });

  it('restriction 1: the list is 403 in the sandbox environment', async () => {
    const sandbox = await startTestSandbox({ environment: 'sandbox' });
    expect((await sandbox.call(LINKS)).status).toBe(403);
    expect((await sandbox.call(`${LINKS}?status=ACTIVE`)).status).toBe(403);
  });

  it('restriction 2: payments are disabled in the sandbox environment, creation is not', async () => {
    const sandbox = await startTestSandbox({ environment: 'sandbox' });
    const { id } = await create(sandbox, BARE);
    expect((await sandbox.control(`/links/${id}/pay`, { body: {} })).status).toBe(403);
    expect(await details(sandbox, id)).toMatchObject({ paymentStatus: 'NOT_STARTED', payments: [] });
  });

  it('restriction 3: a change sends no event in the sandbox environment', async () => {
    const { url, received } = await startReceiver();
    const sandbox = await startTestSandbox({ environment: 'sandbox' });
    const { id } = await create(sandbox, { ...RICH, webhookUrl: url });
    await act(sandbox, id, 'expire');
    await sandbox.idle();
    expect([received, await deliveredKinds(sandbox, id)]).toEqual([[], []]);
  });

  it('the recommended flow: the completion arrives with the latest payment, and can be polled too', async () => {
    const { url, received } = await startReceiver();
    const sandbox = await startTestSandbox();
    const { id } = await create(sandbox, { ...RICH, webhookUrl: url });
    await act(sandbox, id, 'pay');
    await sandbox.idle();
    const { paymentStatus, payments } = await details(sandbox, id);
    expect(paymentStatus).toBe('COMPLETED');
    const told = received.map((body) => JSON.parse(body)).filter(({ data }) => data.latestPayment);
    expect(told.at(-1).data).toMatchObject({ paymentStatus, latestPayment: payments[0] });
  });
});

describe('section 4', () => {
  it('GET /merchant/profile answers success and the merchant', async () => {
    const { status, body } = await (await startTestSandbox()).call(PROFILE);
    expect([status, Object.keys(body), body.success]).toEqual([200, ['success', 'merchant'], true]);
  });

  it('POST /payment-links answers success and the link with its addresses and its secret', async () => {
    const { body } = await (await startTestSandbox()).call(LINKS, { body: BARE });
    expect([Object.keys(body), body.success]).toEqual([['success', 'paymentLink'], true]);
    const text = expect.stringMatching(/./);
    expect(body.paymentLink).toMatchObject({ url: text, shortUrl: text, webhookSecret: text });
  });

  it.each([
    ['title', 'Two chairs', '', 400],
    ['amount', 25.01, 25, 400],
    ['externalReference', 'order-2', 'order-1', 409],
    ['expiresAt', '2099-01-01T00:00:00.000Z', 'tomorrow', 400],
    ['metadata', { a: [1] }, 'text', 400],
    ['webhookUrl', 'https://shop.example/hook', 'shop.example/hook', 400],
    ['webhookSecret', 'chosen', '', 400],
    ['callbackUrl', 'https://shop.example/thanks', 7, 400],
  ])('POST /payment-links: %s', async (field, right, wrong, status) => {
    const sandbox = await startTestSandbox();
    await create(sandbox, { ...BARE, externalReference: 'order-1' });
    expect((await create(sandbox, { ...BARE, [field]: right }))[field]).toEqual(right);
    const refused = await sandbox.call(LINKS, { body: { ...BARE, [field]: wrong } });
    expect(refused).toMatchObject({ status, body: { success: false, error: { field } } });
    expect(refused.body.error.message).toContain(field);
    const omitted = await sandbox.call(LINKS, { body: { ...BARE, [field]: undefined } });
    expect(omitted.status).toBe(['title', 'amount'].includes(field) ? 400 : 201);
  });

  it('GET /payment-links answers success, the newest link first, and the pagination', async () => {
    const sandbox = await startTestSandbox();
    const ids: string[] = [];
    for (let link = 0; link < 3; link++) ids.unshift((await create(sandbox, BARE)).id);
    const { status, body } = await sandbox.call(LINKS);
    expect([status, body.success]).toEqual([200, true]);
    expect(Object.keys(body)).toEqual(['success', 'paymentLinks', 'pagination']);
    expect(idsOf(body)).toEqual(ids);
  });

  it.each([
    ['status=ACTIVE', [0]],
    ['status=INACTIVE', [1]],
    ['status=EXPIRED', [2]],
    ['status=OPEN', [2, 1, 0]],
    ['status=active', [2, 1, 0]],
    ['externalReference=order-1', [1]],
    ['externalReference=order', []],
    ['externalReference=ORDER-1', []],
    ['status=EXPIRED&externalReference=order-1', []],
    ['page=1&pageSize=2', [2, 1]],
    ['page=2&pageSize=2', [0]],
    ['page=3&pageSize=2', []],
  ])('GET /payment-links?%s', async (query, expected) => {
    const sandbox = await startTestSandbox();
    const ids: string[] = [];
    for (const number of [0, 1, 2]) {
      ids.push((await create(sandbox, { ...BARE, externalReference: `order-${number}` })).id);
    }
    await act(sandbox, ids[1] as string, 'pay');
    await act(sandbox, ids[2] as string, 'expire');
    const { body } = await sandbox.call(`${LINKS}?${query}`);
    expect(idsOf(body)).toEqual(expected.map((number) => ids[number]));
  });

  it('GET /payment-links/{id} answers success and the link', async () => {
    const sandbox = await startTestSandbox();
    const { id } = await create(sandbox, BARE);
    const { status, body } = await sandbox.call(`${LINKS}/${id}`);
    expect([status, Object.keys(body), body.success]).toEqual([200, ['success', 'paymentLink'], true]);
    expect(body.paymentLink.id).toBe(id);
  });
});

function idsOf({ paymentLinks }: { paymentLinks: { id: string }[] }): string[] {
  return paymentLinks.map(({ id }) => id);
}
