import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { Fault, transientFault } from '../fault.ts';
import type { Store } from '../store/contract.ts';
import type { KeptKey, SealedKey } from '../store/verbs/audit.ts';
import type { SealedCredentials, SealedSecret } from '../store/verbs/secrets.ts';
import type { Clock } from '../work/clock.ts';

const KEY_BYTES = 32;
const AUDIT_KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;

type Whose = 'ours' | 'service';
type Sealed = Pick<SealedCredentials, 'sealedSecret' | 'keyId' | 'reference'>;

/** Token and secret of the deliveries that settled sends to itself. */
type Probe = { readonly token: string; readonly secret: string };

export type Keyring = ReturnType<typeof openKeyring>;

/** One stored secret of a link: ours, or the one that the service named. */
export type StoredSecret = Sealed & { linkKey: number; whose: Whose };

export function secretsOf({
  linkKey,
  reference,
  ...row
}: SealedCredentials): [ours: StoredSecret, ...named: StoredSecret[]] {
  const { sealedSecret, keyId, serviceSealedSecret, serviceKeyId } = row;
  const ours: StoredSecret = { linkKey, reference, whose: 'ours', sealedSecret, keyId };
  if (!serviceSealedSecret || !serviceKeyId) return [ours];
  return [ours, { linkKey, reference, whose: 'service', sealedSecret: serviceSealedSecret, keyId: serviceKeyId }];
}

/**
 * Seals and opens signing secrets: AES-256-GCM with a random 96-bit IV each, bound to the order's reference and the
 * key. Seals under the current key, and opens with any known key.
 * @param current 32 bytes
 * @param older keys that secrets may still be sealed under
 */
export function openKeyring(current: Uint8Array, older: readonly Uint8Array[] = []) {
  // The current key first.
  let keys = distinct([current, ...older].map(prepareKey));
  const now = () => keys[0] as SecretsKey;
  return {
    /** The id of the current key. */
    get keyId(): string {
      return now().keyId;
    },
    /** The ids of all known keys, the current one first. */
    get keyIds(): readonly string[] {
      return keys.map(({ keyId }) => keyId);
    },
    /** Equal in all processes with this current key. */
    get probe(): Probe {
      return now().probe;
    },
    /** Lets processes with the same current key compare texts. Reveals nothing to others. */
    digest: (text: string): string => now().digest(text),
    /** The probe with this token, by any known key: another process may have changed the key already. */
    findProbe: (token: string): Probe | undefined => keys.find(({ probe }) => probe.token === token)?.probe,
    /** Makes another key the current one. Earlier keys still open secrets. */
    change: (key: Uint8Array): void => {
      keys = distinct([prepareKey(key), ...keys]);
    },
    /** `whose`: ours, or the one that the service named for the link. Neither opens in place of the other. */
    seal: (secret: string, reference: string, whose: Whose = 'ours'): SealedSecret => {
      const [{ key, keyId, fingerprint }, ...before] = keys as [SecretsKey, ...SecretsKey[]];
      return {
        sealed: seal(key, secret, associatedData(reference, keyId, whose)),
        keyId,
        fingerprint: fingerprint(secret),
        olderFingerprints: before.map((one) => ({ keyId: one.keyId, fingerprint: one.fingerprint(secret) })),
      };
    },
    /** Throws the fault `secret_undecipherable` if the row was changed, moved, or sealed under an unknown key. */
    open: ({ sealedSecret, keyId, reference }: Sealed, whose: Whose = 'ours'): string => {
      try {
        const sealedUnder = keys.find((one) => one.keyId === keyId);
        if (sealedUnder === undefined) throw new Error(`sealed under key ${keyId}`);
        return unseal(sealedUnder.key, sealedSecret, associatedData(reference, keyId, whose));
      } catch (cause) {
        const message = 'A signing secret cannot be deciphered: its row was changed, or its key is not known.';
        throw transientFault('secret_undecipherable', message, { cause });
      }
    },
  };
}

type SecretsKey = {
  keyId: string;
  /** Key objects, prepared once: Node would prepare plain bytes again for every secret. */
  key: KeyObject;
  probe: Probe;
  digest(text: string): string;
  fingerprint(secret: string): Buffer;
};

