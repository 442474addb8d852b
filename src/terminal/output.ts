import { createRequire } from 'node:module';
import { stripVTControlCharacters } from 'node:util';
import type stringWidth from 'string-width';
import { escapeMarks } from '../json.ts';
import type { Failure } from './failure.ts';
import { PIPE, paint, type Screen, type Tone } from './screen.ts';

/** What a command prints, as text: lines for a person, a line of JSON for a program. */

/**
 * A sentence, which a terminal shows broken between words, or lines that depend on what they are shown on. Those must be
 * `printable`; a sentence is made so.
 */
export type Block = string | ((screen: Screen) => readonly string[]);

/** A report as it is printed on standard output. */
export function reportText(
  { data, lines }: { data: unknown; lines: readonly Block[] },
  json: boolean,
  screen = PIPE,
): string {
  return json ? jsonLine(data) : `${shownLines(lines, screen).join('\n')}\n`;
}

/** Lines as they are shown on a screen. */
export function shownLines(lines: readonly Block[], screen: Screen = PIPE): string[] {
  return lines.flatMap((part) => (typeof part === 'string' ? prose(part) : part)(screen));
}

/** A failure as it is printed on standard error. */
export function failureText({ code, message, exit }: Failure, json: boolean, screen = PIPE): string {
  if (json) return jsonLine({ error: { code, message, exit } });
  const name = 'settled:';
  const text = `${name} ${message}`;
  // The stack of a bug stays as it is.
  const lines = shownLines([code === 'bug' ? verbatim(text) : text], screen);
  return `${lines.join('\n').replace(name, paint(screen, 'bad', name))}\n`;
}

export function jsonLine(data: unknown): string {
  return `${escapeMarks(JSON.stringify(data))}\n`;
}

/** Lines that a person copies, or that came from outside, such as a body: the terminal alone breaks them. */
export function verbatim(text: string): Block {
  return () => printableLines(text);
}

/** A heading. */
export function strong(text: string): Block {
  return (screen) => [paint(screen, 'strong', text)];
}

/** A sentence, or several, below `indent` spaces. */
export function prose(text: string, indent = 0): Exclude<Block, string> {
  return (screen) => printableLines(text).flatMap((line) => hanging(screen, ' '.repeat(indent), line));
}

/** What stands at the right needs this many columns, or stands below. */
const RIGHT_COLUMNS_MIN = 30;

/**
 * A text behind what stands at its left, which may be painted: on a terminal broken into lines that begin at the same
 * column, or below the left if there is too little room. Both must be `printable`.
 */
export function hanging(screen: Screen, left: string, text: string, tone: Tone | null = null): string[] {
  const start = width(left);
  const room = (screen.columns ?? Number.POSITIVE_INFINITY) - start;
  const isBelow = start > BELOW && room < Math.min(RIGHT_COLUMNS_MIN, width(text));
  const indent = isBelow ? BELOW : start;
  const lines = wrap(text, isBelow ? room + start - BELOW : room).map((line) => paint(screen, tone, line));
  const behind = isBelow ? [left, ' '.repeat(indent) + lines[0]] : [left + lines[0]];
  return [...behind, ...lines.slice(1).map((line) => ' '.repeat(indent) + line)].map((line) => line.trimEnd());
}

/** Where a text begins that stands below what should be at its left. */
const BELOW = 6;

/** What stays on one line if it fits on one, for a person who copies it: what is in backquotes, and commands at an end. */
const UNBROKEN =
  /`[^`]*`\S*|(?<=: )settled (?:why|help|doctor|attention|orders|links|events|notices|tokens|bulk|rejections)\b.*?(?:\.(?= [A-Z])|,(?= settled )|(?= \()|$)|\S+/g;

/** As much on a line as fits. What does not fit on a line of its own is left for the terminal to break. */
function wrap(text: string, columns: number): string[] {
  if (width(text) <= columns) return [text];
  const [, space = '', mark = '', rest = ''] = /^( *)((?:- |\d\. )?)(.*)$/s.exec(text) ?? [];
  const indent = ' '.repeat(space.length + mark.length);
  const lines: string[] = [];
  let line = '';
  for (const [piece] of rest.matchAll(UNBROKEN)) {
    const longer = line === '' ? indent + piece : `${line} ${piece}`;
    if (line !== '' && width(longer) > columns) {
      lines.push(line);
      line = indent + piece;
    } else line = longer;
  }
  return [...lines, line].map((one, at) => (at === 0 ? space + mark + one.slice(indent.length) : one));
}

const SIZES = [
  ['GB', 1e9],
  ['MB', 1e6],
  ['KB', 1e3],
] as const;

/** `569 KB`, `1.2 MB`: three digits at most say enough. */
export function inBytes(bytes: number): string {
  const [unit, size] = SIZES.find(([, size]) => bytes >= size) ?? ['bytes', 1];
  const n = bytes / size;
  return `${n < 10 && size > 1 ? n.toFixed(1) : Math.round(n)} ${bytes === 1 ? 'byte' : unit}`;
}

/** Text with spaces up to a width; wider text as it is. */
export function padded(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - width(text)));
}

const require = createRequire(import.meta.url);
let widthOfAny: typeof stringWidth | undefined;
const ASCII = /^[\x20-\x7e]*$/;

/** The columns that a text takes on a terminal, painted or not. */
export function width(text: string): number {
  const shown = text.includes('\u001b') ? stripVTControlCharacters(text) : text;
  if (ASCII.test(shown)) return shown.length;
  // Loaded when it is needed: that takes 20 ms.
  widthOfAny ??= (require('string-width') as { default: typeof stringWidth }).default;
  return widthOfAny(shown);
}

/** Control characters, which a terminal would obey, and the marks that change the direction of writing. */
const UNPRINTABLE = /[\p{Cc}\u061C\u200E\u200F\u2028\u2029\u202A-\u202E\u2066-\u2069]/gu;

/** Text from outside on one line, with control characters escaped. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, escaped);
}

/** As `printable`, but keeps line ends and tabs. */
function printableLines(text: string): string[] {
  return text.split(/\r?\n/).map((line) => line.replace(UNPRINTABLE, (c) => (c === '\t' ? c : escaped(c))));
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
