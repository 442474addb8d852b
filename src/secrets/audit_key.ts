import { randomBytes } from 'node:crypto';
import type { Store } from '../store/contract.ts';
import type { SealedKey } from '../store/contract_access.ts';
import type { Keyring } from './keyring.ts';

const KEY_BYTES = 32;

/** What the key is sealed for; no order can have this reference. */
const AUDIT = '\u0001audit';

/**
 * The key of the audit chain: random, made once for a store, and kept there sealed under the secrets key. So a change of the
 * secrets key leaves the chain as it is. Throws `secret_undecipherable` if its row was changed.
 */
export async function openAuditKey(store: Pick<Store, 'keepAuditKey'>, keyring: Keyring): Promise<Buffer> {
  const { sealed, keyId } = keyring.seal(randomBytes(KEY_BYTES).toString('base64'), AUDIT);
  return Buffer.from(unseal(keyring, await store.keepAuditKey({ sealed, keyId })), 'base64');
}

/** Seals the key under the current secrets key. */
export async function resealAuditKey(
  store: Pick<Store, 'keepAuditKey' | 'resealAuditKey'>,
  keyring: Keyring,
): Promise<void> {
  const { sealed: fresh, keyId: freshId } = keyring.seal(randomBytes(KEY_BYTES).toString('base64'), AUDIT);
  const kept = await store.keepAuditKey({ sealed: fresh, keyId: freshId });
  if (kept.keyId === keyring.keyId) return;
  const { sealed, keyId } = keyring.seal(unseal(keyring, kept), AUDIT);
  await store.resealAuditKey({ was: kept.sealed, sealed, keyId });
}

function unseal(keyring: Keyring, { sealed, keyId }: SealedKey): string {
  return keyring.open({ sealedSecret: sealed, keyId, reference: AUDIT });
}
