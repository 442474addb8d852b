import { createHmac } from 'node:crypto';

/**
 * The usual mistakes in signing and in keeping what was signed. Each is a different reading of the body, the timestamp
 * or the secret, or another way to put them together; one or two of them at once are tried against the signature.
 */

export type Mistake = {
  verdict: 'altered_body' | 'altered_timestamp' | 'wrong_secret' | 'signed_otherwise';
  /** Completes "the signature matches …"; empty where it matches everything as it was given. */
  words: string;
};

export type Signed = { body: Buffer; timestamp: string; secret: string };

type Reading<T> = { words: string; value: T };
type Form = (timestamp: string, body: Buffer) => (string | Buffer)[];

const MISTAKES_AT_ONCE = 2;
/** Above it, bodies are not searched for a changed character: the search grows with the square of the length. */
const SEARCHED_BYTES_MAX = 1024;
const ALGORITHM_BY_BYTES: Readonly<Record<number, string>> = {
  16: 'md5',
  20: 'sha1',
  32: 'sha256',
  48: 'sha384',
  64: 'sha512',
};

/** The fewest mistakes that explain a signature; null where none of the usual ones do. */
export function findMistake(signed: Signed, signatures: readonly Buffer[]): Mistake | null {
  const matches = matcher(signatures);
  const bodies = bodyReadings(signed.body);
  const timestamps = timestampReadings(signed.timestamp);
  const secrets = secretReadings(signed.secret);
  for (let most = 0; most <= MISTAKES_AT_ONCE; most++) {
    for (const form of FORMS) {
      for (const secret of secrets) {
        for (const timestamp of timestamps) {
          for (const body of bodies) {
            const made = [body, secret, timestamp, form].filter(({ words }) => words !== '');
            if (made.length !== most) continue;
            const algorithm = matches(secret.value, form.value(timestamp.value, body.value));
            if (algorithm === null) continue;
            return mistake({ body, secret, timestamp, form }, algorithm);
          }
        }
      }
    }
  }
  return findChangedCharacter(signed, matches);
}

function mistake(
  readings: Record<'body' | 'secret' | 'timestamp' | 'form', Reading<unknown>>,
  algorithm: string,
): Mistake {
  const { body, secret, timestamp, form } = readings;
  const otherAlgorithm =
    algorithm === 'sha256' ? '' : `HMAC with ${algorithm.toUpperCase()} instead of SHA256`;
  const words = [body, secret, timestamp, form].map((reading) => reading.words).concat(otherAlgorithm);
  const verdict =
    body.words !== ''
      ? 'altered_body'
      : secret.words !== ''
        ? 'wrong_secret'
        : timestamp.words !== ''
          ? 'altered_timestamp'
          : 'signed_otherwise';
  return { verdict, words: words.filter((part) => part !== '').join(' and ') };
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
      if (signatures.some((signature) => signature.equals(mac))) return algorithm;
    }
    return null;
  };
}

const FORMS: readonly Reading<Form>[] = [
  { words: '', value: (timestamp, body) => [timestamp, '.', body] },
  { words: 'the body alone, without the timestamp', value: (_timestamp, body) => [body] },
  {
    words: 'the timestamp and the body without the full stop between them',
    value: (timestamp, body) => [timestamp, body],
  },
  {
    words: 'the body before the timestamp instead of after it',
    value: (timestamp, body) => [body, '.', timestamp],
  },
  {
    words: 'the timestamp and the body with a colon between them',
    value: (timestamp, body) => [timestamp, ':', body],
  },
  {
    words: 'the timestamp and the body with a line end between them',
    value: (timestamp, body) => [timestamp, '\n', body],
  },
  {
    words: '`v0:`, the timestamp, a colon and the body, as another service signs',
    value: (timestamp, body) => ['v0:', timestamp, ':', body],
  },
];

function bodyReadings(body: Buffer): Reading<Buffer>[] {
  const text = body.toString('utf8');
  const readings: [string, string | Buffer | null][] = [
    ['', body],
    ['the body without its final line end', text.replace(/\r?\n$/, '')],
    ['the body without the white space around it', text.trim()],
    ['the body with a final line end', `${text}\n`],
    ['the body with a final CR LF', `${text}\r\n`],
    ['the body with LF instead of CR LF', text.replaceAll('\r\n', '\n')],
    ['the body with CR LF instead of LF', text.replace(/\r?\n/g, '\r\n')],
    ['the body without its byte order mark', text.replace(/^\uFEFF/, '')],
    ['the body with a byte order mark', `\uFEFF${text}`],
    ['the body before it was decoded as Latin-1 and encoded as UTF-8', Buffer.from(text, 'latin1')],
    ['the body decoded as Latin-1 and encoded as UTF-8', body.toString('latin1')],
    ['an empty body', ''],
    ...jsonReadings(text),
  ];
  return distinct(
    readings.flatMap(([words, value]) =>
      value === null ? [] : [{ words, value: typeof value === 'string' ? Buffer.from(value) : value }],
    ),
  );
}

