import { escapeMarks } from '../json.ts';
import type { Report } from './command.ts';
import { CommandError, type Failure } from './exit.ts';

/** Everything that a command prints: aligned columns for a person, a line of JSON for a program. */

/** Resolves when all is written; false if the reader has seen enough and is gone, as `head` is, which is no error. */
export function print(text: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error?: NodeJS.ErrnoException | null) => {
      if (!error || error.code === 'EPIPE') resolve(!error);
      else reject(new CommandError('output_failed', `The output cannot be written (${error.code}), and is not whole.`));
    });
  });
}

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

/** Rows in columns under a line of headings; `nothing` if there are no rows. Null and empty cells show as `-`. */
export function table(
  headings: readonly string[],
  rows: readonly (readonly (string | number | null)[])[],
  nothing: string,
): string[] {
  if (rows.length === 0) return [nothing];
  const all = [headings.map((heading) => heading.toUpperCase()), ...rows.map((row) => row.map(cell))];
  const widths = headings.map((_, column) => Math.max(...all.map((row) => width(row[column] ?? ''))));
  return all.map((row) =>
    row
      .map((text, column) => padded(text, widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** Names and values, a pair a line, the values aligned. */
export function record(pairs: readonly (readonly [string, string | number | null])[]): string[] {
  const names = Math.max(...pairs.map(([name]) => name.length));
  return pairs.map(([name, value]) => `${name.padEnd(names)}  ${cell(value)}`);
}

function cell(value: string | number | null): string {
  return value === null || value === '' ? '-' : printable(String(value));
}

/** Text with spaces up to a width; wider text as it is. */
export function padded(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - width(text)));
}

function width(text: string): number {
  return [...text].length;
}

/** `1 event`, `2 events`. */
export function count(n: number, one: string): string {
  return `${n} ${n === 1 ? one : `${one}s`}`;
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
