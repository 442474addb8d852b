import { expect, it } from 'vitest';
import { openKeyring } from '../../src/store/keyring.ts';
import { startRotation } from '../../src/store/rotation.ts';
import { systemClock } from '../../src/work/clock.ts';
import { readableLog } from '../support/lines.ts';

it('a change of the secrets key ends between two batches where settled stops', async () => {
  const [older, current] = [1, 2].map((byte) => Buffer.alloc(32, byte)) as [Buffer, Buffer];
  const before = openKeyring(older);
  const sealed = before.seal('a secret', 'order-1');
  const listed = Promise.withResolvers<void>();
  let lists = 0;
  const rotation = startRotation({
    store: {
      // As if there were no end of links.
      listSecrets: async ({ after }) => {
        if (++lists === 3) listed.resolve();
        await new Promise((resume) => setImmediate(resume));
        return [
          {
            linkKey: after + 1,
            reference: 'order-1',
            token: 'token',
            sealedSecret: sealed.sealed,
            keyId: before.keyId,
          },
        ];
      },
      resealSecret: async () => {},
      addSecretsKey: async () => {},
      adoptSecretsKey: async () => {},
    },
    keyring: openKeyring(current, [older]),
    keys: { current, older: [older] },
    source: { storePath: '', secretsKey: current, secretsKeyPrevious: older },
    restUnder: [before.keyId],
    clock: systemClock,
    log: readableLog().log,
  });
  await listed.promise;
  await rotation.stop();
  const atStop = lists;
  await new Promise((resume) => setImmediate(resume));
  expect(lists).toBe(atStop);
});
