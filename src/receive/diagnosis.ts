import { parseText } from '../json.ts';
import { HEADER_PREFIX, headerNames } from '../paylink/events.ts';
import { findMistake, type Mistake, type Signed } from './causes.ts';
import { guessSignatures, type HeaderFault, signatureFault, timestampFault } from './malformed.ts';
import { isFresh, readSignatures, SIGNING_SECRET_BYTES_MIN, verify } from './verify.ts';

/** Signs that something changed the body after the service sent it. */
export type BodyDamage = 'empty' | 'no_text' | 'replaced' | 'no_json';

/**
 * The result of diagnosing a delivery: a code and its details. It holds no secret and no sentence. docs/errors.md
 * explains each code.
 */
export type Diagnosis =
  | { code: 'authentic'; clockAheadMs: number; nowMs: number }
  | { code: 'stale_clock'; clockAheadMs: number; nowMs: number; toleranceSeconds: number }
  /** `besides`: what else is wrong if only the form of the signature is. */
  | { code: 'malformed_signature' | 'malformed_timestamp'; fault: HeaderFault; besides: Mistake | null }
  | { code: 'unusable_secret'; bytes: number; bytesMin: number; besides: Mistake | null }
  | { code: Mistake['verdict']; mistake: Mistake; clockAheadMs: number }
  /** No known mistake explains the signature, and the body is broken. */
  | { code: 'altered_body'; damage: BodyDamage; clockAheadMs: number }
  | { code: 'wrong_secret_or_altered_body'; clockAheadMs: number }
  /**
   * `names`: headers that may be the service's. `wanted`: the names that settled looks for. `prefix`: the prefix to
   * configure; null if that is unclear.
   */
  | { code: 'other_header_names'; names: string[]; wanted: string[]; prefix: string | null }
  /** `origin`: from a browser's preflight request. */
  | { code: 'other_method'; method: string; origin: string | null }
  | { code: 'content_encoding'; encoding: string }
  /** `bytes`: the announced length; null if there is none. */
  | { code: 'body_size'; bytes: number | null };

export type Captured = Signed & { signature: string; nowMs: number; toleranceSeconds: number };

const NAMES = headerNames(HEADER_PREFIX);

/** Diagnoses a captured delivery: first with the verifier of the hook, then by trying the usual mistakes (`causes.ts`). */
export function diagnose(given: Captured): Diagnosis {
  // Spaces around a header's value are not part of it (RFC 9110 §5.5).
  const [signature, timestamp] = [withoutSpacesAround(given.signature), withoutSpacesAround(given.timestamp)];
  const { body, secrets, nowMs, toleranceSeconds } = given;
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
  const besides = findMistake({ body, timestamp, secrets }, signatures);
  switch (verified.reason) {
    case 'signature_malformed':
      return { code: 'malformed_signature', fault: signatureFault(signature, timestamp), besides };
    case 'timestamp_malformed':
      return { code: 'malformed_timestamp', fault: timestampFault(timestamp), besides };
    case 'secret_unusable': {
      const bytes = Buffer.byteLength(secrets[0] ?? '');
      return { code: 'unusable_secret', bytes, bytesMin: SIGNING_SECRET_BYTES_MIN, besides };
    }
  }
  const clockAheadMs = nowMs - Number(timestamp);
  if (besides !== null) return { code: besides.verdict, mistake: besides, clockAheadMs };
  const damage = bodyDamage(body);
  if (damage !== null) return { code: 'altered_body', damage, clockAheadMs };
  return { code: 'wrong_secret_or_altered_body', clockAheadMs };
}

/** A pattern alone would take quadratic time: it would rescan each run of spaces within the header many times. */
function withoutSpacesAround(header: string): string {
  let to = header.length;
  while (to > 0 && ' \t'.includes(header[to - 1] as string)) to--;
  return header.slice(0, to).replace(/^[ \t]+/, '');
}

function bodyDamage(body: Buffer): BodyDamage | null {
  if (body.length === 0) return 'empty';
  const text = body.toString('utf8');
  if (!Buffer.from(text).equals(body)) return 'no_text';
  if (text.includes('\uFFFD')) return 'replaced';
  return parseText(text, { exact: false }) === undefined ? 'no_json' : null;
}
