import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ExactNumber,
  escapeMarks,
  jsonParts,
  parseBody,
  parseBodyExactly,
  parseJsonText,
  parseText,
  repeatedName,
} from '../src/json.ts';
import { times } from './support/timing.ts';

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
  it.each(Object.entries(SPELLINGS))(
    'means what was written, names %s, no matter what was read before',
    (_how, spell) => {
      fc.assert(
        fc.property(anyValue, (value) => {
          layInWait(value, spell);
          expect(parseJsonText(written(value, spell))).toEqual(value);
        }),
        { numRuns: times(400, 2_000) },
      );
    },
  );

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

describe('the parts of JSON text', () => {
  it('are all of it but the white space, in strings nothing but their own characters', () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        const parts = jsonParts(JSON.stringify(value, null, 2));
        expect(parts.join('')).toBe(JSON.stringify(value));
      }),
      { numRuns: times(400, 2_000) },
    );
  });

  it('tell which name occurs twice in one object, in any spelling', () => {
    expect(repeatedName(String.raw`{"a":{"b":1},"b":["a",{"b":2}],"\u0061":3}`)).toBe('a');
    expect(repeatedName('{"a":{"b":1},"b":["a",{"b":2}]}')).toBeNull();
    expect(repeatedName('[{"a":":"},{"a":"a"},"a","a"]')).toBeNull();
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

/** A number in JSON's grammar (RFC 8259 §6), spelled in any way that it allows. */
const numberText = fc.stringMatching(/^-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,3})?$/);
const space = fc.stringMatching(/^[ \t\n\r]{0,3}$/);

/** JSON text with numbers at every place where a number is allowed, and the numbers' characters in their order. */
const { value: jsonText } = fc.letrec<{ value: { text: string; numbers: string[] } }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.record({ text: numberText }).map(({ text }) => ({ text, numbers: [text] })),
    fc.string().map((text) => ({ text: JSON.stringify(text), numbers: [] })),
    fc.constantFrom('"\\":1.50,[1.0"', 'null', 'true').map((text) => ({ text, numbers: [] })),
    fc
      .tuple(fc.array(fc.tuple(space, tie('value'), space), { maxLength: 4 }))
      .map(([items]) => ({
        text: `[${items.map(([before, item, after]) => before + item.text + after).join(',')}]`,
        numbers: items.flatMap(([, item]) => item.numbers),
      })),
    fc
      .array(fc.tuple(space, space, tie('value'), space), { maxLength: 4 })
      .map((items) => ({
        text: `{${items.map(([a, b, item, c], n) => `${a}"k${n}"${b}:${c}${item.text}`).join(',')}}`,
        numbers: items.flatMap(([, , item]) => item.numbers),
      })),
  ),
}));

describe('JSON numbers', () => {
  it('can be had again by their own characters, wherever they stand and however they are spelled', () => {
    fc.assert(
      fc.property(jsonText, space, ({ text, numbers }, before) => {
        expect(spelled(parseBodyExactly(Buffer.from(before + text)))).toEqual(numbers);
      }),
      { numRuns: times(500, 3_000) },
    );
  });
});

/** Strings of characters that have a meaning outside of strings. */
const trap = fc.stringMatching(/^["\\[\]{},:1e-]{0,8}$/);
const { nested } = fc.letrec<{ nested: unknown }>((tie) => ({
  nested: fc.oneof(
    { maxDepth: 5 },
    trap,
    fc.nat(),
    fc.array(tie('nested'), { maxLength: 4 }),
    fc.dictionary(trap, tie('nested'), { maxKeys: 4 }),
  ),
}));

describe('the bounds of JSON', () => {
  it('count values, but nothing inside of strings', () => {
    fc.assert(
      fc.property(nested, fc.integer({ min: 1, max: 30 }), (value, valuesMax) => {
        const text = JSON.stringify(value);
        const parsed = parseText(text, { exact: true, valuesMax });
        expect(parsed).toEqual(1 + openedAndSeparated(value) > valuesMax ? undefined : value);
      }),
      { numRuns: times(500, 3_000) },
    );
  });

  it.each([
    [32, true],
    [33, false],
  ])('let %i levels through: %s', (levels, through) => {
    const text = `${'["]",'.repeat(levels)}"\\\\[\\"["${']'.repeat(levels)}`;
    expect(parseBody(Buffer.from(text)) !== undefined).toBe(through);
  });
});

/** Brackets that open and commas, as a text of this value has them. */
function openedAndSeparated(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const items = Object.values(value);
  return items.reduce((sum, item) => sum + openedAndSeparated(item), Math.max(1, items.length));
}

function spelled(value: unknown): string[] {
  if (value instanceof ExactNumber) return [value.text];
  if (typeof value === 'number') return [String(value)];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(spelled) : [];
}
