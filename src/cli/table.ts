import { type Block, padded, printable, width, wrap } from './output.ts';
import { exactTime, isTime, paint, type Screen, type Tone, timeForms, toneOf } from './screen.ts';

/** Rows in columns, and facts in pairs: exact in a pipe, fitted to the width of a terminal. */

/** Null and the empty text show as `-`. */
type Cell = string | number | null;

/** The columns of a table: under each heading a field of the row, or what a function makes of the row. */
export type Columns<Row> = Readonly<Record<string, (keyof Row & string) | ((row: Row) => Cell)>>;

type TableOptions<Row> = {
  /** What stands there if there are no rows. */
  nothing?: string;
  /** A sentence below a row. */
  below?: (row: Row) => string | null;
};

const GAP = 2;
/** How far what stands below a row is indented. */
const INDENT = 4;

/**
 * Rows in columns under a line of headings; amounts and counts are aligned to the right. On a terminal, times are written
 * as fully as there is room; a last column that is too wide is broken into lines; and what still does not fit is folded
 * below its row.
 */
export function table<Row>(
  rows: readonly Row[],
  columns: Columns<Row>,
  { nothing = '', below = () => null }: TableOptions<Row> = {},
): Block[] {
  if (rows.length === 0) return [nothing];
  return [
    (screen) => {
      const shown = Object.entries(columns).map(([heading, of]) =>
        columnOf(
          screen,
          heading,
          rows.map((row) => (typeof of === 'function' ? of(row) : (row[of] as Cell))),
        ),
      );
      const { lines, headings } = layOut(screen, shown, rows.length);
      const notes = rows.map((row) => noteLines(screen, below(row)));
      return [headings, ...lines.flatMap((line, at) => [...line, ...(notes[at] ?? [])])];
    },
  ];
}

function noteLines({ columns }: Screen, note: string | null): string[] {
  if (note === null) return [];
  return wrap(printable(note), (columns ?? Number.POSITIVE_INFINITY) - GAP).map((line) => ' '.repeat(GAP) + line);
}

/** `forms`: the same, the longest first. */
type Shown = { forms: readonly string[]; tone: Tone | null; isEmpty: boolean };
type Column = { heading: string; cells: readonly Shown[]; isRight: boolean };

const AMOUNT = /^-?\d+(\.\d+)? [A-Z][A-Z0-9]{2,11}( \(.*\))?$/;

function columnOf(screen: Screen, heading: string, cells: readonly Cell[]): Column {
  const isQuantity = (cell: Cell) => typeof cell === 'number' || (typeof cell === 'string' && AMOUNT.test(cell));
  const isOther = (cell: Cell) => cell === null || cell === '' || cell === '-' || isTime(String(cell));
  return {
    heading,
    cells: cells.map((cell) => shownCell(screen, heading, cell)),
    isRight: cells.some(isQuantity) && cells.every((cell) => isQuantity(cell) || isOther(cell)),
  };
}

function shownCell(screen: Screen, heading: string, cell: Cell): Shown {
  if (cell === null || cell === '') return { forms: ['-'], tone: 'quiet', isEmpty: true };
  const text = printable(String(cell));
  const forms = screen.columns !== null && isTime(text) ? timeForms(screen, text) : [text];
  return { forms, tone: toneOf(heading, text), isEmpty: false };
}

/** How fully times are written. */
const LEVELS = [0, 1, 2] as const;
type Level = (typeof LEVELS)[number];

function formOf({ forms }: Shown, level: Level): string {
  return forms[Math.min(level, forms.length - 1)] ?? '';
}

function widthOf({ heading, cells }: Column, level: Level): number {
  return Math.max(width(heading), ...cells.map((cell) => width(formOf(cell, level))));
}

type LaidOut = { headings: string; lines: string[][] };

function layOut(screen: Screen, columns: readonly Column[], rows: number): LaidOut {
  const most = screen.columns ?? Number.POSITIVE_INFINITY;
  const fullWidths = (level: Level) => columns.map((column) => widthOf(column, level));
  const firstColumns = usualWidth(columns[0] as Column, most);
  const widths = (level: Level) => [firstColumns, ...fullWidths(level).slice(1)];
  for (const level of LEVELS) {
    const fitting = [fullWidths(level), widths(level)].find((all) => total(all) <= most);
    if (fitting !== undefined) return inColumns(screen, columns, fitting, { level, rows });
  }
  const last = columns.at(-1) as Column;
  for (const [level, room] of WRAPPED) {
    const others = widths(level).slice(0, -1);
    const left = most - total(others) - GAP;
    if (!last.isRight && left >= room) return inColumns(screen, columns, [...others, left], { level, rows });
  }
  return folded(screen, columns, { most, rows, firstColumns });
}

/** A cell of the first column is long above so many columns, and above this part of the terminal's width. */
const LONG = { columns: 24, part: 0.2 } as const;
/** The part of the rows that may have a long cell: each takes a line more. */
const LONG_ROWS = 0.25;

