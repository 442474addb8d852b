import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { OpenedPostgresStore } from '../../../src/store/postgres/store.ts';
import type { Registration } from '../../../src/store/verbs/links.ts';
import { sealedSecret, worldOf } from '../contract/world.ts';
import { runIn } from './contract_store.ts';
import { holding, untilBehind } from './locks.ts';
import { newDatabase, openTestPostgres, sharedServer } from './opening.ts';

const MINUTE_MS = 60_000;
const IN_USE = expect.objectContaining({ code: 'secrets_key_in_use', kind: 'transient' });

describe('the secrets key of two replicas', () => {
  let url: string;
  let before: OpenedPostgresStore;
  let after: OpenedPostgresStore;

  /** One seals under the key before, the other under the new one; both know both. */
  beforeEach(async () => {
    url = await newDatabase();
    const known = ['old', 'new', 'key-1'];
    before = await openTestPostgres(url, { secretsKeyId: 'old', olderKeyIds: known, replica: 'one' });
    await before.store.adoptSecretsKey({ keyId: 'old', damaged: 0 });
    after = await openTestPostgres(url, { secretsKeyId: 'new', olderKeyIds: known, replica: 'other' });
    onTestFinished(async () => {
      for (const { store } of [before, after]) await store.close().catch(() => {});
      await sharedServer().drop(new URL(url).pathname.slice(1));
    });
  });

  const adopt = (damaged = 0) => after.store.adoptSecretsKey({ keyId: 'new', damaged });

  function register(on: OpenedPostgresStore, keyId: string, over: Partial<Registration> = {}) {
    const freshSecret = { ...sealedSecret(randomUUID()), keyId };
    return worldOf(on.store).register({ reference: randomUUID(), freshSecret, ...over });
  }

  /** Has every secret rest under the new key. */
  async function resealAll() {
    for (const { linkKey, sealedSecret: was } of await after.store.listSecrets({ after: 0, limit: 100 })) {
      await after.store.resealSecret({ linkKey, was, ...sealedSecret('again'), keyId: 'new' });
    }
  }

  it('is not changed while a replica is alive that seals under the one before', async () => {
    await expect(after.store.addSecretsKey('new')).rejects.toEqual(IN_USE);
    await expect(adopt()).rejects.toThrow('the replica one seals under the key old');
    await before.store.close();
    await after.store.addSecretsKey('new');
    await adopt();
  });

  it('is changed where the other replica has been silent for a minute', async () => {
    const { clock, store } = after;
    const lastMs = clock.nowMs();
    await before.store.heartbeat(lastMs);
    await store.heartbeat(lastMs + MINUTE_MS - 1000);
    await expect(adopt()).rejects.toEqual(IN_USE);
    await store.heartbeat(lastMs + MINUTE_MS + 1000);
    await adopt();
  });

  it('is not the only one while a secret rests under the one before, unless it does not open', async () => {
    await register(before, 'old');
    await before.store.close();
    await expect(adopt()).rejects.toThrow('Secrets rest under another key than new (1)');
    await adopt(1);
    await expect(openTestPostgres(url, { secretsKeyId: 'new', replica: 'third' }).then(close)).resolves.toBe(undefined);
  });

  it("is not the only one while a link's secret of the service rests under the one before", async () => {
    const registered = await register(after, 'new');
    if (!('token' in registered)) throw new Error('the link was not registered');
    const { linkKey, token } = registered;
    const secret = { ...sealedSecret('of the service'), keyId: 'old' };
    const named = { linkKey, token, secret, flaw: null, nowMs: before.clock.nowMs() };
    await before.store.keepServiceSecret(named);
    await before.store.close();
    await expect(adopt()).rejects.toThrow('Secrets rest under another key than new (1)');
    const again = { ...sealedSecret('again'), keyId: 'new' };
    await after.store.resealSecret({ linkKey, whose: 'service', was: secret.sealed, ...again });
    await adopt();
    await expect(after.store.keepServiceSecret({ ...named, linkKey: 987 })).resolves.toBeUndefined();
  });

  it('is not the only one where the other replica seals a secret under the one before at that moment', async () => {
    await after.store.heartbeat(after.clock.nowMs() + 2 * MINUTE_MS);
    const reference = randomUUID();
    const held = await holding(
      url,
      `INSERT INTO orders (reference, amount_minor, currency, state, created_at_ms, updated_at_ms)
       VALUES ('${reference}', 100, 'BRL', 'awaiting_payment', 0, 0)`,
    );
    const registered = register(before, 'old', { reference });
    await untilBehind(held);
    const adopted = adopt().catch((fault) => fault);
    await untilBehind(held, 2);
    await held.query('ROLLBACK');
    expect(await registered).toMatchObject({ outcome: 'created' });
    expect(await adopted).toEqual(IN_USE);
    await resealAll();
    await adopt();
  });

  it('seals nothing any more once it was given up: its replica is to be started with the new one', async () => {
    const known = await register(before, 'old');
    await after.store.heartbeat(after.clock.nowMs() + 2 * MINUTE_MS);
    await resealAll();
    await adopt();
    const refused = expect.objectContaining({ code: 'secrets_key_wrong', kind: 'transient' });
    await expect(register(before, 'old')).rejects.toEqual(refused);
    const { reference } = known.order;
    const secret = { ...sealedSecret('corrected'), keyId: 'old' };
    await expect(register(before, 'old', { reference, secret })).rejects.toEqual(refused);
    const [row] = await after.store.listSecrets({ after: 0, limit: 1 });
    expect(row?.keyId).toBe('new');
    const { linkKey = 0, sealedSecret: was = Buffer.of() } = row ?? {};
    await expect(before.store.resealSecret({ linkKey, was, ...secret })).rejects.toEqual(refused);
    expect(await register(after, 'new')).toMatchObject({ outcome: 'created' });
  });
});

it('a new database is one instance, though two replicas begin on it at once', async () => {
  const url = await newDatabase();
  onTestFinished(() => sharedServer().drop(new URL(url).pathname.slice(1)));
  await runIn(url, 'DELETE FROM instance');
  const held = await holding(
    url,
    "INSERT INTO instance (one, instance_id, secrets_key_id, created_at_ms, alive_at_ms) VALUES (1, '', '', 0, 0)",
  );
  const both = ['one', 'other'].map((name) => openTestPostgres(url, { newInstanceId: name }));
  await untilBehind(held, 2);
  await held.query('ROLLBACK');
  const replicas = await Promise.all(both);
  const [one, other] = replicas.map(({ opened }) => opened.instanceId);
  expect(one).toBe(other);
  expect(replicas.filter(({ opened }) => opened.created)).toHaveLength(1);
  await Promise.all(replicas.map(close));
});

function close({ store }: OpenedPostgresStore): Promise<void> {
  return store.close();
}
