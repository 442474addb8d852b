import { createHmac } from 'node:crypto';
import { bodyVariants, distinct, FORMS, messageOf, secretVariants, timestampVariants } from './variants.ts';
import { matchesAny } from './verify.ts';

/**
 * Finds the usual mistakes in signing and in keeping what was signed. Each is a variant of the body, the timestamp or
 * the secret, or another way to put them together (variants.ts). It tries one or two of them at once against the
 * signature.
 */

export type Mistake = {
  verdict: 'altered_body' | 'altered_timestamp' | 'wrong_secret' | 'signed_otherwise';
  /** Names of the variants that the signature matches; none if it matches what was given, apart from its form. */
  readings: string[];
  /** The hash of the signature, if that is not SHA-256. */
  algorithm: string | null;
  change: CharacterChange | null;
};

/** A character that has to be left out, put in or put in another's place, for the signature to match. */
export type CharacterChange = {
  of: 'body' | 'timestamp';
  how: 'without' | 'instead' | 'added';
  at: number;
  /** What is there, and what should be. */
  is: string;
  shouldBe: string;
};

/** `secrets`: any of them is right. */
export type Signed = { body: Buffer; timestamp: string; secrets: readonly string[] };

/** How much to try: all that a person has time for, or the little that a serving process can spare. */
export type Effort = 'all' | 'little';

const MISTAKES_AT_ONCE = 2;
/** Larger bodies are not searched for a changed character: the search grows with the square of the length. */
const SEARCHED_BYTES_MAX = 1024;
/** With little effort, variants of larger bodies are not tried. */
const VARIED_BYTES_MAX = 16 * 1024;
/** Longer text is not a timestamp in any form, and is not searched for a changed character. */
const TIMESTAMP_LENGTH_MAX = 32;
/** Bytes that one search may hash in all: milliseconds of a server, seconds of a person. */
const HASHED_BYTES_MAX: Readonly<Record<Effort, number>> = { little: 2_000_000, all: 1_000_000_000 };
/** The cost of a code in addition to its message, in bytes hashed. */
const BYTES_PER_CODE = 1024;
const ALGORITHM_BY_BYTES: Readonly<Record<number, string>> = {
  16: 'md5',
  20: 'sha1',
  32: 'sha256',
  48: 'sha384',
  64: 'sha512',
};

/** The fewest mistakes that explain a signature; null if none of the tried ones does. */
export function findMistake(signed: Signed, signatures: readonly Buffer[], effort: Effort = 'all'): Mistake | null {
  const matches = matcher(signatures, effort);
  const isVaried = effort === 'all' || signed.body.length <= VARIED_BYTES_MAX;
  const bodies = isVaried ? bodyVariants(signed.body) : [{ name: '', value: signed.body }];
  const timestamps = timestampVariants(signed.timestamp);
  const secrets = distinct(signed.secrets.flatMap(secretVariants));
  for (let most = 0; most <= MISTAKES_AT_ONCE; most++) {
    for (const [form, , parts] of FORMS) {
      for (const secret of secrets) {
        for (const timestamp of timestamps) {
          const left = most - [form, secret.name, timestamp.name].filter((name) => name !== '').length;
          if (left < 0 || left > 1) continue;
          for (const body of bodies) {
            if ((body.name === '' ? 0 : 1) !== left) continue;
            const algorithm = matches(secret.value, messageOf(parts, timestamp.value, body.value), most);
            if (algorithm === null) continue;
            return mistake({ body: body.name, secret: secret.name, timestamp: timestamp.name, form }, algorithm);
          }
        }
      }
    }
  }
  return findChangedCharacter(signed, matches, effort);
}

function mistake(named: Record<'body' | 'secret' | 'timestamp' | 'form', string>, algorithm: string): Mistake {
  const { body, secret, timestamp, form } = named;
  const readings = [body, secret, timestamp, form].filter((name) => name !== '');
  const hash = algorithm === 'sha256' ? null : algorithm;
  if (body !== '') return { verdict: 'altered_body', readings, algorithm: hash, change: null };
  if (secret !== '') return { verdict: 'wrong_secret', readings, algorithm: hash, change: null };
  const verdict = timestamp !== '' ? 'altered_timestamp' : 'signed_otherwise';
  return { verdict, readings, algorithm: hash, change: null };
}

/** `mistakes`: how many this try assumes. */
type Matcher = (key: Buffer, message: readonly Buffer[], mistakes: number) => string | null;

/**
 * Finds the algorithm under which a message gives one of the signatures. One budget pays for everything that it hashes,
 * because a sender chooses how long the parts are, how many algorithms may apply, and how much is tried.
 */
function matcher(signatures: readonly Buffer[], effort: Effort): Matcher {
  const algorithms = new Set(signatures.flatMap(({ length }) => ALGORITHM_BY_BYTES[length] ?? []));
  const usual = new Set([...algorithms].filter((algorithm) => algorithm === 'sha256'));
  let bytesLeft = HASHED_BYTES_MAX[effort];
  return (key, message, mistakes) => {
    const bytes = message.reduce((sum, part) => sum + part.length, key.length + BYTES_PER_CODE);
    for (const algorithm of effort === 'all' || mistakes < 2 ? algorithms : usual) {
      if (bytes > bytesLeft) return null;
      bytesLeft -= bytes;
      const hmac = createHmac(algorithm, key);
      for (const part of message) hmac.update(part);
      if (matchesAny(hmac.digest(), signatures)) return algorithm;
    }
    return null;
  };
}

const DIGITS = '0123456789';
const PRINTABLE = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).join('');

/** One character changed, added or lost on the way, in the timestamp or in a body that is not too long. */
function findChangedCharacter({ body, timestamp, secrets }: Signed, matches: Matcher, effort: Effort): Mistake | null {
  const keys = secrets.map((secret) => Buffer.from(secret));
  const isSigned = (stamp: string, content: Buffer) =>
    keys.some((key) => matches(key, [Buffer.from(`${stamp}.`), content], MISTAKES_AT_ONCE) !== null);
  const found = (verdict: Mistake['verdict'], change: CharacterChange) => ({
    verdict,
    readings: [],
    algorithm: null,
    change,
  });
  for (const { change, text } of timestamp.length > TIMESTAMP_LENGTH_MAX ? [] : changed(timestamp, DIGITS)) {
    if (isSigned(text, body)) return found('altered_timestamp', { of: 'timestamp', ...change });
  }
  if (effort === 'little' || body.length > SEARCHED_BYTES_MAX) return null;
  for (const { change, text } of changed(body.toString('latin1'), PRINTABLE)) {
    if (isSigned(timestamp, Buffer.from(text, 'latin1'))) return found('altered_body', { of: 'body', ...change });
  }
  return null;
}

function* changed(text: string, alphabet: string): Generator<{ change: Omit<CharacterChange, 'of'>; text: string }> {
  for (let at = 0; at <= text.length; at++) {
    const [before, after] = [text.slice(0, at), text.slice(at + 1)];
    const is = text[at];
    if (is !== undefined) yield { change: { how: 'without', at, is, shouldBe: '' }, text: before + after };
    for (const shouldBe of alphabet) {
      if (is !== undefined) yield { change: { how: 'instead', at, is, shouldBe }, text: before + shouldBe + after };
      yield { change: { how: 'added', at, is: '', shouldBe }, text: before + shouldBe + text.slice(at) };
    }
  }
}
