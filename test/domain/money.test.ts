import { describe, expect, it } from 'vitest';
import { assertAmountMinor, currencyExponent, formatAmount, isCurrency, parseAmount } from '../../src/domain/money.ts';

const is = (amountMinor: number) => ({ ok: true, amountMinor });
const fault = (name: string) => ({ ok: false, fault: name });

describe('money: parseAmount', () => {
  it.each([
    ['100', 10_000],
    ['100.5', 10_050],
    ['100.50', 10_050],
    ['100.500', 10_050],
    ['0.01', 1],
    ['1e2', 10_000],
    ['1E+2', 10_000],
    ['1e-2', 1],
    ['100e-2', 100],
    ['0.001e3', 100],
    ['1000e-3', 100],
    ['9999999999999.99', 999_999_999_999_999],
    ['9007199254740.99', 900_719_925_474_099],
  ])('reads %s BRL as %d', (text, amountMinor) => {
    expect(parseAmount(text, 'BRL')).toEqual(is(amountMinor));
  });

  it.each([
    ['100', 'JPY', 100],
    ['100.0', 'JPY', 100],
    ['1e2', 'JPY', 100],
    ['999999999999999', 'JPY', 999_999_999_999_999],
    ['1.234', 'KWD', 1234],
    ['1.2340', 'KWD', 1234],
    ['0.001', 'KWD', 1],
    ['1.2345', 'CLF', 12_345],
    ['0.0001', 'CLF', 1],
  ])('reads %s %s as %d', (text, currency, amountMinor) => {
    expect(parseAmount(text, currency)).toEqual(is(amountMinor));
  });

  it.each([
    ['NaN'],
    ['Infinity'],
    ['-Infinity'],
    [''],
    [' '],
    [' 100'],
    ['100 '],
    ['100\n'],
    ['"100"'],
    ['１００'],
    ['٣'],
    ['0100'],
    ['00'],
    ['-0100'],
    ['+100'],
    ['.5'],
    ['100.'],
    ['1,000'],
    ['1_000'],
    ['0x64'],
    ['100n'],
    ['1e'],
    ['1e2.5'],
    ['--1'],
    ['null'],
    ['100 BRL'],
  ])('says that %j is not a number', (text) => {
    expect(parseAmount(text, 'BRL')).toEqual(fault('not_a_number'));
  });

  it.each([['0'], ['-0'], ['0.00'], ['0e9'], ['-5'], ['-0.01'], ['-1e999']])('says that %s is not positive', (text) => {
    expect(parseAmount(text, 'BRL')).toEqual(fault('not_positive'));
  });

  it.each([
    ['100.505', 'BRL'],
    ['0.001', 'BRL'],
    ['1e-3', 'BRL'],
    ['1e-99999', 'BRL'],
    ['100.5', 'JPY'],
    ['1e-1', 'JPY'],
    ['1.2345', 'KWD'],
    ['1.23456', 'CLF'],
  ])('says that %s %s has too many decimals', (text, currency) => {
    expect(parseAmount(text, currency)).toEqual(fault('too_many_decimals'));
  });

  it.each([
    ['1e999', 'BRL'],
    ['1e99999999999999999999', 'BRL'],
    ['9007199254740993', 'BRL'],
    ['10000000000000', 'BRL'],
    ['1000000000000000', 'JPY'],
    ['1000000000000', 'KWD'],
    ['100000000000', 'CLF'],
    [`1.${'0'.repeat(63)}`, 'BRL'],
  ])('says that %s %s is too large', (text, currency) => {
    expect(parseAmount(text, currency)).toEqual(fault('too_large'));
  });
});

describe('money: formatAmount', () => {
  it.each([
    [10_050, 'BRL', '100.50'],
    [1, 'BRL', '0.01'],
    [0, 'BRL', '0.00'],
    [-10_050, 'BRL', '-100.50'],
    [-5, 'BRL', '-0.05'],
    [100, 'JPY', '100'],
    [-100, 'JPY', '-100'],
    [1234, 'KWD', '1.234'],
    [1, 'CLF', '0.0001'],
    [999_999_999_999_999, 'BRL', '9999999999999.99'],
  ])('writes %d of %s as %s', (amountMinor, currency, text) => {
    expect(formatAmount({ amountMinor, currency })).toBe(text);
  });
});

describe('money: currencies', () => {
  it.each([
    ['BRL', 2],
    ['USD', 2],
    ['JPY', 0],
    ['XPF', 0],
    ['KWD', 3],
    ['TND', 3],
    ['CLF', 4],
  ])('%s has %d digits after the point', (currency, exponent) => {
    expect(currencyExponent(currency)).toBe(exponent);
  });

  it.each([
    ['BRL', true],
    ['UYW', true],
    ['brl', false],
    ['BR', false],
    ['', false],
    ['ZZZ', false],
    ['__proto__', false],
  ])('%j is a currency: %s', (code, answer) => {
    expect(isCurrency(code)).toBe(answer);
  });
});

describe("money: the ledger's bound", () => {
  it.each([[0], [1], [-1], [999_999_999_999_999], [-999_999_999_999_999]])('lets %d pass', (amountMinor) => {
    expect(() => assertAmountMinor(amountMinor)).not.toThrow();
  });

  it.each([[0.5], [Number.NaN], [Number.POSITIVE_INFINITY], [1_000_000_000_000_000], [-1_000_000_000_000_000]])(
    'refuses %d',
    (amountMinor) => {
      expect(() => assertAmountMinor(amountMinor)).toThrow('is not a ledger amount');
    },
  );
});
