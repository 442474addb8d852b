import { EXIT_BUG, EXIT_USAGE, Failure, failureOf, UsageError } from '../../src/terminal/failure.ts';
import { Refusal, UnknownName } from '../model.ts';

/** Exit codes of `settled sandbox`, after sysexits.h if it has a fitting one. sandbox/README.md lists them. */
export const EXIT = {
  ok: 0,
  refused: 1,
  usage: EXIT_USAGE,
  notFound: 66,
  unreachable: 69,
  bug: EXIT_BUG,
  cannotOpen: 73,
  inUse: 75,
} as const;

/** What each exit code means, in a line. */
export const EXIT_MEANINGS: Readonly<Record<string, string>> = {
  0: 'done; for `play`: the receiver did everything right',
  1: 'the sandbox refused, in its present state; for `play`: the receiver did something wrong',
  64: 'the command line, a value in it or a fault plan cannot be understood',
  66: 'there is no such link, payment, event, delivery or fault plan',
  69: 'no sandbox answers at the address, or this installation has none',
  70: 'a bug in the sandbox',
  73: 'the file named by --data cannot be opened, or has another seed',
  75: 'the address, or the file named by --data, is in use by another program',
};

/** How the command ends with this error. An unexpected error is a bug. */
export function failure(error: unknown): Failure {
  if (error instanceof Refusal) return new Failure(error.code, error.message, exitOfRefusal(error.status, error.code));
  return failureOf(error instanceof UnknownName ? new UsageError(error.message) : error, 'the sandbox');
}

/** Codes of the control API for input that is wrong in any state of the sandbox. */
const GIVEN_WRONG = ['validation_error', 'unknown_name', 'body_unreadable', 'body_too_large'];

export function exitOfRefusal(status: number, code: string): number {
  if (status === 404) return EXIT.notFound;
  if (status >= 500) return EXIT.bug;
  return GIVEN_WRONG.includes(code) ? EXIT.usage : EXIT.refused;
}
