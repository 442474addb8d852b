import { olderKeyFiles, secretsKeyFile, secretsKeyPath } from './files.ts';

/** Where the secrets key comes from. */
export type KeySource = {
  storePath: string;
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
  { storePath, secretsKey, secretsKeyPrevious }: KeySource,
  how: { makesFile?: boolean } = {},
): SecretsKeys {
  if (secretsKey === null)
    return { current: secretsKeyFile(storePath, how), older: olderKeyFiles(storePath) };
  return { current: secretsKey, older: secretsKeyPrevious === null ? [] : [secretsKeyPrevious] };
}

/** In words for a person. */
export function secretsKeyPlace({ storePath, secretsKey }: KeySource): string {
  return secretsKey === null ? secretsKeyPath(storePath) : 'SETTLED_SECRETS_KEY';
}
