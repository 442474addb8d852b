import { copyFileSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeAll, describe, expect, it } from 'vitest';
import { type ReservedLink, startTestApp, type TestApp, testFolder } from '../support/app.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import { eventually, untilFast } from '../support/timing.ts';
import { deliverAndSee, get, heldOrder, paidOrder, post } from './client.ts';

async function backUp(app: TestApp): Promise<{ path: string; bytes: number; notIncluded: string }> {
  const { status, body } = await post(app, '/v1/admin/backup', {});
  expect([status, body.detail]).toEqual([201, undefined]);
  return body.backup;
}

/** The rows of a backup, opened as a database of its own. */
function rowsOf(path: string, sql: string): Record<string, unknown>[] {
  const db = new Database(path, { readonly: true, fileMustExist: true });
  try {
    return db.prepare(sql).all() as Record<string, unknown>[];
  } finally {
    db.close();
  }
}

/** Gives the database so much content that copying it takes a while: `rows` random bodies of 256 KiB. */
function fill(app: TestApp, rows: number): void {
  const db = new Database(app.storePath);
  db.pragma('busy_timeout = 5000');
  db.exec(`
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows})
    INSERT INTO inbox (link_key, event_id, body_sha256, timestamp, mac, status, received_at_ms, due_at_ms)
      SELECT 1, 'filler-' || i, randomblob(32), '0', x'00', 'done', 0, 0 FROM n;
    INSERT INTO inbox_body SELECT key, randomblob(262144) FROM inbox WHERE event_id LIKE 'filler-%';
  `);
  db.close();
}

/** Delivers one event after the other while a backup is made; tells how many came before it and during it. */
async function backUpUnderLoad(app: TestApp, link: ReservedLink) {
  const acknowledgedMs: number[] = [];
  let isOver = false;
  const load = (async () => {
    while (!isOver) {
      const event = paymentEvent({ linkId: 'pl_1', status: 'PENDING' });
      expect((await app.deliver(link, event)).status).toBe(200);
      acknowledgedMs.push(performance.now());
    }
  })();
  await eventually(() => expect(acknowledgedMs.length).toBeGreaterThan(3));
  const before = acknowledgedMs.length;
  const startedMs = performance.now();
  const { path } = await backUp(app);
  const endedMs = performance.now();
  isOver = true;
  await load;
  const during = acknowledgedMs.filter((atMs) => atMs > startedMs && atMs < endedMs);
  const moments = [startedMs, ...during, endedMs];
  const longestWaitMs = Math.max(...moments.slice(1).map((atMs, i) => atMs - (moments[i] as number)));
  return { path, before, during: during.length, longestWaitMs, tookMs: endedMs - startedMs };
}

describe('api: backup', () => {
  const settled = sharedApp();

  it('writes a whole, sound copy of the database next to it', async () => {
    const app = await startTestApp();
    await paidOrder(app, 'order');
    const { path, bytes } = await backUp(app);
    expect(dirname(path)).toBe(join(dirname(app.storePath), 'backups'));
    expect(statSync(path).size).toBe(bytes);
    expect(rowsOf(path, 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }]);
    expect(rowsOf(path, 'PRAGMA foreign_key_check')).toEqual([]);
    expect(rowsOf(path, 'SELECT reference, state FROM orders')).toEqual([{ reference: 'order', state: 'paid' }]);
    expect(rowsOf(path, 'SELECT count(*) AS n FROM inbox JOIN inbox_body ON inbox_key = key')).toEqual([{ n: 1 }]);
    expect(readdirSync(dirname(path))).toEqual([path.slice(dirname(path).length + 1)]);
  });

  it('does not hold the secrets key, nor any secret in the open, and says where the key is', async () => {
    const app = settled();
    const link = await app.reserve(freshReference());
    const { path, notIncluded } = await backUp(app);
    const keyPath = `${app.storePath}.key`;
    expect(notIncluded).toContain(keyPath);
    const copy = readFileSync(path);
    const key = readFileSync(keyPath, 'utf8').trim();
    expect(copy.includes(link.webhookSecret)).toBe(false);
    expect(copy.includes(key)).toBe(false);
    expect(copy.includes(Buffer.from(key, 'base64'))).toBe(false);
  });

  it('is written once at a time: another one is to come back after it', async () => {
    const app = settled();
    const answers = await Promise.all([1, 2, 3].map(() => post(app, '/v1/admin/backup', {})));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 503, 503]);
    const refused = answers.find(({ status }) => status === 503);
    expect(refused?.body.detail).toContain('settled is already writing a backup');
    await backUp(app);
  });

  it('replaces no other, and removes what one left behind that was cut off, and nothing else', async () => {
    const app = settled();
    const { path: first } = await backUp(app);
    const folder = dirname(first);
    const before = readdirSync(folder);
    const draft = 'settled-2026-01-01T00-00-00-000Z.db.part';
    for (const name of [draft, `${draft}-journal`, 'notes.part']) writeFileSync(join(folder, name), 'half');
    const { path } = await backUp(app);
    expect(path).not.toBe(first);
    expect(readdirSync(folder).sort()).toEqual([...before, basename(path), 'notes.part'].sort());
  });

  it('names the setting if the key comes from the configuration', async () => {
    const SETTLED_SECRETS_KEY = Buffer.alloc(32, 7).toString('base64');
    const app = await startTestApp({ environment: { SETTLED_SECRETS_KEY } });
    const { notIncluded } = await backUp(app);
    expect(notIncluded).toContain('SETTLED_SECRETS_KEY');
    expect(notIncluded).not.toContain(app.storePath);
  });

  it('is served again from a new place, together with the key', async () => {
    const app = settled();
    const link = await app.reserve(freshReference());
    const { path } = await backUp(app);
    const storePath = join(testFolder(), 'restored.db');
    copyFileSync(path, storePath);
    copyFileSync(`${app.storePath}.key`, `${storePath}.key`);
    const restored = await startTestApp({ storePath });
    const moved = { ...link, webhookUrl: link.webhookUrl.replace(app.hooksUrl, restored.hooksUrl) };
    await deliverAndSee(restored, moved, paymentEvent({ linkId: 'pl_1', amount: '100.00' }), 'paid');
    expect((await app.order(link.reference)).state).toBe('awaiting_payment');
  });

  it('is made under load, and holds up no acknowledgement', async () => {
    const app = await startTestApp();
    const link = await app.reserve('order');
    fill(app, 200);
    const { path, before, during, longestWaitMs, tookMs } = await untilFast(
      () => backUpUnderLoad(app, link),
      (one) => one.during > 10 && one.longestWaitMs < one.tookMs / 2,
    );
    expect(during).toBeGreaterThan(10);
    expect(longestWaitMs).toBeLessThan(tookMs / 2);

    expect(rowsOf(path, 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }]);
    const [counted] = rowsOf(path, "SELECT count(*) AS n FROM inbox WHERE event_id NOT LIKE 'filler-%'");
    expect(counted?.n).toBeGreaterThanOrEqual(before);
  });
});

