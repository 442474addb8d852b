import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AmountFault, currencyExponent, formatAmount, parseAmount } from '../../src/domain/money.ts';
import { runs, times } from '../support/timing.ts';

const digits = (max: number) => fc.stringMatching(new RegExp(`^[0-9]{1,${max}}$`));
const currency = fc.constantFrom('BRL', 'JPY', 'KWD', 'CLF');

/** A decimal in JSON's grammar, by its parts, so that the oracle need not read text. */
const decimal = fc.record({
  isNegative: fc.boolean(),
  whole: fc.oneof(
    fc.constant('0'),
    digits(18).map((text) => text.replace(/^0+(?=.)/, '')),
  ),
  fraction: fc.oneof(fc.constant(''), digits(8), fc.stringMatching(/^[0-9]{0,4}(?:0{5,9}|9{5,9})[0-9]{0,3}$/)),
  exponent: fc.oneof({ weight: 2, arbitrary: fc.constant(null) }, fc.integer({ min: -30, max: 30 })),
});
type Decimal = typeof decimal extends fc.Arbitrary<infer T> ? T : never;

function write({ isNegative, whole, fraction, exponent }: Decimal): string {
  const point = fraction === '' ? '' : `.${fraction}`;
  return `${isNegative ? '-' : ''}${whole}${point}${exponent === null ? '' : `e${exponent}`}`;
}

/** The same decimal as a fraction of two whole numbers, multiplied up to minor units. */
function oracle(parts: Decimal, digitsAfterPoint: number): bigint | AmountFault {
  const scale = BigInt((parts.exponent ?? 0) + digitsAfterPoint - parts.fraction.length);
  const mantissa = BigInt(parts.whole + parts.fraction);
  const numerator = scale > 0n ? mantissa * 10n ** scale : mantissa;
  const denominator = scale > 0n ? 1n : 10n ** -scale;
  if (parts.isNegative || numerator === 0n) return 'not_positive';
  if (numerator >= 10n ** 15n * denominator) return 'too_large';
  // A program that computes with floating point is off by less than a millionth of a minor unit.
  const [below, rest] = [numerator / denominator, numerator % denominator];
  const isBelow = rest * 1_000_000n < denominator;
  if (!isBelow && (denominator - rest) * 1_000_000n > denominator) return 'too_many_decimals';
  const read = isBelow ? below : below + 1n;
  if (read === 0n) return 'too_many_decimals';
  return read === 10n ** 15n ? 'too_large' : read;
}

describe('money: any amount', () => {
  it('is read as an exact fraction would be', () => {
    fc.assert(
      fc.property(decimal, currency, (parts, code) => {
        const read = parseAmount(write(parts), code);
        const got = read.ok ? BigInt(read.amountMinor) : read.fault;
        expect(got).toBe(oracle(parts, currencyExponent(code)));
      }),
      runs<[Decimal, string]>(3_000, 20_000, [
        // Floating point prints it for 0.1 + 0.2; the last is too large only once it is rounded.
        [{ isNegative: false, whole: '0', fraction: '30000000000000004', exponent: null }, 'BRL'],
        [{ isNegative: false, whole: '1', fraction: '005', exponent: 2 }, 'JPY'],
        [{ isNegative: false, whole: '9999999999999', fraction: '9999999999', exponent: null }, 'BRL'],
      ]),
    );
  });

  it('is read from what a program prints that computed it with floating point', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 99_999_999 }), fc.integer({ min: 2, max: 99 }), (amountMinor, parts) => {
        const computed = String(Array.from({ length: parts }, () => amountMinor / 100 / parts).reduce((a, b) => a + b));
        expect(parseAmount(computed, 'BRL')).toEqual({ ok: true, amountMinor });
      }),
      { numRuns: times(1_000, 5_000) },
    );
  });

  it('comes back from its own text', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 999_999_999_999_999 }), currency, (amountMinor, code) => {
        const text = formatAmount({ amountMinor, currency: code });
        expect(parseAmount(text, code)).toEqual({ ok: true, amountMinor });
      }),
      { numRuns: times(1_000, 5_000) },
    );
  });

  it('once read and written is read as the same again', () => {
    fc.assert(
      fc.property(decimal, currency, (parts, code) => {
        const read = parseAmount(write(parts), code);
        if (!read.ok) return;
        const text = formatAmount({ amountMinor: read.amountMinor, currency: code });
        expect(parseAmount(text, code)).toEqual(read);
      }),
      { numRuns: times(1_000, 5_000) },
    );
  });

  it('of any text is answered, never thrown at', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.double().map(String), decimal.map(write)), (text) => {
        const read = parseAmount(text, 'BRL');
        if (read.ok) expect(read.amountMinor).toBeGreaterThan(0);
      }),
      { numRuns: times(1_000, 5_000) },
    );
  });
});
