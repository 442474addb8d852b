import { FAULTS, Fault, type FaultCode } from '../fault.ts';
import type { ProblemCode } from '../http/problem.ts';
import { EXIT_BUG, EXIT_USAGE, Failure, failureOf } from '../terminal/failure.ts';

/** How a command may end: the exit code, after sysexits.h if it has one, and what it means, in a line. */
const ENDINGS = {
  ok: [0, 'done'],
  refused: [1, 'refused, or doctor, init, first-contact, drill, alert --test or audit --verify found a fault'],
  needsPerson: [3, 'attention --exit-code: something needs attention'],
  usage: [EXIT_USAGE, 'the command line cannot be understood'],
  notAuthentic: [65, 'verify: the delivery is not authentic, or not fresh'],
  notFound: [66, 'there is no such order, event, notice, matter, token or session'],
  unreachable: [69, 'server or PostgreSQL cannot be reached, or no suitable Node is installed'],
  bug: [EXIT_BUG, 'a bug in settled, here or in the server'],
  cannotOpen: [73, 'the database cannot be opened, or is lost'],
  diskFailed: [74, 'the disk failed or is full'],
  tryAgain: [75, 'something else is in the way: try again when it is gone'],
  notAllowed: [77, 'not allowed: the token, or access to the files'],
  configuration: [78, 'the configuration cannot be used'],
} as const;
type Endings = typeof ENDINGS;
export type ExitCode = Endings[keyof Endings][0];

/** The exit codes. docs/errors.md and `settled help` list them. */
export const EXIT = Object.fromEntries(Object.entries(ENDINGS).map(([name, [code]]) => [name, code])) as {
  readonly [Name in keyof Endings]: Endings[Name][0];
};

/** What each exit code means. */
export const EXIT_MEANINGS: Readonly<Record<string, string>> = Object.fromEntries(Object.values(ENDINGS));

/** Codes of the command itself, beside those of faults and of the API. docs/errors.md lists them. */
export const EXIT_OF_COMMAND = {
  usage: EXIT.usage,
  not_confirmed: EXIT.refused,
  answer_refused: EXIT.configuration,
  files_unwritable: EXIT.notAllowed,
  output_failed: EXIT.diskFailed,
  bug: EXIT.bug,
} as const;

/** A fault that ends no process is a bug if it does. */
export function exitOfFault(code: FaultCode): ExitCode {
  return FAULTS[code] ?? EXIT.bug;
}

/** How a problem that the server answers ends the command. Every other problem refuses what was asked. */
const EXIT_OF_PROBLEM: Readonly<Partial<Record<ProblemCode, ExitCode>>> = {
  unauthorized: EXIT.notAllowed,
  forbidden: EXIT.notAllowed,
  not_found: EXIT.notFound,
  correction_forbidden: EXIT.notAllowed,
  key_not_ours_to_change: EXIT.configuration,
  backup_not_ours_to_make: EXIT.configuration,
  alerts_not_configured: EXIT.configuration,
  link_unknown: EXIT.tryAgain,
  api_not_configured: EXIT.configuration,
  api_key_refused: EXIT.configuration,
  public_url_not_public: EXIT.configuration,
  service_unavailable: EXIT.tryAgain,
  unavailable: EXIT.tryAgain,
  internal: EXIT.bug,
};

/** `code`: also one that only another version of the server knows. */
export function exitOfProblem(code: string): ExitCode {
  return Object.hasOwn(EXIT_OF_PROBLEM, code) ? (EXIT_OF_PROBLEM[code as ProblemCode] ?? EXIT.refused) : EXIT.refused;
}

/** The command's own reason. */
export class CommandError extends Failure {
  constructor(code: keyof typeof EXIT_OF_COMMAND, message: string) {
    super(code, message, EXIT_OF_COMMAND[code]);
  }
}

/** The server understood and refused. `code` is that of its problem. */
export class Refusal extends Failure {
  constructor(code: string, detail: string) {
    super(code, detail, exitOfProblem(code));
  }
}

/** What an error means for the person at the command line. An error that no code foresees is a bug. */
export function failure(error: unknown): Failure {
  if (error instanceof Fault) return new Failure(error.code, error.message, exitOfFault(error.code));
  return failureOf(error, 'settled');
}
