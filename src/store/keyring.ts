import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { Fault } from '../fault.ts';
import type { SealedCredentials, SealedSecret } from './store.ts';

const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Seals and opens signing secrets: AES-256-GCM, a random 96-bit IV each, bound to the order's reference and the key. */
export type Keyring = {
  readonly keyId: string;
  seal(secret: string, reference: string): SealedSecret;
  /** Throws the fault `secret_undecipherable` where the row was changed, moved, or sealed under another key. */
  open(credentials: Pick<SealedCredentials, 'sealedSecret' | 'keyId' | 'reference'>): string;
  /** Token and signing secret of deliveries that settled sends to itself. All processes with this key have the same. */
  readonly probe: { token: string; secret: string };
};

/** @param bytes 32 of them */
export function openKeyring(bytes: Uint8Array): Keyring {
  if (bytes.length !== KEY_BYTES)
    throw new Error(`a secrets key has ${KEY_BYTES} bytes, this one ${bytes.length}`);
  const keyId = createHash('sha256').update('settled key id').update(bytes).digest('hex').slice(0, 16);
  const fingerprintKey = createHash('sha256').update('settled fingerprint').update(bytes).digest();
  const derive = (purpose: string, bytesLength: number) =>
    createHmac('sha256', fingerprintKey)
      .update(purpose)
      .digest()
      .subarray(0, bytesLength)
      .toString('base64url');
  // A key object is prepared once; plain bytes would be prepared for every secret.
  const key = createSecretKey(bytes);
  return {
    keyId,
    probe: { token: derive('probe token', 24), secret: derive('probe secret', 32) },
    seal: (secret, reference) => ({
      sealed: seal(key, secret, associatedData(reference, keyId)),
      keyId,
      fingerprint: createHmac('sha256', fingerprintKey).update(secret).digest(),
    }),
    open: ({ sealedSecret, keyId: sealedUnder, reference }) => {
      try {
        if (sealedUnder !== keyId) throw new Error(`sealed under key ${sealedUnder}`);
        return unseal(key, sealedSecret, associatedData(reference, keyId));
      } catch (cause) {
        throw new Fault(
          'transient',
          'secret_undecipherable',
          'A signing secret cannot be deciphered: its row was changed, or the secrets key is not the right one.',
          { cause },
        );
      }
    },
  };
}

function associatedData(reference: string, keyId: string): Buffer {
  return Buffer.from(`${reference}\0${keyId}`);
}

function seal(key: KeyObject, secret: string, aad: Buffer): Buffer {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES });
  cipher.setAAD(aad);
  return Buffer.concat([iv, cipher.update(secret, 'utf8'), cipher.final(), cipher.getAuthTag()]);
}

function unseal(key: KeyObject, sealed: Uint8Array, aad: Buffer): string {
  if (sealed.length < IV_BYTES + TAG_BYTES) throw new Error('sealed secret is too short');
  const iv = sealed.subarray(0, IV_BYTES);
  const tag = sealed.subarray(sealed.length - TAG_BYTES);
  // Without authTagLength a tag of four bytes would be accepted.
  const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES });
  decipher.setAAD(aad);
  decipher.setAuthTag(tag);
  const text = sealed.subarray(IV_BYTES, sealed.length - TAG_BYTES);
  return Buffer.concat([decipher.update(text), decipher.final()]).toString('utf8');
}
