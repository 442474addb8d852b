import { createHash, randomBytes } from 'node:crypto';

const BYTES = 32;

/** A token, a session id or the secret of a link: 256 random bits. */
export function randomSecret(): string {
  return randomBytes(BYTES).toString('base64url');
}

/** SHA-256 of a secret. Digests have one length, so that comparing them tells nothing of the secret's. */
export function digest(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}
