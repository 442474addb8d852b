import { Fault } from '../fault.ts';
import { escapeMarks } from '../json.ts';
import { UsageError } from './arguments.ts';
import { Refusal } from './connection.ts';
import { EXIT, EXIT_OF_FAULT, type ExitCode } from './exit.ts';
import { printableLines } from './layout.ts';

/** Codes of the command itself, beside those of faults and of the API. docs/errors.md lists them. */
export const COMMAND_CODES = ['usage', 'not_confirmed', 'output_failed', 'bug'] as const;

/** It would be done to many, and nobody said that it shall. Nothing was done. */
export class NotConfirmed extends Error {
  readonly code = 'not_confirmed';
}

/** What was found cannot be printed whole. */
export class OutputError extends Error {
  readonly code = 'output_failed';
}

export type Failure = {
  /** From docs/errors.md. */
  readonly code: string;
  /** What happened and what to do next; for a bug its stack. */
  readonly message: string;
  readonly exit: ExitCode;
};

/** What an error means for the person at the command line. What nobody foresaw is a bug. */
export function failure(error: unknown): Failure {
  if (error instanceof UsageError) return { code: error.code, message: error.message, exit: EXIT.usage };
  if (error instanceof NotConfirmed) return { code: error.code, message: error.message, exit: EXIT.refused };
  if (error instanceof OutputError) return { code: error.code, message: error.message, exit: EXIT.diskFailed };
  if (error instanceof Fault) {
    return { code: error.code, message: error.message, exit: EXIT_OF_FAULT[error.code] };
  }
  if (error instanceof Refusal) return { code: error.code, message: error.message, exit: error.exit };
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code: 'bug', message: `This is a bug in settled. Please report it.\n${stack}`, exit: EXIT.bug };
}

/** A failure as it is printed on standard error. */
export function failureText({ code, message, exit }: Failure, json: boolean): string {
  if (json) return `${escapeMarks(JSON.stringify({ error: { code, message, exit } }))}\n`;
  return `settled: ${printableLines(message).join('\n')}\n`;
}
