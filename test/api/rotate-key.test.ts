import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { readKeyIds } from '../../src/secrets/key_files.ts';
import { openKeyring } from '../../src/secrets/keyring.ts';
import { sqliteAddress } from '../../src/store/address.ts';
import { migrateStore } from '../../src/store/open.ts';
import { systemClock } from '../../src/work/clock.ts';
import { type ReservedLink, startTestApp, type TestApp, testFolder } from '../support/app.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { freePort } from '../support/network.ts';
import { peek, tamper } from '../support/rows.ts';
import { sharedApp } from '../support/shared.ts';
import { eventually, untilFast } from '../support/timing.ts';
import { get, post, problem } from './client.ts';

const SECRET = 'the-signing-secret-of-32-bytes-1';
const [OLD, NEW] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64')) as [string, string];

/** Waits a fifth of each delay: a stop takes its second of grace here, too. */
const clock = { ...systemClock, after: (ms: number, work: () => void) => systemClock.after(ms / 5, work) };
const start = (options: Parameters<typeof startTestApp>[0] = {}) => startTestApp({ clock, ...options });

const idOf = (key: string) => openKeyring(Buffer.from(key, 'base64')).keyId;
const keyFile = ({ storePath }: TestApp) => readFileSync(`${storePath}.key`, 'utf8').trim();
const rotate = (app: TestApp) => post(app, '/v1/admin/rotate-key', {});
const restsUnder = (storePath: string) => peek(storePath, 'SELECT secrets_key_id AS id FROM instance')[0].id;
/** The ids of the keys under which links' secrets rest. */
const keysOfLinks = (storePath: string): string[] =>
  peek(storePath, 'SELECT DISTINCT secrets_key_id AS id FROM link ORDER BY id').map(({ id }) => id);

/** Gives the store many links, each with the sealed secret of an order of its own, which the test never opens. */
function addLinks({ storePath }: TestApp, count: number): void {
  const keyring = openKeyring(Buffer.from(readFileSync(`${storePath}.key`, 'utf8'), 'base64'));
  const db = new Database(storePath);
  db.pragma('busy_timeout = 5000');
  const order = db.prepare(
    `INSERT INTO orders (reference, amount_minor, currency, state, created_at_ms, updated_at_ms)
     VALUES (?, 100, 'BRL', 'paid', 0, 0)`,
  );
  const link = db.prepare(
    `INSERT INTO link (order_key, token, sealed_secret, secrets_key_id, secret_fingerprint, created_at_ms)
     VALUES (?, ?, ?, ?, ?, 0)`,
  );
  db.transaction(() => {
    for (let n = 0; n < count; n++) {
      const { sealed, keyId, fingerprint } = keyring.seal(SECRET, `many-${n}`);
      const { lastInsertRowid } = order.run(`many-${n}`);
      link.run(lastInsertRowid, `token-${n}`, sealed, keyId, fingerprint);
    }
  })();
  db.close();
}

/** Stops one and starts another on its database. */
async function startAgain(
  { app, storePath, hooksUrl }: TestApp,
  links: readonly ReservedLink[],
  environment: Record<string, string> = {},
): Promise<{ app: TestApp; links: ReservedLink[] }> {
  await app.stop();
  const next = await start({ storePath, environment });
  const moved = links.map((link) => ({ ...link, webhookUrl: link.webhookUrl.replace(hooksUrl, next.hooksUrl) }));
  return { app: next, links: moved };
}

async function expectRecorded(app: TestApp, link: ReservedLink): Promise<void> {
  expect((await app.deliver(link, paymentEvent({ status: 'PENDING' }))).status).toBe(200);
}

