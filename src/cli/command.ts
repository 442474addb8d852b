import type { Config } from '../config.ts';
import type { Connection } from './connection.ts';
import type { ExitCode } from './exit.ts';

export type Option = {
  /** What its value is called in help; an option without one is a switch. */
  readonly value?: string;
  /** The only values that it takes. */
  readonly choices?: readonly string[];
  readonly about: string;
};
export type Options = Readonly<Record<string, Option>>;

/** The options that were given: a text each, or true for a switch. */
type Given<O extends Options> = {
  readonly [Name in keyof O]?: O[Name] extends { readonly value: string } ? string : true;
};

type Call<O extends Options> = {
  readonly positionals: readonly string[];
  /** The first positional; the empty text where the command takes none or none was given. */
  readonly first: string;
  readonly options: Given<O>;
  /** Whether a program reads what the command prints. */
  readonly json: boolean;
  /** Reads the configuration. Faults: `configuration_invalid`. */
  readonly config: () => Config;
  /** Connects to the running server, as the configuration has it. */
  readonly server: () => Connection;
  /** Prints what cannot wait for the report; false if the reader is gone. */
  readonly print: (text: string) => Promise<boolean>;
};

/** What a command found: for a machine, and the same for a person. */
export type Report = {
  readonly data: unknown;
  readonly lines: readonly string[];
  /** `EXIT.ok` where it is not given. */
  readonly exit?: ExitCode;
};

/** A command of `settled`. Dispatch, help and the errors about the command line are all made from this. */
export type Command<O extends Options = Options> = {
  /** One word or two: `orders list`. */
  readonly name: string;
  /** `REFERENCE`, `ID...`, in brackets where it may be left out, or empty. */
  readonly positionals: string;
  readonly about: string;
  /** Further lines of help. */
  readonly details?: readonly string[];
  /** Command lines for help to show. */
  readonly examples?: readonly string[];
  readonly options: O;
  /** An exit code alone if the command has said everything itself; null: then it is `EXIT.ok`. */
  run(call: Call<O>): Promise<Report | ExitCode | null>;
};

/** Commands that a person looks for together. */
export type Group = { readonly heading: string; readonly commands: readonly Command[] };

/** Types `run` by the options of the command, then forgets them, so that all commands fit in one table. */
export function defineCommand<const O extends Options>(command: Command<O>): Command {
  return command as unknown as Command;
}
