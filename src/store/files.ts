import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { Fault } from '../fault.ts';
import { isFirstStart } from './sqlite/open.ts';

/** The small files that live beside the database: the secrets key and the operator's token. */

/**
 * The secrets key kept beside the database; made on the very first start only, because a new key cannot open old
 * secrets.
 */
export function secretsKeyFile(storePath: string): Buffer {
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
  if (token.length >= 16) return token;
  throw new Fault(
    'terminal',
    'configuration_invalid',
    `${path} holds no token of 16 characters or more. Remove it.`,
  );
}

/** Reads a file, or makes it: 0600, whole, and on the disk before it is used. */
function readOrMake(path: string, make: () => string): string {
  if (existsSync(path)) return readFileSync(path, 'utf8').trim();
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const text = make();
  const descriptor = openSync(path, 'wx', 0o600);
  try {
    writeSync(descriptor, `${text}\n`);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  return text;
}
