import type { IncomingMessage } from 'node:http';
import express, { type RequestHandler } from 'express';
import type { z } from 'zod';
import { hasBearer } from '../access/browser.ts';
import { numberOrExact, parseJsonText, repeatedName } from '../json.ts';
import { problem } from './problem.ts';

const BODY_BYTES_MAX = 65_536;
const NAME_SHOWN_MAX = 128;
const FORM = 'application/x-www-form-urlencoded';

/** Bodies under way, as they came: once parsed, they show neither a repeated name nor how a number was written. */
const texts = new WeakMap<IncomingMessage, string>();

/** How the body parser takes a body. `readAsWritten` says what becomes of the text. */
const TEXT_BODY = {
  limit: BODY_BYTES_MAX,
  inflate: false,
  verify: (request: IncomingMessage, _response: unknown, body: Buffer, encoding: string) => {
    if (encoding !== 'utf-8') throw Object.assign(new Error(`the body is in ${encoding}`), { status: 415 });
    // As the body parser decodes it: without a byte order mark.
    texts.set(request, new TextDecoder().decode(body));
  },
};

/** Refuses a body that is not declared as JSON or as a form: the body parser would treat it as a missing body. */
const requireKnownType: RequestHandler = (request, _response, next) => {
  const hasBody = request.headers['content-length'] !== '0' && request.is('*/*') !== null;
  if (!hasBody || request.is('application/json') || isForm(request)) return next();
  next(problem(415, 'content_type', 'Send the body as JSON, with Content-Type: application/json.'));
};

/** Whether a page of the console sent the request, from a form. A program with a token sends JSON. */
export function isForm({ headers }: IncomingMessage): boolean {
  return !hasBearer(headers) && headers['content-type']?.split(';')[0]?.trim().toLowerCase() === FORM;
}

/**
 * Reads the body as it is written: a number that JavaScript would not hold as written becomes an `ExactNumber`. A name
 * that occurs twice in one object is refused, because settled cannot know which of the two was meant.
 */
const readAsWritten: RequestHandler = (request, _response, next) => {
  const text = texts.get(request);
  if (isForm(request)) return next();
  if (text === undefined || text === '') return next();
  const path = repeatedName(text)?.slice(0, NAME_SHOWN_MAX);
  if (path !== undefined) return next(repeated(path));
  try {
    request.body = parseJsonText(text, numberOrExact);
    next();
  } catch (cause) {
    // Nested deeper than a reviver can follow.
    next(Object.assign(new Error('the body is nested too deep', { cause }), { status: 400 }));
  }
};

function repeated(path: string) {
  const detail = 'occurs more than once in the same object';
  return problem(400, 'invalid_request', `${path}: ${detail}`, { errors: [{ path, detail }] });
}

/** What the routes of the API read a body with. */
export const readBody: readonly RequestHandler[] = [
  requireKnownType,
  express.json({ ...TEXT_BODY, type: 'application/json' }),
  express.text({ ...TEXT_BODY, type: FORM }),
  readAsWritten,
];

/** Fields of a form that are for the console, not for the operation. */
const OF_CONSOLE: ReadonlySet<string> = new Set(['back']);

/** The fields of a form as they were typed. */
export function typedFields(request: IncomingMessage): URLSearchParams {
  return new URLSearchParams(texts.get(request) ?? '');
}

/** Far more than any form of the console has. */
const FIELDS_MAX = 100;

/**
 * The body of an operation as a form has it: a field that was left empty is missing, `true` and `false` are booleans if
 * the text is not allowed, and a name with a dot is a field within another.
 */
export function formBody(request: IncomingMessage, schema: z.ZodObject): object {
  const body: Record<string, unknown> = Object.create(null);
  const seen = new Set<string>();
  for (const [name, value] of typedFields(request)) {
    if (OF_CONSOLE.has(name)) continue;
    if (seen.has(name)) throw repeated(name.slice(0, NAME_SHOWN_MAX));
    if (seen.size >= FIELDS_MAX) throw problem(400, 'invalid_request', `The form has more than ${FIELDS_MAX} fields.`);
    seen.add(name);
    if (value === '') continue;
    const [outer = '', inner] = name.split('.', 2);
    if (inner === undefined) body[outer] = fitting(schema, outer, value);
    else Object.assign(withinOf(body, outer), { [inner]: value });
  }
  return { ...body };
}

/** The object in which the fields of a name with a dot are kept. */
function withinOf(body: Record<string, unknown>, name: string): object {
  const known = body[name];
  if (typeof known === 'object' && known !== null) return known;
  const made: object = Object.create(null);
  body[name] = made;
  return made;
}

function fitting({ shape }: z.ZodObject, name: string, text: string): unknown {
  const schema = Object.hasOwn(shape, name) ? (shape[name] as z.ZodType) : null;
  const takes = (value: unknown) => schema?.safeParse(value).success === true;
  const flag = text === 'true' ? true : text === 'false' ? false : null;
  return flag !== null && !takes(text) && takes(flag) ? flag : text;
}
