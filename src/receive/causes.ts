import { createHmac } from 'node:crypto';
import { jsonOf, jsonParts, parseBody } from '../json.ts';
import { QUOTED } from './malformed.ts';
import { matchesAny, readTimestamp } from './verify.ts';

/** `secrets`: a signature by any of them is right. */
export type Signed = { body: Buffer; timestamp: string; secrets: readonly string[] };

type Verdict = 'altered_body' | 'altered_timestamp' | 'wrong_secret' | 'signed_otherwise';

/**
 * A usual mistake, as the store keeps it. `readings`: the name of its cause; empty if only the signature's form is
 * wrong. Release 0.2.0, which may run beside, also found two causes at once, another hash and a changed character.
 */
export type Mistake = { verdict: Verdict; readings: string[]; algorithm: string | null; change: object | null };

/**
 * `value`, `json`: the body's JSON and its parts; undefined and the whole text if it is none. `date`: the timestamp's.
 * `bare`: the secret without its prefix and the white space around it.
 */
type Given = Texts & { value: unknown; json: readonly string[]; date: Date | null };
type Texts = Record<'text' | 'timestamp' | 'secret' | 'bare', string>;

/** What a code is computed from. `before`: what stands before the body. */
type Part = 'body' | 'before' | 'secret';

/** A name, the words that a person reads, and what the signer may have had as the part; null if that cannot be. */
type Row = readonly [name: string, words: string, make: (given: Given) => string | Buffer | null | undefined];

function causes(verdict: Verdict, part: Part, rows: readonly Row[]) {
  return rows.map(([name, words, make]) => ({ verdict, part, name, words, make }));
}

const BODIES = causes('altered_body', 'body', [
  ['body_without_final_line_end', 'the body without its final line end', ({ text }) => text.replace(/\r?\n$/, '')],
  ['body_with_final_line_end', 'the body with a final line end', ({ text }) => `${text}\n`],
  ['body_lf_for_crlf', 'the body with LF instead of CR LF', ({ text }) => text.replaceAll('\r\n', '\n')],
  ['body_crlf_for_lf', 'the body with CR LF instead of LF', ({ text }) => text.replace(/\r?\n/g, '\r\n')],
  ['body_without_bom', 'the body without its byte order mark', ({ text }) => text.replace(/^\uFEFF/, '')],
  [
    'body_before_double_encoding',
    'the body before it was decoded as Latin-1 and encoded as UTF-8',
    ({ text }) => Buffer.from(text, 'latin1'),
  ],
  ['body_without_white_space', 'the body without the white space in its JSON', ({ json }) => jsonOf(json, ',', ':')],
  ['body_compact_json', 'the body parsed and written again as compact JSON', ({ value }) => JSON.stringify(value)],
  ['body_python_json', 'the body written as Python writes JSON', ({ json }) => jsonOf(json, ', ', ': ')],
]);

const TIMESTAMPS = causes('altered_timestamp', 'before', [
  [
    'timestamp_seconds',
    'the timestamp in whole seconds',
    ({ date, timestamp }) => date && `${timestamp.slice(0, 10)}.`,
  ],
  ['timestamp_iso', 'the timestamp as an ISO date', ({ date }) => date && `${date.toISOString()}.`],
]);

const SECRETS = causes('wrong_secret', 'secret', [
  ['secret_trimmed', 'the secret without the white space around it', ({ secret }) => secret.trim()],
  ['secret_with_line_end', 'the secret with a line end after it', ({ secret }) => `${secret}\n`],
  ['secret_unquoted', 'the secret without its quotation marks', ({ secret }) => secret.trim().replace(QUOTED, '$2')],
  ['secret_without_whsec', 'the secret without its prefix whsec_', ({ bare }) => bare],
  ['secret_from_base64', 'the secret decoded as base64', ({ bare }) => Buffer.from(bare, 'base64')],
]);

const FORMS = causes('signed_otherwise', 'before', [
  ['body_alone', 'the body alone, without the timestamp', () => ''],
  ['no_full_stop', 'the timestamp and the body without the full stop between them', ({ timestamp }) => timestamp],
]);

/** In the order in which settled tries them. */
const CAUSES = [...BODIES, ...TIMESTAMPS, ...SECRETS, ...FORMS];

/** settled tries no causes with a larger body: its sender chooses the size, and a search takes a server's time. */
const BODY_BYTES_MAX = 16 * 1024;

/** Finds the mistake that explains a signature; null if none of those above does. */
export function findMistake({ body, timestamp, secrets }: Signed, signatures: readonly Buffer[]): Mistake | null {
  const found = { algorithm: null, change: null };
  const isSigned = (parts: Record<Part, string | Buffer>) =>
    matchesAny(createHmac('sha256', parts.secret).update(parts.before).update(parts.body).digest(), signatures);
  const given = secrets.map((secret) => ({ secret, before: `${timestamp}.`, body }));
  if (given.some(isSigned)) return { ...found, verdict: 'signed_otherwise', readings: [] };
  if (body.length > BODY_BYTES_MAX) return null;
  const text = body.toString('utf8');
  const value = parseBody(body);
  const json = value === undefined ? [text] : jsonParts(text);
  const ms = readTimestamp(timestamp);
  const known = { text, value, json, timestamp, date: ms === null ? null : new Date(ms) };
  const cause = CAUSES.find(({ part, make }) =>
    given.some((one) => {
      const made = make({ ...known, secret: one.secret, bare: one.secret.trim().replace(/^whsec_/, '') });
      return made !== null && made !== undefined && isSigned({ ...one, [part]: made });
    }),
  );
  return cause === undefined ? null : { ...found, verdict: cause.verdict, readings: [cause.name] };
}

/** Completes "the signature matches …". Empty if the signature matches everything as it was given. */
export function matched({ readings, algorithm, change }: Mistake): string {
  const words = readings.flatMap((reading) => CAUSES.find(({ name }) => name === reading)?.words ?? []);
  // What only 0.2.0 looked for. The advice says which part it is.
  const isUnknown = words.length < readings.length || algorithm !== null || change !== null;
  return isUnknown ? 'another form of what was signed, which this version does not look for' : words.join(' and ');
}
