import { deliveryMac, type HeaderNames } from '../paylink/events.ts';
import type { LinkCredentials } from '../store/credentials.ts';
import type { RejectionReason } from '../store/rejections.ts';
import { readTimestamp } from './freshness.ts';
import { matchesAny, readSignatures } from './signature.ts';

/** A signing secret of fewer bytes is refused, when it is stored and when it is used. */
export const SIGNING_SECRET_BYTES_MIN = 16;

/** A delivery that was signed with the link's secret. Whether it is fresh and what it says comes after. */
export type Authentic = { timestamp: string; timestampMs: number; mac: Buffer };

export type Verified = { ok: true; authentic: Authentic } | { ok: false; reason: RejectionReason };

/**
 * Verifies a delivery over its raw bytes and the literal timestamp, with the link's secret or the one that the service named
 * beside it. Strict patterns first, the comparison last.
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
  // The second code is computed for few: those that the first does not match, of a link that has two secrets.
  for (const key of [() => secret, ...(serviceSecret === undefined ? [] : [serviceSecret])]) {
    const mac = deliveryMac(key(), timestamp.value, body);
    if (matchesAny(mac, candidates)) return { ok: true, authentic: { timestamp: timestamp.value, timestampMs, mac } };
  }
  return refuse('signature_wrong');
}

function refuse(reason: RejectionReason): Verified {
  return { ok: false, reason };
}

type SingleHeader = { found: 'one'; value: string } | { found: 'missing' } | { found: 'repeated' };

/** Counts a header where it was sent: Node joins repeated ones, or drops them, before anybody can see. */
function singleHeader(rawHeaders: readonly string[], name: string): SingleHeader {
  let value: string | undefined;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if ((rawHeaders[i] as string).toLowerCase() !== name) continue;
    if (value !== undefined) return { found: 'repeated' };
    value = rawHeaders[i + 1] as string;
  }
  return value === undefined ? { found: 'missing' } : { found: 'one', value };
}
