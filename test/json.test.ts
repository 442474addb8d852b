import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { escapeMarks, parseJsonText } from '../src/json.ts';
import { times } from './support/length.ts';

/** Names of characters that must be escaped, that may be, and that look like escapes. */
const name = fc.oneof(fc.stringMatching(/^["\\\nu/b0]{0,4}$/), fc.constantFrom('id', 'x', '__proto__', '0', 'é'));
const { value: anyValue } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, false, '', '":"\\', 0.5, -1, 1e21),
    fc.string(),
    fc.array(tie('value'), { maxLength: 3 }),
    fc
      .array(fc.tuple(name, tie('value')), { maxLength: 4 })
      .map((fields) => Object.fromEntries(fields.map(([key, value]) => [key, value]))),
  ),
}));

const hex = (text: string) =>
  [...text].map((letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');

/** JSON text of a value, with names as `spell` writes them and space wherever it may stand. */
function written(value: unknown, spell: (name: string) => string): string {
  if (Array.isArray(value)) return `[ ${value.map((inner) => written(inner, spell)).join(' ,')}\n]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).map(([key, inner]) => `"${spell(key)}"\t: ${written(inner, spell)}`);
  return `{${fields.join(',')} }`;
}

const SPELLINGS = {
  'as JSON.stringify writes them': (key: string) => JSON.stringify(key).slice(1, -1),
  'with every character escaped': hex,
};

/** Parses what V8 may take each name for: the same names before it, and then one as long as it, its text's beginning. */
function layInWait(value: unknown, spell: (name: string) => string): void {
  if (typeof value !== 'object' || value === null) return;
  // Of a list these are numbers, which stand nowhere else.
  const names = Object.keys(value);
  for (const [n, key] of names.entries()) {
    const lookAlike = JSON.stringify(spell(key).slice(0, key.length));
    const others = names.map((other) => JSON.stringify(other));
    JSON.parse(
      `{${others
        .with(n, lookAlike)
        .map((text) => `${text}:1`)
        .join(',')}}`,
    );
  }
  for (const inner of Object.values(value)) layInWait(inner, spell);
}

describe('JSON text', () => {
  it.each(Object.entries(SPELLINGS))('means what was written, names %s, whatever was read before', (_how, spell) => {
    fc.assert(
      fc.property(anyValue, (value) => {
        layInWait(value, spell);
        expect(parseJsonText(written(value, spell))).toEqual(value);
      }),
      { numRuns: times(400, 2_000) },
    );
  });

  it('keeps the last of two fields of one name, and a field of the name __proto__', () => {
    expect(parseJsonText(String.raw`{"\u0061":1,"b":2,"a":3}`)).toEqual({ a: 3, b: 2 });
    const parsed = parseJsonText(String.raw`{"\u005f_proto__":{"x":1}}`) as object;
    expect(Object.entries(parsed)).toEqual([['__proto__', { x: 1 }]]);
    expect((parsed as { x?: number }).x).toBeUndefined();
  });

  it('has its numbers made from their own characters, escaped names or not', () => {
    const numbers = (text: string) => parseJsonText(text, (characters) => `<${characters}>`);
    expect(numbers('{"a":[1.50,-0],"b":"1"}')).toEqual({ a: ['<1.50>', '<-0>'], b: '1' });
    expect(numbers(String.raw`{"\u0061":[1.50,-0],"b":"1","c":[true,null]}`)).toEqual({
      a: ['<1.50>', '<-0>'],
      b: '1',
      c: [true, null],
    });
  });

  it.each(['', '{', String.raw`{"\u0061":1`, String.raw`{"\u006":1}`, String.raw`{"\u0061" 1}`, "{'a':1}"])(
    'that is none is refused: %s',
    (text) => {
      expect(() => parseJsonText(text)).toThrow(SyntaxError);
    },
  );

  it('may be nested as deep as it is long, and is read in time that grows with its length', () => {
    const deep = `${'['.repeat(30_000)}{"\\u0061":1}${']'.repeat(30_000)}`;
    let inner = parseJsonText(deep);
    for (let depth = 0; depth < 30_000; depth++) inner = (inner as unknown[])[0];
    expect(inner).toEqual({ a: 1 });
    const quotes = `{"\\u0061":"${'\\"'.repeat(500_000)}"}`;
    expect(parseJsonText(quotes)).toEqual({ a: '"'.repeat(500_000) });
  });
});

describe('json: text that goes to a terminal', () => {
  it('is the same value, without what a terminal would obey or what turns the direction of writing', () => {
    const marks = '\u007f\u0085\u009b\u061c\u200e\u200f\u2028\u202a\u202e\u2066\u2069';
    const value = { [marks]: `ação "€" 😀 ${marks}`, c0: '\u0000\u001b[31m' };
    const text = escapeMarks(JSON.stringify(value));
    expect(text).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029]/u);
    expect(text).toContain('ação \\"€\\" 😀 \\u007f\\u0085\\u009b\\u061c');
    expect(JSON.parse(text)).toEqual(value);
  });
});
