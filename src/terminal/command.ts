import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { didYouMean, UsageError, whyUnreadable } from './failure.ts';
import type { Block } from './output.ts';
import type { Screen } from './screen.ts';

/** A command. Dispatch, help, completion and the errors about the command line are all made from this. */
export type Command<Around = object> = Omit<Definition<Options, Around>, 'usage' | 'options'> & {
  /** One word or two: `orders list`. */
  readonly name: string;
  /** `REFERENCE`, `ID...`, in brackets if it is optional, or empty. */
  readonly positionals: string;
  readonly options: Options;
};

/** What a program says of a command. `Around`: what a call has besides what is read from the command line. */
export type Definition<O extends Options, Around> = {
  /** The name, and what follows it besides options. */
  readonly usage: string;
  readonly about: string;
  /** Further lines of help. */
  readonly details?: readonly string[];
  /** Command lines for help to show. */
  readonly examples?: readonly string[];
  /** One without takes only those of every command. */
  readonly options?: O;
  /** The only values that its argument takes. */
  readonly choices?: readonly string[];
  /** It asks no server, so it takes none of the options that say which. */
  readonly isLocal?: true;
  /** Returns an exit code alone if the command has printed everything itself. */
  run(call: CommandCall<O> & Around): Promise<Report | number>;
};

export type Options = Readonly<Record<string, Option>>;
export type Option = {
  /** What its value is called in help; an option without one is a switch. */
  readonly value?: string;
  /** The only values that it takes. */
  readonly choices?: readonly string[];
  /** The command needs it; a text says what to do without it. */
  readonly needed?: true | string;
  /** It may be given several times. */
  readonly isRepeatable?: true;
  readonly about: string;
};

/** What a command found: for a program, and the same for a person. */
export type Report = {
  readonly data: unknown;
  readonly lines: readonly Block[];
  /** 0 if left out. */
  readonly exit?: number;
};

export type CommandCall<O extends Options> = {
  readonly positionals: readonly string[];
  /** The first positional; the empty text if none was given. */
  readonly first: string;
  readonly options: Given<O>;
  /** Whether a program reads what the command prints. */
  readonly json: boolean;
  /** What `print` shows on. */
  readonly screen: Screen;
  /** Prints what cannot wait for the report; false if the reader is gone. */
  readonly print: (text: string) => Promise<boolean>;
};

/** The options that were given: a text each, a list, or true for a switch. Those that the command needs are there. */
export type Given<O extends Options> = {
  readonly [Name in keyof O]?: O[Name] extends { readonly isRepeatable: true }
    ? readonly string[]
    : O[Name] extends { readonly value: string }
      ? string
      : true;
} & { readonly [Name in keyof O as O[Name] extends { readonly needed: true | string } ? Name : never]: string };

/** Types `run` by the options of the command, then forgets them, so that all commands fit in one table. */
export function commandOf<O extends Options, Around>(definition: Definition<O, Around>): Command<Around> {
  const { usage, ...rest } = definition as unknown as Definition<Options, Around>;
  const [, name = '', positionals = ''] = /^([a-z_ -]*[a-z])(?: (.*))?$/.exec(usage) ?? [];
  return { options: {}, ...rest, name, positionals };
}

/** Options that every command takes. */
export const COMMON_OPTIONS = {
  json: { about: 'print JSON for a program, and errors as JSON on standard error' },
  help: { about: 'print how the command is used' },
} as const satisfies Options;

export type Arguments = { positionals: string[]; options: Record<string, string | true | string[]> };

type Commanded = { command: Command<never>; title: string; known: Options };

/**
 * Reads what follows the command's name. `title`: how the command is called; `known`: the options that it takes. Throws
 * `UsageError`.
 */
