import { createCipheriv, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { openKeyring } from '../../src/secrets/keyring.ts';

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

const KEY = randomBytes(32);
const SECRET = 'whsec of a link, with ção';

describe('the keyring', () => {
  const keyring = openKeyring(KEY);
  const sealed = keyring.seal(SECRET, 'order-1');
  const resting = { sealedSecret: sealed.sealed, keyId: sealed.keyId, reference: 'order-1' };

  function refused(over: Partial<typeof resting>, by = keyring) {
    expect(() => by.open({ ...resting, ...over })).toThrow(
      expect.objectContaining({ code: 'secret_undecipherable', kind: 'transient' }),
    );
  }

  it('opens what it sealed, in this process and in the next', () => {
    expect(keyring.open(resting)).toBe(SECRET);
    expect(openKeyring(Buffer.from(KEY)).open(resting)).toBe(SECRET);
  });

  it.each(['', 'a', 'x'.repeat(10_000)])('opens a secret of any length', (secret) => {
    const { sealed: sealedSecret } = keyring.seal(secret, 'order-1');
    expect(keyring.open({ ...resting, sealedSecret })).toBe(secret);
  });

  it('takes a new IV each time: equal secrets do not rest as equal bytes', () => {
    const seals = Array.from({ length: 100 }, () => hex(keyring.seal(SECRET, 'order-1').sealed));
    expect(new Set(seals.map((seal) => seal.slice(0, 24))).size).toBe(100);
    expect(new Set(seals.map((seal) => seal.slice(24))).size).toBe(100);
  });

  it('does not show the secret in its sealed form', () => {
    const { sealed: bytes, fingerprint } = keyring.seal(SECRET, 'order-1');
    expect(Buffer.concat([bytes, fingerprint]).includes(SECRET.slice(0, 8))).toBe(false);
  });

  it('refuses a row that was moved to another order', () => {
    refused({ reference: 'order-2' });
  });

  it('refuses the secret that the service named in the place of ours, and ours in its place', () => {
    const named = keyring.seal(SECRET, 'order-1', 'service');
    const beside = { ...resting, sealedSecret: named.sealed };
    expect(keyring.open(beside, 'service')).toBe(SECRET);
    refused(beside);
    expect(() => keyring.open(resting, 'service')).toThrow(expect.objectContaining({ code: 'secret_undecipherable' }));
  });

  it('refuses any changed byte', () => {
    for (let at = 0; at < sealed.sealed.length; at++) {
      const sealedSecret = Buffer.from(sealed.sealed);
      sealedSecret[at] = (sealedSecret[at] as number) ^ 1;
      refused({ sealedSecret });
    }
  });

  it('refuses a tag of four bytes, which the cipher alone would accept', () => {
    const aad = Buffer.from(`order-1\0${keyring.keyId}`);
    const iv = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', KEY, iv);
    cipher.setAAD(aad);
    const text = Buffer.concat([cipher.update(SECRET, 'utf8'), cipher.final()]);
    const tag = cipher.getAuthTag();
    expect(keyring.open({ ...resting, sealedSecret: Buffer.concat([iv, text, tag]) })).toBe(SECRET);
    refused({ sealedSecret: Buffer.concat([iv, text, tag.subarray(0, 4)]) });
    refused({ sealedSecret: Buffer.concat([iv, tag.subarray(0, 4)]) });
  });

  it.each([0, 1, 12, 27])('refuses %d bytes as too short', (length) => {
    refused({ sealedSecret: sealed.sealed.subarray(0, length) });
  });

  it('refuses what another key sealed, by the key’s id and by the bytes', () => {
    const other = openKeyring(randomBytes(32));
    expect(other.keyId).not.toBe(keyring.keyId);
    refused({}, other);
    refused({ keyId: other.keyId }, other);
    refused({ keyId: other.keyId });
  });

  it('gives equal secrets equal fingerprints under one key, in any order', () => {
    const one = hex(keyring.seal(SECRET, 'order-1').fingerprint);
    expect(hex(openKeyring(KEY).seal(SECRET, 'order-2').fingerprint)).toBe(one);
    expect(hex(keyring.seal(`${SECRET}.`, 'order-1').fingerprint)).not.toBe(one);
    expect(hex(openKeyring(randomBytes(32)).seal(SECRET, 'order-1').fingerprint)).not.toBe(one);
  });

  describe('with a key before', () => {
    const NEW = randomBytes(32);
    const both = openKeyring(NEW, [KEY]);

    it('opens what is sealed under either, each for its own order, and seals under the new one', () => {
      expect(both.open(resting)).toBe(SECRET);
      refused({ reference: 'order-2' }, both);
      const { sealed: sealedSecret, keyId } = both.seal(SECRET, 'order-1');
      expect(keyId).toBe(openKeyring(NEW).keyId);
      expect(openKeyring(NEW).open({ sealedSecret, keyId, reference: 'order-1' })).toBe(SECRET);
      refused({ sealedSecret, keyId });
      refused({ keyId }, both);
    });

    it('tells by their fingerprints under both whether two secrets are the same', () => {
      const { olderFingerprints } = both.seal(SECRET, 'order-2');
      expect(olderFingerprints).toEqual([{ keyId: keyring.keyId, fingerprint: sealed.fingerprint }]);
      expect(sealed.olderFingerprints).toEqual([]);
    });

    it('has the probe of the new one, and knows that of the one before', () => {
      expect(both.probe).toEqual(openKeyring(NEW).probe);
      for (const { probe } of [both, keyring]) expect(both.findProbe(probe.token)).toEqual(probe);
      expect(keyring.findProbe(both.probe.token)).toBeUndefined();
    });

    it('becomes such by a change, and knows each key once', () => {
      const changed = openKeyring(KEY);
      changed.change(NEW);
      expect(changed.keyIds).toEqual(both.keyIds);
      expect(changed.open(resting)).toBe(SECRET);
      changed.change(KEY);
      expect(changed.keyIds).toEqual(both.keyIds.toReversed());
      expect(changed.keyId).toBe(keyring.keyId);
    });
  });

  it('names a key without giving it away', () => {
    expect(keyring.keyId).toMatch(/^[0-9a-f]{16}$/);
    expect(KEY.toString('hex')).not.toContain(keyring.keyId);
  });

  it.each([0, 16, 31, 33])('does not work with a key of %d bytes', (length) => {
    expect(() => openKeyring(randomBytes(length))).toThrow('32 bytes');
  });
});