/** The same JSON as programs that parsed it would write it again. */
function jsonReadings(text: string): [string, string][] {
  let value: unknown;
  try {
    value = JSON.parse(text);
    return [
      ['the body without the white space in its JSON', withWhiteSpace(text, ',', ':')],
      ['the body parsed and written again as compact JSON', JSON.stringify(value)],
      ['the body parsed and written again as JSON indented by two', JSON.stringify(value, null, 2)],
      ['the body parsed and written again as JSON indented by four', JSON.stringify(value, null, 4)],
      ['the body written as Python writes JSON', withWhiteSpace(text, ', ', ': ')],
      ['the body written as Python writes JSON', escaped(withWhiteSpace(text, ', ', ': '))],
      ['the body with its other characters than ASCII escaped', escaped(text)],
    ];
  } catch {
    // Not JSON, or nested so deep that it cannot be written again.
    return [];
  }
}

/** JSON text with other white space, its strings and numbers as they are. */
function withWhiteSpace(text: string, comma: string, colon: string): string {
  return text.replace(/"(?:[^"\\]|\\.)*"|\s+|[,:]/gs, (token) => {
    if (token === ',') return comma;
    if (token === ':') return colon;
    return token.startsWith('"') ? token : '';
  });
}

function escaped(text: string): string {
  return text.replace(/[\u0080-\uFFFF]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function timestampReadings(timestamp: string): Reading<string>[] {
  const readings = [{ words: '', value: timestamp }];
  if (!/^[0-9]{10,19}$/.test(timestamp)) return readings;
  const ms = Number(timestamp.padEnd(13, '0').slice(0, 13));
  const seconds = Math.floor(ms / 1000);
  const others = [
    { words: 'the timestamp in whole seconds', value: String(seconds) },
    { words: 'the timestamp in milliseconds', value: String(ms) },
    { words: 'the timestamp in milliseconds, cut to whole seconds', value: `${seconds}000` },
    { words: 'the timestamp in seconds with a fraction', value: String(ms / 1000) },
    { words: 'the timestamp as an ISO date', value: new Date(ms).toISOString() },
  ];
  return [...readings, ...others.filter(({ value }) => value !== timestamp)];
}

function secretReadings(secret: string): Reading<Buffer>[] {
  const bare = secret.trim().replace(/^whsec_/, '');
  const readings: [string, string | Buffer][] = [
    ['', secret],
    ['the secret without the white space around it', secret.trim()],
    ['the secret with a line end after it', `${secret}\n`],
    ['the secret without its quotation marks', secret.trim().replace(/^(["'])(.*)\1$/s, '$2')],
    ['the secret without its prefix whsec_', bare],
    ['the secret with the prefix whsec_', `whsec_${secret}`],
    ['the secret decoded as base64', Buffer.from(bare, 'base64')],
    ...(/^(?:[0-9A-Fa-f]{2})+$/.test(bare)
      ? [['the secret decoded as hexadecimal', Buffer.from(bare, 'hex')] as [string, Buffer]]
      : []),
    ['the secret encoded as base64', Buffer.from(secret).toString('base64')],
    ['the secret encoded as hexadecimal', Buffer.from(secret).toString('hex')],
    ['the secret in lower case', secret.toLowerCase()],
    ['the secret in upper case', secret.toUpperCase()],
    ['the secret encoded as Latin-1', Buffer.from(secret, 'latin1')],
    ['an empty secret', ''],
  ];
  return distinct(
    readings.map(([words, value]) => ({
      words,
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
function findChangedCharacter({ body, timestamp, secret }: Signed, matches: Matcher): Mistake | null {
  const key = Buffer.from(secret);
  const text = body.toString('latin1');
  for (const { words, value } of changes(timestamp, DIGITS)) {
    if (matches(key, [value, '.', body]) === null) continue;
    return { verdict: 'altered_timestamp', words: `the timestamp ${words}` };
  }
  if (body.length > SEARCHED_BYTES_MAX) return null;
  for (const { words, value } of changes(text, PRINTABLE)) {
    if (matches(key, [timestamp, '.', Buffer.from(value, 'latin1')]) === null) continue;
    return { verdict: 'altered_body', words: `the body ${words}` };
  }
  return null;
}

function* changes(text: string, alphabet: string): Generator<Reading<string>> {
  for (let at = 0; at <= text.length; at++) {
    const [before, after] = [text.slice(0, at), text.slice(at + 1)];
    const here = text[at];
    const place = `at byte ${at}`;
    if (here !== undefined) yield { words: `without "${here}" ${place}`, value: before + after };
    for (const other of alphabet) {
      if (here !== undefined) {
        yield { words: `with "${other}" instead of "${here}" ${place}`, value: before + other + after };
      }
      yield { words: `with "${other}" added ${place}`, value: before + other + text.slice(at) };
    }
  }
}
