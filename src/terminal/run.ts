import {
  type Arguments,
  type Command,
  type CommandCall,
  commandOf,
  type Options,
  type Report,
  readArguments,
} from './command.ts';
import { completions } from './completion.ts';
import { helpCommand } from './help.ts';
import { failureText, reportText, verbatim } from './output.ts';
import { findCommand, furtherOptions, noSuchCommand, type Program, secondWords } from './program.ts';
import { PIPE, type Screen } from './screen.ts';

/** From the words of a command line to what is printed, and to the exit code. */

/** What a command has of the process in which it runs. */
export type Surroundings = {
  /** To standard output. Resolves when all is written; false if the reader is gone. */
  print(text: string): Promise<boolean>;
  /** To standard error. */
  printError(text: string): void;
  /** What `print` shows on; a pipe if left out. */
  readonly screen?: Screen;
  readonly errorScreen?: Screen;
};

/** Runs the command of these words to its end, and prints what it found; never throws. Returns the exit code. */
export async function runProgram<A>(
  program: Program<A>,
  args: readonly string[],
  { print, printError, screen = PIPE, errorScreen }: Surroundings,
): Promise<number> {
  const json = isForProgram(args);
  try {
    const report = await reportOf(program, args, { print, screen });
    if (typeof report === 'number') return report;
    await print(reportText(report, json, screen));
    return report.exit ?? 0;
  } catch (error) {
    const failed = program.failure(error);
    printError(failureText(failed, json, errorScreen));
    return failed.exit;
  }
}

/** What the command of these words found; its exit code alone if it has printed everything itself. Throws `Failure`. */
export async function reportOf<A>(
  program: Program<A>,
  args: readonly string[],
  { print, screen }: Pick<CommandCall<Options>, 'print' | 'screen'>,
): Promise<Report | number> {
  const { command, positionals, options, all } = read(program, args);
  const given = { positionals, first: positionals[0] ?? '', options: options as Record<string, never> };
  try {
    return await command.run({ ...given, json: isForProgram(args), screen, print, ...program.around(all, command) });
  } catch (error) {
    throw program.failure(error, command);
  }
}

/** Whether a program reads what these words make the command print. */
export function isForProgram(args: readonly string[]): boolean {
  return args.includes('--json');
}

/** `options`: those of the command itself. `all`: with those that every command takes. */
type Asked<A> = {
  command: Command<A>;
  positionals: string[];
  options: Arguments['options'];
  all: Arguments['options'];
};

/** Finds the command by its one or two words, and reads what follows them. */
function read<A>(program: Program<A>, args: readonly string[]): Asked<A> {
  // It counts wherever it is.
  const words = args[0] === '--json' ? args.slice(1) : args;
  const help = (of: readonly string[]): Asked<A> => ({
    command: helpCommand(() => program),
    positionals: [...of],
    options: {},
    all: {},
  });
  if (words[0] === '__complete') return { ...help([]), command: completeCommand(program, words.slice(1)) };
  if (words[0] === '--help' || words[0] === '-h') return help([]);
  const isVersion = (words[0] === '--version' || words[0] === '-V') && findCommand(program, ['version']) !== undefined;
  if (isVersion) return read(program, ['version', ...words.slice(1)]);
  const isNamed = words[0] !== undefined && !words[0].startsWith('-');
  if (!isNamed && words.length === 0 && program.usual === undefined) return help([]);
  const given = isNamed || program.usual === undefined ? words : [program.usual, ...words];
  const command = findCommand(program, given);
  const isSecondWord = given[1] !== undefined && !given[1].startsWith('-');
  const isGroup = secondWords(program, given[0] as string).length > 0;
  if (command === undefined || (command.positionals === '' && command.name === given[0] && isSecondWord && isGroup)) {
    if (command === undefined && given.some((word) => word === '--help' || word === '-h'))
      return help([given[0] as string]);
    throw noSuchCommand(program, given);
  }
  const name = command.name.split(' ');
  const known = { ...command.options, ...furtherOptions(program, command) };
  const commanded = { command: command as Command<never>, title: `${program.name} ${command.name}`, known };
  const { positionals, options } = readArguments(commanded, given.slice(name.length));
  if (options.help !== undefined) return help(name);
  // A list makes filters of all that it is given.
  const own = Object.entries(options).filter(([option]) => Object.hasOwn(command.options, option));
  return { command, positionals, options: Object.fromEntries(own), all: options };
}

/** What the shell asks when Tab is pressed; help does not list it. */
function completeCommand<A>(program: Program<A>, words: readonly string[]): Command<A> {
  const run = async () => {
    const found = completions(program, words);
    return { data: found, lines: found.map(verbatim) };
  };
  return commandOf({ usage: '__complete', about: 'complete a command line', run });
}