/** The width of a first column without its longest cells, if a few would take the room of all others. */
function usualWidth(first: Column, most: number): number {
  const widths = first.cells.map((cell) => width(formOf(cell, 2)));
  const usual = widths.filter((one) => one <= Math.max(LONG.columns, most * LONG.part));
  const isForFew = widths.length - usual.length <= widths.length * LONG_ROWS;
  return Math.max(width(first.heading), ...(isForFew ? usual : widths));
}

/** With times of this length, a last column is broken into lines if there are that many columns for it. */
const WRAPPED = [
  [0, 60],
  [1, 50],
  [2, 30],
] as const;

function total(widths: readonly number[]): number {
  return widths.reduce((sum, one) => sum + one, 0) + GAP * Math.max(0, widths.length - 1);
}

type Place = { level: Level; rows: number };

/** Cells that are wider than their column are broken into lines; one in the first column has a line of its own. */
function inColumns(
  screen: Screen,
  columns: readonly Column[],
  widths: readonly number[],
  { level, rows }: Place,
): LaidOut {
  const inPlace = (text: string, at: number, tone: Tone | null) => {
    const space = ' '.repeat(Math.max(0, (widths[at] ?? 0) - width(text)));
    const isLast = at === columns.length - 1;
    const painted = paint(screen, tone, text);
    return columns[at]?.isRight ? space + painted : isLast ? painted : painted + space;
  };
  const join = (cells: readonly string[]) => cells.join(' '.repeat(GAP)).trimEnd();
  const rowLines = (row: number): string[] => {
    const cells = columns.map(({ cells }) => cells[row] as Shown);
    const isLong = width(formOf(cells[0] as Shown, level)) > (widths[0] ?? 0);
    const texts = cells.map((cell, at) =>
      at === 0 ? [isLong ? '' : formOf(cell, level)] : wrap(formOf(cell, level), widths[at] ?? 0),
    );
    const height = Math.max(...texts.map(({ length }) => length));
    const lines = Array.from({ length: height }, (_, line) =>
      join(texts.map((lines, at) => inPlace(lines[line] ?? '', at, cells[at]?.tone ?? null))),
    );
    return isLong ? [formOf(cells[0] as Shown, level), ...lines.filter((line) => line !== '')] : lines;
  };
  return {
    headings: join(columns.map(({ heading }, at) => inPlace(heading.toUpperCase(), at, 'strong'))),
    lines: Array.from({ length: rows }, (_, row) => rowLines(row)),
  };
}

type Room = { most: number; rows: number; firstColumns: number };

/** The columns that fit, in their order; the others below each row, with their headings, if they have a value. */
function folded(screen: Screen, columns: readonly Column[], { most, rows, firstColumns }: Room): LaidOut {
  const kept: Column[] = [];
  const below: Column[] = [];
  const widths: number[] = [];
  for (const column of columns) {
    // Nothing would stand in it.
    if (column.cells.every(({ isEmpty }) => isEmpty)) continue;
    const its = kept.length === 0 ? firstColumns : widthOf(column, 2);
    const fits = kept.length === 0 || total([...widths, its]) <= most;
    (fits ? kept : below).push(column);
    if (fits) widths.push(its);
  }
  const { headings, lines } = inColumns(screen, kept, widths, { level: 2, rows });
  const details = (row: number): string[] =>
    below.flatMap(({ heading, cells }) => {
      const cell = cells[row] as Shown;
      if (cell.isEmpty) return [];
      const before = `${' '.repeat(INDENT)}${heading} `;
      const [first = '', ...more] = wrap(formOf(cell, 1), most - before.length);
      const indent = ' '.repeat(before.length);
      return [
        `${paint(screen, 'quiet', before)}${paint(screen, cell.tone, first)}`,
        ...more.map((line) => indent + paint(screen, cell.tone, line)),
      ];
    });
  return { headings, lines: lines.map((line, row) => [...line, ...details(row)]) };
}

/**
 * Names and values, a pair a line, the values aligned. A list has a line for each value; undefined has none. If most are
 * counts, those are aligned to the right.
 */
export function record(facts: Readonly<Record<string, Cell | readonly Cell[] | undefined>>): Block[] {
  const pairs = Object.entries(facts).flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().map((one) => [name, one as Cell] as const),
  );
  const indent = Math.max(0, ...pairs.map(([name]) => width(name))) + GAP;
  const counts = pairs.flatMap(([, value]) => (typeof value === 'number' ? [String(value).length] : []));
  const countColumns = counts.length * 2 > pairs.length ? Math.max(...counts) : 0;
  return [
    (screen) =>
      pairs.flatMap(([name, value]) => {
        const text =
          value === null || value === ''
            ? '-'
            : printable(String(value)).padStart(typeof value === 'number' ? countColumns : 0);
        const isFitted = screen.columns !== null;
        const shown = isFitted && isTime(text) ? exactTime(screen, text) : text;
        const tone = text === '-' ? 'quiet' : toneOf(name, text);
        const [first = '', ...more] = isFitted ? wrap(shown, (screen.columns ?? 0) - indent) : [shown];
        return [
          `${paint(screen, 'quiet', padded(name, indent))}${paint(screen, tone, first)}`,
          ...more.map((line) => ' '.repeat(indent) + paint(screen, tone, line)),
        ];
      }),
  ];
}
