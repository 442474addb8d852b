import { describe, expect, it } from 'vitest';
import { MINUTE_MS, startTestSandbox } from '../support/sandbox.ts';
import { act, create, details, RICH } from './client.ts';

describe('control: the requests to the API', () => {
  it('are listed in order, each with its time and status, refused ones too', async () => {
    const sandbox = await startTestSandbox({ rateLimit: 2 });
    const atMs = sandbox.clock.nowMs();
    const { id } = await create(sandbox, RICH);
    await sandbox.call('/payment-links?page=1');
    await sandbox.clock.advance(30_000);
    await sandbox.call(`/payment-links/${id}`);
    await sandbox.call('/merchant/profile', { headers: { 'x-api-key': 'another' } });
    const { requests, total } = (await sandbox.control('/requests')).body;
    expect(requests).toMatchObject([
      { number: 1, method: 'POST', path: '/api/v1/payment-links', status: 201 },
      { number: 2, method: 'GET', path: '/api/v1/payment-links?page=1', status: 200 },
      { number: 3, method: 'GET', path: `/api/v1/payment-links/${id}`, status: 429 },
      { number: 4, method: 'GET', path: '/api/v1/merchant/profile', status: 401 },
    ]);
    expect(total).toBe(4);
    const secondsAfter = requests.map(({ epochMs }: { epochMs: number }) => Math.floor((epochMs - atMs) / 10_000));
    expect(secondsAfter).toEqual([0, 0, 3, 3]);
    expect(Date.parse(requests[0].at)).toBe(requests[0].epochMs);
  });

  it('are listed after a given one, without requests to the controls', async () => {
    const sandbox = await startTestSandbox();
    for (let n = 0; n < 3; n++) await sandbox.call('/merchant/profile');
    const after = (await sandbox.control('/requests?after=2')).body;
    expect(after.requests.map(({ number }: { number: number }) => number)).toEqual([3]);
    expect((await sandbox.control('/requests?after=3')).body).toEqual({ requests: [], total: 0 });
    expect(await sandbox.control('/requests?after=-1')).toMatchObject({
      status: 400,
      body: { error: { field: 'after' } },
    });
  });
});

describe('control: what the merchant wins back', () => {
  it('completes a disputed payment again, and nothing else', async () => {
    const sandbox = await startTestSandbox();
    const { id } = await create(sandbox, RICH);
    expect((await sandbox.control(`/links/${id}/win`, { method: 'POST' })).status).toBe(404);
    await act(sandbox, id, 'pay');
    await act(sandbox, id, 'dispute');
    expect((await details(sandbox, id)).payments[0].status).toBe('DISPUTED');
    await act(sandbox, id, 'win');
    expect(await details(sandbox, id)).toMatchObject({
      paymentStatus: 'COMPLETED',
      payments: [{ status: 'COMPLETED' }],
    });
  });

  it('makes a used link active, so that it is paid again', async () => {
    const sandbox = await startTestSandbox();
    const { id } = await create(sandbox, RICH);
    await act(sandbox, id, 'pay');
    await sandbox.clock.advance(MINUTE_MS);
    expect(await act(sandbox, id, 'enable')).toMatchObject({ status: 'ACTIVE', paymentStatus: 'COMPLETED' });
    expect((await act(sandbox, id, 'pay')).payments).toHaveLength(2);
  });
});
