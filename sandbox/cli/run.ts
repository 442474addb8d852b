import { readArguments } from './arguments.ts';
import type { Report } from './command.ts';
import { COMMANDS } from './commands.ts';
import { EXIT, failure } from './exit.ts';
import { helpOn, noSuchCommand } from './help.ts';

/** How a command ends, and what it says then. */
export type Ended = { code: number; stdout: string; stderr: string };

/** Runs the command of these words to its end; throws never. */
export async function run(args: readonly string[]): Promise<Ended> {
  const isForProgram = args.includes('--json');
  try {
    const report = await dispatch(args);
    if (report === null) return { code: EXIT.ok, stdout: '', stderr: '' };
    const told = isForProgram ? JSON.stringify(report.data) : report.lines.join('\n');
    return { code: report.exit ?? EXIT.ok, stdout: `${told}\n`, stderr: '' };
  } catch (error) {
    const failed = failure(error);
    const told = isForProgram ? JSON.stringify({ error: failed }) : failed.message;
    return { code: failed.exit, stdout: '', stderr: `${told}\n` };
  }
}

/** Without a word that names another, the command is `serve`. */
async function dispatch(args: readonly string[]): Promise<Report | null> {
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
