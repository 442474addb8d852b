import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { terminalFault } from '../fault.ts';
import { operatorTokenPath, type StoreAddress, secretsKeyPath, storeFile } from '../store/address.ts';
import type { KeysRead } from '../store/keys.ts';
import { asOpenFault } from '../store/sqlite/faults.ts';
import { isFirstStart, lost, makeFolder, refuseFolder, syncPath } from '../store/sqlite/file.ts';
import { refuseForeign } from '../store/sqlite/identity.ts';
import { openKeyring } from './keyring.ts';

/** The source of the secrets key: the configuration or, if it gives none, a file beside the database. */
export type KeySource = {
  store: StoreAddress;
  /** Null if the key is in a file. */
  secretsKey: Buffer | null;
  secretsKeyPrevious: Buffer | null;
};

export type SecretsKeys = {
  current: Buffer;
  /** Keys that secrets may still be sealed under, here or in a backup. */
  older: readonly Buffer[];
};

/**
 * Reads the keys. Makes the key file on the first start, and with `makesFile` if the file is lost. Faults:
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

/** What the store may know about the keys. Same faults. */
export function readKeyIds(source: KeySource, how: { makesFile?: boolean }): KeysRead {
  const { current, older } = readSecretsKeys(source, how);
  return { keyIds: openKeyring(current, older).keyIds, keyPlace: secretsKeyPlace(source) };
}

/** In words for people. */
export function secretsKeyPlace({ store, secretsKey }: KeySource): string {
  return secretsKey === null ? secretsKeyPath(storeFile(store)) : 'SETTLED_SECRETS_KEY';
}

const KEY_BYTES = 32;

/**
 * Reads the secrets key from its file. Makes the file on the very first start, and otherwise only with `makesFile`,
 * because a new key cannot open old secrets.
 */
export function secretsKeyFile(storePath: string, { makesFile = false } = {}): Buffer {
  const path = secretsKeyPath(storePath);
  const isMissing = !existsSync(path) && !isFirstStart(storePath);
  try {
    refuseFolder(storePath);
    // A new key does not help if the database is yet to be restored, or if the file is no database.
    if (isMissing && !existsSync(storePath)) throw lost(storePath);
    if (isMissing) refuseForeign(storePath);
  } catch (error) {
    throw asOpenFault(error, storePath);
  }
  if (!isMissing || makesFile) return readKey(path);
  throw terminalFault(
    'secrets_key_missing',
    `The secrets key of ${storePath} is missing: put its file back at ${path}, or set SETTLED_SECRETS_KEY. If the key is ` +
      'lost: settled migrate --new-key',
  );
}

/** The file of a replaced key, which older backups need. */
export function olderKeyPath(storePath: string, keyId: string): string {
  return `${secretsKeyPath(storePath)}.${keyId}`;
}

/** The keys in files named as by `olderKeyPath`. Ignores files without a key. */
export function olderKeyFiles(storePath: string): Buffer[] {
  const folder = dirname(storePath);
  if (!existsSync(folder)) return [];
  const prefix = `${basename(secretsKeyPath(storePath))}.`;
  const names = readdirSync(folder).filter(
    (name) => name.startsWith(prefix) && /^[0-9a-f]{16}$/.test(name.slice(prefix.length)),
  );
  return names
    .map((name) => Buffer.from(readIfFile(join(folder, name)), 'base64'))
    .filter((key) => key.length === KEY_BYTES);
}

/** The text of a file; empty for a folder, or for a broken link. */
function readIfFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'EISDIR' || code === 'ENOENT') return '';
    throw terminalFault(
      'secrets_key_wrong',
      `${path} has the name of an older secrets key, and cannot be read (${code}). Give the user that runs settled access ` +
        'to it, or move it away. Older backups need it.',
      { cause },
    );
  }
}

/**
 * Replaces the key file by a new key, and returns that key. First gives the current key a file of its own, so that
 * every key in use is in a file at all times.
 */
export function replaceSecretsKeyFile(storePath: string, current: { key: Buffer; keyId: string }): Buffer {
  const path = secretsKeyPath(storePath);
  const older = olderKeyPath(storePath, current.keyId);
  const key = randomBytes(KEY_BYTES);
  try {
    writeWhole(older, `${current.key.toString('base64')}\n`, renameSync);
    writeWhole(path, `${key.toString('base64')}\n`, renameSync);
    return key;
  } catch (error) {
    throw asOpenFault(error, path);
  }
}

function readKey(path: string): Buffer {
  return keyOf(
    readOrMake(path, () => randomBytes(KEY_BYTES).toString('base64')),
    path,
  );
}

function keyOf(text: string, path: string): Buffer {
  const key = Buffer.from(text, 'base64');
  if (key.length === KEY_BYTES) return key;
  const message = `${path} does not hold 32 bytes in base64. Put the right file back.`;
  throw terminalFault('secrets_key_wrong', message);
}

/** The operator's token from its file. Makes the file if it is missing. */
export function operatorTokenFile(storePath: string): string {
  const path = operatorTokenPath(storePath);
  const token = readOrMake(path, () => randomBytes(24).toString('base64url'));
  if (/^[\x21-\x7e]{16,512}$/.test(token)) return token;
  const message = `${path} holds no token of 16 to 512 printable ASCII characters without spaces. Remove it.`;
  throw terminalFault('configuration_invalid', message);
}

/**
 * Reads a file, or makes it: mode 0600, and synced before use. The file gets its name only when whole, so that an
 * interrupted start leaves no empty key. If two processes make it at once, both use the first one's.
 */
function readOrMake(path: string, make: () => string): string {
  try {
    if (!existsSync(path)) makeOnce(path, `${make()}\n`);
    const text = readFileSync(path, 'utf8').trim();
    removeDrafts(path);
    return text;
  } catch (error) {
    throw asOpenFault(error, path);
  }
}

function makeOnce(path: string, text: string): void {
  makeFolder(dirname(path));
  try {
    writeWhole(path, text, linkSync);
  } catch (error) {
    // Another process made it first, and may have removed this draft.
    if (!existsSync(path)) throw error;
  }
}

/** Writes a file durably: under a draft's name first; then `name` gives it its final one. */
function writeWhole(path: string, text: string, name: (draft: string, path: string) => void): void {
  const draft = `${path}.${randomBytes(6).toString('hex')}.new`;
  try {
    writeFileSync(draft, text, { flag: 'wx', mode: 0o600, flush: true });
    name(draft, path);
    syncPath(dirname(path));
  } finally {
    rmSync(draft, { force: true });
  }
}

/** A kill during the first start may leave a draft that is a second name of the key itself. */
function removeDrafts(path: string): void {
  const folder = dirname(path);
  for (const name of readdirSync(folder)) {
    const isDraft = name.startsWith(`${basename(path)}.`) && /\.[0-9a-f]{12}\.new$/.test(name);
    if (isDraft) rmSync(join(folder, name), { force: true });
  }
}
