import { createHmac, timingSafeEqual } from 'node:crypto';

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

type Reading<T> = { name: string; value: T };
type Form = (timestamp: string, body: Buffer) => (string | Buffer)[];

const MISTAKES_AT_ONCE = 2;
/** Above it, bodies are not searched for a changed character: the search grows with the square of the length. */
const SEARCHED_BYTES_MAX = 1024;
/** With little effort: above the first, two mistakes at once are not tried; above the second, the body is not read again. */
const LITTLE = { pairsBytesMax: 8 * 1024, rereadBytesMax: 64 * 1024 } as const;
const ALGORITHM_BY_BYTES: Readonly<Record<number, string>> = {
  16: 'md5',
  20: 'sha1',
  32: 'sha256',
  48: 'sha384',
  64: 'sha512',
};

/** The fewest mistakes that explain a signature; null if none of the usual ones do. */
export function findMistake(
  signed: Signed,
  signatures: readonly Buffer[],
  effort: Effort = 'all',
): Mistake | null {
  const { length } = signed.body;
  const matches = matcher(signatures);
  const isReread = effort === 'all' || length <= LITTLE.rereadBytesMax;
  const bodies = isReread ? bodyReadings(signed.body) : [{ name: '', value: signed.body }];
  const timestamps = timestampReadings(signed.timestamp);
  const secrets = distinct(signed.secrets.flatMap(secretReadings));
  const atOnce = effort === 'all' || length <= LITTLE.pairsBytesMax ? MISTAKES_AT_ONCE : 1;
  for (let most = 0; most <= atOnce; most++) {
    for (const form of FORMS) {
      for (const secret of secrets) {
        for (const timestamp of timestamps) {
          for (const body of bodies) {
            const made = [body, secret, timestamp, form].filter(({ name }) => name !== '');
            if (made.length !== most) continue;
            const algorithm = matches(secret.value, form.value(timestamp.value, body.value));
            if (algorithm === null) continue;
            return mistake({ body, secret, timestamp, form }, algorithm);
          }
        }
      }
    }
  }
  if (effort === 'little' && length > LITTLE.pairsBytesMax) return null;
  return findChangedCharacter(signed, matches, effort);
}

function mistake(
  read: Record<'body' | 'secret' | 'timestamp' | 'form', Reading<unknown>>,
  algorithm: string,
): Mistake {
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

type Matcher = (key: Buffer, message: readonly (string | Buffer)[]) => string | null;

/** Finds the algorithm under which a message gives one of the signatures. */
function matcher(signatures: readonly Buffer[]): Matcher {
  const algorithms = new Set(signatures.flatMap(({ length }) => ALGORITHM_BY_BYTES[length] ?? []));
  return (key, message) => {
    for (const algorithm of algorithms) {
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
  {
    name: 'no_full_stop',
    value: (timestamp, body) => [timestamp, body],
  },
  {
    name: 'body_first',
    value: (timestamp, body) => [body, '.', timestamp],
  },
  {
    name: 'colon_between',
    value: (timestamp, body) => [timestamp, ':', body],
  },
  {
    name: 'line_end_between',
    value: (timestamp, body) => [timestamp, '\n', body],
  },
  {
    name: 'v0_form',
    value: (timestamp, body) => ['v0:', timestamp, ':', body],
  },
];

function bodyReadings(body: Buffer): Reading<Buffer>[] {
  const text = body.toString('utf8');
  const readings: [string, string | Buffer | null][] = [
    ['', body],
    ['body_without_final_line_end', text.replace(/\r?\n$/, '')],
    ['body_trimmed', text.trim()],
    ['body_with_final_line_end', `${text}\n`],
    ['body_with_final_crlf', `${text}\r\n`],
    ['body_lf_for_crlf', text.replaceAll('\r\n', '\n')],
    ['body_crlf_for_lf', text.replace(/\r?\n/g, '\r\n')],
    ['body_without_bom', text.replace(/^\uFEFF/, '')],
    ['body_with_bom', `\uFEFF${text}`],
    ['body_before_double_encoding', Buffer.from(text, 'latin1')],
    ['body_double_encoded', body.toString('latin1')],
    ['body_empty', ''],
    ...jsonReadings(text),
  ];
  return distinct(
    readings.flatMap(([name, value]) =>
      value === null ? [] : [{ name, value: typeof value === 'string' ? Buffer.from(value) : value }],
    ),
  );
}

/** The same JSON as programs that parsed it would write it again. */
function jsonReadings(text: string): [string, string][] {
  let value: unknown;
  try {
    value = JSON.parse(text);
    return [
      ['body_without_white_space', withWhiteSpace(text, ',', ':')],
      ['body_compact_json', JSON.stringify(value)],
      ['body_json_indented_2', JSON.stringify(value, null, 2)],
      ['body_json_indented_4', JSON.stringify(value, null, 4)],
      ['body_python_json', withWhiteSpace(text, ', ', ': ')],
      ['body_python_json', escaped(withWhiteSpace(text, ', ', ': '))],
      ['body_ascii_json', escaped(text)],
    ];
  } catch {
    // Not JSON, or nested so deep that it cannot be written again.
    return [];
  }
}

/** JSON text with other white space, its strings and numbers as they are. */
function withWhiteSpace(text: string, comma: string, colon: string): string {
  return text.replace(/"(?:[^"\\]|\\.)*"|\s+|[,:]/gs, (piece) => {
    if (piece === ',') return comma;
    if (piece === ':') return colon;
    return piece.startsWith('"') ? piece : '';
  });
}

