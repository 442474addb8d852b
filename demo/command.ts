import { parseArgs } from 'node:util';

const OPTIONS = {
  once: { type: 'boolean' },
  json: { type: 'boolean' },
  keep: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

const ABOUT = [
  ['--once', 'play the story unattended: open, pay, deliver twice, tamper, lose; print a table and end'],
  ['--keep FOLDER', 'keep the database and the logs in this folder, which must be new or empty'],
  ['--json', 'print the addresses, or the table, as one line of JSON'],
  ['--help', 'print this'],
] as const;

export type DemoOptions = { once: boolean; json: boolean; help: boolean; keep: string | null };

/** Reads the command line. Throws a `DemoError` that lists what is known. */
export function readOptions(args: readonly string[]): DemoOptions {
  const { values } = parse(args);
  if (values.keep === '') throw new DemoError(EXIT.usage, '--keep needs a folder: --keep FOLDER');
  return {
    once: values.once === true,
    json: values.json === true,
    help: values.help === true,
    keep: values.keep ?? null,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: false });
  } catch (error) {
    const known = ABOUT.map(([option]) => option).join(', ');
    // Keep the first sentence, which says what is wrong. The others advise on values that begin with a dash.
    const [what] = (error as Error).message.split('. ');
    throw new DemoError(EXIT.usage, `${what?.replace(/\.?$/, '.')} settled demo knows: ${known}.`);
  }
}

export function help(): { data: object; lines: string[] } {
  const exits = Object.entries(EXIT_MEANINGS);
  return {
    data: { options: Object.fromEntries(ABOUT), exitCodes: EXIT_MEANINGS },
    lines: [
      'settled demo: a sandbox of the payment-link service, settled, and a tiny shop, on this machine only',
      '',
      'Usage: settled demo [OPTION...]',
      '',
      ...ABOUT.map(([option, about]) => `  ${option.padEnd(13)}  ${about}`),
      '',
      'Without --once it prints the addresses and serves until Ctrl+C. It uses the ports 8787 to 8790, and a free one for',
      'each that is taken. It writes to a temporary folder, which it removes at the end. No money in it is real.',
      '',
      'Exit codes:',
      ...exits.map(([code, meaning]) => `  ${code.padStart(3)}  ${meaning}`),
    ],
  };
}

/** Exit codes of `settled demo`, after sysexits.h where it has one. `settled demo --help` lists them. */
export const EXIT = { ok: 0, failed: 1, usage: 64, bug: 70, cannotOpen: 73, interrupted: 130 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** What each exit code means, in a line. */
const EXIT_MEANINGS: Readonly<Record<ExitCode, string>> = {
  0: 'stopped by Ctrl+C; with --once: every step succeeded',
  1: 'a step failed, or one of the programs could not start or ended early',
  64: 'the command line cannot be understood',
  70: 'a bug in the demo',
  73: 'the folder named by --keep, or the temporary one, cannot be used',
  130: 'with --once: interrupted before the end',
};

const CODES = { 1: 'demo_failed', 64: 'usage', 73: 'folder_unusable' } as const;

/** The demo cannot continue. The message tells a person what to do. */
export class DemoError extends Error {
  readonly exit: keyof typeof CODES;
  constructor(exit: keyof typeof CODES, message: string) {
    super(message);
    this.exit = exit;
  }
}

export type Failure = { code: string; message: string; exit: ExitCode };

/** How the demo ends with this error. An unexpected error is a bug. */
export function failure(error: unknown): Failure {
  if (error instanceof DemoError) return { code: CODES[error.exit], message: error.message, exit: error.exit };
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code: 'bug', message: `This is a bug in the demo. Please report it.\n${stack}`, exit: EXIT.bug };
}