/** An order of each kind, an event that is dead, and a delivery that was refused. */
const busy = sharedApp();
beforeAll(async () => {
  await paidOrder(busy());
  await heldOrder(busy());
  const link = await busy().reserve('waiting');
  await busy().deliver(link, 'not JSON');
  await busy().deliver(link, '{}', {});
});

describe('api: stats', () => {
  it('count what is there', async () => {
    await eventually(async () => {
      expect((await get(busy(), '/v1/stats')).body).toEqual({
        stats: {
          orders: expect.objectContaining({ paid: 1, held: 1, awaiting_payment: 1, refunded: 0 }),
          events: { pending: 0, leased: 0, dead: 1, done: 2 },
          notices: { pending: 2, leased: 0, done: 0, dead: 0 },
          matters: [
            { kind: 'hold', reason: 'amount_mismatch', count: 1, oldestAt: expect.stringMatching(/Z$/) },
            { kind: 'event_not_understood', reason: null, count: 1, oldestAt: expect.stringMatching(/Z$/) },
          ],
          checks: 3,
          checksByClass: { confirm: 0, hint: 1, janitor: 2 },
          checksLagSeconds: { confirm: 0, hint: expect.any(Number), janitor: expect.any(Number) },
          openings: { pending: 0, leased: 0, taken: 0 },
          drift: 0,
          api: { slots: 50, slotsInUse: 0, pausedUntil: null },
          rejections: 1,
          lagSeconds: 0,
          noticesLagSeconds: null,
          feedPosition: expect.any(Number),
        },
      });
    });
  });
});

describe('api: doctor', () => {
  type Check = { name: string; status: string; detail: string };
  async function checksOf(app: TestApp): Promise<Record<string, Check>> {
    const { status, body } = await get(app, '/v1/admin/doctor');
    expect(status).toBe(200);
    for (const check of body.checks as Check[]) expect(check.detail).toMatch(/./);
    return Object.fromEntries((body.checks as Check[]).map((check) => [check.name, check]));
  }

  it('finds a new store in order, but for what is not configured yet', async () => {
    const app = await startTestApp();
    const checks = await checksOf(app);
    const states = Object.fromEntries(Object.values(checks).map(({ name, status }) => [name, status]));
    expect(states).toMatchObject({
      ready: 'ok',
      disk: 'ok',
      settlement: 'ok',
      'needs a person': 'ok',
      service: 'warning',
    });
  });

  it('points at what needs a person, in the words of its list', async () => {
    await eventually(async () => {
      const check = (await checksOf(busy()))['needs a person'];
      const { summary } = (await get(busy(), '/v1/attention')).body;
      const said =
        /^(2 matters need attention; the oldest has waited) .* (Money: 1 order with a balance of 60\.00 BRL\.)/;
      expect(summary.sentence).toMatch(said);
      expect(check).toMatchObject({ status: 'warning', detail: expect.stringMatching(said) });
    });
  });
});
