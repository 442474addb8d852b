import { copyFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, vi } from 'vitest';
import { deliver, eventOf, type Reserved } from '../../prove/harness/send.ts';
import type { Serving } from '../../prove/harness/settled.ts';
import { failure } from '../../src/cli/exit.ts';
import { signIn } from '../support/access.ts';
import { startTestApp, testFolder } from '../support/app.ts';
import { UNSAID } from '../support/orders.ts';
import { fatalLine } from '../support/process.ts';
import { doctorOf, saying, surfacesOf } from '../support/surfaces.ts';
import { eventuallyAfter } from '../support/timing.ts';
import { fillDisk, freezableDisk, smallDisk } from './disk.ts';
import { get, listenersOf, reserveMany, startServing } from './serving.ts';

const eventually = eventuallyAfter('processes start, end and take over');

const CANNOT_OPEN = 73;
const DISK_BYTES = 12 * 1024 * 1024;
/** How long the service waits for an answer. */
const GIVEN_UP_AFTER_MS = 20_000;

describe('a store that fails while the process runs', () => {
  it('acknowledges nothing while the disk is full, and continues when there is space', async (context) => {
    const disk = smallDisk(testFolder(), DISK_BYTES);
    if (disk === null) return context.skip('this system does not allow a test to mount a disk');
    const serving = await startServing(join(disk.folder, 'settled.db'), {}, disk);
    const folder = disk.folderOf(serving.child.pid as number);
    const links = await reserveMany(serving, 60);
    const acknowledged: Reserved[] = [];
    const owed = [...links];
    const deliverNext = async (): Promise<number> => {
      const [link] = owed as [Reserved];
      const { status } = await deliver(serving, link, eventOf(link));
      if (status === 200) acknowledged.push(owed.shift() as Reserved);
      return status;
    };
    for (let n = 0; n < 10; n++) expect(await deliverNext()).toBe(200);

    const session = await signIn(listenersOf(serving));
    fillDisk(join(folder, 'ballast'));
    // SQLite still has room in its log until it must grow.
    await vi.waitFor(async () => expect(await deliverNext()).toBe(503), { timeout: 120_000, interval: 1 });
    // At once, and from everywhere, whatever room a sign of life still finds.
    expect((await get(serving, '/readyz')).status).toBe(503);
    expect((await serving.api('/readyz')).status).toBe(503);
    const ready = (await serving.api('/v1/admin/doctor')).body.checks[0];
    expect(ready).toMatchObject({ name: 'ready', status: 'failing', detail: expect.stringContaining('No space') });
    const [unpaid] = owed as [Reserved];
    const noSpace = /No space/;
    expect(await surfacesOf(listenersOf(serving), unpaid.reference, ['ready'], session)).toEqual(
      saying(noSpace, 'settled_ready 0', {
        summary: expect.stringMatching(/^Nothing needs attention\. settled takes no deliveries now, so.*No space/),
        readyz: expect.stringMatching(/^503 {"ready":false,"reason":".*No space/),
        strangers: '503 {"ready":false}',
      }),
    );
    expect(await doctorOf(listenersOf(serving).apiUrl, ['ready'])).toMatch(noSpace);
    await serving.line(noSpace);
    const refused = await deliver(serving, owed[0] as Reserved, eventOf(owed[0] as Reserved));
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, expect.stringMatching(/^\d+$/)]);
    expect((await get(serving, '/livez')).status).toBe(200);
    const [first] = acknowledged as [Reserved];
    expect((await serving.api(`/v1/orders/${first.reference}`)).status).toBe(200);
    // In public it says that it is not ready, in private why.
    expect(JSON.parse((await get(serving, '/readyz')).text)).toEqual({ ready: false });
    expect((await serving.api('/readyz')).body.reason, serving.stdout()).toContain('No space is left');

    rmSync(join(folder, 'ballast'));
    while (owed.length > 0) {
      await eventually(async () => expect(await deliverNext()).toBe(200));
    }
    await eventually(async () => expect((await get(serving, '/readyz')).status).toBe(200));
    await expectPaidOnce(serving, acknowledged);
    const { path } = (await serving.api('/v1/admin/backup', {})).body.backup;
    const copy = join(testFolder(), 'backup.db');
    copyFileSync(join(folder, 'backups', basename(path)), copy);
    expectWhole(copy, acknowledged);
    expect(serving.child.exitCode).toBeNull();
  });

  it('ends with the code for a lost database when its file is removed, and acknowledges nothing more', async () => {
    const storePath = join(testFolder(), 'settled.db');
    const serving = await startServing(storePath);
    const link = await serving.reserve('order-1');
    rmSync(storePath);
    const { status } = await deliver(serving, link, eventOf(link));
    expect(status).toBe(503);
    const end = await serving.finished;
    expect([end.code, fatalLine(end)]).toMatchObject([
      CANNOT_OPEN,
      { exit: CANNOT_OPEN, fault: { message: expect.stringContaining(`${storePath} was removed or replaced`) } },
    ]);
  });

  it('notices that its file is gone, even without a delivery', async () => {
    const { app, storePath } = await startTestApp({ engine: 'sqlite' });
    rmSync(storePath);
    expect(await app.failed.catch(failure)).toMatchObject({ exit: CANNOT_OPEN });
  });

  it('answers 503 at once while another program locks the database, after ten seconds to a commit that hangs, and settles each once', async () => {
    const storePath = join(testFolder(), 'settled.db');
    const disk = freezableDisk(`${storePath}.pipe`);
    const serving = await startServing(storePath, disk.environment);
    const [paid, link, ...links] = (await reserveMany(serving, 6)) as [Reserved, Reserved, ...Reserved[]];
    expect((await deliver(serving, paid, eventOf(paid))).status).toBe(200);
    await expectPaidOnce(serving, [paid]);
    const other = new Database(storePath);
    other.exec('BEGIN IMMEDIATE');
    const { cursor } = (await serving.api('/v1/feed?limit=100')).body;
    const answered: unknown[] = [];
    await Promise.all([
      serving.api(`/v1/feed?after=${cursor}&wait=5`).then(() => answered.push('a wait of 5 s')),
      deliver(serving, link, eventOf(link)).then(({ status }) => answered.push(status)),
    ]);
    expect(answered).toEqual([503, 'a wait of 5 s']);
    await eventually(async () => expect((await get(serving, '/readyz')).status).toBe(503));
    expect((await serving.api('/v1/orders/order-1')).status).toBe(200);
    other.exec('ROLLBACK');
    other.close();
    await eventually(async () => expect((await deliver(serving, link, eventOf(link))).status).toBe(200));
    await expectPaidOnce(serving, [paid, link]);

    disk.freeze();
    await disk.hangs();
    const askedAt = Date.now();
    answered.length = 0;
    const deliveries = links.map(async (link) => {
      const { status } = await deliver(serving, link, eventOf(link));
      answered.push(status);
      return Date.now() - askedAt;
    });
    // The loop that serves must not wait for the disk.
    await eventually(async () => expect((await get(serving, '/readyz')).status).toBe(503));
    expect((await get(serving, '/livez')).status).toBe(200);
    expect((await serving.api('/v1/orders/order-1')).status).toBe(200);
    expect(answered).toEqual([]);
    for (const tookMs of await Promise.all(deliveries)) {
      expect(tookMs).toBeGreaterThan(9_500);
      expect(tookMs).toBeLessThan(GIVEN_UP_AFTER_MS);
    }
    expect(answered).toEqual([503, 503, 503, 503]);
    disk.thaw();
    for (const link of links) {
      expect((await deliver(serving, link, eventOf(link))).status).toBe(200);
    }
    await expectPaidOnce(serving, links);
    await eventually(async () => expect((await get(serving, '/readyz')).status).toBe(200));
  });
});

async function expectPaidOnce(serving: Serving, links: readonly Reserved[]): Promise<void> {
  for (const { reference } of links) {
    const order = await eventually(async () => {
      const { body } = await serving.api(`/v1/orders/${reference}`);
      expect(body.order.state).toBe('paid');
      return body.order;
    });
    expect(order.payments).toEqual([
      { id: `pay_${reference}`, status: 'completed', amount: '100.00', currency: 'BRL', customerPaid: null, ...UNSAID },
    ]);
  }
}

function expectWhole(path: string, acknowledged: readonly Reserved[]): void {
  const db = new Database(path, { readonly: true });
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
  expect(db.pragma('foreign_key_check')).toEqual([]);
  const bodies = db.prepare('SELECT CAST(body AS TEXT) FROM inbox_body').pluck().all();
  expect(bodies.sort()).toEqual(acknowledged.map((link) => eventOf(link)).sort());
  db.close();
}
