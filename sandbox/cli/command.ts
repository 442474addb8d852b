import { parseArgs } from 'node:util';
import { DEFAULT_HEADER_PREFIX } from '../options.ts';
import { UsageError } from './exit.ts';

type Option = {
  /** What its value is called in help; an option without one is a switch. */
  readonly value?: string;
  /** It may be given several times. */
  readonly isRepeatable?: true;
  readonly about: string;
};
export type Options = Readonly<Record<string, Option>>;

/** The given options: a text each, a list if the option is repeatable, true for a switch. */
type Given<O extends Options> = {
  readonly [Name in keyof O]?: O[Name] extends { readonly isRepeatable: true }
    ? readonly string[]
    : O[Name] extends { readonly value: string }
      ? string
      : true;
};

export type Call<O extends Options> = {
  /** The positional argument; empty if none was given. */
  readonly first: string;
  readonly options: Given<O>;
};

/** The result of a command: for a program, and the same for a person. */
export type Report = {
  readonly data: unknown;
  readonly lines: readonly string[];
  /** 0 if it is absent. */
  readonly exit?: number;
};

/** A command of `settled sandbox`. Dispatch, help and usage errors follow from this description. */
export type Command<O extends Options = Options> = {
  readonly name: string;
  /** `LINK`; `[LINK]` if it is optional; or empty. */
  readonly positional: string;
  readonly about: string;
  /** Further lines of help. */
  readonly details?: readonly string[];
  readonly options: O;
  /** Null if the command has printed everything itself. */
  run(call: Call<O>): Promise<Report | null>;
};

/** Types `run` by the options of the command, then forgets them, so that all commands fit in one table. */
export function defineCommand<const O extends Options>(command: Command<O>): Command {
  return command as unknown as Command;
}

/** Options that every command takes. */
export const COMMON_OPTIONS = {
  json: { about: 'print JSON for a program, and errors as JSON on standard error' },
  help: { about: 'print how the command is used' },
} as const satisfies Options;

/** For the commands that send deliveries. */
export const HEADER_PREFIX_OPTION = {
  value: 'TEXT',
  about: "the prefix of a delivery's two headers; default x-service",
} as const;

/** Throws `UsageError` if no header name can begin with the text. */
export function readHeaderPrefix(given: string | undefined): string {
  if (given === undefined) return DEFAULT_HEADER_PREFIX;
  if (/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/.test(given)) return given;
  throw new UsageError(`--header-prefix is "${given}". Write the beginning of a header name, such as x-acme.`);
}

type Arguments = { positionals: string[]; options: Record<string, string | true | string[]> };

/** Reads the words after the command's name. Throws `UsageError` with the known options. */
export function readArguments(command: Command, args: readonly string[]): Arguments {
  const known: Options = { ...command.options, ...COMMON_OPTIONS };
  const types = Object.entries(known).map(([name, { value }]) => {
    const type: 'string' | 'boolean' = value === undefined ? 'boolean' : 'string';
    return [name, name === 'help' ? { type, short: 'h' } : { type }] as const;
  });
  const options = Object.fromEntries(types);
  const { tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true });
  const read: Arguments = { positionals: [], options: {} };
  for (const token of tokens) {
    const word = args[token.index] ?? '';
    // A negative number is a value for the command to reject, not a row of short options.
    if (token.kind === 'option' && /^-\d/.test(word)) {
      if (token.rawName === word.slice(0, 2)) read.positionals.push(word);
      continue;
    }
    if (token.kind === 'positional') read.positionals.push(token.value);
    if (token.kind !== 'option') continue;
    if (!Object.hasOwn(known, token.name)) {
      const list = Object.keys(known).map((name) => `--${name}`);
      throw new UsageError(
        `${titleOf(command)} has no option ${token.rawName}.${didYouMean(token.rawName, list)} It has: ${list.join(', ')}.`,
      );
    }
    take(read, known, token);
  }
  if (read.options.help === undefined) checkPositionals(command, read.positionals);
  return read;
}

function take(
  { options }: Arguments,
  known: Options,
  { name, value, inlineValue }: { name: string; value: string | undefined; inlineValue: boolean | undefined },
): void {
  const { value: placeholder, isRepeatable } = known[name] ?? {};
  if (placeholder === undefined) {
    if (value !== undefined) throw new UsageError(`--${name} is a switch and takes no value.`);
    options[name] = true;
    return;
  }
  // A word that looks like an option is one: an option without its value must not swallow it.
  if (value === undefined || (inlineValue !== true && value.startsWith('--'))) {
    throw new UsageError(`--${name} needs a value: --${name} ${placeholder}`);
  }
  if (isRepeatable === true) options[name] = [...((options[name] as string[] | undefined) ?? []), value];
  else if (options[name] === undefined) options[name] = value;
  else throw new UsageError(`--${name} is given twice. Give it once.`);
}

function checkPositionals(command: Command, given: readonly string[]): void {
  const { positional } = command;
  if (given.length === 0 && positional !== '' && !positional.startsWith('[')) {
    throw new UsageError(`${titleOf(command)} needs ${positional}. Usage: ${titleOf(command)} ${positional}`);
  }
  const most = positional === '' ? 0 : 1;
  if (given.length <= most) return;
  if (positional === '[NAME=VALUE]') {
    throw new UsageError(`${titleOf(command)} sets one switch at a time, and "${given[most]}" is a second one.`);
  }
  throw new UsageError(`${titleOf(command)} has no use for "${given[most]}". See: settled sandbox help`);
}

/** ` Did you mean …?` for an error; empty if nothing is similar. */
export function didYouMean(given: string, names: readonly string[]): string {
  const meant = names.find((name) => isNear(given, name));
  return meant === undefined ? '' : ` Did you mean ${meant}?`;
}

/** Whether one character was left out, added or replaced, or two were swapped. */
function isNear(given: string, name: string): boolean {
  let at = 0;
  while (at < given.length && given[at] === name[at]) at += 1;
  const [rest, other] = [given.slice(at), name.slice(at)];
  const swapped = (rest[1] ?? '') + (rest[0] ?? '') + rest.slice(2);
  return [rest.slice(1) === other, rest === other.slice(1), rest.slice(1) === other.slice(1), swapped === other].some(
    Boolean,
  );
}

function titleOf({ name }: Command): string {
  return `settled sandbox ${name}`;
}
