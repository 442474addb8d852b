import { jsonParts } from '../json.ts';

/* What the parts of a delivery may have been when they were signed, if they changed since. */

/** One variant of a part: its name, how a person calls it, and how it is made; null if it cannot be. */
type Row<Given extends unknown[]> = readonly [
  name: string,
  words: string,
  make: (...given: Given) => string | Buffer | null,
];

/** `name`: empty for what was given. */
type Variant = { name: string; value: Buffer };

/** How the timestamp and the body may have been put together. */
export const FORMS: readonly (readonly [name: string, words: string, message: readonly string[]])[] = [
  ['', '', ['timestamp', '.', 'body']],
  ['body_alone', 'the body alone, without the timestamp', ['body']],
  ['no_full_stop', 'the timestamp and the body without the full stop between them', ['timestamp', 'body']],
  ['body_first', 'the body before the timestamp instead of after it', ['body', '.', 'timestamp']],
  ['colon_between', 'the timestamp and the body with a colon between them', ['timestamp', ':', 'body']],
  ['line_end_between', 'the timestamp and the body with a line end between them', ['timestamp', '\n', 'body']],
  [
    'v0_form',
    '`v0:`, the timestamp, a colon and the body, as another service signs',
    ['v0:', 'timestamp', ':', 'body'],
  ],
];

/** What is signed in one of the forms. */
export function messageOf(form: readonly string[], timestamp: Buffer, body: Buffer): Buffer[] {
  return form.map((part) => (part === 'timestamp' ? timestamp : part === 'body' ? body : Buffer.from(part)));
}

/** The body as programs on its way, or that signed it, may have had it. */
const BODIES: readonly Row<[text: string, body: Buffer]>[] = [
  ['body_without_final_line_end', 'the body without its final line end', (text) => text.replace(/\r?\n$/, '')],
  ['body_trimmed', 'the body without the white space around it', (text) => text.trim()],
  ['body_with_final_line_end', 'the body with a final line end', (text) => `${text}\n`],
  ['body_with_final_crlf', 'the body with a final CR LF', (text) => `${text}\r\n`],
  ['body_lf_for_crlf', 'the body with LF instead of CR LF', (text) => text.replaceAll('\r\n', '\n')],
  ['body_crlf_for_lf', 'the body with CR LF instead of LF', (text) => text.replace(/\r?\n/g, '\r\n')],
  ['body_without_bom', 'the body without its byte order mark', (text) => text.replace(/^\uFEFF/, '')],
  ['body_with_bom', 'the body with a byte order mark', (text) => `\uFEFF${text}`],
  [
    'body_before_double_encoding',
    'the body before it was decoded as Latin-1 and encoded as UTF-8',
    (text) => Buffer.from(text, 'latin1'),
  ],
  ['body_double_encoded', 'the body decoded as Latin-1 and encoded as UTF-8', (_text, body) => body.toString('latin1')],
  ['body_empty', 'an empty body', () => ''],
];

type Json = { text: string; parts: readonly string[]; value: unknown };

/** The same JSON as programs that parsed it would write it again. */
const JSONS: readonly Row<[json: Json]>[] = [
  ['body_without_white_space', 'the body without the white space in its JSON', ({ parts }) => spaced(parts, ',', ':')],
  ['body_compact_json', 'the body parsed and written again as compact JSON', ({ value }) => JSON.stringify(value)],
  ['body_json_indented_2', 'the body parsed and written again as JSON indented by two', (json) => indented(json, 2)],
  ['body_json_indented_4', 'the body parsed and written again as JSON indented by four', (json) => indented(json, 4)],
  ['body_python_json', 'the body written as Python writes JSON', ({ parts }) => spaced(parts, ', ', ': ')],
  ['body_python_json', 'the body written as Python writes JSON', ({ parts }) => escaped(spaced(parts, ', ', ': '))],
  ['body_ascii_json', 'the body with its other characters than ASCII escaped', ({ text }) => escaped(text)],
];

/** A timestamp in the other usual units and forms. */
const TIMESTAMPS: readonly Row<[ms: number, seconds: number]>[] = [
  ['timestamp_seconds', 'the timestamp in whole seconds', (_ms, seconds) => String(seconds)],
  ['timestamp_milliseconds', 'the timestamp in milliseconds', (ms) => String(ms)],
  [
    'timestamp_cut_to_seconds',
    'the timestamp in milliseconds, cut to whole seconds',
    (_ms, seconds) => `${seconds}000`,
  ],
  ['timestamp_fraction', 'the timestamp in seconds with a fraction', (ms) => String(ms / 1000)],
  ['timestamp_iso', 'the timestamp as an ISO date', (ms) => new Date(ms).toISOString()],
];

