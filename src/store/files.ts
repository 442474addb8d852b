import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Fault } from '../fault.ts';
import { asOpenFault } from './sqlite/faults.ts';
import { isFirstStart, makeFolder, refuseFolder, syncPath } from './sqlite/open.ts';

/** The small files that live beside the database: the secrets key and the operator's token. */

/**
 * The secrets key kept beside the database; made on the very first start only, because a new key cannot open old
 * secrets.
 */
export function secretsKeyFile(storePath: string): Buffer {
  try {
    refuseFolder(storePath);
  } catch (error) {
    throw asOpenFault(error, storePath);
  }
  const path = `${storePath}.key`;
  if (!existsSync(path) && !isFirstStart(storePath)) {
    throw new Fault(
      'terminal',
      'secrets_key_missing',
      `The secrets key of ${storePath} is missing: put its file back at ${path}, or give SETTLED_SECRETS_KEY.`,
    );
  }
  const key = Buffer.from(
    readOrMake(path, () => randomBytes(32).toString('base64')),
    'base64',
  );
  if (key.length === 32) return key;
  throw new Fault(
    'terminal',
    'secrets_key_wrong',
    `${path} does not hold 32 bytes in base64. Put the right file back.`,
  );
}

/** Where the operator's token is kept when the configuration gives none. */
export function operatorTokenPath(storePath: string): string {
  return `${storePath}.operator-token`;
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
    if (!existsSync(path)) makeWhole(path, `${make()}\n`);
    const text = readFileSync(path, 'utf8').trim();
    removeDrafts(path);
    return text;
  } catch (error) {
    throw asOpenFault(error, path);
  }
}

function makeWhole(path: string, text: string): void {
  makeFolder(dirname(path));
  const draft = `${path}.${randomBytes(6).toString('hex')}.new`;
  try {
    writeFileSync(draft, text, { flag: 'wx', mode: 0o600, flush: true });
    linkSync(draft, path);
    syncPath(dirname(path));
  } catch (error) {
    // Another process made it first, and may have removed this draft already.
    if (!existsSync(path)) throw error;
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
