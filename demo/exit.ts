/** Exit codes of `settled demo`, after sysexits.h where it has one. `settled demo --help` lists them. */
export const EXIT = { ok: 0, failed: 1, usage: 64, bug: 70, cannotOpen: 73, interrupted: 130 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** What each exit code means, in a line. */
export const EXIT_MEANINGS: Readonly<Record<ExitCode, string>> = {
  0: 'stopped by Ctrl+C; with --once: every step went as told',
  1: 'a step did not go as told, or one of the programs could not start or ended by itself',
  64: 'the command line cannot be understood',
  70: 'a bug in the demo',
  73: 'the folder named by --keep, or the temporary one, cannot be used',
  130: 'with --once: interrupted before the end',
};

const CODES = { 1: 'demo_failed', 64: 'usage', 73: 'folder_unusable' } as const;

/** The demo cannot go on; the message is a sentence for a person that says what to do. */
export class DemoError extends Error {
  readonly exit: keyof typeof CODES;
  constructor(exit: keyof typeof CODES, message: string) {
    super(message);
    this.exit = exit;
  }
}

export type Failure = { code: string; message: string; exit: ExitCode };

/** How the demo ends with this error, and what it says. What nobody foresaw is a bug. */
export function failure(error: unknown): Failure {
  if (error instanceof DemoError) return { code: CODES[error.exit], message: error.message, exit: error.exit };
  const told = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code: 'bug', message: `This is a bug in the demo. Please report it.\n${told}`, exit: EXIT.bug };
}
