import { rmSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { startTestApp } from '../support/app.ts';
import { runSettled } from '../support/process.ts';
import { act, createLink, MINUTE_MS } from '../support/sandbox.ts';
import {
  expectPaid,
  openLink,
  pass,
  passUntil,
  quiet,
  type Shop,
  startAgain,
  startShop,
  stopSettled,
} from '../support/shop.ts';

const SECRET = 'the-signing-secret-of-32-bytes-1';

/** A shop with an order that settled opened, and one whose link and signing secret the shop made itself. */
async function startBoth(): Promise<{ shop: Shop; own: object; links: { id: string }[] }> {
  const shop = await startShop();
  const opened = await openLink(shop, 'order-1');
  const webhookUrl = `${shop.settled.hooksUrl}/hooks`;
  const made = { externalReference: 'order-2', webhookUrl, webhookSecret: SECRET };
  const { id } = await createLink(shop.sandbox, made);
  const own = { reference: 'order-2', amount: '100', id, webhookSecret: SECRET };
  expect((await shop.settled.api('/v1/links', { body: own })).status).toBe(201);
  return { shop, own, links: [opened, { id }] };
}

const failed = async ({ settled }: Shop) =>
  Number(/settled_deliveries_total\{outcome="failed"\} (\d+)/.exec((await settled.api('/metrics')).body)?.[1]);

describe('a secrets key that is lost', () => {
  it('stops the start until a person gives it up; then orders are paid by asking', async () => {
    const { shop, own, links } = await startBoth();
    await stopSettled(shop);
    const { storePath } = shop.settled;
    const environment = { SETTLED_STORE: `sqlite:${storePath}` };
    rmSync(`${storePath}.key`);
    await expect(startTestApp({ storePath })).rejects.toMatchObject({
      code: 'secrets_key_missing',
      message: expect.stringContaining('settled migrate --new-key'),
    });
    const given = await runSettled(['migrate', '--new-key', '--json'], environment);
    expect(given).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(given.stdout).newKey).toMatchObject({ keyPlace: `${storePath}.key`, undecipherable: 2 });

    const next = await startAgain(shop);
    // With its secret given again a link's own deliveries are taken.
    expect((await next.settled.api('/v1/links', { body: own })).status).toBe(200);
    await quiet(next);
    for (const link of links) await act(next.sandbox, link, 'pay');
    await next.sandbox.idle();
    expect(await failed(next)).toBeGreaterThan(0);
    await expectPaid(next, 'order-2');
    // Its delivery cannot be verified, and has the service asked.
    const isPaid = async () => (await next.settled.order('order-1')).state === 'paid';
    await passUntil(next, isPaid, { withinMs: MINUTE_MS });
    await expectPaid(next, 'order-1', { learnedBy: 'reconciliation' });
    const { rejections } = (await next.settled.api('/v1/rejections')).body;
    expect(rejections).toMatchObject([{ reference: 'order-1', reason: 'secret_undecipherable' }]);
    const { body: audit } = await next.settled.api('/v1/audit/verification');
    expect(audit).toMatchObject({ isWhole: false, lost: expect.any(Number) });
    expect(audit.lost).toBeGreaterThan(0);
    expect(audit.detail).toContain('cannot be verified');
    const { checks } = (await next.settled.api('/v1/admin/doctor')).body;
    expect(checks).toContainEqual({
      name: 'secrets',
      status: 'warning',
      detail: expect.stringMatching(/^the signing secrets of 1 link cannot be opened/),
    });
  });

  it('is not given up if the key is there', async () => {
    const { shop } = await startBoth();
    await stopSettled(shop);
    const environment = { SETTLED_STORE: `sqlite:${shop.settled.storePath}` };
    const given = await runSettled(['migrate', '--new-key'], environment);
    expect(given).toMatchObject({ code: 0, stdout: expect.stringContaining('Every secret can be opened') });
    const next = await startAgain(shop);
    await act(next.sandbox, { id: 'order-1' }, 'pay');
    await pass(next, 1_000);
    await expectPaid(next, 'order-1');
  });
});
