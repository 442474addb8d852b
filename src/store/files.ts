import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Fault } from '../fault.ts';
import { operatorTokenPath } from './address.ts';
import { asOpenFault } from './sqlite/faults.ts';
import { refuseForeign } from './sqlite/foreign.ts';
import { isFirstStart, lost, makeFolder, refuseFolder, syncPath } from './sqlite/open.ts';

/** The small files that live beside the database: the secrets key and the operator's token. */

const KEY_BYTES = 32;

/**
 * The secrets key kept beside the database; made on the very first start, and otherwise only where the caller asks for it,
 * because a new key cannot open old secrets.
 */
export function secretsKeyFile(storePath: string, { makesFile = false } = {}): Buffer {
  const path = secretsKeyPath(storePath);
  const isMissing = !existsSync(path) && !isFirstStart(storePath);
  try {
    refuseFolder(storePath);
    // A new key would be of no use to the database once that is put back, nor to a file that is none.
    if (isMissing && !existsSync(storePath)) throw lost(storePath);
    if (isMissing) refuseForeign(storePath);
  } catch (error) {
    throw asOpenFault(error, storePath);
  }
  if (isMissing) {
    if (makesFile) return readKey(path);
    throw new Fault(
      'terminal',
      'secrets_key_missing',
      `The secrets key of ${storePath} is missing: put its file back at ${path}, or give SETTLED_SECRETS_KEY. Where it is ` +
        'lost for ever: settled migrate --new-key',
    );
  }
  return readKey(path);
}

export function secretsKeyPath(storePath: string): string {
  return `${storePath}.key`;
}

/** Where a key is kept that another one took the place of: backups from before are opened with it. */
export function olderKeyPath(storePath: string, keyId: string): string {
  return `${secretsKeyPath(storePath)}.${keyId}`;
}

/** The keys in files of the names that `olderKeyPath` gives. What holds no key is passed over. */
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

/** The text of a file; none of a folder, or of a link that leads nowhere. */
function readIfFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'EISDIR' || code === 'ENOENT') return '';
    throw new Fault(
      'terminal',
      'secrets_key_wrong',
      `${path} has the name of an older secrets key, and cannot be read (${code}). Give the user that runs settled access ` +
        'to it, or move it away: backups from before are opened with it.',
      { cause },
    );
  }
}

/**
 * Puts a new key in the place of the current one, which gets a file of its own first: at no moment is a key that secrets
 * rest under in no file. Returns the new key.
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
  const text = readOrMake(path, () => randomBytes(KEY_BYTES).toString('base64'));
  const key = Buffer.from(text, 'base64');
  if (key.length === KEY_BYTES) return key;
  throw new Fault(
    'terminal',
    'secrets_key_wrong',
    `${path} does not hold 32 bytes in base64. Put the right file back.`,
  );
}

export function operatorTokenFile(storePath: string): string {
  const path = operatorTokenPath(storePath);
  const token = readOrMake(path, () => randomBytes(24).toString('base64url'));
  if (/^[\x21-\x7e]{16,512}$/.test(token)) return token;
  throw new Fault(
    'terminal',
    'configuration_invalid',
    `${path} holds no token of 16 to 512 printable ASCII characters without spaces. Remove it.`,
  );
}

/**
 * Reads a file, or makes it: 0600, and on the disk before it is used. It gets its name when it is whole, so that an
 * interrupted start leaves no empty key behind; of two processes that make it at once both use the first one's.
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
    // Another process made it first, and may have removed this draft already.
    if (!existsSync(path)) throw error;
  }
}

/** Writes a file under a draft's name and has `name` give it its own, all of it durable. */
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

/** A kill in the first start leaves a draft behind, which may be a second name of the key itself. */
function removeDrafts(path: string): void {
  const folder = dirname(path);
  for (const name of readdirSync(folder)) {
    const isDraft = name.startsWith(`${basename(path)}.`) && /\.[0-9a-f]{12}\.new$/.test(name);
    if (isDraft) rmSync(join(folder, name), { force: true });
  }
}
