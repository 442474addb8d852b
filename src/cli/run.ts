import { readConfig } from '../config/config.ts';
import type { Environment } from '../config/environment.ts';
import { releaseVersion } from '../release.ts';
import { type Command, type Report, readArguments } from './command.ts';
import { COMMANDS, helpOn, noSuchCommand } from './commands.ts';
import { connect } from './connection.ts';
import { EXIT, type ExitCode, failure } from './exit.ts';
import { failureText, reportText } from './output.ts';

/** What a command has of the process in which it runs. */
export type Surroundings = {
  /** Replaces the process's own. */
  readonly environment?: Environment;
  /** To standard output. Resolves when all is written; false if the reader is gone. */
  print(text: string): Promise<boolean>;
  /** To standard error. */
  complain(text: string): void;
};

/** Runs the command of these words to its end; never throws. */
export async function run(args: readonly string[], surroundings: Surroundings): Promise<ExitCode> {
  const json = isForProgram(args);
  try {
    const report = await dispatch(args, surroundings);
    if (typeof report === 'number') return report;
    await surroundings.print(reportText(report, json));
    return report.exit ?? EXIT.ok;
  } catch (error) {
    const failed = failure(error);
    surroundings.complain(failureText(failed, json));
    return failed.exit;
  }
}

/** Whether a program reads what these words make the command print. */
export function isForProgram(args: readonly string[]): boolean {
  return args.includes('--json');
}

/** Finds the command by its one or two words, reads what follows them, and runs it. */
async function dispatch(all: readonly string[], { environment, print }: Surroundings): Promise<Report | ExitCode> {
  const first = all.findIndex((word) => word !== '--json');
  const words = first < 0 ? [] : all.slice(first);
  if (words.length === 0) throw noSuchCommand([]);
  if (words[0] === '--help' || words[0] === '-h') return helpOn([]);
  if (words[0] === '--version' || words[0] === '-V') return version();
  const command = findCommand(words);
  if (command === undefined) {
    const group = words.slice(0, 1);
    if (words.includes('--help') || words.includes('-h')) return helpOn(group);
    throw noSuchCommand(group);
  }
  const name = command.name.split(' ');
  const { positionals, options } = readArguments(command, words.slice(name.length));
  const { help, json: _, ...own } = options;
  if (help !== undefined) return helpOn(name);
  const config = () => readConfig(environment);
  return command.run({
    positionals,
    first: positionals[0] ?? '',
    options: own as Record<string, never>,
    json: isForProgram(all),
    config,
    server: () => connect(config()),
    print,
  });
}

function findCommand([first, second]: readonly string[]): Command | undefined {
  const two = COMMANDS.find(({ name }) => name === `${first} ${second}`);
  return two ?? COMMANDS.find(({ name }) => name === first);
}

function version(): Report {
  const version = releaseVersion();
  return { data: { version, node: process.version }, lines: [`settled ${version} (Node ${process.versions.node})`] };
}
