import { width } from './screen.ts';

const QUANTITY = /^-?\d+(\.\d+ [A-Z]{3})?$/;

/**
 * Rows in columns under a line of headings, amounts and counts to the right; `nothing` if there are none. Escapes text that
 * could steer a terminal.
 */
export function table(
  headings: readonly string[],
  rows: readonly (readonly (string | number | null)[])[],
  nothing: string,
): string[] {
  if (rows.length === 0) return [nothing];
  const all = [headings.map((heading) => heading.toUpperCase()), ...rows.map((row) => row.map(cell))];
  const widths = headings.map((_, column) => Math.max(...all.map((row) => width(row[column] ?? ''))));
  const areRight = headings.map((_, column) => {
    const cells = all.slice(1).map((row) => row[column] ?? '');
    return cells.some((text) => QUANTITY.test(text)) && cells.every((text) => text === '-' || QUANTITY.test(text));
  });
  return all.map((row) =>
    row
      .map((text, column) => {
        const space = ' '.repeat((widths[column] ?? 0) - width(text));
        return areRight[column] ? space + text : text + space;
      })
      .join('  ')
      .trimEnd(),
  );
}

/** Names and values, one pair a line. */
export function record(pairs: readonly (readonly [string, string | number | null])[]): string[] {
  const width = Math.max(...pairs.map(([name]) => name.length));
  return pairs.map(([name, value]) => `  ${name.padEnd(width)}  ${cell(value)}`);
}

/** Shows what it cuts off as an ellipsis. */
export function shorten(text: string, lengthMax: number): string {
  return text.length <= lengthMax ? text : `${text.slice(0, lengthMax - 1)}…`;
}

/** Escapes the characters that could steer a terminal. */
export function printable(text: string): string {
  return text.replace(
    /[\p{Cc}\u2028\u2029\u202A-\u202E\u2066-\u2069]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function cell(value: string | number | null): string {
  return value === null || value === '' ? '-' : printable(String(value));
}
