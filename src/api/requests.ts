import type { IncomingMessage } from 'node:http';
import type { RequestHandler } from 'express';
import { z } from 'zod';
import { numberOrExact, parseJsonText, repeatedName } from '../json.ts';
import { givenReference, IS_NEEDED } from './fields.ts';
import { problem } from './problem.ts';

const BODY_BYTES_MAX = 65_536;
const NAME_SHOWN_MAX = 128;

export const nothing = z.strictObject({});
export const orderPath = z.object({ reference: givenReference });

/** Reads a part of a request by its schema. Throws a 400 that names every fault. */
export function read<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value ?? {}, { error: plainWords });
  if (parsed.success) return parsed.data;
  const errors = parsed.error.issues.flatMap(faultsOf);
  const detail = errors.map((error) => (error.path ? `${error.path}: ${error.detail}` : error.detail)).join('; ');
  throw problem(400, 'invalid_request', detail, { errors });
}

const MUST_BE: Readonly<Record<string, string>> = {
  string: 'must be text',
  number: 'must be a number',
  boolean: 'must be true or false',
  object: 'must be a JSON object',
};

/** The words for faults that the schemas themselves have no words for. */
function plainWords(issue: z.core.$ZodRawIssue): string {
  if (issue.input === undefined) return IS_NEEDED;
  if (issue.code === 'invalid_type') return MUST_BE[issue.expected] ?? 'is of another type than it must be';
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`;
  return 'cannot be used';
}

/** A fault by its place; of unknown fields one for each. */
function faultsOf(issue: z.core.$ZodIssue): { path: string; detail: string }[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...issue.path, key].join('.'), detail: 'there is no such field' }));
  }
  return [{ path: issue.path.join('.'), detail: issue.message }];
}

/** Refuses a body that is not declared as JSON: the body parser would treat it as a missing body. */
export const requireJson: RequestHandler = (request, _response, next) => {
  const hasBody = request.headers['content-length'] !== '0' && request.is('*/*') !== null;
  if (!hasBody || request.is('application/json')) return next();
  next(problem(415, 'content_type', 'Send the body as JSON, with Content-Type: application/json.'));
};

/** Bodies under way, as they came: once parsed, they show neither a repeated name nor how a number was written. */
const texts = new WeakMap<IncomingMessage, string>();

/** How the body parser takes a body. `readAsWritten` says what becomes of the text. */
export const JSON_BODY = {
  limit: BODY_BYTES_MAX,
  type: 'application/json',
  inflate: false,
  verify: (request: IncomingMessage, _response: unknown, body: Buffer, encoding: string) => {
    if (encoding !== 'utf-8') throw Object.assign(new Error(`the body is in ${encoding}`), { status: 415 });
    // As the body parser decodes it: without a byte order mark.
    texts.set(request, new TextDecoder().decode(body));
  },
};

/**
 * Reads the body as it is written: a number that JavaScript would not hold as written becomes an `ExactNumber`. A name
 * that occurs twice in one object is refused, because settled cannot know which of the two was meant.
 */
export const readAsWritten: RequestHandler = (request, _response, next) => {
  const text = texts.get(request);
  if (text === undefined || text === '') return next();
  const path = repeatedName(text)?.slice(0, NAME_SHOWN_MAX);
  if (path !== undefined) {
    const detail = 'occurs more than once in the same object';
    return next(problem(400, 'invalid_request', `${path}: ${detail}`, { errors: [{ path, detail }] }));
  }
  try {
    request.body = parseJsonText(text, numberOrExact);
    next();
  } catch (cause) {
    // Nested deeper than a reviver can follow.
    next(Object.assign(new Error('the body is nested too deep', { cause }), { status: 400 }));
  }
};
