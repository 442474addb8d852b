import { readFileSync } from 'node:fs';
import { readConfig } from '../config.ts';
import { readArguments } from './arguments.ts';
import type { Command, Report } from './command.ts';
import { COMMANDS } from './commands.ts';
import { connect } from './connection.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { failure, failureText, OutputError } from './failure.ts';
import { helpOn, noSuchCommand, overview } from './help.ts';

const args = process.argv.slice(2);
const wantsJson = args.includes('--json');

process.on('uncaughtException', (error) => process.exit(printFailure(error)));
// Each write sees its own error.
process.stdout.on('error', () => {});
// Never awaited at the top level: a process whose loop runs empty would end with Node's code for that, not ours.
void main().then((exit) => process.exit(exit));

async function main(): Promise<ExitCode> {
  try {
    const report = await dispatch(args);
    if (report === null) return EXIT.ok;
    await print(wantsJson ? `${JSON.stringify(report.data)}\n` : `${report.lines.join('\n')}\n`);
    return report.exit ?? EXIT.ok;
  } catch (error) {
    return printFailure(error);
  }
}

/** Finds the command by its one or two words, reads what follows them, and runs it. */
async function dispatch(all: readonly string[]): Promise<Report | null> {
  const words = all.filter((word, at) => word !== '--json' || at > firstWord(all));
  if (words.length === 0) throw noSuchCommand(COMMANDS, []);
  if (words[0] === '--help' || words[0] === '-h') return overview(COMMANDS);
  if (words[0] === '--version' || words[0] === '-V') return version();
  const command = findCommand(words);
  if (command === undefined) {
    const group = words.slice(0, 1);
    if (words.includes('--help') || words.includes('-h')) return helpOn(COMMANDS, group);
    throw noSuchCommand(COMMANDS, group);
  }
  const name = command.name.split(' ');
  const { positionals, options } = readArguments(command, words.slice(name.length));
  if (options.help !== undefined) return helpOn(COMMANDS, name);
  return command.run({
    positionals,
    first: positionals[0] ?? '',
    options: options as Record<string, never>,
    server: () => connect(readConfig()),
  });
}

function firstWord(all: readonly string[]): number {
  const at = all.findIndex((word) => word !== '--json');
  return at === -1 ? all.length : at;
}

function findCommand([first, second]: readonly string[]): Command | undefined {
  return COMMANDS.find(({ name }) => name === `${first} ${second}` || name === first);
}

function version(): Report {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  const { version } = JSON.parse(text) as { version: string };
  return {
    data: { version, node: process.version },
    lines: [`settled ${version} (Node ${process.versions.node})`],
  };
}

/** Resolves when all is written. A reader that has seen enough, like `head`, is no error. */
function print(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error?: NodeJS.ErrnoException | null) => {
      if (!error || error.code === 'EPIPE') resolve();
      else reject(new OutputError(`The output cannot be written (${error.code}), and is not whole.`));
    });
  });
}

function printFailure(error: unknown): ExitCode {
  const failed = failure(error);
  process.stderr.write(failureText(failed, wantsJson));
  return failed.exit;
}
