import { timingSafeEqual } from 'node:crypto';

/**
 * Reads the signature header. The service leaves its encoding open (spec §6, "Gaps"), so every usual one is accepted,
 * each by a strict pattern before anything is decoded; docs/signature.md holds the grammar.
 */

const MAC_BYTES = 32;
export const CANDIDATES_MAX = 8;
export const HEADER_LENGTH_MAX = 1024;

const HEX = /^[0-9a-fA-F]{64}$/;
// 32 bytes are 43 digits; the last one carries four bits of data and two zero bits, or the encoding is not canonical.
const BASE64 = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=?$/;
const BASE64URL = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]=?$/;

/** The first element may repeat the timestamp, as `t=` and its characters. */
const STAMP = 't=';

/**
 * The signatures in a header's value, 32 bytes each; null if it does not follow the grammar. `timestamp` is the
 * timestamp header's value: only that one is signed, so a `t=` that names another time makes the header malformed.
 */
export function readSignatures(header: string, timestamp: string): Buffer[] | null {
  if (header.length > HEADER_LENGTH_MAX) return null;
  const elements = splitElements(header, CANDIDATES_MAX + 2);
  if (elements[0] === STAMP + timestamp) elements.shift();
  if (elements.length === 0 || elements.length > CANDIDATES_MAX) return null;
  const candidates: Buffer[] = [];
  for (const element of elements) {
    const mac = decode(withoutPrefix(element));
    if (mac === null) return null;
    candidates.push(mac);
  }
  return candidates;
}

/** The elements of a header's value, `most` at most. */
export function splitElements(header: string, most?: number): string[] {
  // `v1,` has a comma of its own, so a header that uses it separates by spaces alone.
  return header.split(header.includes('v1,') ? / +/ : / *, *| +/, most);
}

/** In any case, except for `v1,`: that is how Standard Webhooks writes it, and its comma decides how a header is split. */
const PREFIX = /^(?:hmac-sha256=|sha256[=:]|v1=)/i;

/** An element without the prefix that it may have. */
export function withoutPrefix(element: string): string {
  return element.startsWith('v1,') ? element.slice(3) : element.replace(PREFIX, '');
}

function decode(text: string): Buffer | null {
  if (HEX.test(text)) return Buffer.from(text, 'hex');
  if (BASE64.test(text)) return Buffer.from(text, 'base64');
  if (BASE64URL.test(text)) return Buffer.from(text, 'base64url');
  return null;
}

/** Whether one of the candidates is the expected code, in a time that does not tell where they differ. */
export function matchesAny(expected: Buffer, candidates: readonly Buffer[]): boolean {
  let matches = false;
  for (const candidate of candidates) {
    if (candidate.length !== MAC_BYTES || expected.length !== MAC_BYTES) return false;
    matches = timingSafeEqual(expected, candidate) || matches;
  }
  return matches;
}
