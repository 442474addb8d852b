import { parseJsonText } from '../json.ts';

/** Nesting beyond this is refused before parsing; a reviver would recurse as deep. */
const DEPTH_MAX = 32;

/** A JSON number by its own characters, where JavaScript would spell it otherwise: amounts must lose nothing. */
export class JsonNumber {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Parses bytes as JSON; undefined where they are not UTF-8, not JSON, nested more than 32 deep, or of more values than
 * are allowed. `exact` keeps every number so that its own characters can be had again: as a `JsonNumber`, or as a number
 * whose `String` they are.
 */
export function parseJson(
  body: Uint8Array,
  { exact = false, valuesMax = Number.POSITIVE_INFINITY }: { exact?: boolean; valuesMax?: number } = {},
): unknown {
  try {
    return parseText(utf8.decode(body), { exact, valuesMax });
  } catch {
    return undefined;
  }
}

/** The same of text, which an event may hold in place of an object. */
export function parseText(
  text: string,
  { exact, valuesMax = Number.POSITIVE_INFINITY }: { exact: boolean; valuesMax?: number },
): unknown {
  try {
    const { isBounded, spellsNumbersPlainly } = survey(text, DEPTH_MAX, valuesMax);
    if (!isBounded) return undefined;
    // A reviver costs five times the parsing, and few texts need one.
    return parseJsonText(text, exact && !spellsNumbersPlainly ? keepNumber : undefined);
  } catch {
    return undefined;
  }
}

function keepNumber(characters: string): JsonNumber {
  return new JsonNumber(characters);
}

/**
 * Reads JSON text and builds nothing: whether it is nested no deeper and holds no more values than is allowed, and
 * whether JavaScript would spell every number as it is spelled there. Of other text it says nothing.
 */
function survey(
  text: string,
  depthMax: number,
  valuesMax: number,
): { isBounded: boolean; spellsNumbersPlainly: boolean } {
  let depth = 0;
  let values = 1;
  let spellsNumbersPlainly = true;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x22) i = stringEnd(text, i);
    else if (code === 0x7b || code === 0x5b) {
      depth++;
      values++;
    } else if (code === 0x7d || code === 0x5d) depth--;
    else if (code === 0x2c) values++;
    else if (spellsNumbersPlainly && (code === 0x2d || isDigit(code))) {
      const end = numberEnd(text, i);
      const characters = text.slice(i, end);
      spellsNumbersPlainly = String(Number(characters)) === characters;
      i = end - 1;
    }
    if (depth > depthMax || values > valuesMax) return { isBounded: false, spellsNumbersPlainly };
  }
  return { isBounded: true, spellsNumbersPlainly };
}

/** Where the string ends that begins at `start`: at its closing quote, or with the text where it has none. */
function stringEnd(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end > 0; end = text.indexOf('"', end + 1)) {
    let before = end - 1;
    while (text.charCodeAt(before) === 0x5c) before--;
    const isEscaped = (end - before) % 2 === 0;
    if (!isEscaped) return end;
  }
  return text.length;
}

/** One beyond the last character of the number that begins at `start`. */
function numberEnd(text: string, start: number): number {
  let end = start + 1;
  while (isInNumber(text.charCodeAt(end))) end++;
  return end;
}

/** A digit, or one of `-+.eE`. */
function isInNumber(code: number): boolean {
  return isDigit(code) || code === 0x2d || code === 0x2b || code === 0x2e || code === 0x65 || code === 0x45;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}
