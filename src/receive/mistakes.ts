import { createHmac, timingSafeEqual } from 'node:crypto';
import { bodyReadings, distinct, type Reading, secretReadings, timestampReadings } from './readings.ts';

/**
 * The usual mistakes in signing and in keeping what was signed. Each is a different reading of the body, the timestamp
 * or the secret, or another way to put them together; one or two of them at once are tried against the signature.
 */

export type Mistake = {
  verdict: 'altered_body' | 'altered_timestamp' | 'wrong_secret' | 'signed_otherwise';
  /** Names of the readings that the signature matches; none if it matches what was given, apart from its form. */
  readings: string[];
  /** The hash that it was made with, if that is not SHA-256. */
  algorithm: string | null;
  change: Change | null;
};

/** A character that has to be left out, put in or put in another's place, for the signature to match. */
export type Change = {
  of: 'body' | 'timestamp';
  how: 'without' | 'instead' | 'added';
  at: number;
  /** What is there, and what should be. */
  is: string;
  shouldBe: string;
};

/** `secrets`: any of them is right. */
export type Signed = { body: Buffer; timestamp: string; secrets: readonly string[] };

/** How much may be tried: everything a person has time for, or what a server can spare beside its work. */
export type Effort = 'all' | 'little';

type Form = (timestamp: string, body: Buffer) => (string | Buffer)[];

const MISTAKES_AT_ONCE = 2;
/** Above it, bodies are not searched for a changed character: the search grows with the square of the length. */
const SEARCHED_BYTES_MAX = 1024;
/** Above it, with little effort, the body is not read again. */
const REREAD_BYTES_MAX = 16 * 1024;
/** What is longer is no timestamp in any form, and is not searched for a changed character. */
const TIMESTAMP_LENGTH_MAX = 32;
/** Bytes that may be hashed, for all that is tried together: milliseconds of a server, seconds of a person. */
const HASHED_BYTES_MAX: Readonly<Record<Effort, number>> = { little: 2_000_000, all: 1_000_000_000 };
/** What a code costs beside its message, in bytes hashed. */
const BYTES_PER_CODE = 1024;
const ALGORITHM_BY_BYTES: Readonly<Record<number, string>> = {
  16: 'md5',
  20: 'sha1',
  32: 'sha256',
  48: 'sha384',
  64: 'sha512',
};

/** The fewest mistakes that explain a signature; null if none of the usual ones do, or none of those that were tried. */
export function findMistake(signed: Signed, signatures: readonly Buffer[], effort: Effort = 'all'): Mistake | null {
  const matches = matcher(signatures, effort);
  const isReread = effort === 'all' || signed.body.length <= REREAD_BYTES_MAX;
  const bodies = isReread ? bodyReadings(signed.body) : [{ name: '', value: signed.body }];
  const timestamps = timestampReadings(signed.timestamp);
  const secrets = distinct(signed.secrets.flatMap(secretReadings));
  for (let most = 0; most <= MISTAKES_AT_ONCE; most++) {
    for (const form of FORMS) {
      for (const secret of secrets) {
        for (const timestamp of timestamps) {
          const left = most - changes(form) - changes(secret) - changes(timestamp);
          if (left < 0 || left > 1) continue;
          for (const body of bodies) {
            if (changes(body) !== left) continue;
            const algorithm = matches(secret.value, form.value(timestamp.value, body.value), most);
            if (algorithm === null) continue;
            return mistake({ body, secret, timestamp, form }, algorithm);
          }
        }
      }
    }
  }
  return findChangedCharacter(signed, matches, effort);
}

function changes({ name }: Reading<unknown>): 0 | 1 {
  return name === '' ? 0 : 1;
}

function mistake(read: Record<'body' | 'secret' | 'timestamp' | 'form', Reading<unknown>>, algorithm: string): Mistake {
  const { body, secret, timestamp, form } = read;
  const readings = [body, secret, timestamp, form].map(({ name }) => name).filter((name) => name !== '');
  const verdict =
    body.name !== ''
      ? 'altered_body'
      : secret.name !== ''
        ? 'wrong_secret'
        : timestamp.name !== ''
          ? 'altered_timestamp'
          : 'signed_otherwise';
  return { verdict, readings, algorithm: algorithm === 'sha256' ? null : algorithm, change: null };
}

/** `mistakes`: how many are supposed. */
type Matcher = (key: Buffer, message: readonly (string | Buffer)[], mistakes: number) => string | null;

/**
 * Finds the algorithm under which a message gives one of the signatures. All that it hashes is paid from one purse: who
 * sends a delivery chooses how long its parts are, how many algorithms it may have, and how much of it is tried.
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
      const mac = hmac.digest();
      if (matchesAny(mac, signatures)) return algorithm;
    }
    return null;
  };
}

/** In constant time, as everything that compares codes. */
function matchesAny(mac: Buffer, signatures: readonly Buffer[]): boolean {
  return signatures.some((one) => one.length === mac.length && timingSafeEqual(one, mac));
}

const FORMS: readonly Reading<Form>[] = [
  { name: '', value: (timestamp, body) => [timestamp, '.', body] },
  { name: 'body_alone', value: (_timestamp, body) => [body] },
  { name: 'no_full_stop', value: (timestamp, body) => [timestamp, body] },
  { name: 'body_first', value: (timestamp, body) => [body, '.', timestamp] },
  { name: 'colon_between', value: (timestamp, body) => [timestamp, ':', body] },
  { name: 'line_end_between', value: (timestamp, body) => [timestamp, '\n', body] },
  { name: 'v0_form', value: (timestamp, body) => ['v0:', timestamp, ':', body] },
];

const DIGITS = '0123456789';
const PRINTABLE = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).join('');

/** One character changed, added or lost on the way, in the timestamp or in a body that is not too long. */
function findChangedCharacter({ body, timestamp, secrets }: Signed, matches: Matcher, effort: Effort): Mistake | null {
  const keys = secrets.map((secret) => Buffer.from(secret));
  const isSigned = (message: (string | Buffer)[]) =>
    keys.some((key) => matches(key, message, MISTAKES_AT_ONCE) !== null);
  for (const { change, text } of timestamp.length > TIMESTAMP_LENGTH_MAX ? [] : changed(timestamp, DIGITS)) {
    if (isSigned([text, '.', body])) return wrongCharacter('altered_timestamp', { of: 'timestamp', ...change });
  }
  if (effort === 'little' || body.length > SEARCHED_BYTES_MAX) return null;
  for (const { change, text } of changed(body.toString('latin1'), PRINTABLE)) {
    if (isSigned([timestamp, '.', Buffer.from(text, 'latin1')])) {
      return wrongCharacter('altered_body', { of: 'body', ...change });
    }
  }
  return null;
}

function wrongCharacter(verdict: Mistake['verdict'], change: Change): Mistake {
  return { verdict, readings: [], algorithm: null, change };
}

type Changed = { change: Omit<Change, 'of'>; text: string };

function* changed(text: string, alphabet: string): Generator<Changed> {
  for (let at = 0; at <= text.length; at++) {
    const [before, after] = [text.slice(0, at), text.slice(at + 1)];
    const is = text[at];
    if (is !== undefined) yield { change: { how: 'without', at, is, shouldBe: '' }, text: before + after };
    for (const shouldBe of alphabet) {
      if (is !== undefined) {
        yield { change: { how: 'instead', at, is, shouldBe }, text: before + shouldBe + after };
      }
      yield { change: { how: 'added', at, is: '', shouldBe }, text: before + shouldBe + text.slice(at) };
    }
  }
}
