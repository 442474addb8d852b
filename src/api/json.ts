import type { IncomingMessage } from 'node:http';
import type { RequestHandler } from 'express';
import { sendProblem } from '../http/problem.ts';
import { parseJsonText } from '../json.ts';

const BODY_BYTES_MAX = 65_536;
const NAME_SHOWN_MAX = 128;

/** A number by its own characters, where JavaScript has none that is the same. */
export class InexactNumber {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** The bodies under way, as they came: parsed, they do not show a name that stands twice, nor how a number was written. */
const texts = new WeakMap<IncomingMessage, string>();

/**
 * Reads the body as it is written: a number that JavaScript would not hold as it is written becomes an `InexactNumber`. Two
 * fields of one name are refused: which of them was meant is not ours to guess.
 */
export const readAsWritten: RequestHandler = (request, response, next) => {
  const text = texts.get(request);
  if (text === undefined || text === '') return next();
  const name = repeatedName(text);
  if (name === null) {
    try {
      request.body = parseJsonText(text, exactNumber);
      return next();
    } catch (cause) {
      // Nested deeper than a reviver can follow.
      return next(Object.assign(new Error('the body is nested too deep', { cause }), { status: 400 }));
    }
  }
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

function exactNumber(characters: string): number | InexactNumber {
  const number = Number(characters);
  return isSameNumber(characters, String(number)) ? number : new InexactNumber(characters);
}

/** Whether two decimals in JSON's grammar are the same number: `33.330` and `33.33`, `1e2` and `100`. */
function isSameNumber(one: string, other: string): boolean {
  return one === other || normalised(one) === normalised(other);
}

const DECIMAL = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;

/** The digits that count, and the power of ten of the last of them. */
function normalised(text: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = DECIMAL.exec(text) ?? ['', text];
  const digits = (whole + fraction).replace(/^0+/, '');
  const kept = digits.replace(/0+$/, '');
  if (kept === '') return '0';
  return `${sign}${kept}e${Number(exponent) - fraction.length + digits.length - kept.length}`;
}

/** Texts, with the colon that makes one a name, and the beginnings and ends of objects and lists. */
const PARTS = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|[{}[\]]/g;

/** A name that stands twice in one object of a JSON text; null where there is none. */
function repeatedName(text: string): string | null {
  const open: Set<string>[] = [];
  for (const [part, colon] of text.matchAll(PARTS)) {
    if (part === '{' || part === '[') open.push(new Set());
    else if (part === '}' || part === ']') open.pop();
    else if (colon !== undefined) {
      const name = JSON.parse(part.slice(0, -colon.length)) as string;
      const names = open.at(-1);
      if (names?.has(name)) return name.slice(0, NAME_SHOWN_MAX);
      names?.add(name);
    }
  }
  return null;
}