describe('api: rotate-key, if the key is a file', () => {
  /** Its tests come one after the other; each leaves every secret under the key of then. */
  const settled = sharedApp({ clock });
  const linksOf = ({ storePath }: TestApp): number => peek(storePath, 'SELECT count(*) AS n FROM link')[0].n;

  it('seals every secret under a new key, and keeps the previous one in a separate file', async () => {
    const first = await start();
    const links = [await first.reserve('order-1'), await first.reserve('order-2')];
    const before = keyFile(first);
    const { status, body } = await rotate(first);
    const after = keyFile(first);
    expect([status, body.rotation]).toEqual([
      200,
      {
        keyId: idOf(after),
        previousKeyId: idOf(before),
        secrets: 2,
        resealed: 2,
        keyPlace: `${first.storePath}.key`,
        note: expect.stringContaining(`${first.storePath}.key.${idOf(before)}`),
      },
    ]);
    expect(after).not.toBe(before);
    expect([restsUnder(first.storePath), ...keysOfLinks(first.storePath)]).toEqual([idOf(after), idOf(after)]);
    const older = `${first.storePath}.key.${idOf(before)}`;
    expect(readFileSync(older, 'utf8').trim()).toBe(before);
    for (const file of [older, `${first.storePath}.key`]) expect(statSync(file).mode & 0o777).toBe(0o600);
    const names = readdirSync(dirname(older)).filter((name) => name.includes('.key'));
    expect(names.sort()).toEqual(['settled.db.key', basename(older)]);

    const again = await startAgain(first, links);
    for (const link of again.links) await expectRecorded(again.app, link);
  });

  it('continues while deliveries come, and refuses and delays none of them', async () => {
    const app = await start();
    addLinks(app, 1_000);
    const known = await app.reserve('order-known');
    const answers = new Set<number>();
    const reserved: ReservedLink[] = [];
    const rotateUnderLoad = async () => {
      const waits: number[] = [];
      let isOver = false;
      const deliver = async (link: ReservedLink) => {
        const startedMs = performance.now();
        answers.add((await app.deliver(link, paymentEvent({ status: 'PENDING' }))).status);
        waits.push(performance.now() - startedMs);
      };
      const load = (async () => {
        while (!isOver) await deliver(known);
      })();
      const opening = (async () => {
        while (!isOver) {
          reserved.push(await app.reserve(`order-${reserved.length}`));
          await deliver(reserved.at(-1) as ReservedLink);
        }
      })();
      const soFar = reserved.length;
      await eventually(() => expect(reserved.length).toBeGreaterThan(soFar + 2));
      const before = waits.length;
      const startedMs = performance.now();
      const { rotation } = (await rotate(app)).body;
      const tookMs = performance.now() - startedMs;
      isOver = true;
      await Promise.all([load, opening]);
      return { rotation, tookMs, count: waits.length - before, longestMs: Math.max(...waits.slice(before)) };
    };
    const rotated = await untilFast(
      rotateUnderLoad,
      ({ tookMs, count, longestMs }) => count > 20 && longestMs < tookMs / 2,
    );
    expect(rotated.rotation.resealed).toBeGreaterThanOrEqual(1_000);
    expect(rotated.count).toBeGreaterThan(20);
    expect([...answers]).toEqual([200]);
    expect(rotated.longestMs).toBeLessThan(rotated.tookMs / 2);
    expect(keysOfLinks(app.storePath)).toEqual([rotated.rotation.keyId]);
    const again = await startAgain(app, [known, ...reserved.slice(-3)]);
    for (const link of again.links) await expectRecorded(again.app, link);
  });

  it('is one for all who ask for it while it is under way', async () => {
    const app = settled();
    addLinks(app, 500);
    const links = linksOf(app);
    const answers = await Promise.all([rotate(app), rotate(app), rotate(app)]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(new Set(answers.map(({ body }) => body.rotation.keyId)).size).toBe(1);
    expect(answers[0]?.body.rotation.resealed).toBe(links);
  });

  it('recognises the same secret while it is still sealed under the previous key', async () => {
    const app = settled();
    const body = { reference: 'order-same', amount: '100.00', id: 'pl_same', webhookSecret: SECRET };
    expect((await post(app, '/v1/links', body)).status).toBe(201);
    const columns = 'sealed_secret AS sealed, secrets_key_id AS id, secret_fingerprint AS fingerprint';
    const [old] = peek(app.storePath, `SELECT ${columns} FROM link WHERE link_id = 'pl_same'`);
    await rotate(app);
    expect((await post(app, '/v1/links', body, 'shop')).status).toBe(200);
    // As it was before its turn came.
    tamper(
      app.storePath,
      `UPDATE link SET sealed_secret = ?, secrets_key_id = ?, secret_fingerprint = ? WHERE link_id = 'pl_same'`,
      old.sealed,
      old.id,
      old.fingerprint,
    );
    expect((await post(app, '/v1/links', body, 'shop')).status).toBe(200);
    const other = { ...body, webhookSecret: `${SECRET}.` };
    problem(await post(app, '/v1/links', other, 'shop'), 403, 'correction_forbidden');
    const same = peek(app.storePath, "SELECT secrets_key_id AS id FROM link WHERE link_id = 'pl_same'");
    expect(same).toEqual([{ id: old.id }]);
    expect((await post(app, '/v1/links', other)).status).toBe(200);
    expect(keysOfLinks(app.storePath)).toEqual([restsUnder(app.storePath)]);
  });

  it('changes nothing if the new key cannot be written, and can be repeated', async () => {
    const app = settled();
    await app.reserve('order-unwritten');
    const before = restsUnder(app.storePath);
    rmSync(`${app.storePath}.key`);
    mkdirSync(`${app.storePath}.key`);
    const detail = problem(await rotate(app), 503, 'unavailable');
    expect(detail).toContain('The key was not changed');
    expect(keysOfLinks(app.storePath)).toEqual([before]);
    rmdirSync(`${app.storePath}.key`);
    expect((await rotate(app)).body.rotation).toMatchObject({ previousKeyId: before, resealed: linksOf(app) });
    expect(idOf(keyFile(app))).toBe(restsUnder(app.storePath));
  });

  it('still binds a secret to its order: a row that was swapped is not opened', async () => {
    const first = await start();
    const links = [await first.reserve('order-1'), await first.reserve('order-2')];
    await rotate(first);
    tamper(
      first.storePath,
      `UPDATE link SET sealed_secret = (SELECT sealed_secret FROM link other WHERE other.key <> link.key),
         secret_fingerprint = (SELECT secret_fingerprint FROM link other WHERE other.key <> link.key) WHERE key = 1`,
    );
    const { app, links: moved } = await startAgain(first, links);
    const [swapped, intact] = moved as [ReservedLink, ReservedLink];
    expect((await app.deliver(swapped, paymentEvent())).status).toBe(503);
    await expectRecorded(app, intact);
    const { rotation } = (await rotate(app)).body;
    expect(rotation).toMatchObject({ resealed: 1, note: expect.stringContaining('1 secrets stay') });
  });

  it('keeps settled’s own delivery to itself working', async () => {
    const hooks = `127.0.0.1:${await freePort()}`;
    const environment = { SETTLED_HOOKS_LISTEN: hooks, SETTLED_PUBLIC_URL: `http://${hooks}` };
    const app = await start({ environment });
    const checkAddress = async () => {
      const { checks } = (await get(app, '/v1/admin/doctor')).body;
      return checks.find(({ name }: { name: string }) => name === 'public address');
    };
    const arrives = expect.objectContaining({ status: 'warning', detail: expect.stringMatching(/^links carry/) });
    expect(await checkAddress()).toEqual(arrives);
    await rotate(app);
    expect(await checkAddress()).toEqual(arrives);
  });

  it('opens an older backup with the key that it kept, and reseals it', async () => {
    const first = await start();
    const link = await first.reserve('order-1');
    const { path } = (await post(first, '/v1/admin/backup', {})).body.backup;
    const once = (await rotate(first)).body.rotation;
    const { keyId, previousKeyId } = (await rotate(first)).body.rotation;
    expect(previousKeyId).toBe(once.keyId);
    const storePath = join(testFolder(), 'settled.db');
    const files = readdirSync(dirname(first.storePath)).filter((name) => name.startsWith('settled.db.key'));
    for (const name of files) cpSync(join(dirname(first.storePath), name), join(dirname(storePath), name));
    cpSync(path, storePath);
    const restored = await start({ storePath });
    await expectRecorded(restored, { ...link, webhookUrl: link.webhookUrl.replace(first.hooksUrl, restored.hooksUrl) });
    await eventually(() => expect(restsUnder(storePath)).toBe(keyId));
    expect(keysOfLinks(storePath)).toEqual([keyId]);
  });

  it('reseals what is sealed under a key that was lost and found again', async () => {
    const first = await start();
    const { storePath } = first;
    const link = await first.reserve('order-1');
    const found = restsUnder(storePath);
    await first.app.stop();
    renameSync(`${storePath}.key`, `${storePath}.found`);
    const source = { store: sqliteAddress(storePath), secretsKey: null, secretsKeyPrevious: null };
    const given = await migrateStore({
      store: source.store,
      readKeys: (how) => readKeyIds(source, how),
      isRestored: false,
      keyIsLost: true,
      clock: systemClock,
    });
    expect(given.newKey).toMatchObject({ undecipherable: 1, keyId: restsUnder(storePath) });
    renameSync(`${storePath}.found`, `${storePath}.key.${found}`);
    const again = await startAgain(first, [link]);
    await expectRecorded(again.app, again.links[0] as ReservedLink);
    expect(keysOfLinks(storePath)).toEqual([found]);
    expect((await rotate(again.app)).body.rotation).toMatchObject({ resealed: 1 });
    expect(keysOfLinks(storePath)).toEqual([restsUnder(storePath)]);
  });
});

describe('api: rotate-key, if the key is a setting', () => {
  it('is not ours to do, and says what to set', async () => {
    const app = await start({ environment: { SETTLED_SECRETS_KEY: OLD } });
    const detail = problem(await rotate(app), 409, 'key_not_ours_to_change');
    expect(detail).toContain('SETTLED_SECRETS_KEY_PREVIOUS');
    expect(readdirSync(dirname(app.storePath)).filter((name) => name.includes('.key'))).toEqual([]);
  });

  it('is done by the start that is given both keys; then the one before can be left out', async () => {
    const first = await start({ environment: { SETTLED_SECRETS_KEY: OLD } });
    const links = [await first.reserve('order-1')];
    const environment = { SETTLED_SECRETS_KEY: NEW, SETTLED_SECRETS_KEY_PREVIOUS: OLD };
    await first.app.stop();
    const alone = start({ storePath: first.storePath, environment: { SETTLED_SECRETS_KEY: NEW }, atEnd: () => {} });
    await expect(alone).rejects.toMatchObject({
      code: 'secrets_key_wrong',
      message: expect.stringContaining('SETTLED_SECRETS_KEY_PREVIOUS'),
    });
    const both = await startAgain(first, links, environment);
    await eventually(() => expect(restsUnder(first.storePath)).toBe(idOf(NEW)));
    expect(keysOfLinks(first.storePath)).toEqual([idOf(NEW)]);
    expect((await rotate(both.app)).body.rotation).toEqual({
      keyId: idOf(NEW),
      previousKeyId: idOf(OLD),
      secrets: 1,
      resealed: 0,
      keyPlace: 'SETTLED_SECRETS_KEY',
      note: expect.stringContaining('SETTLED_SECRETS_KEY_PREVIOUS is no longer needed'),
    });
    const last = await startAgain(both.app, both.links, { SETTLED_SECRETS_KEY: NEW });
    await expectRecorded(last.app, last.links[0] as ReservedLink);
  });
});
