import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { startTestApp } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { peek, tamper } from '../support/peek.ts';
import { eventsOf, expectSaid, SAID } from './answers.ts';

/** Takes the database's write lock, as another program on the same file would; returns what gives it back. */
function lockDatabase(storePath: string): () => void {
  const db = new Database(storePath);
  onTestFinished(() => void db.close());
  db.exec('BEGIN IMMEDIATE');
  return () => db.exec('ROLLBACK');
}

describe('receive: while the store cannot commit', () => {
  it('a delivery is answered 503, nothing is recorded, and it pays when it is sent again', async () => {
    const settled = await startTestApp();
    const link = await settled.reserve('order-1');
    const body = paymentEvent();
    const unlock = lockDatabase(settled.storePath);
    await expectSaid(await settled.deliver(link, body), SAID.unavailable);
    await expectSaid(await settled.deliver(link, body), SAID.unavailable);
    expect(await eventsOf(settled, 'order-1')).toEqual([]);
    unlock();
    await expectSaid(await settled.deliver(link, body), SAID.recorded);
    await vi.waitFor(async () => expect((await settled.order('order-1')).state).toBe('paid'));
    expect(await eventsOf(settled, 'order-1')).toMatchObject([{ duplicates: 0 }]);
  });

  it('a stale delivery is answered 503 too, because its hint must be kept before the answer', async () => {
    const settled = await startTestApp();
    const link = await settled.reserve('order-1');
    const body = paymentEvent();
    const stale = signedHeaders(link.webhookSecret, body, '1700000000000');
    const unlock = lockDatabase(settled.storePath);
    await expectSaid(await settled.deliver(link, body, stale), SAID.unavailable);
    unlock();
    await expectSaid(await settled.deliver(link, body, stale), SAID.stale);
  });

  it('a link that is not in memory cannot be looked up: 503, on both routes', async () => {
    const settled = await startTestApp();
    const link = await settled.reserve('order-1');
    const unlock = lockDatabase(settled.storePath);
    await expectSaid(await settled.deliver(link, paymentEvent()), SAID.unavailable);
    const shared = { ...link, webhookUrl: `${settled.hooksUrl}/hooks` };
    await expectSaid(await settled.deliver(shared, paymentEvent({ linkId: 'pl_1' })), SAID.unavailable);
    unlock();
    await expectSaid(await settled.deliver(link, paymentEvent()), SAID.recorded);
  });

  it('a refused delivery is still refused, and is counted when the store is back', async () => {
    const settled = await startTestApp();
    const link = await settled.reserve('order-1');
    await expectSaid(await settled.deliver(link, '{}'), SAID.recorded);
    const unlock = lockDatabase(settled.storePath);
    await expectSaid(await settled.deliver(link, '{}', {}), SAID.unauthorized);
    await expectSaid(await settled.deliver(link, paymentEvent()), SAID.unavailable);
    unlock();
    await vi.waitFor(
      async () => {
        const { rejections } = (await settled.api('/v1/rejections')).body;
        expect(rejections).toMatchObject([{ reason: 'signature_missing', count: 1 }]);
      },
      { timeout: 5_000 },
    );
  });
});

describe('receive: while a signing secret cannot be deciphered', () => {
  const DAMAGES = {
    'its bytes are others': 'UPDATE link SET sealed_secret = randomblob(length(sealed_secret))',
    'it was cut': 'UPDATE link SET sealed_secret = CAST(substr(sealed_secret, 1, 20) AS BLOB)',
    'it is empty': `UPDATE link SET sealed_secret = x''`,
    'it was sealed under another key': `UPDATE link SET secrets_key_id = 'another'`,
    'it is another order’s': `UPDATE link SET sealed_secret =
      (SELECT sealed_secret FROM link l WHERE l.key <> link.key LIMIT 1)`,
  };

  it.each(Object.entries(DAMAGES))('a delivery is answered 503: %s', async (_name, damage) => {
    const settled = await startTestApp();
    const link = await settled.reserve('order-1');
    await settled.reserve('order-2');
    const body = paymentEvent();
    const [before] = peek(settled.storePath, 'SELECT sealed_secret, secrets_key_id FROM link WHERE key = 1');
    tamper(settled.storePath, damage);
    await expectSaid(await settled.deliver(link, body), SAID.unavailable);
    await expectSaid(await settled.deliver(link, body, {}), SAID.unavailable);
    expect(await eventsOf(settled, 'order-1')).toEqual([]);
    tamper(
      settled.storePath,
      'UPDATE link SET sealed_secret = ?, secrets_key_id = ? WHERE key = 1',
      before.sealed_secret,
      before.secrets_key_id,
    );
    await expectSaid(await settled.deliver(link, body), SAID.recorded);
  });
});

describe('receive: a signing secret that was corrected', () => {
  it('is used from the next delivery on, and the former one no more', async () => {
    const settled = await startTestApp();
    const link = await settled.reserve('order-1');
    const first = paymentEvent({ status: 'PENDING' });
    await expectSaid(await settled.deliver(link, first), SAID.recorded);
    const webhookSecret = 'the-corrected-secret-of-32-bytes';
    const body = { reference: 'order-1', amount: '100.00', webhookSecret };
    expect((await settled.api('/v1/links', { body })).status).toBe(200);
    const second = paymentEvent();
    await expectSaid(await settled.deliver(link, second), SAID.unauthorized);
    await expectSaid(await settled.deliver({ ...link, webhookSecret }, second), SAID.recorded);
  });

  it('cannot be replaced by a short one, and a short one in the store lets nothing pass', async () => {
    const settled = await startTestApp();
    const body = { reference: 'order-1', amount: '100.00', id: 'pl_1', webhookSecret: 'fifteen-bytes-1' };
    const { status, body: problem } = await settled.api('/v1/links', { body });
    expect([status, problem.errors.map(({ path }: { path: string }) => path)]).toEqual([
      400,
      ['webhookSecret'],
    ]);
  });
});
