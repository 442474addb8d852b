import { writeFileSync } from 'node:fs';
import type { Shapes } from './gaps.ts';

/** Writes what a first contact saw so that anyone may read it: shapes, and nothing that was in them. */

const REASONS: Readonly<Record<string, string>> = { EEXIST: 'it exists', ENOENT: 'its folder does not exist' };

/** An exchange of the API, or a delivery. `body`: as it was sent. */
export type Seen = { what: string; status?: number; headers?: Record<string, string>; body: string };

/** Writes it for this user alone, into a new file. Returns why it could not; null if it is written. */
export function writeRecording(file: string, { found, seen }: { found: Shapes; seen: readonly Seen[] }): string | null {
  const shown = seen.map((one) => ({
    ...one,
    headers: one.headers && headersOf(one.headers),
    body: redactedIn(one.body),
  }));
  const recording = { settledFirstContact: 1, gaps: found, seen: shown };
  try {
    writeFileSync(file, `${JSON.stringify(recording, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
    return null;
  } catch (error) {
    const { code = String(error) } = error as NodeJS.ErrnoException;
    return REASONS[code] ?? code;
  }
}

const SHOWN_MAX = 2_000;
const ITEMS_MAX = 20;
const DEPTH_MAX = 20;

/** Words of the specification: no value of a customer, and no secret, is one of them. */
const WORDS = new Set([
  ...['ACTIVE', 'INACTIVE', 'EXPIRED', 'NOT_STARTED', 'PENDING', 'COMPLETED', 'DISPUTED', 'REFUNDED'],
  ...['CREDIT_CARD', 'PIX', 'BRL'],
  ...['payment_link.created', 'payment_link.status_changed', 'payment_link.payment_status_changed'],
]);

/** A media type and numbers stay. */
function headersOf(headers: Record<string, string>): Record<string, string> {
  const isPlain = (value: string) =>
    /^(?:\d{1,15}|(?:application|text)\/[a-z+-]{1,20}(?:; ?charset=utf-8)?)$/i.test(value);
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, isPlain(value) ? value : masked(value)]),
  );
}

/** The body as JSON, or as text. */
function redactedIn(body: string): unknown {
  try {
    return redacted(JSON.parse(body));
  } catch {
    return masked(body);
  }
}

function redacted(value: unknown, depth = 0): unknown {
  if (depth > DEPTH_MAX) return null;
  if (typeof value === 'string') return WORDS.has(value) ? value : masked(value);
  if (typeof value === 'number') return Number(String(value).replace(/\d/g, '1'));
  if (Array.isArray(value)) return value.slice(0, ITEMS_MAX).map((one) => redacted(one, depth + 1));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [nameOf(name), redacted(inner, depth + 1)]));
}

/** A field's name, in camelCase or snake_case, unless it is a value: an id, an address, a person, a key. */
function nameOf(name: string): string {
  return name === 'totalBRL' || (name.length <= 40 && /^[a-z]{1,16}(?:(?:[A-Z]|_[a-z])[a-z]{1,15})*$/.test(name))
    ? name
    : masked(name);
}

/** A text of the same length, with each letter and digit replaced by one of its kind. The scheme of an address stays. */
function masked(text: string): string {
  const scheme = /^https?:\/\//i.exec(text)?.[0] ?? '';
  const rest = text.slice(scheme.length, SHOWN_MAX);
  return (
    scheme + rest.replace(/[\p{L}\p{M}\p{N}]/gu, (one) => (/\p{N}/u.test(one) ? '0' : /\p{Lu}/u.test(one) ? 'A' : 'a'))
  );
}
