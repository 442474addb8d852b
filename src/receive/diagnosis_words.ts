import { inWords } from '../work/clock.ts';
import type { BodyDamage, Diagnosis, SignatureFault, TimestampFault } from './diagnosis.ts';
import { type CharacterChange, type Mistake, variantWords } from './mistakes.ts';
import { CANDIDATES_MAX, HEADER_LENGTH_MAX } from './verify.ts';

/** A diagnosis for a person: what is wrong, in a sentence or two; then what else was noticed and what to do. */
export type Explained = { answer: string; advice: string[] };

export function explainDiagnosis(diagnosis: Diagnosis): Explained {
  switch (diagnosis.code) {
    case 'authentic':
      return { answer: `The signature is right, and fresh. ${signedAt(diagnosis)}.`, advice: [] };
    case 'stale_clock': {
      const signed = `${signedAt(diagnosis)}; ${diagnosis.toleranceSeconds} s are tolerated.`;
      return { answer: `The signature is right, but its clock is not. ${signed}`, advice: [STALE] };
    }
    case 'malformed_signature':
      return { answer: signatureWords(diagnosis.fault), advice: otherwiseRight(diagnosis.besides) };
    case 'malformed_timestamp':
      return { answer: timestampWords(diagnosis.fault), advice: otherwiseRight(diagnosis.besides) };
    case 'unusable_secret': {
      const { bytes, bytesMin, besides } = diagnosis;
      const answer =
        `The secret has ${bytes} bytes. settled refuses secrets of fewer than ${bytesMin}, because they can be guessed. ` +
        'Is it whole?';
      return { answer, advice: otherwiseRight(besides) };
    }
    case 'wrong_secret_or_altered_body':
      return UNEXPLAINED;
    case 'other_header_names':
      return headerNamesWords(diagnosis);
    case 'other_method':
      return methodWords(diagnosis);
    case 'content_encoding':
      return {
        answer: `It was sent with Content-Encoding: ${diagnosis.encoding}.`,
        advice: ['Have it sent as it was signed: find what compresses it between the service and settled.'],
      };
    case 'body_size':
      return {
        answer: `Its body has ${diagnosis.bytes === null ? 'more than 262144' : diagnosis.bytes} bytes.`,
        advice: ['Nothing that the service sends is so large: find out who sends it.'],
      };
    default:
      return 'mistake' in diagnosis ? mistakeWords(diagnosis.mistake) : damageWords(diagnosis.damage);
  }
}

const STALE =
  'If it came at another time, give that as --now. If it came now, compare the clocks of both machines, or have the ' +
  'service sign it again.';

function signedAt({ clockAheadMs, nowMs }: { clockAheadMs: number; nowMs: number }): string {
  const off = `${inWords(Math.abs(clockAheadMs))} ${clockAheadMs < 0 ? 'after' : 'before'} ${iso(nowMs)}`;
  return `It was signed at ${iso(nowMs - clockAheadMs)}, ${off}`;
}

function iso(ms: number): string {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? `${ms} ms` : date.toISOString();
}

function mistakeWords(mistake: Mistake): Explained {
  return { answer: `The signature matches ${matched(mistake)}.`, advice: [ADVICE[mistake.verdict]] };
}

const ADVICE: Record<Mistake['verdict'], string> = {
  altered_body: 'The body is not what was signed. Find what changes it between the service and settled.',
  altered_timestamp: 'The timestamp is not what was signed. Find what changes the header on its way.',
  wrong_secret:
    'The secret is not used as it was given out: its own characters, in UTF-8, are the key. If the shop made ' +
    'the link, correct it with: settled links add',
  signed_otherwise:
    "The signer does not sign as the service does: HMAC-SHA256 over the timestamp header's characters, a full stop, and " +
    'the raw body.',
};

/** Completes "the signature matches …". Empty if the signature matches everything as it was given. */
function matched({ readings, algorithm, change }: Mistake): string {
  if (change !== null) return `the ${change.of} ${changeWords(change)}`;
  const hash = algorithm === null ? [] : [`HMAC with ${algorithm.toUpperCase()} instead of SHA256`];
  return [...readings.map(variantWords), ...hash].join(' and ');
}

function changeWords({ how, at, is, shouldBe }: CharacterChange): string {
  if (how === 'without') return `without "${is}" at byte ${at}`;
  return how === 'added'
    ? `with "${shouldBe}" added at byte ${at}`
    : `with "${shouldBe}" instead of "${is}" at byte ${at}`;
}

function otherwiseRight(mistake: Mistake | null): string[] {
  if (mistake === null) return [];
  const words = matched(mistake);
  return words === ''
    ? ['Apart from that the signature is right: the body and the secret are those that were signed with.']
    : [`Besides, the signature matches ${words}.`];
}

const DAMAGE: Record<BodyDamage, string> = {
  empty: 'is empty',
  no_text: 'is not UTF-8 text, so it was cut or decoded on its way',
  replaced: 'holds replacement characters (U+FFFD), so it was decoded wrongly on its way',
  no_json: 'is not JSON, so it was cut or changed on its way',
};

function damageWords(damage: BodyDamage): Explained {
  return {
    answer: `The signature does not match, and the body ${DAMAGE[damage]}.`,
    advice: [ADVICE.altered_body, 'If the body is surely as it came, then the secret is of another link.'],
  };
}

