import stringWidth from 'string-width';
import { describe, expect, it } from 'vitest';
import { shownLines } from '../../src/terminal/output.ts';
import { ageOf, type Screen } from '../../src/terminal/screen.ts';
import { record, table } from '../../src/terminal/table.ts';

const AT = '2026-11-28T04:12:05.123Z';
const screenOf = (columns: number | null): Screen => ({
  columns,
  colours: false,
  nowMs: () => Date.parse(AT) + 150_000,
});

const ROWS = [
  { order: '注文', amount: '5.00 BRL', sent: 12, at: AT, why: null, detail: 'it came twice, and once more after that' },
  { order: 'small', amount: '1234.50 BRL', sent: 1, at: AT, why: null, detail: 'evil \u001b[2J' },
  { order: 'none', amount: null, sent: 0, at: null, why: null, detail: '' },
];
const COLUMNS = { order: 'order', amount: 'amount', sent: 'sent', at: 'at', why: 'why', detail: 'detail' } as const;

const shown = (columns: number | null) => shownLines(table(ROWS, COLUMNS), screenOf(columns));

describe('a table', () => {
  it('is exact in a pipe, with amounts and counts at the right, behind wide characters too', () => {
    expect(shown(null)).toEqual([
      'ORDER       AMOUNT  SENT  AT                        WHY  DETAIL',
      `注文      5.00 BRL    12  ${AT}  -    it came twice, and once more after that`,
      `small  1234.50 BRL     1  ${AT}  -    evil \\u001b[2J`,
      'none             -     0  -                         -    -',
    ]);
  });

  it('has times without fractions on a terminal on which it fits', () => {
    expect(shown(100)[2]).toBe('small  1234.50 BRL     1  2026-11-28T04:12:05Z  -    evil \\u001b[2J');
  });

  it('has ages on a narrower one, no empty columns, and breaks the last between words', () => {
    expect(shown(70)).toEqual([
      'ORDER       AMOUNT  SENT  AT         DETAIL',
      '注文      5.00 BRL    12  2 min ago  it came twice, and once more',
      '                                     after that',
      'small  1234.50 BRL     1  2 min ago  evil \\u001b[2J',
      'none             -     0  -          -',
    ]);
  });

  it('shows what still does not fit below its row, with its heading, and nothing that is empty', () => {
    expect(shown(40)).toEqual([
      'ORDER       AMOUNT  SENT  AT',
      '注文      5.00 BRL    12  2 min ago',
      '    detail it came twice, and once more',
      '    after that',
      'small  1234.50 BRL     1  2 min ago',
      '    detail evil \\u001b[2J',
      'none             -     0  -',
    ]);
  });

  it.each([30, 40, 55, 70, 80, 100, 200])('of %d columns fits, and has every value', (columns) => {
    const lines = shown(columns);
    expect(Math.max(...lines.map((line) => stringWidth(line)))).toBeLessThanOrEqual(columns);
    for (const word of ['注文', '5.00 BRL', '1234.50 BRL', 'twice', 'evil']) expect(lines.join('\n')).toContain(word);
  });

  it('colours headings and states, and a sentence below a row stands there', () => {
    const blocks = table([{ state: 'paid: late' }], { state: 'state' }, { below: () => 'It came late.' });
    expect(shownLines(blocks, { ...screenOf(80), colours: true })).toEqual([
      '\u001b[1mSTATE\u001b[22m',
      '\u001b[32mpaid: late\u001b[39m',
      '  It came late.',
    ]);
  });
});

describe('a record', () => {
  const facts = record({ name: 'a', created: AT, flags: ['one', 'two'], nothing: null, left: undefined });

  it('has a line for each value, exact times, and on a terminal also how long ago that was', () => {
    expect(shownLines(facts, screenOf(null))).toEqual([
      'name     a',
      `created  ${AT}`,
      'flags    one',
      'flags    two',
      'nothing  -',
    ]);
    expect(shownLines(facts, screenOf(80))[1]).toMatch(/^created {2}2026-11-28T04:12:05\.123Z {2}\(2 min ago\)$/);
  });
});

describe('an age', () => {
  it.each([
    [-59, '59 s ago'],
    [-119, '1 min ago'],
    [0.5, 'just now'],
    [119, 'in 2 min'],
    [3 * 86_400 - 1, 'in 3 d'],
    [49 * 3_600, 'in 2 d'],
    [-200 * 86_400, '6 months ago'],
    [-900 * 86_400, '2 years ago'],
  ])('of a time %d s from now is "%s"', (seconds, age) => {
    expect(ageOf({ columns: 80, colours: false, nowMs: () => 0 }, new Date(seconds * 1_000).toISOString())).toBe(age);
  });
});
