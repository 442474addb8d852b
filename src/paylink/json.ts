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
    const text = utf8.decode(body);
    if (exceeds(text, DEPTH_MAX, valuesMax)) return undefined;
    // A reviver costs five times the parsing, and few texts need one.
    return JSON.parse(text, exact && !spellsNumbersPlainly(text) ? keepNumber : undefined);
  } catch {
    return undefined;
  }
}

function keepNumber(_key: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === 'number' ? new JsonNumber(context?.source ?? String(value)) : value;
}

/** Where a number may stand, and its characters. It also finds some within strings, which does no harm. */
const NUMBERS = /(?:^|"\s*:|[[,])\s*(-?[0-9][^\s,\]}]*)/g;

/** Whether JavaScript would spell every number of a JSON text as it is spelled there. */
function spellsNumbersPlainly(text: string): boolean {
  for (const [, characters] of text.matchAll(NUMBERS)) {
    if (String(Number(characters)) !== characters) return false;
  }
  return true;
}

/** Whether JSON text is nested deeper, or holds more values, than is allowed. Reads characters and builds nothing. */
function exceeds(text: string, depthMax: number, valuesMax: number): boolean {
  let depth = 0;
  let values = 1;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (inString) {
      if (code === 0x5c) i++;
      else if (code === 0x22) inString = false;
    } else if (code === 0x22) inString = true;
    else if (code === 0x7b || code === 0x5b) {
      if (++depth > depthMax || ++values > valuesMax) return true;
    } else if (code === 0x7d || code === 0x5d) depth--;
    else if (code === 0x2c && ++values > valuesMax) return true;
  }
  return false;
}
