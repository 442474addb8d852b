import { Fault, type FaultCode } from '../../fault.ts';
import type { Call } from './engine.ts';
import type { PackedCalls } from './packing.ts';

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

export type ToThread = PackedCalls | { close: true };
export type FromThread =
  | { opened: { created: boolean; instanceId: string } }
  | { answers: NumberedAnswer[]; seconds: number }
  | { failed: SentError }
  | { closed: true; bytes?: number };

/** An error without its class, which a message cannot carry. */
export type SentError = { code: FaultCode | null; kind: 'transient' | 'terminal'; message: string };

export function sendError(error: unknown): SentError {
  if (error instanceof Fault) return { code: error.code, kind: error.kind, message: error.message };
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code: null, kind: 'terminal', message };
}

export function receiveError({ code, kind, message }: SentError): Error {
  return code === null ? new Error(message) : new Fault(kind, code, message);
}