/** A secret as it may have been kept, pasted or decoded; `bare` is without spaces around it and its prefix. */
const SECRETS: readonly Row<[secret: string, bare: string]>[] = [
  ['secret_trimmed', 'the secret without the white space around it', (secret) => secret.trim()],
  ['secret_with_line_end', 'the secret with a line end after it', (secret) => `${secret}\n`],
  [
    'secret_unquoted',
    'the secret without its quotation marks',
    (secret) => secret.trim().replace(/^(["'])(.*)\1$/s, '$2'),
  ],
  ['secret_without_whsec', 'the secret without its prefix whsec_', (_secret, bare) => bare],
  ['secret_with_whsec', 'the secret with the prefix whsec_', (secret) => `whsec_${secret}`],
  ['secret_from_base64', 'the secret decoded as base64', (_secret, bare) => Buffer.from(bare, 'base64')],
  [
    'secret_from_hex',
    'the secret decoded as hexadecimal',
    (_secret, bare) => (isHex(bare) ? Buffer.from(bare, 'hex') : null),
  ],
  ['secret_as_base64', 'the secret encoded as base64', (secret) => Buffer.from(secret).toString('base64')],
  ['secret_as_hex', 'the secret encoded as hexadecimal', (secret) => Buffer.from(secret).toString('hex')],
  ['secret_lower_case', 'the secret in lower case', (secret) => secret.toLowerCase()],
  ['secret_upper_case', 'the secret in upper case', (secret) => secret.toUpperCase()],
  ['secret_latin1', 'the secret encoded as Latin-1', (secret) => Buffer.from(secret, 'latin1')],
  ['secret_empty', 'an empty secret', () => ''],
];

const WORDS = new Map([...FORMS, ...BODIES, ...JSONS, ...TIMESTAMPS, ...SECRETS].map(([name, words]) => [name, words]));

/** How a person calls a variant; a stored name that this version does not know stays as it is. */
export function variantWords(name: string): string {
  return WORDS.get(name) ?? name;
}

function variantsOf<Given extends unknown[]>(rows: readonly Row<Given>[], ...given: Given): Variant[] {
  return rows.flatMap(([name, , make]) => {
    const made = make(...given);
    return made === null ? [] : [{ name, value: typeof made === 'string' ? Buffer.from(made) : made }];
  });
}

/** A signer's form of a body is at most this long: a multiple of its length, plus an allowance for small bodies. */
const LONGER_MAX = { times: 4, bytes: 1024 } as const;
/** JSON that is nested deeper is not an event, and is not written again. */
const DEPTH_MAX = 32;

function longest(length: number): number {
  return length * LONGER_MAX.times + LONGER_MAX.bytes;
}

export function bodyVariants(body: Buffer): Variant[] {
  const text = body.toString('utf8');
  const given = { name: '', value: body };
  const all = [given, ...variantsOf(BODIES, text, body), ...jsonVariants(text)];
  return distinct(all.filter(({ value }) => value.length <= longest(body.length)));
}

function jsonVariants(text: string): Variant[] {
  try {
    const value: unknown = JSON.parse(text);
    const parts = jsonParts(text);
    return layoutOf(parts).depth > DEPTH_MAX ? [] : variantsOf(JSONS, { text, parts, value });
  } catch {
    return [];
  }
}

/**
 * How deep JSON is nested; and, written with a line for each value, how many lines it has, and the sum of their levels.
 */
function layoutOf(parts: readonly string[]): { depth: number; lines: number; levels: number } {
  let [depth, level, levels, lines] = [0, 0, 0, 0];
  for (const part of parts) {
    if (!/^[[\]{},]/.test(part)) continue;
    if (part !== ',') level += part === '[' || part === '{' ? 1 : -1;
    depth = Math.max(depth, level);
    levels += level;
    lines++;
  }
  return { depth, lines, levels };
}

/** Null if it would be too long: a few nested brackets can make megabytes. */
function indented({ text, parts, value }: Json, width: number): string | null {
  const { lines, levels } = layoutOf(parts);
  return text.length + lines + levels * width <= longest(text.length) ? JSON.stringify(value, null, width) : null;
}

/** JSON text with other white space, its strings and numbers as they are. */
function spaced(parts: readonly string[], comma: string, colon: string): string {
  return parts.map((part) => (part === ',' ? comma : part === ':' ? colon : part)).join('');
}

function escaped(text: string): string {
  return text.replace(/[\u0080-\uFFFF]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

export function timestampVariants(timestamp: string): Variant[] {
  const given = { name: '', value: Buffer.from(timestamp) };
  if (!/^[0-9]{10,19}$/.test(timestamp)) return [given];
  const ms = Number(timestamp.padEnd(13, '0').slice(0, 13));
  return distinct([given, ...variantsOf(TIMESTAMPS, ms, Math.floor(ms / 1000))]);
}

export function secretVariants(secret: string): Variant[] {
  const bare = secret.trim().replace(/^whsec_/, '');
  return distinct([{ name: '', value: Buffer.from(secret) }, ...variantsOf(SECRETS, secret, bare)]);
}

function isHex(text: string): boolean {
  return /^(?:[0-9A-Fa-f]{2})+$/.test(text);
}

export function distinct(variants: readonly Variant[]): Variant[] {
  return variants.filter(
    ({ value }, index) => !variants.slice(0, index).some((earlier) => earlier.value.equals(value)),
  );
}
