import { type StoreAddress, storeFile } from './address.ts';
import { olderKeyFiles, olderKeyPath, replaceSecretsKeyFile, secretsKeyFile, secretsKeyPath } from './files.ts';

/** Where the secrets key comes from. */
export type KeySource = {
  store: StoreAddress;
  /** Null: kept in a file beside the database. */
  secretsKey: Buffer | null;
  secretsKeyPrevious: Buffer | null;
};

export type SecretsKeys = {
  current: Buffer;
  /** Under which secrets may still rest, or may in a backup. */
  older: readonly Buffer[];
};

/**
 * Reads the keys; makes one on the first start, and where the caller says that the file is lost. Faults:
 * `secrets_key_missing`, `secrets_key_wrong`.
 */
export function readSecretsKeys(
  { store, secretsKey, secretsKeyPrevious }: KeySource,
  how: { makesFile?: boolean } = {},
): SecretsKeys {
  if (secretsKey === null) {
    const file = storeFile(store);
    return { current: secretsKeyFile(file, how), older: olderKeyFiles(file) };
  }
  return { current: secretsKey, older: secretsKeyPrevious === null ? [] : [secretsKeyPrevious] };
}

/** In words for a person. */
export function secretsKeyPlace({ store, secretsKey }: KeySource): string {
  return secretsKey === null ? secretsKeyPath(storeFile(store)) : 'SETTLED_SECRETS_KEY';
}

/** Where a key that another one took the place of is kept, beside a database that keeps its keys in files. */
export function olderKeyPlace({ store }: KeySource, keyId: string): string {
  return olderKeyPath(storeFile(store), keyId);
}

/** Puts a new key in the place of the current one, where keys are kept in files; returns it. */
export function replaceSecretsKey({ store }: KeySource, current: { key: Buffer; keyId: string }): Buffer {
  return replaceSecretsKeyFile(storeFile(store), current);
}
