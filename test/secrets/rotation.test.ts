import { expect, it } from 'vitest';
import { Fault } from '../../src/fault.ts';
import { openKeyring } from '../../src/secrets/keyring.ts';
import { type RotationOptions, startRotation } from '../../src/secrets/rotation.ts';
import { sqliteAddress } from '../../src/store/address.ts';
import type { SealedKey } from '../../src/store/verbs/audit.ts';
import type { SealedCredentials } from '../../src/store/verbs/secrets.ts';
import { type Clock, systemClock } from '../../src/work/clock.ts';
import { readableLog } from '../support/observe.ts';

const [OLDER, CURRENT] = [1, 2].map((byte) => Buffer.alloc(32, byte)) as [Buffer, Buffer];
const before = openKeyring(OLDER);
const { keyId } = openKeyring(CURRENT);

function credentials(linkKey: number, over: Partial<SealedCredentials> = {}): SealedCredentials {
  const { sealed } = before.seal('a secret', 'order-1');
  const row = { reference: 'order-1', token: 'token', sealedSecret: sealed, keyId: before.keyId };
  return { linkKey, ...row, ...over };
}

/** A change from the key before to the current one, both from the configuration. */
function start(store: Partial<RotationOptions['store']>, clock: Clock = systemClock) {
  const done = async () => {};
  const rest = {
    resealSecret: done,
    addSecretsKey: done,
    adoptSecretsKey: done,
    listSecrets: async () => [],
    keepAuditKey: async (key: SealedKey) => key,
    resealAuditKey: done,
  };
  return startRotation({
    store: { ...rest, ...store },
    keyring: openKeyring(CURRENT, [OLDER]),
    keys: { current: CURRENT, older: [OLDER] },
    source: { store: sqliteAddress(''), secretsKey: CURRENT, secretsKeyPrevious: OLDER },
    restUnder: [before.keyId],
    clock,
    log: readableLog().log,
  });
}

it('a change of the secrets key ends between two batches when settled stops', async () => {
  const listed = Promise.withResolvers<void>();
  let lists = 0;
  const rotation = start({
    // As if there were no end of links.
    listSecrets: async ({ after }) => {
      if (++lists === 3) listed.resolve();
      await new Promise((resume) => setImmediate(resume));
      return [credentials(after + 1)];
    },
  });
  await listed.promise;
  await rotation.stop();
  const atStop = lists;
  await new Promise((resume) => setImmediate(resume));
  expect(lists).toBe(atStop);
});

it('a change of the secrets key reseals nothing before every replica has the key, and retries until then', async () => {
  const calls: string[] = [];
  const inUse = new Fault('transient', 'secrets_key_in_use', 'the replica other seals under another key');
  /** Refuses so many times. */
  const refusing = (name: string, times: number) => async () => {
    calls.push(name);
    if (times-- > 0) throw inUse;
  };
  const rests: number[] = [];
  const clock: Clock = {
    ...systemClock,
    after: (ms, work) => {
      rests.push(ms);
      return systemClock.after(0, work);
    },
  };
  const rotation = start(
    {
      addSecretsKey: refusing('add', 2),
      listSecrets: async ({ after }) => {
        calls.push('list');
        return after === 0 ? [credentials(1)] : [];
      },
      resealSecret: async () => void calls.push('reseal'),
      adoptSecretsKey: refusing('adopt', 1),
    },
    clock,
  );
  // Each waiting caller hears of it.
  const told = expect.objectContaining({
    code: 'secrets_key_in_use',
    message: expect.stringMatching(/continues in the background\. the replica other seals under another key$/),
  });
  for (let times = 0; times < 3; times++) await expect(rotation.rotate()).rejects.toEqual(told);
  expect(await rotation.rotate()).toMatchObject({ keyId, previousKeyId: before.keyId });
  const pass = ['add', 'list', 'reseal', 'list', 'adopt'];
  expect(calls).toEqual(['add', 'add', ...pass, ...pass]);
  expect(rests).toEqual([10_000, 10_000, 10_000]);
});

it('a change of the secrets key waits for no secret that does not open', async () => {
  const adopted: unknown[] = [];
  const rows = [
    credentials(1, { sealedSecret: Buffer.alloc(60) }),
    credentials(2, { keyId: 'a key that is lost' }),
    credentials(3),
  ];
  const rotation = start({
    listSecrets: async ({ after }) => (after === 0 ? rows : []),
    adoptSecretsKey: async (adoption) => void adopted.push(adoption),
  });
  expect(await rotation.rotate()).toMatchObject({ secrets: 1, resealed: 1 });
  // That of the lost key is not among those that the store counts.
  expect(adopted).toEqual([{ keyId, damaged: 1 }]);
});
