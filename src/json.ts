/** Deeper nesting is refused before parsing, because a reviver recurses as deep. */
const DEPTH_MAX = 32;

/** A number in JSON by its own characters, so that amounts lose nothing. */
export class ExactNumber {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Parses bytes as JSON. Undefined if they are not UTF-8, not JSON, nested more than 32 deep, or of more values than
 * `valuesMax`.
 */
export function parseBody(body: Uint8Array, valuesMax = Number.POSITIVE_INFINITY): unknown {
  return parseText(decode(body), { exact: false, valuesMax });
}

/**
 * As `parseBody`, but keeps the characters of every number: as an `ExactNumber`, or as a number whose `String` they
 * are.
 */
export function parseBodyExactly(body: Uint8Array): unknown {
  return parseText(decode(body), { exact: true });
}

/** Empty, which is no JSON, if the bytes are not UTF-8. */
function decode(body: Uint8Array): string {
  try {
    return utf8.decode(body);
  } catch {
    return '';
  }
}

/** As `parseBody` or `parseBodyExactly`, for text: an event may hold JSON text in place of an object. */
export function parseText(
  text: string,
  { exact, valuesMax = Number.POSITIVE_INFINITY }: { exact: boolean; valuesMax?: number },
): unknown {
  try {
    const surveyed = survey(text, DEPTH_MAX, valuesMax);
    if (!surveyed.isBounded) return undefined;
    // A reviver takes five times as long as parsing, and few texts need one.
    return parseSurveyed(text, surveyed, exact && !surveyed.spellsNumbersPlainly ? keepNumber : undefined);
  } catch {
    return undefined;
  }
}

function keepNumber(characters: string): ExactNumber {
  return new ExactNumber(characters);
}

/**
 * `JSON.parse`, also right where V8's own is wrong: after certain other texts V8 takes a name written with a backslash
 * for another name, and anyone may send such texts. https://github.com/nodejs/node/issues/63785
 * @param number makes a value of a number's characters; without it, numbers are as `JSON.parse` makes them
 * @throws {SyntaxError} if the text is not JSON (RFC 8259)
 */
export function parseJsonText(text: string, number?: (characters: string) => unknown): unknown {
  return parseSurveyed(text, survey(text, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY), number);
}

function parseSurveyed(text: string, { hasEscapedName }: Survey, number?: (characters: string) => unknown): unknown {
  const parsed = JSON.parse(text, number && reviver(number));
  return hasEscapedName ? build(text, number ?? Number) : parsed;
}

function reviver(number: (characters: string) => unknown) {
  return (_name: string, value: unknown, context?: { source?: string }): unknown =>
    typeof value === 'number' ? number(context?.source ?? String(value)) : value;
}

/**
 * Builds the value of a text that `JSON.parse` accepts. V8 reads single strings correctly; memory bounds the nesting.
 */
function build(text: string, number: (characters: string) => unknown): unknown {
  const whole: unknown[] = [];
  const open: object[] = [whole];
  let name: string | null = null;
  const add = (value: unknown) => {
    const into = open.at(-1) as object;
    if (Array.isArray(into)) into.push(value);
    // Plain assignment to the name `__proto__` would add no field.
    else Object.defineProperty(into, name ?? '', { value, writable: true, enumerable: true, configurable: true });
    name = null;
  };
  for (const part of jsonParts(text)) {
    if (part === ',' || part === ':') continue;
    if (part === '}' || part === ']') open.pop();
    else if (part === '{' || part === '[') {
      const inner = part === '{' ? {} : [];
      add(inner);
      open.push(inner);
    } else if (part.startsWith('"') && name === null && !Array.isArray(open.at(-1))) name = JSON.parse(part);
    else add(/^[-0-9]/.test(part) ? number(part) : JSON.parse(part));
  }
  return whole[0];
}

/** A number, or its own characters if no JavaScript number is equal to it. */
export function numberOrExact(characters: string): number | ExactNumber {
  const number = Number(characters);
  const spelled = String(number);
  // `33.330` and `33.33` are the same number, and so are `1e2` and `100`.
  const isSame = spelled === characters || normalised(spelled) === normalised(characters);
  return isSame ? number : new ExactNumber(characters);
}

const DECIMAL = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;

/** The significant digits, and the power of ten of the last one. */
function normalised(text: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = DECIMAL.exec(text) ?? ['', text];
  const digits = (whole + fraction).replace(/^0+/, '');
  const kept = digits.replace(/0+$/, '');
  if (kept === '') return '0';
  return `${sign}${kept}e${Number(exponent) - fraction.length + digits.length - kept.length}`;
}

/** The first name that occurs twice in one object of a text that `JSON.parse` accepts; null if there is none. */
export function repeatedName(text: string): string | null {
  const open: Set<string>[] = [];
  let before = '';
  for (const part of jsonParts(text)) {
    if (part === '{' || part === '[') open.push(new Set());
    else if (part === '}' || part === ']') open.pop();
    else if (part === ':') {
      const name = JSON.parse(before) as string;
      if (open.at(-1)?.has(name)) return name;
      open.at(-1)?.add(name);
    }
    before = part;
  }
  return null;
}

type Survey = { isBounded: boolean; spellsNumbersPlainly: boolean; hasEscapedName: boolean };

/**
 * Scans JSON text without building values: whether nesting and number of values are within the limits, whether
 * JavaScript would write every number in the same characters, and whether a name contains a backslash. The result means
 * nothing for text that is not JSON.
 */
function survey(text: string, depthMax: number, valuesMax: number): Survey {
  const hasBackslash = text.includes('\\');
  let spellsNumbersPlainly = true;
  let hasEscapedName = false;
  let depth = 0;
  let values = 1;
  let string = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x22) {
      string = i;
      i = stringEnd(text, i);
    } else if (code === 0x7b || code === 0x5b) {
      depth++;
      values++;
    } else if (code === 0x7d || code === 0x5d) depth--;
    else if (code === 0x2c) values++;
    else if (code === 0x3a) {
      hasEscapedName ||= hasBackslash && text.slice(string, i).includes('\\');
      string = i; // Text that is not JSON may have colons without names: no part of it is looked at twice.
    } else if (spellsNumbersPlainly && (code === 0x2d || isDigit(code))) {
      const end = numberEnd(text, i);
      const characters = text.slice(i, end);
      spellsNumbersPlainly = String(Number(characters)) === characters;
      i = end - 1;
    }
    if (depth > depthMax || values > valuesMax) return { isBounded: false, spellsNumbersPlainly, hasEscapedName };
  }
  return { isBounded: true, spellsNumbersPlainly, hasEscapedName };
}

