import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { currencyExponent, formatAmount } from '../../src/domain/money.ts';
import { afterPrefix, minorsAnywhere, minorsOf, readSearch } from '../../src/domain/search.ts';
import { times } from '../support/timing.ts';

describe('what a text may be', () => {
  it.each([
    ['150', ['150'], null],
    ['150.00', ['150.00'], null],
    ['150,00', ['150.00'], null],
    ['R$ 150,00', ['150.00'], 'BRL'],
    ['r$150', ['150'], 'BRL'],
    ['BRL 150', ['150'], 'BRL'],
    ['150 brl', ['150'], 'BRL'],
    ['€ 1.234,56', ['1234.56'], 'EUR'],
    ['1,234.56', ['1234.56'], null],
    ['1 234,56', ['1234.56'], null],
    ['1\u00a0234\u00a0567', ['1234567'], null],
    ['1.234', ['1234', '1.234'], null],
    ['1.234.567', ['1234567'], null],
    ['0,50', ['0.50'], null],
  ])('%s is an amount', (text, decimals, currency) => {
    expect(readSearch(text).amount).toEqual({ decimals, currency });
  });

  it.each([
    '',
    'order-150',
    '1.2.3',
    '12,34,56',
    '1.234,567.8',
    '-150',
    '1e3',
    'R$',
    'R$ 150 BRL',
    '007',
    `${'1'.repeat(21)}`,
  ])('%s is no amount', (text) => {
    expect(readSearch(text).amount).toBeNull();
  });

  it.each([
    ['https://pay.example.com/l/AbC', 'https://pay.example.com/l/AbC'],
    ['HTTPS://Pay.Example.com/l/AbC/', 'https://pay.example.com/l/AbC'],
    ['pay.example.com/l/AbC?utm_source=mail#top', 'https://pay.example.com/l/AbC'],
    ['http://127.0.0.1:8080/l/1', 'http://127.0.0.1:8080/l/1'],
    ['localhost:8080/l/1', 'http://localhost:8080/l/1'],
    ['https://p.example/l/x?token=1', 'https://p.example/l/x?token=1'],
  ])('%s is an address', (text, stored) => {
    expect(readSearch(text).addresses).toContain(stored);
  });

  it.each(['order.1', 'order-1', 'pay_1', 'ana@example.com', 'a b/c', 'ftp://example.com/x'])(
    '%s is no address',
    (text) => {
      expect(readSearch(text).addresses).toEqual([]);
    },
  );

  it('is the number of an event, or the id of a notice', () => {
    expect(readSearch('17')).toMatchObject({ eventKey: 17, notice: null });
    expect(readSearch(' msg_17_8f14e45fceea167a ')).toMatchObject({
      text: 'msg_17_8f14e45fceea167a',
      eventKey: null,
      notice: { key: 17, random: '8f14e45fceea167a' },
    });
    for (const text of ['0', '017', '1234567890123456', 'msg_x_1']) {
      expect(readSearch(text)).toMatchObject({ eventKey: null, notice: null });
    }
  });
});

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
      { numRuns: times(1_000, 5_000) },
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
      { numRuns: times(1_000, 5_000) },
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