function prepareKey(bytes: Uint8Array): SecretsKey {
  if (bytes.length !== KEY_BYTES) throw new Error(`a secrets key has ${KEY_BYTES} bytes, this one ${bytes.length}`);
  const fingerprintKey = createHash('sha256').update('settled fingerprint').update(bytes).digest();
  const mac = (text: string) => createHmac('sha256', fingerprintKey).update(text).digest();
  const derive = (purpose: string, length: number) => mac(purpose).subarray(0, length).toString('base64url');
  return {
    keyId: createHash('sha256').update('settled key id').update(bytes).digest('hex').slice(0, 16),
    key: createSecretKey(bytes),
    probe: { token: derive('probe token', 24), secret: derive('probe secret', 32) },
    digest: (text) => derive(`digest ${text}`, 12),
    fingerprint: mac,
  };
}

/** Each key once, at its first position. */
function distinct(keys: readonly SecretsKey[]): SecretsKey[] {
  return keys.filter(({ keyId }, index) => keys.findIndex((key) => key.keyId === keyId) === index);
}

/** References contain no NUL, so different parts never give the same data. */
function associatedData(reference: string, keyId: string, whose: Whose): Buffer {
  return Buffer.from(`${reference}\0${keyId}${whose === 'ours' ? '' : `\0${whose}`}`);
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
  // Without authTagLength, Node would accept a tag of four bytes.
  const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES });
  decipher.setAAD(aad);
  decipher.setAuthTag(tag);
  const text = sealed.subarray(IV_BYTES, sealed.length - TAG_BYTES);
  return Buffer.concat([decipher.update(text), decipher.final()]).toString('utf8');
}

/** The reference that the audit key is sealed for. No order can have it. */
const AUDIT = '\u0001audit';

/**
 * Opens the key of the audit chain: random, made once for a store, and stored there sealed under the secrets key. A
 * change of the secrets key therefore leaves the chain unchanged. If the key cannot be opened, settled begins a chain
 * under a new one, whose first row says so: deliveries must not wait for the audit. `restarted`: why, or null.
 */
export async function openAuditKey(
  store: Pick<Store, 'keepAuditKey' | 'restartAudit'>,
  keyring: Keyring,
  clock: Pick<Clock, 'nowMs'>,
): Promise<{ auditKey: Buffer; restarted: string | null }> {
  const fresh = newAuditKey(keyring);
  const kept = await store.keepAuditKey(fresh.sealed);
  const auditKey = openSealed(keyring, kept);
  if (auditKey !== null) return { auditKey, restarted: null };
  const isKnown = kept.keyId !== null && keyring.keyIds.includes(kept.keyId);
  const restarted = isKnown ? 'its key was damaged in the store' : 'its key was lost with the secrets key';
  const by = { name: 'settled', role: 'admin', origin: 'settled', address: '', auditKey: fresh.key } as const;
  await store.restartAudit({ was: kept.sealed, ...fresh.sealed, by, reason: restarted, atMs: clock.nowMs() });
  return { auditKey: openOrThrow(keyring, await store.keepAuditKey(fresh.sealed)), restarted };
}

function newAuditKey(keyring: Keyring): { key: Buffer; sealed: SealedKey } {
  const key = randomBytes(AUDIT_KEY_BYTES);
  const { sealed, keyId } = keyring.seal(key.toString('base64'), AUDIT);
  return { key, sealed: { sealed, keyId } };
}

/** Reseals the audit key under the current secrets key. Throws `secret_undecipherable` if it cannot be opened. */
export async function resealAuditKey(
  store: Pick<Store, 'keepAuditKey' | 'resealAuditKey'>,
  keyring: Keyring,
): Promise<void> {
  const kept = await store.keepAuditKey(newAuditKey(keyring).sealed);
  if (kept.sealed === null || kept.keyId === keyring.keyId) return;
  const { sealed, keyId } = keyring.seal(openOrThrow(keyring, kept).toString('base64'), AUDIT);
  await store.resealAuditKey({ was: kept.sealed, sealed, keyId });
}

function openSealed(keyring: Keyring, { sealed, keyId }: KeptKey): Buffer | null {
  if (sealed === null) return null;
  try {
    return Buffer.from(keyring.open({ sealedSecret: sealed, keyId, reference: AUDIT }), 'base64');
  } catch (error) {
    if (error instanceof Fault) return null;
    throw error;
  }
}

function openOrThrow(keyring: Keyring, kept: KeptKey): Buffer {
  const key = openSealed(keyring, kept);
  if (key !== null) return key;
  const message =
    'The key of the audit chain cannot be deciphered. Restart settled: it begins a new chain that says so.';
  throw transientFault('secret_undecipherable', message);
}
