import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { currencyExponent, formatAmount } from '../../src/domain/money.ts';
import { afterPrefix, minorsAnywhere, minorsOf, readSearch } from '../../src/domain/search.ts';
import { runs, times } from '../support/timing.ts';

describe('whatever is searched', () => {
  const currency = fc.constantFrom('BRL', 'JPY', 'KWD', 'CLF');
  const money = fc.record({ amountMinor: fc.integer({ min: 1, max: 999_999_999_999 }), currency });
  const MARKS = [
    ['', '.'],
    ['', ','],
    ['.', ','],
    [',', '.'],
    [' ', ','],
  ] as const;
  type Money = { amountMinor: number; currency: string };
  type Marks = (typeof MARKS)[number];

  it('an amount is found in every way that people write it, with its currency or without', () => {
    fc.assert(
      fc.property(
        money,
        fc.constantFrom(...MARKS),
        fc.constantFrom('before', 'after', 'not'),
        (of, [group, point], place) => {
          const [whole = '', fraction] = formatAmount(of).split('.');
          const grouped = whole.replace(/\B(?=(\d{3})+$)/g, group);
          const written = fraction === undefined ? grouped : `${grouped}${point}${fraction}`;
          const named = { before: `${of.currency} ${written}`, after: `${written} ${of.currency}`, not: written }[
            place
          ];
          const { amount } = readSearch(named);
          expect(amount === null ? [] : minorsOf(amount, of.currency)).toContain(of.amountMinor);
          expect(amount === null ? [] : minorsAnywhere(amount)).toContain(of.amountMinor);
          const other = of.currency === 'BRL' ? 'USD' : 'BRL';
          if (place !== 'not') expect(amount === null ? [] : minorsOf(amount, other)).toEqual([]);
        },
      ),
      runs<[Money, Marks, 'before' | 'after' | 'not']>(1_000, 5_000, [
        // One point groups, and there is no other.
        [{ amountMinor: 1_000, currency: 'JPY' }, ['.', ','], 'not'],
        [{ amountMinor: 1_000_000, currency: 'KWD' }, ['', '.'], 'not'],
      ]),
    );
  });

  it('no amount is found that no digits of the text say', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 30 }), currency, (text, inCurrency) => {
        const { amount } = readSearch(text);
        for (const minor of amount === null ? [] : minorsOf(amount, inCurrency)) {
          const digits = text.replace(/\D/g, '').replace(/^0+/, '');
          const padded = digits + '0'.repeat(currencyExponent(inCurrency));
          expect(padded.startsWith(String(minor).replace(/0+$/, ''))).toBe(true);
        }
      }),
      runs<[string, string]>(1_000, 5_000, [['R$ 1.000,00 1', 'BRL']]),
    );
  });

  it('exactly the texts that begin with a prefix lie between it and what comes after all of them', () => {
    const bytes = (text: string) => Buffer.from(text);
    const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 6 }).filter((one) => one.isWellFormed());
    const near = fc.constantFrom('a', 'b', '\ud7ff', '\ue000', '\u{10ffff}', '\u{10000}');
    const either = fc.oneof(
      text,
      fc.array(near, { minLength: 1, maxLength: 3 }).map((all) => all.join('')),
    );
    fc.assert(
      fc.property(either, either, fc.boolean(), (prefix, other, isWithin) => {
        const given = isWithin ? prefix + other : other;
        const end = afterPrefix(prefix);
        const isBetween =
          Buffer.compare(bytes(given), bytes(prefix)) >= 0 &&
          (end === null || Buffer.compare(bytes(given), bytes(end)) < 0);
        expect(isBetween).toBe(given.startsWith(prefix));
      }),
      { numRuns: times(1_000, 5_000) },
    );
  });
});
