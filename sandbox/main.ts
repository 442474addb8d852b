import { readArguments } from './cli/arguments.ts';
import type { Report } from './cli/command.ts';
import { COMMANDS } from './cli/commands.ts';
import { EXIT, failure } from './cli/exit.ts';
import { helpOn, noSuchCommand } from './cli/help.ts';

/** `settled sandbox …`: bin/settled.mjs runs this with what follows the word `sandbox`. */

const args = process.argv.slice(2);

// Each write sees its own error: a reader that has seen enough is none.
process.stdout.on('error', () => {});
void main().then((exit) => process.exit(exit));

async function main(): Promise<number> {
  try {
    const report = await dispatch();
    if (report === null) return EXIT.ok;
    await print(args.includes('--json') ? JSON.stringify(report.data) : report.lines.join('\n'));
    return report.exit ?? EXIT.ok;
  } catch (error) {
    const failed = failure(error);
    const told = args.includes('--json') ? JSON.stringify({ error: failed }) : failed.message;
    process.stderr.write(`${told}\n`);
    return failed.exit;
  }
}

/** Without a word that names another, the command is `serve`. */
async function dispatch(): Promise<Report | null> {
  const [first = 'serve'] = args;
  if (first === '--help' || first === '-h') return helpOn(COMMANDS, '');
  const isNamed = !first.startsWith('-');
  const name = isNamed ? first : 'serve';
  const command = COMMANDS.find((known) => known.name === name);
  if (command === undefined) throw noSuchCommand(COMMANDS, name);
  const { positionals, options } = readArguments(command, isNamed ? args.slice(1) : args);
  if (options.help === true) return helpOn(COMMANDS, name);
  return command.run({ first: positionals[0] ?? '', options: options as Record<string, never> });
}

/** Resolves when it is written. */
function print(text: string): Promise<void> {
  return new Promise((resolve) => {
    process.stdout.write(`${text}\n`, () => resolve());
  });
}
