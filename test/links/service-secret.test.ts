import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { Fault } from '../../src/fault.ts';
import { keepServiceSecret } from '../../src/links/service_secret.ts';
import type { LinkMade } from '../../src/paylink/service.ts';
import type { Store } from '../../src/store/contract.ts';
import type { ClaimedOpening } from '../../src/store/verbs/intents.ts';

const OPENING = { linkKey: 1, token: 'token', reference: 'order-1' } as ClaimedOpening;

type Kept = Parameters<Store['keepServiceSecret']>[0];

/** What is kept of secrets that an answer names, by a store that fails first with `faults`. */
async function keep(webhookSecrets: string[], faults: Error[] = []) {
  const kept: Kept[] = [];
  const forgotten: string[] = [];
  const waits: number[] = [];
  const sealed = { keyId: 'key', fingerprint: Buffer.alloc(0) };
  const after = (delayMs: number, work: () => void) => {
    waits.push(delayMs);
    work();
    return () => {};
  };
  const options = {
    keyring: { open: () => '', seal: (secret: string) => ({ ...sealed, sealed: Buffer.from(secret) }) },
    store: {
      keepServiceSecret: async (named: Kept) => {
        const fault = faults.shift();
        if (fault !== undefined) throw fault;
        kept.push(named);
      },
    },
    credentials: { forget: (token: string) => void forgotten.push(token) },
    clock: { nowMs: () => 0, after },
  };
  const ended = keepServiceSecret(options, OPENING, { webhookSecrets } as unknown as LinkMade);
  const fault = await ended.then(
    () => null,
    (error: unknown) => error,
  );
  const { secret = null, flaw = null } = kept[0] ?? {};
  return { secret: secret && Buffer.from(secret.sealed).toString(), flaw, fault, forgotten, waits };
}

describe('links: the secret that the service names', () => {
  it.each([
    'whsec_••••••••••••••••',
    'whsec_●●●●●●●●●●●●3f',
    'whsec_**…**ab12cd34',
    'whsec_****',
    'abcd1234********',
    'whsec_xxxxxxxxxxxxxxxxxxxx',
    'XXXXXXXXXXXXXXXXXXXXXXXX1a2b',
    'XXXX-XXXX-XXXX-XXXX-1a2b',
    'a1b2c3d4-------e5f6a7b8c9',
    'whsec_...............9f2c',
    'whsec_9f2c04....3b1d99a8',
    '0000000000000000a1b2c3d4e5f6a7b8c9',
    '[REDACTED-SECRET]',
    '<your-signing-secret>',
    '<not shown again>',
    'NOT_SHOWN_AGAIN_1',
    'hidden for security',
    'hidden-for-security',
    'undefined undefined',
    'undefinedundefined',
    'nullnullnullnull',
    'whsec_undefined-1234',
    'a-secret with-a-space-in-it',
    'a-secret-of-ümlauts-123',
    'a-secret-of-a-line-end-123\n',
  ])('%j is no secret', async (text) => {
    const { secret, flaw } = await keep([text]);
    expect([secret, flaw]).toEqual([null, expect.stringMatching(/^it (?:is masked|holds white space)/)]);
  });

  it('is accepted with any random bytes', async () => {
    const encodings = ['hex', 'base64', 'base64url'] as const;
    const secrets = Array.from({ length: 6000 }, (_, n) => {
      const text = randomBytes([16, 24, 32, 64][n % 4] as number).toString(encodings[n % 3]);
      return ['', 'whsec_', 'secret_', 'sk-'][Math.floor(n / 12) % 4] + text;
    });
    const refused = [];
    for (const secret of secrets) if ((await keep([secret])).secret !== secret) refused.push(secret);
    expect(refused).toEqual([]);
  });

  it.each([
    '9f2c04444444443b1d99a8c07e51d2aa',
    'whsec_0xxxxxx0hIdDeNqNuLlTrsecretAMaskedz0Q9k',
    'whsec_aa----__++//n0Ne/nuLl+1b7KpQ2sV5t8w9y0z',
  ])('%s is taken: random bytes look like that now and then', async (secret) => {
    expect(await keep([secret])).toMatchObject({ secret, flaw: null });
  });

  it('is the first that can be one', async () => {
    const secret = randomBytes(32).toString('hex');
    expect(await keep(['whsec_••••••••••••••••', secret])).toMatchObject({ secret, flaw: null });
  });

  const SECRET = randomBytes(32).toString('hex');
  const busy = new Fault('transient', 'store_busy', 'Busy.');

  it('is kept though the store fails for some seconds: it is not named again', async () => {
    expect(await keep([SECRET], [busy, new Error('unknown'), busy])).toMatchObject({
      secret: SECRET,
      fault: null,
      waits: [100, 500, 2500],
    });
  });

  it('is given up while the lease of its opening lasts, and at once if no later time would be better', async () => {
    expect(await keep([SECRET], Array(4).fill(busy))).toMatchObject({ secret: null, fault: busy });
    const lost = new Fault('terminal', 'store_lost', 'Lost.');
    expect(await keep([SECRET], [lost])).toMatchObject({ secret: null, fault: lost, waits: [] });
  });

  it('has the credentials forgotten that were cached without it', async () => {
    expect((await keep([SECRET])).forgotten).toEqual(['token']);
    expect((await keep(['whsec_****'])).forgotten).toEqual([]);
  });
});
