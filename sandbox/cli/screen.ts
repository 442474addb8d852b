import { createRequire } from 'node:module';
import type stringWidth from 'string-width';

/** How text is fitted to the width of a terminal. */

const require = createRequire(import.meta.url);
const ASCII = /^[\x20-\x7e]*$/;

/** The columns that a text takes on a terminal. */
export function width(text: string): number {
  if (ASCII.test(text)) return text.length;
  return (require('string-width') as { default: typeof stringWidth }).default(text);
}

/** A last cell that would be given fewer columns stands below its row. */
const CELL_COLUMNS_MIN = 30;

/**
 * Breaks lines that are too wide between words. What stands in columns continues below its own column if the row has two
 * of them; a row of more is left for the terminal to break. `columns`: undefined in a pipe, where nothing is broken.
 */
export function fitted(text: string, columns: number | undefined): string {
  if (columns === undefined) return text;
  return text
    .split('\n')
    .flatMap((line) => (width(line) <= columns ? [line] : fittedLine(line, columns)))
    .join('\n');
}

function fittedLine(line: string, columns: number): string[] {
  const [, indent = '', first = '', gap = '', rest = ''] = /^( *)(\S+(?: \S+)*)(?:( {2,})(.*))?$/.exec(line) ?? [];
  if (first === '' || / {2,}/.test(rest)) return [line];
  if (rest === '') return wrap(first, indent, columns);
  const column = width(indent + first + gap);
  if (columns - column < CELL_COLUMNS_MIN) return [indent + first, ...wrap(rest, `${indent}    `, columns)];
  const [head = '', ...more] = wrap(rest, ' '.repeat(column), columns);
  return [indent + first + gap + head.trimStart(), ...more];
}

function wrap(text: string, indent: string, columns: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const longer = `${lines.at(-1)} ${word}`;
    if (lines.length === 0 || width(longer) > columns) lines.push(indent + word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}