export function readArguments({ command, title, known }: Commanded, args: readonly string[]): Arguments {
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
      const advice = guess === '' ? ` It has: ${list.join(', ')}.` : `${guess} See: ${title} --help`;
      throw new UsageError(`\`${title}\` has no option ${token.rawName}.${advice}`);
    }
    const value = readValue(option, token);
    const before = read.options[token.name];
    if (before !== undefined && option.isRepeatable === undefined) {
      throw new UsageError(`--${token.name} is given twice. Give it once.`);
    }
    read.options[token.name] = option.isRepeatable ? [...((before as string[]) ?? []), value as string] : value;
  }
  if (read.options.help === undefined) {
    checkPositionals(command, title, read.positionals);
    checkNeeded(command, title, read.options);
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
  // A secret may begin with a dash.
  if (!inlineValue && (value.startsWith('--') || value === '-h')) {
    throw new UsageError(
      `--${name} needs a value, and ${value} looks like an option. Give a value that begins with two dashes as ` +
        `--${name}=${value}.`,
    );
  }
  checkChoice(`--${name}`, value, option.choices);
  return value;
}

function checkChoice(name: string, given: string, choices: readonly string[] | undefined): void {
  if (choices === undefined || choices.includes(given)) return;
  throw new UsageError(`${name} is "${given}".${didYouMean(given, choices)} Choose one of: ${choices.join(', ')}.`);
}

/** What follows the name of the program, with all that the command cannot do without. */
export function usageOf({ name, positionals, options }: Command<never>): string {
  const needed = Object.entries(options).filter(([, { needed }]) => needed !== undefined);
  return [name, positionals, ...needed.map(([option, { value }]) => `--${option} ${value}`)]
    .filter((word) => word !== '')
    .join(' ');
}

/** The name of its argument; empty if it takes none. */
export function argumentOf({ positionals }: Command<never>): string {
  return positionals.replace(/[[\].]/g, '');
}

function checkPositionals(command: Command<never>, title: string, given: readonly string[]): void {
  const { positionals, choices } = command;
  const word = argumentOf(command);
  if (given.length === 0 && positionals !== '' && !positionals.startsWith('[')) {
    const usage = `${title} ${usageOf(command).slice(command.name.length + 1)}`;
    throw new UsageError(`\`${title}\` needs ${word}. Usage: ${usage}`);
  }
  if (given.includes('')) throw new UsageError(`${word || 'An argument'} must not be empty.`);
  const most = positionals === '' ? 0 : /\.\.\.\]?$/.test(positionals) ? Number.POSITIVE_INFINITY : 1;
  if (given.length > most) {
    const takes = most === 0 ? 'takes no argument' : `takes one ${word}`;
    throw new UsageError(`\`${title}\` ${takes}, so "${given[most]}" is too much. See: ${title} --help`);
  }
  for (const one of given) checkChoice(word, one, choices);
}

function checkNeeded({ options }: Command<never>, title: string, given: Arguments['options']): void {
  const lacking = Object.entries(options).filter(
    ([option, { needed }]) => needed !== undefined && given[option] === undefined,
  );
  if (lacking.length === 0) return;
  const list = lacking.map(([option, { value }]) => `--${option} ${value}`).join(' and ');
  const advice = lacking.flatMap(([, { needed }]) => (typeof needed === 'string' ? [` ${needed}`] : []));
  throw new UsageError(`\`${title}\` needs ${list}.${advice.join('')}`);
}

/** An option's value as a whole number from `min` on. */
export function wholeNumber(name: string, text: string, min: number): number {
  const value = Number(text);
  if (/^[0-9]{1,15}$/.test(text) && value >= min) return value;
  throw new UsageError(`--${name} is "${text}". Write a whole number from ${min} on.`);
}

/** Reads the file that an option names; `-` is standard input. */
export function readGivenFile(option: string, path: string): Buffer {
  if (path === '-' && process.stdin.isTTY === true)
    process.stderr.write(`Type what --${option} reads, and end it with Ctrl-D on a line of its own.\n`);
  try {
    return readFileSync(path === '-' ? 0 : path);
  } catch (error) {
    throw new UsageError(`--${option} ${path} ${whyUnreadable(error)}.`);
  }
}
