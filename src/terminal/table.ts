import { type Block, hanging, padded, printable, width } from './output.ts';
import { ageOf, isTime, paint, type Screen, toneOf, utcTime } from './screen.ts';

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

const GAP = '  ';
/** A last column that is too wide is broken into lines if there is room for this much of it. */
const LAST_COLUMNS_MIN = 30;

/**
 * Rows in columns under a line of headings; amounts and counts are aligned to the right. On a terminal that is too narrow
 * for the times, they become ages, and empty columns go; then the last column is broken into lines; and the columns that
 * still do not fit stand below their row.
 */
export function table<Row>(
  rows: readonly Row[],
  columns: Columns<Row>,
  { nothing = '', below = () => null }: TableOptions<Row> = {},
): Block[] {
  if (rows.length === 0) return [nothing];
  const cells = Object.entries(columns).map(([heading, of]) => ({
    heading,
    cells: rows.map((row) => (typeof of === 'function' ? of(row) : (row[of] as Cell))),
  }));
  return [
    (screen) => {
      const { beside, under } = layOut(screen, cells.map(columnOf));
      const lead = beside.slice(0, -1);
      const last = beside.at(-1) as Column;
      const leadOf = (textOf: (column: Column) => string, toneOf: (column: Column) => Tone) =>
        lead.map((column) => `${inPlace(column, paint(screen, toneOf(column), textOf(column)))}${GAP}`).join('');
      const lastOf = (text: string) => (last.isRight ? inPlace(last, text) : text);
      const headingOf = ({ heading }: Column) => heading.toUpperCase();
      const rowLines = (row: Row, at: number): string[] => {
        const textOf = (column: Column) => column.texts[at] as string;
        const toneIn = (column: Column) => toneOf(column.heading, textOf(column));
        const note = below(row);
        const rest = under
          .filter((column) => textOf(column) !== '-')
          .map((column) => `${column.heading} ${paint(screen, toneIn(column), textOf(column))}`);
        return [
          ...hanging(screen, leadOf(textOf, toneIn), lastOf(textOf(last)), toneIn(last)),
          ...(rest.length === 0 ? [] : hanging(screen, '    ', rest.join('; '))),
          ...(note === null ? [] : hanging(screen, GAP, printable(note))),
        ];
      };
      const headings = leadOf(headingOf, () => 'strong') + paint(screen, 'strong', lastOf(headingOf(last)));
      return [headings, ...rows.flatMap(rowLines)];
    },
  ];
}

type Tone = Parameters<typeof paint>[1];
type Column = { heading: string; texts: readonly string[]; isRight: boolean; columns: number };

const AMOUNT = /^-?\d+(\.\d+)? [A-Z][A-Z0-9]{2,11}( \(.*\))?$/;

function columnOf({ heading, cells }: { heading: string; cells: readonly Cell[] }): Column {
  const isQuantity = (cell: Cell) => typeof cell === 'number' || (typeof cell === 'string' && AMOUNT.test(cell));
  const isOther = (cell: Cell) => cell === null || cell === '' || cell === '-' || isTime(String(cell));
  const texts = cells.map((cell) => (cell === null || cell === '' ? '-' : printable(String(cell))));
  const isRight = cells.some(isQuantity) && cells.every((cell) => isQuantity(cell) || isOther(cell));
  return { heading, texts, isRight, columns: widest([heading, ...texts]) };
}

function widest(texts: readonly string[]): number {
  return texts.reduce((most, text) => Math.max(most, width(text)), 0);
}

/** The columns that stand beside each other, and those that do not fit. */
function layOut(screen: Screen, columns: readonly Column[]): { beside: readonly Column[]; under: readonly Column[] } {
  const { columns: most } = screen;
  if (most === null) return { beside: columns, under: [] };
  const wide = columns.map((column) => withTimes(column, utcTime));
  if (total(wide.map(({ columns }) => columns)) <= most) return { beside: wide, under: [] };
  const narrow = columns
    .filter(({ texts }, at) => at === 0 || texts.some((text) => text !== '-'))
    .map((column) => withTimes(column, (time) => ageOf(screen, time)));
  const last = narrow.at(-1) as Column;
  const least = narrow.map((column) =>
    column === last && !last.isRight ? Math.min(last.columns, LAST_COLUMNS_MIN) : column.columns,
  );
  const fitting = least.findLastIndex((_, at) => total(least.slice(0, at + 1)) <= most);
  const beside = Math.max(1, fitting + 1);
  return { beside: narrow.slice(0, beside), under: narrow.slice(beside) };
}

function withTimes(column: Column, shown: (time: string) => string): Column {
  if (!column.texts.some(isTime)) return column;
  const texts = column.texts.map((text) => (isTime(text) ? shown(text) : text));
  return { ...column, texts, columns: widest([column.heading, ...texts]) };
}

function total(widths: readonly number[]): number {
  return widths.reduce((sum, one) => sum + one + GAP.length, -GAP.length);
}

function inPlace({ isRight, columns }: Column, text: string): string {
  return isRight ? ' '.repeat(Math.max(0, columns - width(text))) + text : padded(text, columns);
}

type Fact = Cell | boolean | undefined;

/** Names and values, a pair a line, the values aligned. A list has a line for each value; undefined has none. */
export function record(facts: Readonly<Record<string, Fact | readonly Fact[]>>): Block[] {
  const pairs = Object.entries(facts).flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().map((one) => [name, String(one ?? '')] as const),
  );
  const indent = widest(pairs.map(([name]) => name)) + GAP.length;
  return [
    (screen) =>
      pairs.flatMap(([name, value]) => {
        const text = printable(value || '-');
        const shown = screen.columns !== null && isTime(text) ? `${text}  (${ageOf(screen, text)})` : text;
        return hanging(screen, paint(screen, 'quiet', padded(name, indent)), shown, toneOf(name, text));
      }),
  ];
}
