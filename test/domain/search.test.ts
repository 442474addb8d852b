import { describe, expect, it } from 'vitest';
import { readSearch } from '../../src/domain/search.ts';

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

  it('has six words at most, the longest ones: they find the fewest', () => {
    const words = ['one', 'twos', 'three', 'fourth', 'fifthly', 'sixthies', 'seventhly'];
    const asked = (count: number) => readSearch(words.slice(0, count).join(' ')).parts.map(({ from }) => from);
    for (const count of [5, 6]) expect(asked(count).toSorted()).toEqual(words.slice(0, count).toSorted());
    expect(asked(7)).toEqual(words.slice(1).toReversed());
  });

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
