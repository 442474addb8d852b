import { parseArgs } from 'node:util';
import type { Command, Option, Options } from './command.ts';

/** The command line cannot be understood. The message says what there is. */
export class UsageError extends Error {
  readonly code = 'usage';
}

/** Options that every command takes. */
export const COMMON_OPTIONS = {
  json: { about: 'print JSON for a program, and errors as JSON on standard error' },
  help: { about: 'print how the command is used' },
} as const satisfies Options;

export type Arguments = { positionals: string[]; options: Record<string, string | true> };

/** Reads what follows the command's name. Throws `UsageError`. */
export function readArguments(command: Command, args: readonly string[]): Arguments {
  const known: Options = { ...command.options, ...COMMON_OPTIONS };
  const types = Object.entries(known).map(([name, { value }]) => {
    const type: 'string' | 'boolean' = value === undefined ? 'boolean' : 'string';
    return [name, name === 'help' ? { type, short: 'h' } : { type }] as const;
  });
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(types),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const read: Arguments = { positionals: [], options: {} };
  for (const token of tokens) {
    if (token.kind === 'positional') read.positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const option = Object.hasOwn(known, token.name) ? known[token.name] : undefined;
    if (option === undefined) throw unknownOption(command, token.rawName);
    if (read.options[token.name] !== undefined) {
      throw new UsageError(`--${token.name} is given twice. Give it once.`);
    }
    read.options[token.name] = readValue(option, token);
  }
  if (read.options.help === undefined) checkPositionals(command, read.positionals);
  return read;
}

function unknownOption({ name, options }: Command, given: string): UsageError {
  const list = Object.keys({ ...options, ...COMMON_OPTIONS }).map((option) => `--${option}`);
  return new UsageError(`\`settled ${name}\` has no option ${given}. It has: ${list.join(', ')}.`);
}

function readValue(
  option: Option,
  { name, value, inlineValue }: { name: string; value: string | undefined; inlineValue: boolean | undefined },
): string | true {
  if (option.value === undefined) {
    if (value === undefined) return true;
    throw new UsageError(`--${name} is a switch and takes no value.`);
  }
  if (value === undefined) throw new UsageError(`--${name} needs a value: --${name} ${option.value}.`);
  if (!inlineValue && value.startsWith('-') && value !== '-') {
    throw new UsageError(
      `--${name} needs a value, and ${value} looks like an option. A value that begins with a dash is given as ` +
        `--${name}=${value}.`,
    );
  }
  if (option.choices !== undefined && !option.choices.includes(value)) {
    throw new UsageError(`--${name} is "${value}". Choose one of: ${option.choices.join(', ')}.`);
  }
  return value;
}

function checkPositionals({ name, positionals }: Command, given: readonly string[]): void {
  const isOptional = positionals.startsWith('[');
  const isMany = /\.\.\.\]?$/.test(positionals);
  const word = positionals.replace(/[[\].]/g, '');
  if (given.length === 0 && positionals !== '' && !isOptional) {
    throw new UsageError(`\`settled ${name}\` needs ${word}. Usage: settled ${name} ${positionals}`);
  }
  if (given.includes('')) throw new UsageError(`${word || 'An argument'} must not be empty.`);
  const most = positionals === '' ? 0 : isMany ? Number.POSITIVE_INFINITY : 1;
  if (given.length > most) {
    const takes = most === 0 ? 'takes no argument' : `takes one ${word}`;
    throw new UsageError(`\`settled ${name}\` ${takes}, so "${given[most]}" is too much. See: settled help ${name}`);
  }
}

/** An option's value as a whole number from `min` on. */
export function wholeNumber(name: string, text: string, min: number): number {
  const value = Number(text);
  if (/^[0-9]{1,15}$/.test(text) && value >= min) return value;
  throw new UsageError(`--${name} is "${text}". Write a whole number from ${min} on.`);
}
