import { Fault, type FaultCode } from '../fault.ts';
import type { ProblemCode } from '../http/problem.ts';

/** How a command may end: the exit code, after sysexits.h if it has one, and what it means, in a line. */
const ENDINGS = {
  ok: [0, 'done'],
  refused: [1, 'refused by the server, or doctor, init, drill or audit --verify found a fault'],
  needsPerson: [3, 'attention --exit-code: something needs attention'],
  usage: [64, 'the command line cannot be understood'],
  notAuthentic: [65, 'verify: the delivery is not authentic, or not fresh'],
  notFound: [66, 'there is no such order, event, notice, matter, token or session'],
  unreachable: [69, 'server or PostgreSQL cannot be reached, or no suitable Node is installed'],
  bug: [70, 'a bug in settled, here or in the server'],
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

/** How a fault ends the process. The others concern one request or event: if one ends a process, that is a bug. */
const EXIT_OF_FAULT: Readonly<Partial<Record<FaultCode, ExitCode>>> = {
  configuration_invalid: EXIT.configuration,
  address_in_use: EXIT.tryAgain,
  store_missing: EXIT.cannotOpen,
  store_in_use: EXIT.tryAgain,
  store_lost: EXIT.cannotOpen,
  store_foreign: EXIT.cannotOpen,
  store_moved: EXIT.configuration,
  store_incomplete: EXIT.cannotOpen,
  store_corrupt: EXIT.cannotOpen,
  store_newer: EXIT.cannotOpen,
  store_migration_changed: EXIT.cannotOpen,
  store_not_durable: EXIT.cannotOpen,
  store_unwritable: EXIT.notAllowed,
  store_full: EXIT.diskFailed,
  store_busy: EXIT.tryAgain,
  store_failed: EXIT.diskFailed,
  store_unreachable: EXIT.unreachable,
  store_stopped: EXIT.tryAgain,
  secrets_key_missing: EXIT.configuration,
  secrets_key_wrong: EXIT.configuration,
  server_unreachable: EXIT.unreachable,
  not_authorized: EXIT.notAllowed,
};

export function exitOfFault(code: FaultCode): ExitCode {
  return EXIT_OF_FAULT[code] ?? EXIT.bug;
}

/** How a problem that the server answers ends the command. Every other problem refuses what was asked. */
const EXIT_OF_PROBLEM: Readonly<Partial<Record<ProblemCode, ExitCode>>> = {
  unauthorized: EXIT.notAllowed,
  forbidden: EXIT.notAllowed,
  not_found: EXIT.notFound,
  correction_forbidden: EXIT.notAllowed,
  key_not_ours_to_change: EXIT.configuration,
  backup_not_ours_to_make: EXIT.configuration,
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

/** Why a command ended: a code from docs/errors.md, and what happened and what to do next; of a bug the stack. */
export class Failure extends Error {
  readonly code: string;
  readonly exit: ExitCode;

  constructor(code: string, message: string, exit: ExitCode) {
    super(message);
    this.code = code;
    this.exit = exit;
  }
}

/** The command's own reason. */
export class CommandError extends Failure {
  constructor(code: keyof typeof EXIT_OF_COMMAND, message: string) {
    super(code, message, EXIT_OF_COMMAND[code]);
  }
}

/** The command line cannot be understood. The message says what is possible. */
export class UsageError extends CommandError {
  constructor(message: string) {
    super('usage', message);
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
  if (error instanceof Failure) return error;
  if (error instanceof Fault) return new Failure(error.code, error.message, exitOfFault(error.code));
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return new CommandError('bug', `This is a bug in settled. Please report it.\n${stack}`);
}

/** Completes a sentence about a file or folder that could not be read. */
export function whyUnreadable(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return 'does not exist';
  return code === 'EACCES' ? 'may not be read by this user' : `cannot be read (${code})`;
}

/** Requests that can hang in a system call on a thread: looking a name up, reading or writing a file. */
const MAY_HANG = /^(GetAddrInfo|FS)Req/;

/**
 * Ends this process. `process.exit` waits for threads: one that looks a name up or waits for a disk would delay it for
 * as long as that takes. In that case the process replaces itself by one that ends with the same code at once.
 */
export function endProcess(exit: ExitCode): never {
  // Added last, so that other listeners have written what they write.
  process.once('exit', (code) => {
    if (process.platform === 'win32' || !process.getActiveResourcesInfo().some((name) => MAY_HANG.test(name))) return;
    process.execve?.(process.execPath, [process.execPath, '--eval', `process.exit(${code})`], {});
  });
  process.exit(exit);
}

const STOPPING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Calls `end` when this process is asked to stop, instead of ending it. Returns what takes that back. */
export function onStopSignal(end: (signal: NodeJS.Signals) => void): () => void {
  for (const signal of STOPPING) process.on(signal, end);
  return () => {
    for (const signal of STOPPING) process.off(signal, end);
  };
}
