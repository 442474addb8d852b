import { describe, expect, it } from 'vitest';
import { namedToken, signIn } from '../support/access.ts';
import { SHOP_TOKEN, startTestApp, type TestApp } from '../support/app.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { readableLog } from '../support/observe.ts';
import { tamper } from '../support/rows.ts';
import { eventually } from '../support/timing.ts';

/** The rows of the chain that are about something, the oldest first. */
async function rowsOf({ api }: TestApp, subject: string) {
  const { body } = await api(`/v1/audit?subject=${encodeURIComponent(subject)}`);
  return body.audit.toReversed();
}

async function held(app: TestApp, reference: string): Promise<void> {
  const link = await app.reserve(reference);
  await app.deliver(link, paymentEvent({ linkId: `pl_${reference}`, amount: '60.00' }));
  await eventually(async () => expect((await app.order(reference)).state).toBe('held'));
}

describe('the audit', () => {
  it('has who, from where, what, why, and what it was before', async () => {
    const app = await startTestApp();
    await held(app, 'a-1');
    const token = await namedToken(app, 'operator', 'ana');
    const { own } = await signIn(app, token);
    const form = new URLSearchParams({ decision: 'accept', reason: 'she paid the rest in cash', back: '/' });
    const answered = await fetch(`${app.apiUrl}/v1/orders/a-1/resolve`, {
      method: 'POST',
      redirect: 'manual',
      headers: { ...own, 'content-type': 'application/x-www-form-urlencoded' },
      body: form,
    });
    expect([answered.status, answered.headers.get('location')]).toEqual([303, '/?done=resolveOrder']);
    expect(await rowsOf(app, 'a-1')).toMatchObject([
      { actor: 'operator', role: 'admin', origin: 'api', action: 'register_link' },
      {
        actor: 'ana',
        role: 'operator',
        origin: 'console',
        address: '127.0.0.1',
        action: 'accept_order',
        reason: 'she paid the rest in cash',
        before: { state: 'held' },
        after: { state: 'paid' },
      },
    ]);
  });

  it("has nothing of the shop's token, and nothing of a repetition", async () => {
    const app = await startTestApp();
    const body = { reference: 'b-1', amount: '100.00' };
    expect((await app.api('/v1/links', { body, token: SHOP_TOKEN })).status).toBe(201);
    expect(await rowsOf(app, 'b-1')).toEqual([]);
    await app.api('/v1/links', { body });
    expect(await rowsOf(app, 'b-1')).toEqual([]);
    expect((await app.api('/v1/orders/none/check', { method: 'POST' })).status).not.toBe(200);
    expect(await rowsOf(app, 'none')).toEqual([]);
  });

  it('has nothing of what is refused before it begins', async () => {
    const { log, lines } = readableLog();
    const key = Buffer.alloc(32, 1).toString('base64');
    const app = await startTestApp({ log, environment: { SETTLED_SECRETS_KEY: key } });
    await app.reserve('c-1');
    const before = (await app.api('/v1/audit/verification')).body.rows;
    expect((await app.api('/v1/admin/rotate-key', { method: 'POST' })).status).toBe(409);
    expect((await app.api('/v1/orders/c-1/check', { method: 'POST' })).status).toBe(503);
    expect((await app.api('/v1/admin/reconcile', { body: {} })).status).toBe(503);
    const after = (await app.api('/v1/audit/verification')).body;
    expect(after.rows).toBe(before);
    const heads = lines.filter(({ msg }) => msg === 'head of the audit chain');
    expect(`${heads.at(-1)?.number}:${heads.at(-1)?.mac}`).toBe(after.head);
  });

  it('has its head in the log after what the service refused, because that has its row', async () => {
    const { log, lines } = readableLog();
    const environment = { SETTLED_API_URL: 'http://127.0.0.1:9', SETTLED_API_KEY: 'key' };
    const app = await startTestApp({ log, environment });
    const link = { reference: 'd-1', amount: '100.00', id: 'pl_1', webhookSecret: 'a-secret-of-the-shop-0001' };
    expect((await app.api('/v1/links', { body: link })).status).toBe(201);
    expect((await app.api('/v1/orders/d-1/check', { method: 'POST' })).status).toBe(503);
    expect((await rowsOf(app, 'd-1')).map(({ action }: { action: string }) => action)).toContain('check_order');
    const { head } = (await app.api('/v1/audit/verification')).body;
    const logged = lines.findLast(({ msg }) => msg === 'head of the audit chain');
    expect(`${logged?.number}:${logged?.mac}`).toBe(head);
  });

  it('is found changed, and cut at its end by the head that the log has', async () => {
    const { log, lines } = readableLog();
    const app = await startTestApp({ log });
    for (const name of ['ana', 'ben', 'eva']) await namedToken(app, 'viewer', name);
    const verify = async (query = '') => (await app.api(`/v1/audit/verification${query}`)).body;
    expect(await verify()).toMatchObject({ isWhole: true, rows: 3 });
    const heads = (lines as unknown as { msg: string; number: number; mac: string }[]).filter(
      ({ msg }) => msg === 'head of the audit chain',
    );
    expect(heads.map(({ number }) => number)).toEqual([1, 2, 3]);
    const { number, mac } = heads.at(-1) as { number: number; mac: string };
    tamper(app.storePath, "UPDATE audit SET role = 'viewer' WHERE number = 2");
    expect(await verify()).toMatchObject({ isWhole: false, detail: expect.stringContaining('Row 2 is not as') });
    tamper(app.storePath, "UPDATE audit SET role = 'admin' WHERE number = 2");
    tamper(app.storePath, 'DELETE FROM audit WHERE number = 3');
    expect(await verify()).toMatchObject({ isWhole: false, detail: expect.stringContaining('Row 3 is missing') });
    tamper(app.storePath, 'UPDATE audit_head SET number = 2, mac = (SELECT mac FROM audit WHERE number = 2)');
    expect(await verify()).toMatchObject({ isWhole: true, rows: 2 });
    expect(await verify(`?head=${number}:${mac}`)).toMatchObject({
      isWhole: false,
      detail: expect.stringContaining(mac),
    });
  });

  it('begins anew if its key is damaged, receives all the same, and never again says that every row is verified', async () => {
    for (const damage of ["sealed_key = x'00ff'", 'sealed_key = NULL', "secrets_key_id = 'nobodys'"]) {
      const app = await startTestApp({ engine: 'sqlite' });
      for (const name of ['ana', 'ben']) await namedToken(app, 'viewer', name);
      await app.app.stop();
      tamper(app.storePath, `UPDATE audit_head SET ${damage}`);
      const { log, lines } = readableLog();
      const next = await startTestApp({ storePath: app.storePath, engine: 'sqlite', log });
      expect(lines).toContainEqual(
        expect.objectContaining({ level: 'error', why: expect.stringContaining('its key was') }),
      );
      const { link } = (await next.api('/v1/links', { body: { reference: 'r-1', amount: '100.00' } })).body;
      expect(link).toBeDefined();
      const verify = async () => (await next.api('/v1/audit/verification')).body;
      const detail = expect.stringContaining('The first 2 cannot be verified');
      expect(await verify()).toMatchObject({ lost: 2, rows: 2, isWhole: false, detail });
      const { audit } = (await next.api('/v1/audit?actor=settled')).body;
      expect(audit).toMatchObject([
        {
          ...{ number: 3, action: 'restart_audit', origin: 'settled', reason: expect.stringContaining('key') },
          before: { number: 2, mac: expect.stringMatching(/^[0-9a-f]{64}$/) },
        },
      ]);
      // Neither the head nor another row can move the beginning.
      tamper(
        app.storePath,
        'UPDATE audit_head SET since_number = 3, since_mac = (SELECT mac FROM audit WHERE number = 3)',
      );
      expect(await verify()).toMatchObject({ lost: 2, isWhole: false });
      tamper(app.storePath, "UPDATE audit SET reason = 'another' WHERE number = 4");
      tamper(
        app.storePath,
        'UPDATE audit SET action = \'restart_audit\', before = \'{"number":3,"mac":"00"}\' WHERE number = 4',
      );
      expect(await verify()).toMatchObject({
        lost: 2,
        isWhole: false,
        detail: expect.stringContaining('Row 4 is not as'),
      });
      tamper(app.storePath, 'DELETE FROM audit WHERE number = 3');
      expect(await verify()).toMatchObject({
        lost: 0,
        isWhole: false,
        detail: expect.stringContaining('Row 1 is not as'),
      });
      await next.app.stop();
    }
  });

  it('is not verified from where the head says, for a chain that never began anew', async () => {
    const app = await startTestApp({ engine: 'sqlite' });
    for (const name of ['ana', 'ben', 'eva']) await namedToken(app, 'viewer', name);
    tamper(app.storePath, "UPDATE audit SET role = 'viewer' WHERE number = 1");
    tamper(
      app.storePath,
      'UPDATE audit_head SET since_number = 2, since_mac = (SELECT mac FROM audit WHERE number = 2)',
    );
    const { body } = await app.api('/v1/audit/verification');
    expect(body).toMatchObject({ isWhole: false, lost: 0, detail: expect.stringContaining('Row 1 is not as') });
  });

  it('stays as it is when the secrets key is changed', async () => {
    const app = await startTestApp({ engine: 'sqlite' });
    await namedToken(app, 'viewer', 'ana');
    await app.api('/v1/admin/rotate-key', { method: 'POST' });
    await namedToken(app, 'viewer', 'ben');
    expect((await app.api('/v1/audit/verification')).body).toMatchObject({ isWhole: true, rows: 3 });
    await app.app.stop();
    const again = await startTestApp({ storePath: app.storePath, engine: 'sqlite' });
    await namedToken(again, 'viewer', 'eva');
    expect((await again.api('/v1/audit/verification')).body).toMatchObject({ isWhole: true, rows: 4 });
  });
});
