import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { testFolder } from '../support/app.ts';
import { startTestSandbox, type TestSandbox } from '../support/sandbox.ts';

const HOUR_MS = 3_600_000;

async function create(sandbox: TestSandbox, over: object = {}): Promise<string> {
  const { status, body } = await sandbox.call('/payment-links', {
    body: { title: 'A chair', amount: 100, webhookUrl: 'http://127.0.0.1:9/nobody', ...over },
  });
  expect(status).toBe(201);
  return body.paymentLink.id;
}

const inHours = (sandbox: TestSandbox, hours: number) =>
  new Date(sandbox.clock.nowMs() + hours * HOUR_MS).toISOString();

const statusOf = async (sandbox: TestSandbox, id: string) =>
  (await sandbox.call(`/payment-links/${id}`)).body.paymentLink.status;

describe('the life of a link in the sandbox', () => {
  it('expires at its time, even if it was disabled and enabled meanwhile', async () => {
    const sandbox = await startTestSandbox({ environment: 'sandbox' });
    const id = await create(sandbox, { expiresAt: inHours(sandbox, 2) });
    for (const value of ['INACTIVE', 'ACTIVE']) {
      const set = await fetch(`${sandbox.url}/pay/${id}/panel/status`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ value }),
      });
      expect(set.status).toBe(200);
      await create(sandbox);
    }
    await sandbox.clock.advance(HOUR_MS);
    expect(await statusOf(sandbox, id)).toBe('ACTIVE');
    await sandbox.clock.advance(HOUR_MS);
    expect(await statusOf(sandbox, id)).toBe('EXPIRED');
  });

  it('names whole addresses in the event of a link that expired while the sandbox was down', async () => {
    const data = join(testFolder(), 'sandbox.db');
    const before = await startTestSandbox({ data });
    const id = await create(before, { expiresAt: inHours(before, 1) });
    await before.stop();
    const db = new Database(data);
    db.prepare(`UPDATE setting SET value = ? WHERE name = 'turned_ms'`).run(String(2 * HOUR_MS));
    db.close();
    const after = await startTestSandbox({ data, listen: { host: 'localhost', port: 0 } });
    await expect.poll(() => statusOf(after, id)).toBe('EXPIRED');
    const { events } = (await after.control(`/events?link=${id}`)).body;
    expect(JSON.parse(events.at(-1).body).data.paymentLink).toMatchObject({
      status: 'EXPIRED',
      url: `${after.url}/pay/${id}`,
    });
  });

  it.each([
    ['paid', 'complete'],
    ['expired', 'expire'],
  ])('takes no second payment once it is %s', async (_state, action) => {
    const sandbox = await startTestSandbox();
    const id = await create(sandbox);
    for (const _ of [1, 2]) await sandbox.control(`/links/${id}/pay`, { body: { complete: false } });
    expect((await sandbox.control(`/links/${id}/${action}`, { method: 'POST' })).status).toBe(200);
    const second = await sandbox.control(`/links/${id}/complete`, { method: 'POST' });
    expect(second).toMatchObject({ status: 403, body: { error: { code: 'link_not_active' } } });
  });

  it('has short addresses that stay apart for very many links', async () => {
    // With eight hexadecimal digits, link 862 of this seed has the short address of an earlier one.
    const sandbox = await startTestSandbox({ seed: '2159', rateLimit: null });
    const shorts = new Set<string>();
    for (let n = 0; n < 900; n++) {
      const { body } = await sandbox.call('/payment-links', { body: { title: 'A chair', amount: 100 } });
      shorts.add(body.paymentLink.shortUrl);
    }
    expect(shorts.size).toBe(900);
  });
});
