/** Text for a person: aligned columns, and nothing that could steer a terminal. */

/** Control characters, which a terminal would obey, and the marks that turn the direction of writing. */
const UNPRINTABLE = /[\p{Cc}\u061C\u200E\u200F\u2028\u2029\u202A-\u202E\u2066-\u2069]/gu;

/** Text from outside on one line, with control characters written out. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, writtenOut);
}

/** As `printable`, but keeps line ends and tabs. */
export function printableLines(text: string): string[] {
  return text.split(/\r?\n/).map((line) => line.replace(UNPRINTABLE, (c) => (c === '\t' ? c : writtenOut(c))));
}

function writtenOut(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Rows in columns under a line of headings; `nothing` where there are no rows. Null and empty cells show as `-`. */
export function table(
  headings: readonly string[],
  rows: readonly (readonly (string | number | null)[])[],
  nothing: string,
): string[] {
  if (rows.length === 0) return [nothing];
  const cells = rows.map((row) => row.map(cell));
  const all = [headings.map((heading) => heading.toUpperCase()), ...cells];
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

export function count(n: number, one: string, many = `${one}s`): string {
  return `${n} ${n === 1 ? one : many}`;
}

function cell(value: string | number | null): string {
  return value === null || value === '' ? '-' : printable(String(value));
}

/** Text with spaces up to a width; as it is where it is wider. */
export function padded(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - width(text)));
}

function width(text: string): number {
  return [...text].length;
}
