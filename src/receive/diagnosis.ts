import { HEADER_PREFIX, headerNames } from '../paylink/events.ts';
import { type Effort, findMistake, fromHex, type Mistake, QUOTED } from './mistakes.ts';
import {
  CANDIDATES_MAX,
  HEADER_LENGTH_MAX,
  isFresh,
  readSignatures,
  SIGNING_SECRET_BYTES_MIN,
  splitElements,
  verify,
  withoutPrefix,
} from './verify.ts';

/** A fault in the form of a whole header. */
type WholeFault = { fault: 'empty' | 'named' | 'quoted' | 'line_end' };

export type SignatureFault =
  | WholeFault
  /** Faults of the time in the header (`t=`). */
  | { fault: 'time_twice' | 'time_not_first' | 'time_alone' | 'time_differs' }
  | { fault: 'too_long'; characters: number; parts: number }
  /** Faults of one element; `parts` is the number of elements. */
  | { fault: 'prefix'; prefix: string; parts: number }
  | { fault: 'hex_digits' | 'base64_bytes'; length: number; parts: number }
  | { fault: 'no_encoding' | 'encoded_twice' | 'not_canonical' | 'empty_part'; parts: number };

export type TimestampFault =
  | WholeFault
  | { fault: 'digits'; length: number }
  | { fault: 'fraction' | 'sign' | 'date' | 'no_digits' };

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
  | { code: 'malformed_signature'; fault: SignatureFault; besides: Mistake | null }
  | { code: 'malformed_timestamp'; fault: TimestampFault; besides: Mistake | null }
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

export type Captured = {
  body: Buffer;
  signature: string;
  timestamp: string;
  /** The secrets of the link. A signature by any of them is right. */
  secrets: readonly string[];
  nowMs: number;
  toleranceSeconds: number;
  effort: Effort;
};

const NAMES = headerNames(HEADER_PREFIX);

/** Diagnoses a captured delivery: first with the verifier of the hook, then by trying the usual mistakes. */
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
  try {
    JSON.parse(text);
    return null;
  } catch {
    return 'no_json';
  }
}

const NAMED = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{0,64}(?:signature|timestamp)\s*:/i;
const FOREIGN_PREFIX = /^([A-Za-z][A-Za-z0-9_-]{0,15})[=,:](?=.{20})/;

/** Says why a signature header does not follow the grammar of docs/signature.md. */
function signatureFault(header: string, timestamp: string): SignatureFault {
  const fault = wholeFault(header) ?? stampFault(header, timestamp);
  if (fault !== null) return fault;
  const elements = splitElements(header.replace(/^t=[0-9]+(?: *, *| +)/, ''));
  const parts = elements.length;
  if (header.length > HEADER_LENGTH_MAX || parts > CANDIDATES_MAX) {
    return { fault: 'too_long', characters: header.length, parts };
  }
  const found = elements.map((element) => elementFault(element, parts)).find((one) => one !== null);
  return found ?? { fault: 'empty_part', parts };
}

function timestampFault(header: string): TimestampFault {
  const fault = wholeFault(header);
  if (fault !== null) return fault;
  if (/^[0-9]+$/.test(header)) return { fault: 'digits', length: header.length };
  if (/^[0-9]+[.,][0-9]+$/.test(header)) return { fault: 'fraction' };
  if (/^[+-][0-9]+$/.test(header)) return { fault: 'sign' };
  return { fault: Number.isNaN(Date.parse(header)) ? 'no_digits' : 'date' };
}

function wholeFault(header: string): WholeFault | null {
  if (header === '') return { fault: 'empty' };
  if (NAMED.test(header)) return { fault: 'named' };
  if (QUOTED.test(header)) return { fault: 'quoted' };
  return /[\r\n]/.test(header) ? { fault: 'line_end' } : null;
}

/** The fault of the time (`t=`) in a signature header; null if it has none. */
function stampFault(header: string, timestamp: string): SignatureFault | null {
  const stamps = [...header.matchAll(/(?:^|[, ])(t=[^, ]*)/g)].map(([, stamp]) => stamp as string);
  const [stamp] = stamps;
  if (stamp === undefined) return null;
  if (stamps.length > 1) return { fault: 'time_twice' };
  if (!header.startsWith('t=')) return { fault: 'time_not_first' };
  if (stamp === header) return { fault: 'time_alone' };
  return stamp === `t=${timestamp}` ? null : { fault: 'time_differs' };
}

function elementFault(element: string, parts: number): SignatureFault | null {
  const text = withoutPrefix(element);
  const prefix = FOREIGN_PREFIX.exec(text)?.[0];
  if (prefix !== undefined) return { fault: 'prefix', prefix, parts };
  if (/^[0-9A-Fa-f]{64}$/.test(text)) return null;
  if (/^[0-9A-Fa-f]+$/.test(text)) return { fault: 'hex_digits', length: text.length, parts };
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(text)) return { fault: 'no_encoding', parts };
  const bytes = Buffer.from(text, 'base64');
  if (/^[0-9A-Fa-f]{64}$/.test(bytes.toString('latin1'))) return { fault: 'encoded_twice', parts };
  if (bytes.length !== 32) return { fault: 'base64_bytes', length: bytes.length, parts };
  const [plain, urlSafe] = [bytes.toString('base64'), bytes.toString('base64url')];
  const spellings = [plain, plain.slice(0, -1), urlSafe, `${urlSafe}=`];
  return spellings.includes(text) ? null : { fault: 'not_canonical', parts };
}

/** The codes that a malformed signature may have meant. `diagnose` uses them to tell whether only the form is wrong. */
function guessSignatures(header: string): Buffer[] {
  const bare = header.slice(0, HEADER_LENGTH_MAX).replace(NAMED, '').trim().replace(QUOTED, '$2').trim();
  return splitElements(bare)
    .slice(0, CANDIDATES_MAX + 1)
    .map((element) => withoutPrefix(element).replace(FOREIGN_PREFIX, ''))
    .flatMap((text) => {
      const digits = text.replace(/^0x/i, '').replaceAll(':', '');
      const mac = fromHex(digits);
      if (mac !== null) return [mac];
      const bytes = Buffer.from(text, 'base64');
      return [fromHex(bytes.toString('latin1')), bytes].filter((one) => one !== null);
    })
    .slice(0, CANDIDATES_MAX);
}
