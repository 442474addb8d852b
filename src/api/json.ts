import type { IncomingMessage } from 'node:http';
import type { RequestHandler } from 'express';
import { sendProblem } from '../http/problem.ts';
import { numberOrExact, parseJsonText, repeatedName } from '../json.ts';

const BODY_BYTES_MAX = 65_536;
const NAME_SHOWN_MAX = 128;

/** The bodies under way, as they came: parsed, they do not show a name that stands twice, nor how a number was written. */
const texts = new WeakMap<IncomingMessage, string>();

/**
 * Reads the body as it is written: a number that JavaScript would not hold as it is written becomes an `ExactNumber`. Two
 * fields of one name are refused: settled does not guess which of them was meant.
 */
export const readAsWritten: RequestHandler = (request, response, next) => {
  const text = texts.get(request);
  if (text === undefined || text === '') return next();
  const repeated = repeatedName(text);
  if (repeated === null) {
    try {
      request.body = parseJsonText(text, numberOrExact);
      return next();
    } catch (cause) {
      // Nested deeper than a reviver can follow.
      return next(Object.assign(new Error('the body is nested too deep', { cause }), { status: 400 }));
    }
  }
  const name = repeated.slice(0, NAME_SHOWN_MAX);
  const detail = 'stands more than once in the same object';
  const errors = [{ path: name, detail }];
  sendProblem(response, { status: 400, code: 'invalid_request', detail: `${name}: ${detail}`, errors });
};

/** How the body parser takes a body. What it makes of the text is `readAsWritten`'s to say. */
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
