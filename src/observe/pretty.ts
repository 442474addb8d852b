import pretty from 'pino-pretty';
import { escapeMarks } from '../json.ts';

/**
 * Returns a function that rewrites a line of JSON for people: local time, level, message, then the fields as
 * `name=value`. A stack, or a text of several lines, follows below. Its input is redacted already.
 */
export function prettyLines({ colours }: { colours: boolean }): (json: string) => string {
  const prettify = pretty.prettyFactory({
    colorize: colours,
    customColors: 'message:reset,debug:blue,info:green,warn:yellow,error:red,fatal:bgRed',
    translateTime: 'SYS:HH:MM:ss.l',
    customPrettifiers: { time: String },
    hideObject: true,
    messageFormat: ({ level: _, time: __, msg, ...fields }, _key, _label, { colors }) => {
      const shown = Object.entries(fields).map(([name, value]) => [name, ...shownValue(value)] as const);
      const inline = shown.map(([name, text]) => ` ${colors.gray(`${oneLine(name)}=`)}${text}`);
      const below = shown.flatMap(([, , ...lines]) => lines.map((line) => `\n    ${oneLine(line)}`));
      return [oneLine(String(msg ?? '')), inline.length === 0 ? '' : ' ', ...inline, ...below].join('');
    },
  });
  return (json) => prettify(escapeMarks(json));
}

/** Text that needs no quotation marks. */
const PLAIN = /^[\p{L}\p{N}_.:/@+-]+$/u;

/** A value for the line, and the lines to show below it. */
function shownValue(value: unknown): readonly [string, ...string[]] {
  if (typeof value === 'string') return [quoted(value)];
  if (isFault(value)) return shownFault(value);
  if (isAddress(value)) return [quoted(`${value.host}:${value.port}`)];
  return [escapeMarks(JSON.stringify(value))];
}

function quoted(text: string): string {
  return PLAIN.test(text) ? text : escapeMarks(JSON.stringify(text));
}

type ShownFault = { code?: string; message: string; stack?: string };

function shownFault({ code = 'bug', message, stack }: ShownFault): readonly [string, ...string[]] {
  if (stack === undefined && !message.includes('\n')) return [quoted(`${code}: ${message}`)];
  return [quoted(code), ...(stack ?? message).split('\n')];
}

function isFault(value: unknown): value is ShownFault {
  return typeof value === 'object' && value !== null && typeof (value as ShownFault).message === 'string';
}

type Address = { host: string; port: number };

function isAddress(value: unknown): value is Address {
  return typeof value === 'object' && value !== null && 'host' in value && 'port' in value;
}

/** Text without quotation marks, with every character escaped that could control a terminal. */
function oneLine(text: string): string {
  return escapeMarks(JSON.stringify(text))
    .slice(1, -1)
    .replace(/\\(["\\])/g, '$1');
}
