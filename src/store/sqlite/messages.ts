import { Fault, type FaultCode } from '../../fault.ts';
import type { Opened } from '../engine.ts';
import type { Call } from './group_commit.ts';
import type { OpenOptions } from './open.ts';
import type { Packed } from './packing.ts';

/** What travels between the thread that holds the database and the rest of the process. */
type ThreadRole = 'writer' | 'reader' | 'backup';

export type ThreadStart = OpenOptions & { role: ThreadRole; backupTo: string | null };

export type NumberedCall = Call & { id: number };
export type NumberedAnswer = { id: number; ok: true; value: unknown } | { id: number; ok: false; error: SentError };

export type ToThread = { calls: NumberedCall[]; packed: Packed } | { close: true };
export type FromThread =
  /** Null: the thread only reads. */
  | { opened: Opened | null }
  | { answers: NumberedAnswer[]; packed: Packed; seconds: number }
  | { failed: SentError }
  | { closed: true; bytes?: number };

/** What of calls may hold byte arrays: the first argument of each. */
export function recordsOfCalls(calls: readonly NumberedCall[]): unknown[] {
  return calls.map(({ args }) => args[0]);
}

/** What of answers may hold byte arrays: the value of each, or its rows. */
export function recordsOfAnswers(answers: readonly NumberedAnswer[]): unknown[] {
  return answers.flatMap((answer) => (answer.ok ? answer.value : null));
}

/** An error without its class, which a message cannot carry. A bug keeps its stack, for the log. */
export type SentError = {
  code: FaultCode | null;
  kind: 'transient' | 'terminal';
  message: string;
  stack: string | null;
};

export function sendError(error: unknown): SentError {
  if (error instanceof Fault) return { code: error.code, kind: error.kind, message: error.message, stack: null };
  if (!(error instanceof Error)) return { code: null, kind: 'terminal', message: String(error), stack: null };
  return { code: null, kind: 'terminal', message: error.message, stack: error.stack ?? null };
}

export function receiveError({ code, kind, message, stack }: SentError): Error {
  if (code !== null) return new Fault(kind, code, message);
  const bug = new Error(message);
  if (stack !== null) bug.stack = stack;
  return bug;
}
