import { createHmac } from 'node:crypto';
import { escapeNonAscii, type JsonLayout, jsonParts, layoutOf, withSeparators } from '../json.ts';
import { matchesAny } from './verify.ts';

/**
 * A usual mistake in signing a delivery or in storing its parts. Each is a row of the tables below: a variant of the
 * body, the timestamp or the secret, or another way to combine them. `findMistake` tries one or two of them at once.
 */
export type Mistake = {
  verdict: Verdict;
  /** Names of the variants that the signature matches. Empty if only the signature's form was wrong. */
  readings: string[];
  /** The hash of the signature; null for SHA-256. */
  algorithm: string | null;
  change: CharacterChange | null;
};
type Verdict = 'altered_body' | 'altered_timestamp' | 'wrong_secret' | 'signed_otherwise';

/** One character to remove, add or replace, so that the signature matches. */
export type CharacterChange = {
  of: 'body' | 'timestamp';
  how: 'without' | 'instead' | 'added';
  at: number;
  /** `is`: the character found. `shouldBe`: the character that the signature expects. */
  is: string;
  shouldBe: string;
};

/** `secrets`: a signature by any of them is right. */
type Signed = { body: Buffer; timestamp: string; secrets: readonly string[] };

/** How much to try: `all` when a person waits for the result, `little` in a process that serves deliveries. */
export type Effort = 'all' | 'little';

const MISTAKES_AT_ONCE = 2;
/** settled searches no larger body for a changed character: the search grows with the square of the length. */
const SEARCHED_BYTES_MAX = 1024;
/** With `little` effort, settled tries no variants of larger bodies. */
const VARIED_BYTES_MAX = 16 * 1024;
/** Longer text is no timestamp in any form; settled does not search it for a changed character. */
const TIMESTAMP_LENGTH_MAX = 32;
/** The most bytes that one search may hash: milliseconds in a server, seconds for a person. */
const HASHED_BYTES_MAX: Readonly<Record<Effort, number>> = { little: 2_000_000, all: 1_000_000_000 };
/** The cost of computing one code in addition to its message, counted in bytes hashed. */
const BYTES_PER_CODE = 1024;

/** Finds the fewest mistakes that explain a signature; null if none of those tried does. */
export function findMistake(signed: Signed, signatures: readonly Buffer[], effort: Effort): Mistake | null {
  const matches = matcher(signatures, effort);
  const isVaried = effort === 'all' || signed.body.length <= VARIED_BYTES_MAX;
  const [given, ...others] = isVaried ? bodyVariants(signed.body) : [variant('', signed.body)];
  const timestamps = timestampVariants(signed.timestamp);
  const secrets = distinct(signed.secrets.flatMap(secretVariants));
  for (let most = 0; most <= MISTAKES_AT_ONCE; most++) {
    for (const [form, , message] of FORMS) {
      for (const secret of secrets) {
        for (const timestamp of timestamps) {
          const left = most - [form, secret.name, timestamp.name].filter((name) => name !== '').length;
          for (const body of left === 0 ? [given as Variant] : left === 1 ? others : []) {
            const algorithm = matches(secret.value, messageOf(message, timestamp.value, body.value), most);
            if (algorithm === null) continue;
            return mistake([body.name, secret.name, timestamp.name, form], algorithm);
          }
        }
      }
    }
  }
  return findChangedCharacter(signed, matches, effort);
}

function messageOf(form: string, timestamp: Buffer, body: Buffer): Buffer[] {
  const parts = form.split(/(timestamp|body)/);
  return parts.map((part) => (part === 'timestamp' ? timestamp : part === 'body' ? body : Buffer.from(part)));
}

/** `names`: the variants of body, secret, timestamp and form. The first that is not empty gives the verdict. */
function mistake(names: readonly string[], algorithm: string): Mistake {
  const verdicts = ['altered_body', 'wrong_secret', 'altered_timestamp'] as const;
  return {
    verdict: verdicts[names.findIndex((name) => name !== '')] ?? 'signed_otherwise',
    readings: names.filter((name) => name !== ''),
    algorithm: algorithm === 'sha256' ? null : algorithm,
    change: null,
  };
}

const HASHES: Readonly<Record<number, string>> = { 16: 'md5', 20: 'sha1', 32: 'sha256', 48: 'sha384', 64: 'sha512' };

/** `mistakes`: how many mistakes this try assumes. Returns the algorithm that matched; null if none did. */
type Matcher = (key: Buffer, message: readonly Buffer[], mistakes: number) => string | null;

/**
 * Makes a function that finds the algorithm under which a message gives one of the signatures. One budget limits all
 * that it hashes, because the sender chooses the lengths, the number of algorithms and the number of tries.
 */
