import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { Config } from '../config/config.ts';
import { type Environment, nearest } from '../config/environment.ts';
import type { Clock } from '../work/clock.ts';
import type { ServerApi } from './connection.ts';
import { type ExitCode, Refusal, UsageError, whyUnreadable } from './exit.ts';
import type { Block } from './output.ts';
import { COLOUR_CHOICES, type Screen } from './screen.ts';
import { TARGET_OPTIONS } from './target.ts';

/** A command of `settled`. Dispatch, help and the errors about the command line are all made from this. */
export type Command<O extends Options = Options> = {
  /** One word or two: `orders list`. */
  readonly name: string;
  /** `REFERENCE`, `ID...`, in brackets if it is optional, or empty. */
  readonly positionals: string;
  readonly about: string;
  /** Further lines of help. */
  readonly details?: readonly string[];
  /** Command lines for help to show. */
  readonly examples?: readonly string[];
  readonly options: O;
  /** It needs this machine's own configuration and files, so it takes no address of a server elsewhere. */
  readonly isLocal?: true;
  /** Returns an exit code alone if the command has printed everything itself. */
  run(call: Call<O>): Promise<Report | ExitCode>;
};

export type Options = Readonly<Record<string, Option>>;
export type Option = {
  /** What its value is called in help; an option without one is a switch. */
  readonly value?: string;
  /** The only values that it takes. */
  readonly choices?: readonly string[];
  /** The command needs it; a text says what to do without it. */
  readonly needed?: true | string;
  readonly about: string;
};

/** What a command found: for a program, and the same for a person. */
export type Report = {
  readonly data: unknown;
  readonly lines: readonly Block[];
  /** `EXIT.ok` if left out. */
  readonly exit?: ExitCode;
};

type Call<O extends Options> = {
  readonly positionals: readonly string[];
  /** The first positional; the empty text if none was given. */
  readonly first: string;
  readonly options: Given<O>;
  /** Whether a program reads what the command prints. */
  readonly json: boolean;
  /** In place of the process's own. */
  readonly environment: Environment | undefined;
  /** Reads the configuration. Faults: `configuration_invalid`. */
  readonly config: () => Config;
  /** Connects to the running server: the one that --at names, else the one of the configuration. */
  readonly server: () => ServerApi;
  /** Whether that server is named by --at or SETTLED_AT, so that no configuration of this machine says anything of it. */
  readonly isElsewhere: () => boolean;
  /** What `print` shows on. */
  readonly screen: Screen;
  readonly clock: Clock;
  /** Prints what cannot wait for the report; false if the reader is gone. */
  readonly print: (text: string) => Promise<boolean>;
};

/** The options that were given: a text each, or true for a switch. Those that the command needs are there. */
type Given<O extends Options> = {
  readonly [Name in keyof O]?: O[Name] extends { readonly value: string } ? string : true;
} & { readonly [Name in keyof O as O[Name] extends { readonly needed: true | string } ? Name : never]: string };

/** `usage`: the name, and what follows it besides options. One without `options` takes only those of every command. */
type Definition<O extends Options> = Omit<Command<O>, 'name' | 'positionals' | 'options'> & {
  usage: string;
  options?: O;
};

/** Types `run` by the options of the command, then forgets them, so that all commands fit in one table. */
export function defineCommand<const O extends Options = Record<never, Option>>(definition: Definition<O>): Command {
  const { usage, ...rest } = definition as unknown as Definition<Options>;
  const [, name = '', positionals = ''] = /^([a-z -]*[a-z])(?: (.*))?$/.exec(usage) ?? [];
  return { options: {}, ...(rest as Omit<Command, 'name' | 'positionals' | 'options'>), name, positionals };
}

/** Options that every command takes. */
const COMMON_OPTIONS = {
  json: { about: 'print JSON for a program, and errors as JSON on standard error' },
  color: { value: 'WHEN', choices: COLOUR_CHOICES, about: 'when to use colours; auto asks the terminal and NO_COLOR' },
  help: { about: 'print how the command is used' },
} as const satisfies Options;

/** Options that may also stand before the command. */
export const LEADING_OPTIONS: Options = { ...COMMON_OPTIONS, ...TARGET_OPTIONS };

/** The options that a command takes besides its own. */
export function commonOptionsOf({ isLocal }: Command): Options {
  return isLocal ? COMMON_OPTIONS : { ...TARGET_OPTIONS, ...COMMON_OPTIONS };
}

export function optionsOf(command: Command): Options {
  return { ...command.options, ...commonOptionsOf(command) };
}

type Arguments = { positionals: string[]; options: Record<string, string | true> };

