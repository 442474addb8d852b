import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type ReservedLink, startTestApp, type TestApp } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { peek, tamper } from '../support/rows.ts';
import { eventually } from '../support/timing.ts';
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
    const settled = await startTestApp({ threads: true });
    const link = await settled.reserve('order-1');
    const body = paymentEvent();
    const unlock = lockDatabase(settled.storePath);
    await expectSaid(await settled.deliver(link, body), SAID.unavailable);
    await expectSaid(await settled.deliver(link, body), SAID.unavailable);
    expect(await eventsOf(settled, 'order-1')).toEqual([]);
    unlock();
    await expectSaid(await settled.deliver(link, body), SAID.recorded);
    await eventually(async () => expect((await settled.order('order-1')).state).toBe('paid'));
    expect(await eventsOf(settled, 'order-1')).toMatchObject([{ duplicates: 0 }]);
  });

  it('a stale delivery is answered 503 too, because its hint must be kept before the answer', async () => {
    const settled = await startTestApp({ threads: true });
    const link = await settled.reserve('order-1');
    const body = paymentEvent();
    const stale = signedHeaders(link.webhookSecret, body, '1700000000000');
    const unlock = lockDatabase(settled.storePath);
    await expectSaid(await settled.deliver(link, body, stale), SAID.unavailable);
    unlock();
    await expectSaid(await settled.deliver(link, body, stale), SAID.stale);
  });

  it('a link that is not in memory cannot be looked up: 503, on both routes', async () => {
    const settled = await startTestApp({ threads: true });
    const link = await settled.reserve('order-1');
    const unlock = lockDatabase(settled.storePath);
    // Any well-formed token may be one of ours: only the store can tell, and it does not answer.
    const unknown = { ...link, webhookUrl: `${settled.hooksUrl}/hooks/${'A'.repeat(32)}` };
    await expectSaid(await settled.deliver(unknown, paymentEvent()), SAID.unavailable);
    const shared = { ...link, webhookUrl: `${settled.hooksUrl}/hooks` };
    await expectSaid(await settled.deliver(shared, paymentEvent({ linkId: 'pl_1' })), SAID.unavailable);
    unlock();
    await expectSaid(await settled.deliver(unknown, paymentEvent()), SAID.unauthorized);
  });

  it('a refused delivery is still refused, and is counted when the store is back', async () => {
    const settled = await startTestApp({ threads: true });
    const link = await settled.reserve('order-1');
    await expectSaid(await settled.deliver(link, '{}'), SAID.recorded);
    const unlock = lockDatabase(settled.storePath);
    await expectSaid(await settled.deliver(link, '{}', {}), SAID.unauthorized);
    await expectSaid(await settled.deliver(link, paymentEvent()), SAID.unavailable);
    unlock();
    await eventually(async () => {
      const { rejections } = (await settled.api('/v1/rejections')).body;
      expect(rejections).toMatchObject([{ reason: 'signature_missing', count: 1 }]);
    });
  });
});

describe('receive: while a signing secret cannot be deciphered', () => {
  const DAMAGES = {
    'its bytes are others': 'sealed_secret = randomblob(length(sealed_secret))',
    'it was cut': 'sealed_secret = CAST(substr(sealed_secret, 1, 20) AS BLOB)',
    'it is empty': `sealed_secret = x''`,
    'it was sealed under another key': `secrets_key_id = 'another'`,
    'it is another order’s': 'sealed_secret = (SELECT sealed_secret FROM link l WHERE l.key = link.key + 1)',
  };
  const names = Object.keys(DAMAGES);
  let settled: TestApp;
  let links: ReservedLink[] = [];
  let intact: { key: number; sealed_secret: Buffer; secrets_key_id: string }[] = [];

  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'settled-test-'));
    const storePath = join(folder, 'settled.db');
    let stop: () => void = () => {};
    const start = () =>
      startTestApp({
        threads: true,
        storePath,
        atEnd: (end) => {
          stop = end;
        },
      });
    const before = await start();
    for (const name of [...names, 'one more']) links.push(await before.reserve(name));
    // Secrets in memory are not read again: the damage shows after a start.
    await before.app.stop();
    intact = peek(storePath, 'SELECT key, sealed_secret, secrets_key_id FROM link ORDER BY key');
    Object.values(DAMAGES).forEach((damage, index) => {
      tamper(storePath, `UPDATE link SET ${damage} WHERE key = ?`, intact[index]?.key);
    });
    settled = await start();
    links = links.map((link) => ({ ...link, webhookUrl: settled.hooksUrl + new URL(link.webhookUrl).pathname }));
    return () => {
      stop();
      rmSync(folder, { recursive: true, force: true });
    };
  });

  it.each(names)('a delivery is answered 503, and recorded once it is mended: %s', async (name) => {
    const link = links[names.indexOf(name)] as ReservedLink;
    const body = paymentEvent();
    await expectSaid(await settled.deliver(link, body), SAID.unavailable);
    await expectSaid(await settled.deliver(link, body, {}), SAID.unavailable);
    expect(await eventsOf(settled, name)).toEqual([]);
    const { key, sealed_secret, secrets_key_id } = intact[names.indexOf(name)] as (typeof intact)[number];
    const mend = 'UPDATE link SET sealed_secret = ?, secrets_key_id = ? WHERE key = ?';
    tamper(settled.storePath, mend, sealed_secret, secrets_key_id, key);
    await expectSaid(await settled.deliver(link, body), SAID.recorded);
  });

  it('a delivery for another link is recorded', async () => {
    await expectSaid(await settled.deliver(links.at(-1) as ReservedLink, paymentEvent()), SAID.recorded);
  });
});

describe('receive: a signing secret that was corrected', () => {
  it('is used from the next delivery on, and the former one no more', async () => {
    const settled = await startTestApp({ threads: true });
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

  it('is not replaced by one of fewer than 16 bytes', async () => {
    const settled = await startTestApp({ threads: true });
    const link = await settled.reserve('order-1');
    const body = { reference: 'order-1', amount: '100.00', webhookSecret: 'fifteen-bytes-1' };
    const { status, body: problem } = await settled.api('/v1/links', { body });
    expect([status, problem.errors]).toMatchObject([400, [{ path: 'webhookSecret' }]]);
    await expectSaid(await settled.deliver(link, paymentEvent()), SAID.recorded);
  });
});
