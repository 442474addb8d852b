import { randomBytes } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readKeyIds } from '../../../src/secrets/key_files.ts';
import { openKeyring } from '../../../src/secrets/keyring.ts';
import { postgresAddress } from '../../../src/store/address.ts';
import { migrateStore } from '../../../src/store/open.ts';
import { systemClock } from '../../../src/work/clock.ts';
import { worldOf } from '../contract/world.ts';
import { connectTo, emptyDatabase, newDatabase, openTestPostgres } from './opening.ts';

const [KEY, NEXT_KEY] = [randomBytes(32), randomBytes(32)];
const keyId = (key: Buffer) => openKeyring(key).keyId;

function migrate(url: string, options: { key?: Buffer; isRestored?: boolean; keyIsLost?: boolean } = {}) {
  const { key = KEY, isRestored = false, keyIsLost = false } = options;
  const source = { store: postgresAddress(url), secretsKey: key, secretsKeyPrevious: null };
  return migrateStore({
    store: source.store,
    readKeys: (how) => readKeyIds(source, how),
    isRestored,
    keyIsLost,
    clock: systemClock,
  });
}

/** A replica that serves. */
async function serve(url: string, key = KEY) {
  const opened = await openTestPostgres(url, { secretsKeyId: keyId(key), replica: 'replica-1' });
  onTestFinished(() => opened.store.close().catch(() => {}));
  await opened.store.heartbeat(opened.clock.nowMs());
  return opened;
}

describe('settled migrate of PostgreSQL', () => {
  it('makes the schema of an empty database, and finds nothing to do the next time', async () => {
    const url = await emptyDatabase();
    const first = await migrate(url);
    expect(first).toMatchObject({ restoredFromMs: null, newKey: null });
    expect(first.applied[0]).toBe('0001_instance.sql');
    expect((await migrate(url)).applied).toEqual([]);
  });

  it('gives up on a table that somebody has locked, before replicas that serve are held up for long', async () => {
    const url = await newDatabase();
    const holder = await connectTo(url);
    await holder.query('BEGIN; LOCK TABLE migration, instance');
    await expect(migrate(url)).rejects.toMatchObject({ kind: 'transient' });
    await holder.query('ROLLBACK');
    expect((await migrate(url)).applied).toEqual([]);
  });

  it('refuses a key that is not the database’s, and gives up the one that is lost where it is told so', async () => {
    const url = await newDatabase();
    await migrate(url);
    await expect(migrate(url, { key: NEXT_KEY })).rejects.toMatchObject({ code: 'secrets_key_wrong' });
    const { store } = await serve(url);
    const freshSecret = openKeyring(KEY).seal('the secret of the link', 'order-1');
    await worldOf(store).register({ reference: 'order-1', freshSecret, mayCorrect: false });
    await store.close();
    const given = await migrate(url, { key: NEXT_KEY, keyIsLost: true });
    expect(given.newKey).toEqual({ keyId: keyId(NEXT_KEY), keyPlace: 'SETTLED_SECRETS_KEY', undecipherable: 1 });
    await expect(migrate(url)).rejects.toMatchObject({ code: 'secrets_key_wrong' });
  });

  it('leaves replicas alone that serve, but for a restore and for a lost key', async () => {
    const url = await newDatabase();
    const { store, clock } = await serve(url);
    await migrate(url);
    for (const what of [{ isRestored: true }, { keyIsLost: true, key: NEXT_KEY }]) {
      await expect(migrate(url, what)).rejects.toMatchObject({
        code: 'store_in_use',
        message: expect.stringMatching(/is being served by replica-1\. Stop every replica first/),
      });
    }
    await store.heartbeat(clock.nowMs());
    await store.close();
    const { restoredFromMs } = await migrate(url, { isRestored: true });
    expect(Math.abs((restoredFromMs ?? 0) - Date.now())).toBeLessThan(60_000);
  });

  it('counts on a replica that was killed for a minute, and takes no empty database for a copy', async () => {
    const url = await newDatabase();
    await expect(migrate(url, { isRestored: true })).rejects.toMatchObject({ code: 'store_foreign' });
    const { store, clock } = await serve(url);
    await store.heartbeat(clock.nowMs() - 61_000);
    await migrate(url, { isRestored: true });
  });
});