const PARTS = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/**
 * The parts of a text that `JSON.parse` accepts, in order and without white space: strings, brackets, commas, colons,
 * numbers and words. For any other text the time may grow with the square of its length.
 */
export function jsonParts(text: string): readonly string[] {
  return text.match(PARTS) ?? [];
}

/** The index at which the string beginning at `start` ends: at its closing quote, or at the end of the text. */
function stringEnd(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end > 0; end = text.indexOf('"', end + 1)) {
    let before = end - 1;
    while (text.charCodeAt(before) === 0x5c) before--;
    const isEscaped = (end - before) % 2 === 0;
    if (!isEscaped) return end;
  }
  return text.length;
}

/** The index after the last character of the number that begins at `start`. */
function numberEnd(text: string, start: number): number {
  let end = start + 1;
  while (isInNumber(text.charCodeAt(end))) end++;
  return end;
}

/** Whether a character is a digit, or one of `-+.eE`. */
function isInNumber(code: number): boolean {
  return isDigit(code) || code === 0x2d || code === 0x2b || code === 0x2e || code === 0x65 || code === 0x45;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** JSON text with these commas and colons, and its strings and numbers unchanged. */
export function jsonOf(parts: readonly string[], comma: string, colon: string): string {
  return parts.map((part) => (part === ',' ? comma : part === ':' ? colon : part)).join('');
}

/** Characters that steer a terminal and that JSON leaves unescaped: C1 controls, and marks of the writing direction. */
const MARKS = /[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** The same JSON with such characters escaped. They occur only in strings. */
export function escapeMarks(json: string): string {
  return json.replace(MARKS, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
