import { HEADER_PREFIX, headerNames } from '../paylink/events.ts';
import { SIGNING_SECRET_BYTES_MIN, verify } from './authentic.ts';
import { isFresh } from './freshness.ts';
import {
  guessSignatures,
  type SignatureFault,
  signatureFault,
  type TimestampFault,
  timestampFault,
} from './header_faults.ts';
import { type Effort, findMistake, type Mistake } from './mistakes.ts';
import { readSignatures } from './signature.ts';

/** What a captured delivery can turn out to be. docs/errors.md explains each. */
export const VERDICTS = [
  'authentic',
  'stale_clock',
  'malformed_signature',
  'malformed_timestamp',
  'unusable_secret',
  'altered_body',
  'altered_timestamp',
  'wrong_secret',
  'signed_otherwise',
  'wrong_secret_or_altered_body',
] as const;

/** What a refused delivery to a known link can turn out to be beside those, before its signature is looked at. */
export const REFUSALS = ['other_header_names', 'other_method', 'content_encoding', 'body_size'] as const;

/** What shows that a body cannot be as the service sent it. */
export type BodyDamage = 'empty' | 'no_text' | 'replaced' | 'no_json';

/** What a delivery turned out to be: a code, and what belongs to it. Nothing of it is secret, and none of it is text. */
export type Diagnosis =
  | { code: 'authentic'; clockAheadMs: number; nowMs: number }
  | { code: 'stale_clock'; clockAheadMs: number; nowMs: number; toleranceSeconds: number }
  /** `besides`: what else is wrong, if the code in it is found to be right. */
  | { code: 'malformed_signature'; fault: SignatureFault; besides: Mistake | null }
  | { code: 'malformed_timestamp'; fault: TimestampFault; besides: Mistake | null }
  | { code: 'unusable_secret'; bytes: number; bytesMin: number; besides: Mistake | null }
  | { code: Mistake['verdict']; mistake: Mistake; clockAheadMs: number }
  /** Nothing explains the signature, and the body is broken. */
  | { code: 'altered_body'; damage: BodyDamage; clockAheadMs: number }
  | { code: 'wrong_secret_or_altered_body'; clockAheadMs: number }
  /** Headers that may be the service's, the names that settled looks for, and what it should look for if that is clear. */
  | { code: 'other_header_names'; names: string[]; wanted: string[]; prefix: string | null }
  /** `origin`: of a browser that asked whether it may deliver. */
  | { code: 'other_method'; method: string; origin: string | null }
  | { code: 'content_encoding'; encoding: string }
  /** `bytes`: as they were announced, if they were. */
  | { code: 'body_size'; bytes: number | null };

export type Captured = {
  body: Buffer;
  signature: string;
  timestamp: string;
  /** Any of them is right. */
  secrets: readonly string[];
  nowMs: number;
  toleranceSeconds: number;
  effort: Effort;
};

const NAMES = headerNames(HEADER_PREFIX);

/** Says what a captured delivery is: by the very verifier that receives, and then by trying the usual mistakes. */
export function diagnose(given: Captured): Diagnosis {
  // Spaces around a header's value are not part of it (RFC 9110 §5.5).
  const captured = {
    ...given,
    signature: withoutSpacesAround(given.signature),
    timestamp: withoutSpacesAround(given.timestamp),
  };
  const { body, signature, timestamp, secrets, nowMs, toleranceSeconds, effort } = captured;
  const rawHeaders = [NAMES.signature, signature, NAMES.timestamp, timestamp];
  const results = secrets.map((secret) => verify({ rawHeaders, headerNames: NAMES, body, credentials: { secret } }));
  const verified = results.find(({ ok }) => ok) ?? results[0];
  if (verified === undefined) throw new Error('a delivery is diagnosed with a secret');
  if (verified.ok) {
    const { timestampMs } = verified.authentic;
    const clockAheadMs = nowMs - timestampMs;
    return isFresh({ timestampMs, nowMs, toleranceSeconds })
      ? { code: 'authentic', clockAheadMs, nowMs }
      : { code: 'stale_clock', clockAheadMs, nowMs, toleranceSeconds };
  }
  const signatures = readSignatures(signature, timestamp) ?? guessSignatures(signature);
  const found = findMistake(captured, signatures, effort);
  switch (verified.reason) {
    case 'signature_malformed':
      return { code: 'malformed_signature', fault: signatureFault(signature, timestamp), besides: found };
    case 'timestamp_malformed':
      return { code: 'malformed_timestamp', fault: timestampFault(timestamp), besides: found };
    case 'secret_unusable': {
      const bytes = Buffer.byteLength(secrets[0] ?? '');
      return { code: 'unusable_secret', bytes, bytesMin: SIGNING_SECRET_BYTES_MIN, besides: found };
    }
    default: {
      const clockAheadMs = nowMs - Number(timestamp);
      if (found !== null) return { code: found.verdict, mistake: found, clockAheadMs };
      const damage = bodyDamage(body);
      return damage === null
        ? { code: 'wrong_secret_or_altered_body', clockAheadMs }
        : { code: 'altered_body', damage, clockAheadMs };
    }
  }
}

/** A pattern would look again at all the spaces within a header, from each of them. */
function withoutSpacesAround(header: string): string {
  const isSpace = (at: number) => header[at] === ' ' || header[at] === '\t';
  let [from, to] = [0, header.length];
  while (from < to && isSpace(from)) from++;
  while (to > from && isSpace(to - 1)) to--;
  return header.slice(from, to);
}

function bodyDamage(body: Buffer): BodyDamage | null {
  if (body.length === 0) return 'empty';
  const text = body.toString('utf8');
  if (!Buffer.from(text).equals(body)) return 'no_text';
  if (text.includes('\uFFFD')) return 'replaced';
  try {
    JSON.parse(text);
    return null;
  } catch {
    return 'no_json';
  }
}
