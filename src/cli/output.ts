import { escapeMarks } from '../json.ts';
import type { Report } from './command.ts';
import type { Failure } from './exit.ts';

/** What a command prints, as text: aligned columns for a person, a line of JSON for a program. */

/** A report as it is printed on standard output. */
export function reportText({ data, lines }: Report, json: boolean): string {
  return json ? jsonLine(data) : `${lines.join('\n')}\n`;
}

/** A failure as it is printed on standard error. */
export function failureText({ code, message, exit }: Failure, json: boolean): string {
  return json ? jsonLine({ error: { code, message, exit } }) : `settled: ${printableLines(message).join('\n')}\n`;
}

export function jsonLine(data: unknown): string {
  return `${escapeMarks(JSON.stringify(data))}\n`;
}

/** Null and the empty text show as `-`. */
type Cell = string | number | null;

/** The columns of a table: under each heading a field of the row, or what a function makes of the row. */
export type Columns<Row> = Readonly<Record<string, (keyof Row & string) | ((row: Row) => Cell)>>;

/** Rows in columns under a line of headings; `nothing` if there are no rows. */
export function table<Row>(rows: readonly Row[], columns: Columns<Row>, nothing = ''): string[] {
  if (rows.length === 0) return [nothing];
  const shown = Object.entries(columns).map(([heading, of]) => {
    const cells = rows.map((row) => cell(typeof of === 'function' ? of(row) : (row[of] as Cell)));
    return inColumn([heading.toUpperCase(), ...cells]);
  });
  return [null, ...rows].map((_, line) =>
    shown
      .map((column) => column[line])
      .join('  ')
      .trimEnd(),
  );
}

/** Names and values, a pair a line, the values aligned. A list has a line for each value; undefined has none. */
export function record(facts: Readonly<Record<string, Cell | readonly Cell[] | undefined>>): string[] {
  const pairs = Object.entries(facts).flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().map((one) => [name, cell(one as Cell)] as const),
  );
  const names = inColumn(pairs.map(([name]) => name));
  return pairs.map(([, value], line) => `${names[line]}  ${value}`);
}

function cell(value: Cell): string {
  return value === null || value === '' ? '-' : printable(String(value));
}

function inColumn(texts: readonly string[]): string[] {
  const columns = Math.max(...texts.map(width));
  return texts.map((text) => padded(text, columns));
}

/** Text with spaces up to a width; wider text as it is. */
export function padded(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - width(text)));
}

function width(text: string): number {
  return [...text].length;
}

/** Control characters, which a terminal would obey, and the marks that change the direction of writing. */
const UNPRINTABLE = /[\p{Cc}\u061C\u200E\u200F\u2028\u2029\u202A-\u202E\u2066-\u2069]/gu;

/** Text from outside on one line, with control characters escaped. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, escaped);
}

/** As `printable`, but keeps line ends and tabs. */
export function printableLines(text: string): string[] {
  return text.split(/\r?\n/).map((line) => line.replace(UNPRINTABLE, (c) => (c === '\t' ? c : escaped(c))));
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