function escaped(text: string): string {
  return text.replace(/[\u0080-\uFFFF]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function timestampReadings(timestamp: string): Reading<string>[] {
  const readings = [{ name: '', value: timestamp }];
  if (!/^[0-9]{10,19}$/.test(timestamp)) return readings;
  const ms = Number(timestamp.padEnd(13, '0').slice(0, 13));
  const seconds = Math.floor(ms / 1000);
  const others = [
    { name: 'timestamp_seconds', value: String(seconds) },
    { name: 'timestamp_milliseconds', value: String(ms) },
    { name: 'timestamp_cut_to_seconds', value: `${seconds}000` },
    { name: 'timestamp_fraction', value: String(ms / 1000) },
    { name: 'timestamp_iso', value: new Date(ms).toISOString() },
  ];
  return [...readings, ...others.filter(({ value }) => value !== timestamp)];
}

function secretReadings(secret: string): Reading<Buffer>[] {
  const bare = secret.trim().replace(/^whsec_/, '');
  const readings: [string, string | Buffer][] = [
    ['', secret],
    ['secret_trimmed', secret.trim()],
    ['secret_with_line_end', `${secret}\n`],
    ['secret_unquoted', secret.trim().replace(/^(["'])(.*)\1$/s, '$2')],
    ['secret_without_whsec', bare],
    ['secret_with_whsec', `whsec_${secret}`],
    ['secret_from_base64', Buffer.from(bare, 'base64')],
    ...(/^(?:[0-9A-Fa-f]{2})+$/.test(bare)
      ? [['secret_from_hex', Buffer.from(bare, 'hex')] as [string, Buffer]]
      : []),
    ['secret_as_base64', Buffer.from(secret).toString('base64')],
    ['secret_as_hex', Buffer.from(secret).toString('hex')],
    ['secret_lower_case', secret.toLowerCase()],
    ['secret_upper_case', secret.toUpperCase()],
    ['secret_latin1', Buffer.from(secret, 'latin1')],
    ['secret_empty', ''],
  ];
  return distinct(
    readings.map(([name, value]) => ({
      name,
      value: typeof value === 'string' ? Buffer.from(value) : value,
    })),
  );
}

function distinct(readings: readonly Reading<Buffer>[]): Reading<Buffer>[] {
  return readings.filter(
    ({ value }, index) => !readings.slice(0, index).some((earlier) => earlier.value.equals(value)),
  );
}

const DIGITS = '0123456789';
const PRINTABLE = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).join('');

/** One character changed, added or lost on the way, in the timestamp or in a body that is not too long. */
function findChangedCharacter(
  { body, timestamp, secrets }: Signed,
  matches: Matcher,
  effort: Effort,
): Mistake | null {
  const keys = secrets.map((secret) => Buffer.from(secret));
  const isSigned = (message: (string | Buffer)[]) => keys.some((key) => matches(key, message) !== null);
  for (const { change, text } of changes(timestamp, DIGITS)) {
    if (!isSigned([text, '.', body])) continue;
    return changed('altered_timestamp', { of: 'timestamp', ...change });
  }
  if (effort === 'little' || body.length > SEARCHED_BYTES_MAX) return null;
  for (const { change, text } of changes(body.toString('latin1'), PRINTABLE)) {
    if (!isSigned([timestamp, '.', Buffer.from(text, 'latin1')])) continue;
    return changed('altered_body', { of: 'body', ...change });
  }
  return null;
}

function changed(verdict: Mistake['verdict'], change: Change): Mistake {
  return { verdict, readings: [], algorithm: null, change };
}

type Changed = { change: Omit<Change, 'of'>; text: string };

function* changes(text: string, alphabet: string): Generator<Changed> {
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
