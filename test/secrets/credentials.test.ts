import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { type Credentials, openCredentials } from '../../src/secrets/credentials.ts';
import { openKeyring } from '../../src/secrets/keyring.ts';
import type { CredentialsKey, SealedCredentials } from '../../src/store/verbs/secrets.ts';

const keyring = openKeyring(randomBytes(32));

describe('the credentials of links', () => {
  let rows: SealedCredentials[];
  let credentials: Credentials;
  let nowMs = 0;
  const clock = { monotonicMs: () => nowMs };
  const findCredentials = vi.fn(async (by: CredentialsKey) => lookUp(by));

  beforeEach(() => {
    rows = [row(1, 'secret of link 1')];
    findCredentials.mockReset();
    findCredentials.mockImplementation(async (by) => lookUp(by));
    credentials = openCredentials({ store: { findCredentials }, keyring, clock, freshMs: Infinity });
  });

  function row(linkKey: number, secret: string): SealedCredentials {
    const reference = `order-${linkKey}`;
    const { sealed, keyId } = keyring.seal(secret, reference);
    return { linkKey, token: `token-${linkKey}`, reference, sealedSecret: sealed, keyId };
  }

  function lookUp(by: CredentialsKey): SealedCredentials | null {
    const found = rows.find((each) =>
      'token' in by ? each.token === by.token : 'linkKey' in by && each.linkKey === by.linkKey,
    );
    return found ?? null;
  }

  it('finds a link’s secret, and keeps it by token and by key', async () => {
    const found = { linkKey: 1, reference: 'order-1', token: 'token-1', linkId: null, secret: 'secret of link 1' };
    expect(credentials.cachedByToken('token-1')).toBeUndefined();
    expect(await credentials.find({ token: 'token-1' })).toEqual(found);
    expect(credentials.cachedByToken('token-1')).toEqual(found);
    expect(credentials.cachedByLinkKey(1)).toEqual(found);
  });

  it('takes in the id that a link is bound to', async () => {
    credentials.noteLinkId('token-1', 'pl_1');
    expect(credentials.cachedByToken('token-1')).toBeUndefined();
    await credentials.find({ token: 'token-1' });
    credentials.noteLinkId('token-1', 'pl_1');
    const bound = { linkKey: 1, linkId: 'pl_1', secret: 'secret of link 1' };
    expect(credentials.cachedByToken('token-1')).toMatchObject(bound);
    expect(credentials.cachedByLinkKey(1)).toMatchObject(bound);
    expect(credentials.cachedByLinkId('pl_1')).toMatchObject(bound);
    expect([credentials.knows('pl_1'), credentials.knows('pl_2')]).toEqual([true, false]);
    credentials.forget('token-1');
    expect(credentials.cachedByLinkId('pl_1')).toBeUndefined();
  });

  it('never keeps an absence: a link that is made later is found', async () => {
    expect(await credentials.find({ token: 'token-2' })).toBeNull();
    rows.push(row(2, 'secret of link 2'));
    expect(await credentials.find({ token: 'token-2' })).toMatchObject({ linkKey: 2 });
  });

  it('does not keep what cannot be deciphered, and says so each time', async () => {
    rows = [{ ...row(1, 'secret'), reference: 'order-of-another' }];
    for (let time = 0; time < 2; time++) {
      await expect(credentials.find({ token: 'token-1' })).rejects.toMatchObject({ code: 'secret_undecipherable' });
    }
    expect(credentials.cachedByToken('token-1')).toBeUndefined();
    expect(findCredentials).toHaveBeenCalledTimes(2);
  });

  it('keeps a bounded number of links, and drops the oldest, but for one that was kept again', async () => {
    const link = (n: number) => ({
      linkKey: n,
      reference: `order-${n}`,
      token: `token-${n}`,
      secret: 's',
      linkId: `pl_${n}`,
    });
    for (let n = 0; n < 100_000; n++) credentials.keep(link(n));
    credentials.keep(link(1));
    for (const n of [100_000, 100_001]) credentials.keep(link(n));
    const kept = [0, 1, 2, 3, 100_000, 100_001].filter((n) => credentials.cachedByToken(`token-${n}`) !== undefined);
    expect(kept).toEqual([1, 3, 100_000, 100_001]);
    expect([credentials.cachedByLinkKey(0), credentials.knows('pl_2')]).toEqual([undefined, false]);
  });

  it('forgets a secret that was corrected, by token and by key', async () => {
    await credentials.find({ token: 'token-1' });
    rows = [row(1, 'the right secret')];
    credentials.forget('token-1');
    expect(credentials.cachedByToken('token-1')).toBeUndefined();
    expect(credentials.cachedByLinkKey(1)).toBeUndefined();
    expect(await credentials.find({ linkKey: 1 })).toMatchObject({ secret: 'the right secret' });
  });

  it('does not bring an old secret back by a lookup that began before it was corrected', async () => {
    const old = rows[0] as SealedCredentials;
    const { promise, resolve } = Promise.withResolvers<SealedCredentials>();
    findCredentials.mockImplementationOnce(() => promise);
    const finding = credentials.find({ token: 'token-1' });
    credentials.forget('token-1');
    resolve(old);
    await finding;
    expect(credentials.cachedByToken('token-1')).toBeUndefined();
    expect(credentials.cachedByLinkKey(1)).toBeUndefined();
  });

  it('uses a secret from memory for its time, counted from when the store was asked', async () => {
    nowMs = 1_000;
    const shared = openCredentials({ store: { findCredentials }, keyring, clock, freshMs: 2_000 });
    findCredentials.mockImplementationOnce(async (by) => {
      nowMs = 2_500;
      return lookUp(by);
    });
    await shared.find({ token: 'token-1' });
    nowMs = 2_999;
    expect(shared.cachedByToken('token-1')).toMatchObject({ secret: 'secret of link 1' });
    nowMs = 3_000;
    expect(shared.cachedByToken('token-1')).toBeUndefined();
    expect(shared.cachedByLinkKey(1)).toBeUndefined();
    rows = [row(1, 'the right secret')];
    expect(await shared.find({ linkKey: 1 })).toMatchObject({ secret: 'the right secret' });
    expect(shared.cachedByToken('token-1')).toMatchObject({ secret: 'the right secret' });
  });

  it('keeps a bounded number of links, and drops the oldest', async () => {
    const [only] = rows as [SealedCredentials];
    const cheap = openCredentials({
      store: {
        findCredentials: async (by) =>
          'linkKey' in by ? { ...only, linkKey: by.linkKey, token: `token-${by.linkKey}` } : null,
      },
      keyring: { ...keyring, open: () => 'secret' },
      clock,
      freshMs: Infinity,
    });
    for (let linkKey = 0; linkKey < 100_001; linkKey++) await cheap.find({ linkKey });
    expect(cheap.cachedByLinkKey(0)).toBeUndefined();
    expect(cheap.cachedByToken('token-0')).toBeUndefined();
    expect(cheap.cachedByLinkKey(1)).toBeDefined();
    expect(cheap.cachedByToken('token-100000')).toBeDefined();
  });
});
