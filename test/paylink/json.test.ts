import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonNumber, parseJson } from '../../src/paylink/json.ts';
import { times } from '../support/length.ts';

/** A number in JSON's grammar (RFC 8259 §6), spelled in any way that it allows. */
const numberText = fc.stringMatching(/^-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,3})?$/);
const space = fc.stringMatching(/^[ \t\n\r]{0,3}$/);

/** JSON text with numbers at every place where one may stand, and the numbers' characters in their order. */
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
        expect(spelled(parseJson(Buffer.from(before + text), { exact: true }))).toEqual(numbers);
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
  it('count what is there, and nothing that stands in strings', () => {
    fc.assert(
      fc.property(nested, fc.integer({ min: 1, max: 30 }), (value, valuesMax) => {
        const text = JSON.stringify(value);
        const parsed = parseJson(Buffer.from(text), { exact: true, valuesMax });
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
    expect(parseJson(Buffer.from(text)) !== undefined).toBe(through);
  });
});

/** Brackets that open and commas, as a text of this value has them. */
function openedAndSeparated(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const items = Object.values(value);
  return items.reduce((sum, item) => sum + openedAndSeparated(item), Math.max(1, items.length));
}

function spelled(value: unknown): string[] {
  if (value instanceof JsonNumber) return [value.text];
  if (typeof value === 'number') return [String(value)];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(spelled) : [];
}
