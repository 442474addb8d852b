/**
 * `JSON.parse`, and right where V8's own is not: after certain other texts it takes a name that is written with a
 * backslash for another name, and anybody may send such texts. https://github.com/nodejs/node/issues/63785
 *
 * @param number what a number becomes, by its own characters; else what `JSON.parse` makes of it
 * @throws {SyntaxError} where the text is not JSON (RFC 8259)
 */
export function parseJsonText(text: string, number?: (characters: string) => unknown): unknown {
  const parsed = JSON.parse(text, number && reviver(number));
  return hasEscapedName(text) ? build(text, number ?? Number) : parsed;
}

function reviver(number: (characters: string) => unknown) {
  return (_name: string, value: unknown, context?: { source?: string }): unknown =>
    typeof value === 'number' ? number(context?.source ?? String(value)) : value;
}

/** Of JSON text: each text of it, with the colon that makes one a name. */
const TEXTS = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?/g;

function hasEscapedName(text: string): boolean {
  if (!text.includes('\\')) return false;
  for (const [part, colon] of text.matchAll(TEXTS)) if (colon !== undefined && part.includes('\\')) return true;
  return false;
}

/** Of JSON text: each text, each bracket, and each number or word. */
const PARTS = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]]|[^\s,:"{}[\]]+/g;

/** What text is that `JSON.parse` takes. V8 reads a text that stands alone rightly; nesting is bounded by memory alone. */
function build(text: string, number: (characters: string) => unknown): unknown {
  const whole: unknown[] = [];
  const open: object[] = [whole];
  let name: string | null = null;
  const add = (value: unknown) => {
    const into = open.at(-1) as object;
    if (Array.isArray(into)) into.push(value);
    // Assigned, a field of the name `__proto__` would be no field.
    else Object.defineProperty(into, name ?? '', { ...FIELD, value });
    name = null;
  };
  for (const [part] of text.matchAll(PARTS)) {
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

const FIELD = { writable: true, enumerable: true, configurable: true } as const;

/** What a terminal would obey and JSON leaves as it is: C1 controls, and marks that turn the direction of writing. */
const MARKS = /[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** The same JSON with such characters written out: they stand in strings alone. */
export function escapeMarks(json: string): string {
  return json.replace(MARKS, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
