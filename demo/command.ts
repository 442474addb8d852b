import { type Command, commandOf, type Given, type Report } from '../src/terminal/command.ts';
import { EXIT_BUG, EXIT_USAGE, Failure, failureOf, UsageError } from '../src/terminal/failure.ts';
import type { Program } from '../src/terminal/program.ts';
import { runProgram, type Surroundings } from '../src/terminal/run.ts';

/** The command line of `settled demo`. */

const OPTIONS = {
  once: { about: 'play the story unattended: open, pay, deliver twice, tamper, lose; print a table and end' },
  keep: { value: 'FOLDER', about: 'keep the database and the logs in this folder, which must be new or empty' },
} as const;

export type DemoOptions = { once: boolean; json: boolean; keep: string | null };

/** Exit codes of `settled demo`, after sysexits.h where it has one. `settled demo --help` lists them. */
export const EXIT = { ok: 0, failed: 1, usage: EXIT_USAGE, bug: EXIT_BUG, cannotOpen: 73, interrupted: 130 } as const;
type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** What each exit code means, in a line. */
const EXIT_MEANINGS: Readonly<Record<ExitCode, string>> = {
  0: 'stopped by Ctrl+C; with --once: every step succeeded',
  1: 'a step failed, or one of the programs could not start or ended early',
  64: 'the command line cannot be understood',
  70: 'a bug in the demo',
  73: 'the folder named by --keep, or the temporary one, cannot be used',
  130: 'with --once: interrupted before the end',
};

type Play = (options: DemoOptions, print: Surroundings['print']) => Promise<Report | number>;

/** Runs `settled demo` with these words by `play`. Never throws. Returns the exit code. */
export function runDemo(args: readonly string[], surroundings: Surroundings, play: Play): Promise<number> {
  const demo: Command = commandOf({
    usage: 'demo',
    about: 'a sandbox of the payment-link service, settled, and a tiny shop, on this machine only',
    details: [
      'Without --once it prints the addresses and serves until Ctrl+C. It uses the ports 8787 to 8790, and a free one for each',
      'that is taken. It writes to a temporary folder, which it removes at the end. No money in it is real.',
      'With --json it prints the addresses, or the table, as one line of JSON.',
      '',
      'Exit codes:',
      ...Object.entries(EXIT_MEANINGS).map(([code, meaning]) => `  ${code.padStart(3)}  ${meaning}`),
    ],
    options: OPTIONS,
    isLocal: true,
    run: ({ options, json, print }) => play(readOptions(options, json), print),
  });
  const program: Program = {
    name: 'settled',
    about: demo.about,
    groups: { '': [demo] },
    options: {},
    programs: {},
    notes: [],
    exits: EXIT_MEANINGS,
    failure,
    around: () => ({}),
  };
  const asked = args[0] === '__complete' ? ['__complete', 'demo', ...args.slice(1)] : ['demo', ...args];
  return runProgram(program, asked, surroundings);
}

function readOptions({ once, keep }: Given<typeof OPTIONS>, json: boolean): DemoOptions {
  if (keep === '') throw new UsageError('--keep needs a folder: --keep FOLDER');
  return { once: once === true, json, keep: keep ?? null };
}

const CODES = { 1: 'demo_failed', 73: 'folder_unusable' } as const;

/** The demo cannot continue. The message tells a person what to do. */
export class DemoError extends Failure {
  constructor(exit: keyof typeof CODES, message: string) {
    super(CODES[exit], message, exit);
  }
}

/** How the demo ends with this error. An unexpected error is a bug. */
export function failure(error: unknown): Failure {
  return failureOf(error, 'the demo');
}