function matcher(signatures: readonly Buffer[], effort: Effort): Matcher {
  const algorithms = new Set(signatures.flatMap(({ length }) => HASHES[length] ?? []));
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

/** Searches for one character changed, added or lost on the way, in the timestamp or in a short body. */
function findChangedCharacter({ body, timestamp, secrets }: Signed, matches: Matcher, effort: Effort): Mistake | null {
  const keys = secrets.map((secret) => Buffer.from(secret));
  const isSigned = (stamp: string, content: Buffer) =>
    keys.some((key) => matches(key, [Buffer.from(`${stamp}.`), content], MISTAKES_AT_ONCE) !== null);
  const found = { readings: [], algorithm: null };
  for (const { change, text } of timestamp.length > TIMESTAMP_LENGTH_MAX ? [] : changed(timestamp, DIGITS)) {
    if (isSigned(text, body)) return { ...found, verdict: 'altered_timestamp', change: { of: 'timestamp', ...change } };
  }
  if (effort === 'little' || body.length > SEARCHED_BYTES_MAX) return null;
  for (const { change, text } of changed(body.toString('latin1'), PRINTABLE)) {
    if (isSigned(timestamp, latin1(text)))
      return { ...found, verdict: 'altered_body', change: { of: 'body', ...change } };
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

/** One variant of a part: its name, the words that a person reads, and a function that makes it (null if it cannot). */
type Row<Given extends unknown[]> = readonly [name: string, words: string, make: (...given: Given) => Made | null];
type Made = string | Buffer;

/** The ways in which the signer may have combined the timestamp and the body. */
const FORMS: readonly (readonly [name: string, words: string, message: string])[] = [
  ['', '', 'timestamp.body'],
  ['body_alone', 'the body alone, without the timestamp', 'body'],
  ['no_full_stop', 'the timestamp and the body without the full stop between them', 'timestampbody'],
  ['body_first', 'the body before the timestamp instead of after it', 'body.timestamp'],
  ['colon_between', 'the timestamp and the body with a colon between them', 'timestamp:body'],
  ['line_end_between', 'the timestamp and the body with a line end between them', 'timestamp\nbody'],
  ['v0_form', '`v0:`, the timestamp, a colon and the body, as another service signs', 'v0:timestamp:body'],
];

/** The body as its signer, or a program on its way, may have had it. */
const BODIES: readonly Row<[text: string, body: Buffer]>[] = [
  ['body_without_final_line_end', 'the body without its final line end', (text) => text.replace(/\r?\n$/, '')],
  ['body_trimmed', 'the body without the white space around it', (text) => text.trim()],
  ['body_with_final_line_end', 'the body with a final line end', (text) => `${text}\n`],
  ['body_with_final_crlf', 'the body with a final CR LF', (text) => `${text}\r\n`],
  ['body_lf_for_crlf', 'the body with LF instead of CR LF', (text) => text.replaceAll('\r\n', '\n')],
  ['body_crlf_for_lf', 'the body with CR LF instead of LF', (text) => text.replace(/\r?\n/g, '\r\n')],
  ['body_without_bom', 'the body without its byte order mark', (text) => text.replace(/^\uFEFF/, '')],
  ['body_with_bom', 'the body with a byte order mark', (text) => `\uFEFF${text}`],
  ['body_before_double_encoding', 'the body before it was decoded as Latin-1 and encoded as UTF-8', latin1],
  ['body_double_encoded', 'the body decoded as Latin-1 and encoded as UTF-8', (_text, body) => body.toString('latin1')],
  ['body_empty', 'an empty body', () => ''],
];

type Json = { text: string; value: unknown; parts: readonly string[]; layout: JsonLayout };

/** The same JSON, as programs that parsed it may have written it again. */
const JSONS: readonly Row<[json: Json]>[] = [
  [
    'body_without_white_space',
    'the body without the white space in its JSON',
    ({ parts }) => withSeparators(parts, ',', ':'),
  ],
  ['body_compact_json', 'the body parsed and written again as compact JSON', ({ value }) => JSON.stringify(value)],
  ['body_json_indented_2', 'the body parsed and written again as JSON indented by two', (json) => indented(json, 2)],
  ['body_json_indented_4', 'the body parsed and written again as JSON indented by four', (json) => indented(json, 4)],
  ['body_python_json', 'the body written as Python writes JSON', ({ parts }) => withSeparators(parts, ', ', ': ')],
  [
    'body_python_json',
    'the body written as Python writes JSON',
    ({ parts }) => escapeNonAscii(withSeparators(parts, ', ', ': ')),
  ],
  ['body_ascii_json', 'the body with its other characters than ASCII escaped', ({ text }) => escapeNonAscii(text)],
];

/** A timestamp in the other usual units and forms. */
const TIMESTAMPS: readonly Row<[ms: number]>[] = [
  ['timestamp_seconds', 'the timestamp in whole seconds', (ms) => String(Math.floor(ms / 1000))],
  ['timestamp_milliseconds', 'the timestamp in milliseconds', (ms) => String(ms)],
  ['timestamp_cut_to_seconds', 'the timestamp in milliseconds, cut to whole seconds', (ms) => String(ms - (ms % 1000))],
  ['timestamp_fraction', 'the timestamp in seconds with a fraction', (ms) => String(ms / 1000)],
  ['timestamp_iso', 'the timestamp as an ISO date', (ms) => new Date(ms).toISOString()],
];

/** A secret as it may have been stored, pasted or decoded; `bare`: without its prefix and the white space around it. */
const SECRETS: readonly Row<[secret: string, bare: string]>[] = [
  ['secret_trimmed', 'the secret without the white space around it', (secret) => secret.trim()],
  ['secret_with_line_end', 'the secret with a line end after it', (secret) => `${secret}\n`],
  ['secret_unquoted', 'the secret without its quotation marks', (secret) => secret.trim().replace(QUOTED, '$2')],
  ['secret_without_whsec', 'the secret without its prefix whsec_', (_secret, bare) => bare],
  ['secret_with_whsec', 'the secret with the prefix whsec_', (secret) => `whsec_${secret}`],
  ['secret_from_base64', 'the secret decoded as base64', (_secret, bare) => Buffer.from(bare, 'base64')],
  ['secret_from_hex', 'the secret decoded as hexadecimal', (_secret, bare) => fromHex(bare)],
  ['secret_as_base64', 'the secret encoded as base64', (secret) => Buffer.from(secret).toString('base64')],
  ['secret_as_hex', 'the secret encoded as hexadecimal', (secret) => Buffer.from(secret).toString('hex')],
  ['secret_lower_case', 'the secret in lower case', (secret) => secret.toLowerCase()],
  ['secret_upper_case', 'the secret in upper case', (secret) => secret.toUpperCase()],
  ['secret_latin1', 'the secret encoded as Latin-1', latin1],
  ['secret_empty', 'an empty secret', () => ''],
];

const WORDS = new Map([...FORMS, ...BODIES, ...JSONS, ...TIMESTAMPS, ...SECRETS].map(([name, words]) => [name, words]));

/** The words for a variant. Returns the name itself if this version does not know it. */
export function variantWords(name: string): string {
  return WORDS.get(name) ?? name;
}

/** `name` is empty for a part as it was given. */
type Variant = { name: string; value: Buffer };

function variant(name: string, made: Made): Variant {
  return { name, value: typeof made === 'string' ? Buffer.from(made) : made };
}

function variantsOf<Given extends unknown[]>(rows: readonly Row<Given>[], ...given: Given): Variant[] {
  return rows.flatMap(([name, , make]) => {
    const made = make(...given);
    return made === null ? [] : [variant(name, made)];
  });
}

function distinct(variants: readonly Variant[]): Variant[] {
  return variants.filter(({ value }, at) => !variants.slice(0, at).some((earlier) => earlier.value.equals(value)));
}

/** JSON nested deeper than this is no event. settled does not write it again. */
const DEPTH_MAX = 32;

/** The longest form of a body that a signer may have used: a multiple of its length, and some more for small bodies. */
function longest(length: number): number {
  return length * 4 + 1024;
}

function bodyVariants(body: Buffer): Variant[] {
  const text = body.toString('utf8');
  const all = [variant('', body), ...variantsOf(BODIES, text, body), ...jsonVariants(text)];
  return distinct(all.filter(({ value }) => value.length <= longest(body.length)));
}

function jsonVariants(text: string): Variant[] {
  try {
    const value: unknown = JSON.parse(text);
    const parts = jsonParts(text);
    const layout = layoutOf(parts);
    return layout.depth > DEPTH_MAX ? [] : variantsOf(JSONS, { text, value, parts, layout });
  } catch {
    return [];
  }
}

/** Null if the result would be too long: a few nested brackets can become megabytes. */
function indented({ text, value, layout: { lines, levels } }: Json, width: number): string | null {
  return text.length + lines + levels * width <= longest(text.length) ? JSON.stringify(value, null, width) : null;
}

function timestampVariants(timestamp: string): Variant[] {
  const isDigits = /^[0-9]{10,19}$/.test(timestamp);
  const ms = Number(timestamp.padEnd(13, '0').slice(0, 13));
  return distinct([variant('', timestamp), ...(isDigits ? variantsOf(TIMESTAMPS, ms) : [])]);
}

function secretVariants(secret: string): Variant[] {
  const bare = secret.trim().replace(/^whsec_/, '');
  return distinct([variant('', secret), ...variantsOf(SECRETS, secret, bare)]);
}

function latin1(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}

export const QUOTED = /^(["'])(.*)\1$/s;

/** Null if the text is not hexadecimal. */
export function fromHex(text: string): Buffer | null {
  return /^(?:[0-9A-Fa-f]{2})+$/.test(text) ? Buffer.from(text, 'hex') : null;
}