/** Reads what follows the command's name. Throws `UsageError`. */
export function readArguments(command: Command, args: readonly string[]): Arguments {
  const known = optionsOf(command);
  const types = Object.entries(known).map(([name, { value }]) => [name, { type: value ? 'string' : 'boolean' }]);
  const options = { ...Object.fromEntries(types), help: { type: 'boolean', short: 'h' } };
  const { tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true });
  const read: Arguments = { positionals: [], options: {} };
  for (const token of tokens) {
    if (token.kind === 'positional') read.positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const option = Object.hasOwn(known, token.name) ? known[token.name] : undefined;
    if (option === undefined) {
      const list = Object.keys(known).map((name) => `--${name}`);
      const guess = didYouMean(token.rawName, list);
      const advice = guess === '' ? ` It has: ${list.join(', ')}.` : `${guess} See: settled help ${command.name}`;
      throw new UsageError(`\`settled ${command.name}\` has no option ${token.rawName}.${advice}`);
    }
    if (read.options[token.name] !== undefined) throw new UsageError(`--${token.name} is given twice. Give it once.`);
    read.options[token.name] = readValue(option, token);
  }
  if (read.options.help === undefined) {
    checkPositionals(command, read.positionals);
    checkNeeded(command, read.options);
  }
  return read;
}

type Token = { name: string; value: string | undefined; inlineValue: boolean | undefined };

function readValue(option: Option, { name, value, inlineValue }: Token): string | true {
  if (option.value === undefined) {
    if (value === undefined) return true;
    throw new UsageError(`--${name} is a switch and takes no value.`);
  }
  if (value === undefined) throw new UsageError(`--${name} needs a value: --${name} ${option.value}.`);
  if (!inlineValue && value.startsWith('-') && value !== '-') {
    throw new UsageError(
      `--${name} needs a value, and ${value} looks like an option. Give a value that begins with a dash as ` +
        `--${name}=${value}.`,
    );
  }
  if (option.choices !== undefined && !option.choices.includes(value)) {
    const guess = didYouMean(value, option.choices);
    throw new UsageError(`--${name} is "${value}".${guess} Choose one of: ${option.choices.join(', ')}.`);
  }
  return value;
}

/** ` Did you mean …?` for an error message; empty if nothing is similar. */
export function didYouMean(given: string, names: readonly string[]): string {
  const meant = nearest(given, names);
  return meant === null ? '' : ` Did you mean ${/[ -]/.test(meant) ? `\`${meant}\`` : meant}?`;
}

/** What the server says of a field of the request, said of the option or the argument that gave it. */
export function inWordsOf(command: Command, error: unknown): unknown {
  if (!(error instanceof Refusal) || error.code !== 'invalid_request') return error;
  const message = error.message.replace(/(^|; )(?:filter\.)?([a-zA-Z]+): /g, (field, before, name: string) => {
    const option = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    if (Object.hasOwn(command.options, option)) return `${before}--${option} `;
    return command.positionals === name.toUpperCase() ? `${before}${command.positionals} ` : field;
  });
  return new Refusal(error.code, message);
}

/** How a command is written, with all that it cannot do without. */
export function usageOf({ name, positionals, options }: Command): string {
  const needed = Object.entries(options).filter(([, { needed }]) => needed !== undefined);
  return ['settled', name, positionals, ...needed.map(([option, { value }]) => `--${option} ${value}`)]
    .filter((word) => word !== '')
    .join(' ');
}

function checkPositionals(command: Command, given: readonly string[]): void {
  const { name, positionals } = command;
  const isOptional = positionals.startsWith('[');
  const isMany = /\.\.\.\]?$/.test(positionals);
  const word = positionals.replace(/[[\].]/g, '');
  if (given.length === 0 && positionals !== '' && !isOptional) {
    throw new UsageError(`\`settled ${name}\` needs ${word}. Usage: ${usageOf(command)}`);
  }
  if (given.includes('')) throw new UsageError(`${word || 'An argument'} must not be empty.`);
  const most = positionals === '' ? 0 : isMany ? Number.POSITIVE_INFINITY : 1;
  if (given.length > most) {
    const takes = most === 0 ? 'takes no argument' : `takes one ${word}`;
    throw new UsageError(`\`settled ${name}\` ${takes}, so "${given[most]}" is too much. See: settled help ${name}`);
  }
}

function checkNeeded({ name, options }: Command, given: Arguments['options']): void {
  const lacking = Object.entries(options).filter(
    ([option, { needed }]) => needed !== undefined && given[option] === undefined,
  );
  if (lacking.length === 0) return;
  const list = lacking.map(([option, { value }]) => `--${option} ${value}`).join(' and ');
  const advice = lacking.flatMap(([, { needed }]) => (typeof needed === 'string' ? [` ${needed}`] : []));
  throw new UsageError(`\`settled ${name}\` needs ${list}.${advice.join('')}`);
}

/** An option's value as a whole number from `min` on. */
export function wholeNumber(name: string, text: string, min: number): number {
  const value = Number(text);
  if (/^[0-9]{1,15}$/.test(text) && value >= min) return value;
  throw new UsageError(`--${name} is "${text}". Write a whole number from ${min} on.`);
}

/** Reads the file that an option names; `-` is standard input. */
export function readGivenFile(option: string, path: string): Buffer {
  try {
    return readFileSync(path === '-' ? 0 : path);
  } catch (error) {
    throw new UsageError(`--${option} ${path} ${whyUnreadable(error)}.`);
  }
}
