type Option = {
  /** What its value is called in help; an option without one is a switch. */
  readonly value?: string;
  /** It may be given several times. */
  readonly isRepeatable?: true;
  readonly about: string;
};
export type Options = Readonly<Record<string, Option>>;

/** The options that were given: a text each, several where it is repeatable, true for a switch. */
type Given<O extends Options> = {
  readonly [Name in keyof O]?: O[Name] extends { readonly isRepeatable: true }
    ? readonly string[]
    : O[Name] extends { readonly value: string }
      ? string
      : true;
};

export type Call<O extends Options> = {
  /** The empty text where none was given. */
  readonly first: string;
  readonly options: Given<O>;
};

/** What a command found: for a machine, and the same for a person. */
export type Report = {
  readonly data: unknown;
  readonly lines: readonly string[];
  /** 0 where it is not given. */
  readonly exit?: number;
};

/** A command of `settled sandbox`. Dispatch, help and the errors about the command line are made from this. */
export type Command<O extends Options = Options> = {
  readonly name: string;
  /** `LINK`, in brackets where it may be left out, or empty. */
  readonly positional: string;
  readonly about: string;
  /** Further lines of help. */
  readonly details?: readonly string[];
  readonly options: O;
  /** Null where the command has said everything itself. */
  run(call: Call<O>): Promise<Report | null>;
};

/** Types `run` by the options of the command, then forgets them, so that all commands fit in one table. */
export function defineCommand<const O extends Options>(command: Command<O>): Command {
  return command as unknown as Command;
}
