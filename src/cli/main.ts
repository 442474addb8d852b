import { readConfig } from '../config.ts';
import { escapeMarks } from '../json.ts';
import { releaseVersion } from '../release.ts';
import { readArguments } from './arguments.ts';
import type { Command, Report } from './command.ts';
import { COMMANDS, GROUPS } from './commands.ts';
import { connect } from './connection.ts';
import { endProcess } from './end.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { failure, failureText } from './failure.ts';
import { helpOn, noSuchCommand, overview } from './help.ts';
import { print } from './output.ts';

const args = process.argv.slice(2);
const wantsJson = args.includes('--json');

process.on('uncaughtException', (error) => endProcess(printFailure(error)));
// Each write sees its own error.
process.stdout.on('error', () => {});
// A process whose loop runs empty before its command is done must not look as if it were.
process.exitCode = EXIT.bug;
process.once('beforeExit', (code) => {
  if (code === EXIT.bug) endProcess(printFailure(new Error('the command came to no end')));
});
// Never awaited at the top level: then it would end with Node's code for that, not ours.
void main().then(endProcess);

async function main(): Promise<ExitCode> {
  try {
    const report = await dispatch(args);
    if (report === null) return EXIT.ok;
    await print(wantsJson ? `${escapeMarks(JSON.stringify(report.data))}\n` : `${report.lines.join('\n')}\n`);
    return report.exit ?? EXIT.ok;
  } catch (error) {
    return printFailure(error);
  }
}

/** Finds the command by its one or two words, reads what follows them, and runs it. */
async function dispatch(all: readonly string[]): Promise<Report | null> {
  const words = all.filter((word, at) => word !== '--json' || at > firstWord(all));
  if (words.length === 0) throw noSuchCommand(COMMANDS, []);
  if (words[0] === '--help' || words[0] === '-h') return overview(GROUPS);
  if (words[0] === '--version' || words[0] === '-V') return version();
  const command = findCommand(words);
  if (command === undefined) {
    const group = words.slice(0, 1);
    if (words.includes('--help') || words.includes('-h')) return helpOn(GROUPS, group);
    throw noSuchCommand(COMMANDS, group);
  }
  const name = command.name.split(' ');
  const { positionals, options } = readArguments(command, words.slice(name.length));
  if (options.help !== undefined) return helpOn(GROUPS, name);
  return command.run({
    positionals,
    first: positionals[0] ?? '',
    options: options as Record<string, never>,
    json: wantsJson,
    server: () => connect(readConfig()),
  });
}

function firstWord(all: readonly string[]): number {
  const at = all.findIndex((word) => word !== '--json');
  return at === -1 ? all.length : at;
}

function findCommand([first, second]: readonly string[]): Command | undefined {
  const two = COMMANDS.find(({ name }) => name === `${first} ${second}`);
  return two ?? COMMANDS.find(({ name }) => name === first);
}

function version(): Report {
  const version = releaseVersion();
  return {
    data: { version, node: process.version },
    lines: [`settled ${version} (Node ${process.versions.node})`],
  };
}

function printFailure(error: unknown): ExitCode {
  const failed = failure(error);
  process.stderr.write(failureText(failed, wantsJson));
  return failed.exit;
}
