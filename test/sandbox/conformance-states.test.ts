import { describe, expect, it } from 'vitest';
import { startTestSandbox } from '../support/sandbox.ts';
import { act, BARE, create, deliveredKinds, details, paymentStatusesTold, RICH } from './client.ts';

/** The specification's section 3, row by row, from the outside. */

describe('section 3, link status', () => {
  it('a new link is ACTIVE and can be paid', async () => {
    const sandbox = await startTestSandbox();
    const { id, status } = await create(sandbox, BARE);
    expect(status).toBe('ACTIVE');
    expect((await act(sandbox, id, 'pay', { complete: false })).payments).toHaveLength(1);
  });

  it('ACTIVE becomes INACTIVE when a payment completes, an event says so, and no second payment starts', async () => {
    const sandbox = await startTestSandbox();
    const { id } = await create(sandbox, RICH);
    await act(sandbox, id, 'pay', { complete: false });
    expect(await details(sandbox, id)).toMatchObject({ status: 'ACTIVE' });
    await act(sandbox, id, 'complete');
    expect(await details(sandbox, id)).toMatchObject({ status: 'INACTIVE', isActive: true, isExpired: false });
    expect(await deliveredKinds(sandbox, id)).toContain('payment_link.status_changed');
    const again = await sandbox.control(`/links/${id}/pay`, { body: {} });
    expect(again).toMatchObject({ status: 403, body: { error: { code: 'link_not_active' } } });
    expect((await details(sandbox, id)).payments).toHaveLength(1);
  });

  it('ACTIVE becomes EXPIRED when expiresAt is reached, and not before', async () => {
    const sandbox = await startTestSandbox();
    const expiresAt = new Date(sandbox.clock.nowMs() + 3_600_000).toISOString();
    const { id } = await create(sandbox, { ...BARE, webhookUrl: RICH.webhookUrl, expiresAt });
    await sandbox.clock.advance(3_590_000);
    expect(await details(sandbox, id)).toMatchObject({ status: 'ACTIVE', isActive: true, isExpired: false });
    await sandbox.clock.advance(10_000);
    expect(await details(sandbox, id)).toMatchObject({
      status: 'EXPIRED',
      isActive: false,
      isExpired: true,
      expiresAt,
    });
    expect(await deliveredKinds(sandbox, id)).toContain('payment_link.status_changed');
    expect((await sandbox.control(`/links/${id}/pay`, { body: {} })).status).toBe(403);
  });
});

describe('section 3, aggregate paymentStatus', () => {
  it('goes from NOT_STARTED over PENDING to COMPLETED, with an event for each step', async () => {
    const sandbox = await startTestSandbox();
    const { id } = await create(sandbox, RICH);
    const step = async () => [(await details(sandbox, id)).paymentStatus, await paymentStatusesTold(sandbox, id)];
    expect(await step()).toEqual(['NOT_STARTED', []]);
    await act(sandbox, id, 'pay', { complete: false });
    expect(await step()).toEqual(['PENDING', ['PENDING']]);
    await act(sandbox, id, 'pay', { complete: false });
    expect(await step()).toEqual(['PENDING', ['PENDING']]);
    await act(sandbox, id, 'complete');
    expect(await step()).toEqual(['COMPLETED', ['PENDING', 'COMPLETED']]);
  });

  it.each(['refund', 'dispute'])('stays COMPLETED after a %s', async (action) => {
    const sandbox = await startTestSandbox();
    const { id } = await create(sandbox, RICH);
    await act(sandbox, id, 'pay');
    await act(sandbox, id, action);
    expect(await details(sandbox, id)).toMatchObject({ paymentStatus: 'COMPLETED', status: 'INACTIVE' });
  });
});

describe('section 3, payment status', () => {
  it.each([
    ['PENDING', [['pay', { complete: false }]]],
    ['COMPLETED', [['pay', {}]]],
    [
      'DISPUTED',
      [
        ['pay', {}],
        ['dispute', {}],
      ],
    ],
    [
      'REFUNDED',
      [
        ['pay', {}],
        ['refund', {}],
      ],
    ],
  ] as [string, [string, object][]][])('%s', async (status, actions) => {
    const sandbox = await startTestSandbox();
    const { id } = await create(sandbox, BARE);
    for (const [action, body] of actions) await act(sandbox, id, action, body);
    const { payments, paymentsSummary } = await details(sandbox, id);
    expect(payments).toMatchObject([{ status }]);
    expect(paymentsSummary).toMatchObject({ total: 1, byStatus: { [status]: 1 } });
  });
});
