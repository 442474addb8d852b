import { timingSafeEqual } from 'node:crypto';
import { deliveryMac, type HeaderNames } from '../paylink/events.ts';
import type { LinkCredentials } from '../secrets/credentials.ts';
import type { RejectionReason } from '../vocabulary.ts';

/** settled refuses a signing secret of fewer bytes, when it stores one and when it uses one. */
export const SIGNING_SECRET_BYTES_MIN = 16;

/** A delivery signed with the link's secret. Its freshness and content are not checked yet. */
export type Authentic = { timestamp: string; timestampMs: number; mac: Buffer; signature: string };

export type Verified = { ok: true; authentic: Authentic } | { ok: false; reason: RejectionReason };

/**
 * Verifies a delivery over its raw bytes and the literal timestamp, with the link's secret or the one that the service
 * named in addition. Strict patterns come first, the comparison last. docs/signature.md has the grammar of both
 * headers.
 */
export function verify(delivery: {
  rawHeaders: readonly string[];
  headerNames: HeaderNames;
  body: Uint8Array;
  credentials: Pick<LinkCredentials, 'secret' | 'serviceSecret'>;
}): Verified {
  const { rawHeaders, headerNames, body, credentials } = delivery;
  const signature = singleHeader(rawHeaders, headerNames.signature);
  if (signature.found !== 'one') return refuse(`signature_${signature.found}`);
  const timestamp = singleHeader(rawHeaders, headerNames.timestamp);
  if (timestamp.found !== 'one') return refuse(`timestamp_${timestamp.found}`);
  const timestampMs = readTimestamp(timestamp.value);
  if (timestampMs === null) return refuse('timestamp_malformed');
  const candidates = readSignatures(signature.value, timestamp.value);
  if (candidates === null) return refuse('signature_malformed');
  if (Buffer.byteLength(credentials.secret) < SIGNING_SECRET_BYTES_MIN) return refuse('secret_unusable');
  const { secret, serviceSecret } = credentials;
  // The second secret is used only if the first does not match, which is rare.
  for (const key of [() => secret, ...(serviceSecret === undefined ? [] : [serviceSecret])]) {
    const mac = deliveryMac(key(), timestamp.value, body);
    if (matchesAny(mac, candidates))
      return { ok: true, authentic: { timestamp: timestamp.value, timestampMs, mac, signature: signature.value } };
  }
  return refuse('signature_wrong');
}

function refuse(reason: RejectionReason): Verified {
  return { ok: false, reason };
}

type SingleHeader = { found: 'one'; value: string } | { found: 'missing' } | { found: 'repeated' };

/** Counts a header as it was sent: Node joins or drops repeated ones before the application sees them. */
function singleHeader(rawHeaders: readonly string[], name: string): SingleHeader {
  let value: string | undefined;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if ((rawHeaders[i] as string).toLowerCase() !== name) continue;
    if (value !== undefined) return { found: 'repeated' };
    value = rawHeaders[i + 1] as string;
  }
  return value === undefined ? { found: 'missing' } : { found: 'one', value };
}

/** Epoch milliseconds as 13 digits: no sign, exponent, fraction or other script's digits. */
const TIMESTAMP = /^[1-9][0-9]{12}$/;

/** Reads the timestamp header into epoch milliseconds; null if it does not follow the grammar. */
export function readTimestamp(header: string): number | null {
  return TIMESTAMP.test(header) ? Number(header) : null;
}

export const CANDIDATES_MAX = 8;
export const HEADER_LENGTH_MAX = 1024;
/** The first element may repeat the timestamp, as `t=` and its characters. */
const STAMP = 't=';

/**
 * Reads the signatures in a header's value, 32 bytes each; null if it does not follow the grammar. `timestamp` is the
 * timestamp header's value. Only that time is signed, so a `t=` with another time makes the header malformed.
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

export function splitElements(header: string, most?: number): string[] {
  // `v1,` contains a comma, so spaces alone separate the elements of a header that uses it.
  return header.split(header.includes('v1,') ? / +/ : / *, *| +/, most);
}

/**
 * Upper or lower case, except for `v1,`: Standard Webhooks writes it in this way, and its comma decides the separator.
 */
const PREFIX = /^(?:hmac-sha256=|sha256[=:]|v1=)/i;

export function withoutPrefix(element: string): string {
  return element.startsWith('v1,') ? element.slice(3) : element.replace(PREFIX, '');
}

const HEX = /^[0-9a-fA-F]{64}$/;
// 32 bytes are 43 digits. The last digit has four bits of data, and two zero bits if the encoding is canonical.
const BASE64 = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=?$/;
const BASE64URL = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]=?$/;

/** Decodes any usual encoding, because the spec leaves it open (§6, "Gaps"); null if the text is none of them. */
export function decode(text: string): Buffer | null {
  if (HEX.test(text)) return Buffer.from(text, 'hex');
  if (BASE64.test(text)) return Buffer.from(text, 'base64');
  if (BASE64URL.test(text)) return Buffer.from(text, 'base64url');
  return null;
}

/**
 * How the first signature in a header that `readSignatures` reads is written: `hex`, `sha256=base64`, `t=,v1=hex`. Of padded
 * base64 it does not tell the alphabet, and without padding only if a digit of base64url alone is there.
 */
export function writtenAs(header: string, timestamp: string): string {
  const [first = '', second = ''] = splitElements(header);
  const isStamp = first === STAMP + timestamp;
  const element = isStamp ? second : first;
  const text = withoutPrefix(element);
  const digits = /[A-F]/.test(text) ? 'hex-upper' : 'hex';
  const unpadded = /[-_]/.test(text) ? 'base64url' : 'base64-unpadded';
  const encoding = HEX.test(text) ? digits : text.endsWith('=') ? 'base64' : unpadded;
  return `${isStamp ? `${STAMP},` : ''}${element.slice(0, element.length - text.length)}${encoding}`;
}

/** Whether a candidate equals the expected code. Compares in constant time. */
export function matchesAny(expected: Buffer, candidates: readonly Buffer[]): boolean {
  let matches = false;
  for (const candidate of candidates) {
    if (candidate.length === expected.length) matches = timingSafeEqual(expected, candidate) || matches;
  }
  return matches;
}

/** Whether a signed timestamp is at most the tolerance before or after our clock. */
export function isFresh(signed: { timestampMs: number; nowMs: number; toleranceSeconds: number }): boolean {
  return Math.abs(signed.nowMs - signed.timestampMs) <= signed.toleranceSeconds * 1000;
}
