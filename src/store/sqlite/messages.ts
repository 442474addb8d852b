import { Fault, type FaultCode } from '../../fault.ts';
import type { Call } from './engine.ts';

/** What travels between the thread that holds the database and the rest of the process. */
type ThreadRole = 'writer' | 'reader' | 'backup';

export type ThreadStart = {
  role: ThreadRole;
  path: string;
  secretsKeyId: string;
  newInstanceId: string;
  nowMs: number;
  backupTo: string | null;
};

export type NumberedCall = Call & { id: number };
type NumberedAnswer = { id: number; ok: true; value: unknown } | { id: number; ok: false; error: SentError };

/**
 * The byte arrays of many calls as one. A message would copy each of them with the whole buffer that it is a view of
 * (for a request's body, the socket's 64 KiB); packed, they are copied once and change hands.
 */
export type PackedCalls = { calls: NumberedCall[]; slices: Slice[]; bytes: ArrayBuffer };

/** Field `field` of the first argument of call number `call` is `length` bytes from `at`. */
export type Slice = { call: number; field: string; at: number; length: number };

export type ToThread = PackedCalls | { close: true };
export type FromThread =
  | { opened: { created: boolean; instanceId: string } }
  | { answers: NumberedAnswer[]; seconds: number }
  | { failed: SentError }
  | { closed: true; bytes?: number };

/** An error without its class, which a message cannot carry. A bug keeps its stack, for the log. */
export type SentError = {
  code: FaultCode | null;
  kind: 'transient' | 'terminal';
  message: string;
  stack: string | null;
};

export function sendError(error: unknown): SentError {
  if (error instanceof Fault)
    return { code: error.code, kind: error.kind, message: error.message, stack: null };
  if (!(error instanceof Error)) return { code: null, kind: 'terminal', message: String(error), stack: null };
  return { code: null, kind: 'terminal', message: error.message, stack: error.stack ?? null };
}

export function receiveError({ code, kind, message, stack }: SentError): Error {
  if (code !== null) return new Fault(kind, code, message);
  const bug = new Error(message);
  if (stack !== null) bug.stack = stack;
  return bug;
}
