import { Refusal } from '../model.ts';
import { UnknownName } from '../silences.ts';

/** Exit codes of `settled sandbox`, after sysexits.h where it has one. sandbox/README.md lists them. */
export const EXIT = {
  ok: 0,
  refused: 1,
  usage: 64,
  notFound: 66,
  unreachable: 69,
  bug: 70,
  cannotOpen: 73,
  inUse: 75,
} as const;

/** What each exit code means, in a line. */
export const EXIT_MEANINGS: Readonly<Record<number, string>> = {
  0: 'done; for `play`: the receiver did what an honest one must',
  1: 'the sandbox refused; for `play`: the receiver did not do what an honest one must',
  64: 'the command line cannot be understood',
  66: 'there is no such link, payment, event, delivery or fault',
  69: 'no sandbox answers at the address, or this installation has none',
  70: 'a bug in the sandbox',
  73: 'the file named by --data cannot be opened',
  75: 'the address, or the file named by --data, is in use by another program',
};

/** The command line cannot be understood. The message says what there is. */
export class UsageError extends Error {}

/** A command that cannot be carried out, with the exit code that says why. */
export class CommandError extends Error {
  readonly exit: number;
  constructor(exit: number, message: string) {
    super(message);
    this.exit = exit;
  }
}

/** How the command ends with this error, and what it says. */
export function exitOf(error: unknown): { exit: number; message: string } {
  if (error instanceof CommandError) return { exit: error.exit, message: error.message };
  const { message, stack } = error as Error;
  const isUsage = [UsageError, UnknownName, Refusal].some((kind) => error instanceof kind);
  if (isUsage) return { exit: EXIT.usage, message };
  return { exit: EXIT.bug, message: stack ?? String(error) };
}
