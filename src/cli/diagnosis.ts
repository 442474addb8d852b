import { HEADER_PREFIX, headerNames } from '../paylink/wire.ts';
import { SIGNING_SECRET_BYTES_MIN, verify } from '../receive/authentic.ts';
import { isFresh } from '../receive/freshness.ts';
import { readSignatures } from '../receive/signature.ts';
import { inWords } from '../work/clock.ts';
import { guessSignatures, signatureFault, timestampFault } from './headers.ts';
import { findMistake, type Mistake } from './mistakes.ts';

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
type Verdict = (typeof VERDICTS)[number];

export type Captured = {
  body: Buffer;
  signature: string;
  timestamp: string;
  secret: string;
  nowMs: number;
  toleranceSeconds: number;
};

export type Diagnosis = {
  authentic: boolean;
  verdict: Verdict;
  /** What is the matter, in a sentence or two. */
  answer: string;
  /** What else was noticed, and what to do. */
  remarks: string[];
  /** By how much our clock was ahead of the signed timestamp; null where that cannot be read. */
  clockAheadMs: number | null;
};

const NAMES = headerNames(HEADER_PREFIX);

/** Says what a captured delivery is: by the very verifier that receives, and then by trying the usual mistakes. */
export function diagnose(given: Captured): Diagnosis {
  // Spaces around a header's value are not part of it (RFC 9110 §5.5).
  const captured = {
    ...given,
    signature: given.signature.replace(/^[ \t]+|[ \t]+$/g, ''),
    timestamp: given.timestamp.replace(/^[ \t]+|[ \t]+$/g, ''),
  };
  const { body, signature, timestamp, secret, nowMs } = captured;
  const rawHeaders = [NAMES.signature, signature, NAMES.timestamp, timestamp];
  const verified = verify({ rawHeaders, headerNames: NAMES, body, credentials: { secret } });
  if (verified.ok) return judgeClock(captured, nowMs - verified.authentic.timestampMs);
  const mistake = findMistake(captured, readSignatures(signature, timestamp) ?? guessSignatures(signature));
  switch (verified.reason) {
    case 'signature_malformed':
      return refuse('malformed_signature', signatureFault(signature, timestamp), otherwiseRight(mistake));
    case 'timestamp_malformed':
      return refuse('malformed_timestamp', timestampFault(timestamp), otherwiseRight(mistake));
    case 'secret_unusable':
      return refuse(
        'unusable_secret',
        `The secret has ${Buffer.byteLength(secret)} bytes. settled refuses secrets of fewer than ` +
          `${SIGNING_SECRET_BYTES_MIN}, because they can be guessed. Is it whole?`,
        otherwiseRight(mistake),
      );
    default: {
      const clockAheadMs = nowMs - Number(timestamp);
      return { ...(mistake === null ? unexplained(captured) : explained(mistake)), clockAheadMs };
    }
  }
}

function refuse(verdict: Verdict, answer: string, remarks: string[]): Diagnosis {
  return { authentic: false, verdict, answer, remarks, clockAheadMs: null };
}

function judgeClock({ nowMs, toleranceSeconds, timestamp }: Captured, clockAheadMs: number): Diagnosis {
  const off = `${inWords(Math.abs(clockAheadMs))} ${clockAheadMs < 0 ? 'after' : 'before'} ${iso(nowMs)}`;
  const signed = `It was signed at ${iso(Number(timestamp))}, ${off}`;
  if (isFresh({ timestampMs: Number(timestamp), nowMs, toleranceSeconds })) {
    const answer = `The signature is right, and fresh. ${signed}.`;
    return { authentic: true, verdict: 'authentic', answer, remarks: [], clockAheadMs };
  }
  const answer = `The signature is right, but its clock is not. ${signed}; ${toleranceSeconds} s are tolerated.`;
  const remarks = [
    'If it came at another time, give that as --now. If it came now, compare the clocks of both machines, or have the ' +
      'service sign it again.',
  ];
  return { authentic: false, verdict: 'stale_clock', answer, remarks, clockAheadMs };
}

function explained({ verdict, words }: Mistake): Diagnosis {
  return refuse(verdict, `The signature matches ${words}.`, [ADVICE[verdict]]);
}

const ADVICE: Record<Mistake['verdict'], string> = {
  altered_body: 'The body is not what was signed. Find what changes it between the service and settled.',
  altered_timestamp: 'The timestamp is not what was signed. Find what changes the header on its way.',
  wrong_secret:
    'The secret is not used as it was given out: its own characters, in UTF-8, are the key. Correct it with: settled links add',
  signed_otherwise:
    "The signer does not sign as the service does: HMAC-SHA256 over the timestamp header's characters, a full stop, and " +
    'the raw body.',
};

function otherwiseRight(mistake: Mistake | null): string[] {
  if (mistake === null) return [];
  return mistake.words === ''
    ? ['Apart from that the signature is right: the body and the secret are those that were signed with.']
    : [`Besides, the signature matches ${mistake.words}.`];
}

function unexplained({ body }: Captured): Diagnosis {
  const damage = bodyDamage(body);
  if (damage !== null) {
    return refuse('altered_body', `The signature does not match, and the body ${damage}.`, [
      ADVICE.altered_body,
      'If the body is surely as it came, then the secret is of another link.',
    ]);
  }
  return refuse(
    'wrong_secret_or_altered_body',
    'The signature matches neither this body under this secret nor any of the usual mistakes with them.',
    [
      'Either the secret is of another link, or the body was changed by more than a character.',
      'To tell them apart, verify another delivery of the same link with this secret: where that one is authentic, this ' +
        'body was altered; where it is not either, the secret is wrong.',
    ],
  );
}

/** What shows that a body cannot be as the service sent it; null where nothing does. */
function bodyDamage(body: Buffer): string | null {
  if (body.length === 0) return 'is empty';
  const text = body.toString('utf8');
  if (!Buffer.from(text).equals(body)) return 'is not UTF-8 text, so it was cut or decoded on its way';
  if (text.includes('\uFFFD'))
    return 'holds replacement characters (U+FFFD), so it was decoded wrongly on its way';
  try {
    JSON.parse(text);
    return null;
  } catch {
    return 'is not JSON, so it was cut or changed on its way';
  }
}

function iso(ms: number): string {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? `${ms} ms` : date.toISOString();
}