const UNEXPLAINED: Explained = {
  answer: 'The signature matches neither this body under this secret nor any of the usual mistakes with them.',
  advice: [
    'Either the secret is of another link, or the body was changed by more than a character.',
    'To tell them apart, verify another delivery of the same link with this secret: if that one is authentic, this ' +
      'body was altered; if it is not either, the secret is wrong.',
  ],
};

const WHOLE = {
  empty: 'is empty',
  named: "begins with the header's name: give only what follows the colon",
  quoted: 'is in quotation marks: the header has none',
  line_end: 'holds a line end',
};

/** Each completes "the signature …". Braces name fields of the fault. */
const SIGNATURE_FAULTS: Readonly<Record<SignatureFault['fault'], string>> = {
  ...WHOLE,
  time_twice: 'names a time (`t=`) more than once',
  time_not_first: 'names a time (`t=`) behind a code: it must stand first',
  time_alone: 'names a time (`t=`) and no code',
  time_differs: 'names another time (`t=`) than the timestamp header: both must have the same characters',
  too_long:
    `has {characters} characters in {parts} parts; ${HEADER_LENGTH_MAX} characters and ${CANDIDATES_MAX} parts are ` +
    'the most',
  prefix: 'has the prefix `{prefix}`: only hmac-sha256=, sha256=, sha256:, v1= and v1, are known',
  hex_digits: 'has {length} hexadecimal digits, and HMAC-SHA256 has 64',
  base64_bytes: 'is base64 of {length} bytes, and HMAC-SHA256 has 32',
  no_encoding: 'is neither hexadecimal nor base64',
  encoded_twice: 'is base64 of hexadecimal digits: it was encoded twice',
  not_canonical: 'is base64 whose last digits do not end a code of 32 bytes: it is cut or mistyped',
  empty_part: 'has an empty part',
};

const ALGORITHMS: Readonly<Record<number, string>> = { 32: 'MD5', 40: 'SHA-1', 96: 'SHA-384', 128: 'SHA-512' };

function signatureWords(found: SignatureFault): string {
  const several = 'parts' in found && found.parts > 1 && found.fault !== 'too_long';
  const words = `${several ? 'A part of the signature' : 'The signature'} ${filled(SIGNATURE_FAULTS[found.fault], found)}`;
  if (found.fault !== 'hex_digits') return `${words}.`;
  const algorithm = ALGORITHMS[found.length];
  return `${words}: ${algorithm === undefined ? 'it is cut or mistyped' : `it seems to be ${algorithm}`}.`;
}

/** Each completes "the timestamp …". */
const TIMESTAMP_FAULTS: Readonly<Record<TimestampFault['fault'], string>> = {
  ...WHOLE,
  digits: 'has {length} digits',
  fraction: 'has a fraction',
  sign: 'has a sign',
  date: 'is a date in words',
  no_digits: 'does not consist of digits',
};

const UNITS: Readonly<Record<number, string>> = { 10: 'seconds', 16: 'microseconds', 19: 'nanoseconds' };

function timestampWords(found: TimestampFault): string {
  const words = `The timestamp ${filled(TIMESTAMP_FAULTS[found.fault], found)}`;
  const unit = found.fault === 'digits' ? UNITS[found.length] : undefined;
  const seems = unit === undefined ? '' : `, so it seems to be in ${unit}`;
  return found.fault in WHOLE ? `${words}.` : `${words}${seems}; it must be epoch milliseconds, 13 digits.`;
}

function filled(words: string, found: object): string {
  const values = new Map(Object.entries(found));
  return words
    .replace(/\{(\w+)\}/g, (_braces, name) => String(values.get(name)))
    .replace(/\b1 ((?:hexadecimal )?(?:digit|byte))s\b/, '1 $1');
}

type Of<Code> = Extract<Diagnosis, { code: Code }>;

function headerNamesWords({ names, wanted, prefix }: Of<'other_header_names'>): Explained {
  const carried = `Deliveries carried ${inList(names)}, and settled looked for ${inList(wanted)}.`;
  if (prefix !== null) {
    const set = `If these are the service's own, set SETTLED_HEADER_PREFIX=${prefix} and restart settled.`;
    return { answer: carried, advice: [set] };
  }
  const advice =
    "If one of them is the service's, set SETTLED_HEADER_PREFIX to what comes before -signature and -timestamp in its " +
    'name, and restart settled. If not, find what removes the headers on their way.';
  return { answer: carried, advice: [advice] };
}

function inList(names: readonly string[]): string {
  return names
    .map((name) => `\`${name}\``)
    .join(', ')
    .replace(/, ([^,]*)$/, ' and $1');
}

function methodWords({ method, origin }: Of<'other_method'>): Explained {
  if (method === 'OPTIONS' && origin !== null) {
    return {
      answer: `A page of ${origin} asked whether it may deliver from a browser, and was refused.`,
      advice: [`If that page is the service's, set SETTLED_HOOKS_CORS=${origin} and restart settled.`],
    };
  }
  return {
    answer: `It was sent with ${method}, and deliveries are taken with POST.`,
    advice: ['Find out who sends it so: a redirect on its way makes a GET of a POST.'],
  };
}
