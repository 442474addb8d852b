import { Fault, type FaultCode } from '../../fault.ts';
import type { Opened } from '../contract.ts';
import type { Call } from './group_commit.ts';
import type { WriterOptions } from './open.ts';

/** The messages between the thread that holds the database and the rest of the process. */
type ThreadRole = 'writer' | 'reader' | 'backup';

export type ThreadStart = WriterOptions & { role: ThreadRole; backupTo: string | null };

export type NumberedCall = Call & { id: number };
export type NumberedAnswer = { id: number; ok: true; value: unknown } | { id: number; ok: false; error: SentError };

export type ToThread = { calls: NumberedCall[]; packed: Packed | null } | { close: true };
export type FromThread =
  /** Null if the thread only reads. */
  | { opened: Opened | null }
  /** `changed`: whether a call other than a heartbeat changed anything, or may have. */
  | { answers: NumberedAnswer[]; packed: Packed | null; seconds: number; changed: boolean }
  | { failed: SentError }
  | { closed: true; bytes?: number };

/** The part of calls that may hold byte arrays: each one's first argument. */
export function recordsOfCalls(calls: readonly NumberedCall[]): unknown[] {
  return calls.map(({ args }) => args[0]);
}

/** The part of answers that may hold byte arrays: each one's value, or its rows. */
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

/** Records' byte arrays, joined into one, and where each came from. */
export type Packed = {
  readonly parts: readonly (readonly [record: number, field: string, length: number])[];
  readonly bytes: ArrayBuffer;
};

type Fields = Record<string, unknown>;

/**
 * Moves the byte arrays of records into one, and leaves null in their place. A message would copy each of them with the
 * whole buffer that it is a view of (for a request's body, the socket's 64 KiB). Packed, they are copied once and
 * transferred. Null if there are none: a message that transfers nothing costs a third.
 */
export function pack(records: readonly unknown[]): Packed | null {
  const parts: [number, string, number][] = [];
  const arrays: Uint8Array[] = [];
  for (const [index, record] of records.entries()) {
    if (typeof record !== 'object' || record === null || ArrayBuffer.isView(record)) continue;
    for (const field in record) {
      const value = (record as Fields)[field];
      if (!(value instanceof Uint8Array)) continue;
      (record as Fields)[field] = null;
      parts.push([index, field, value.length]);
      arrays.push(value);
    }
  }
  if (arrays.length === 0) return null;
  const bytes = new Uint8Array(parts.reduce((sum, [, , length]) => sum + length, 0));
  let at = 0;
  for (const array of arrays) {
    bytes.set(array, at);
    at += array.length;
  }
  return { parts, bytes: bytes.buffer };
}

/** Puts the byte arrays back into the same records, as views of one buffer. */
export function unpack(records: readonly unknown[], packed: Packed | null): void {
  if (packed === null) return;
  let at = 0;
  for (const [record, field, length] of packed.parts) {
    (records[record] as Fields)[field] = Buffer.from(packed.bytes, at, length);
    at += length;
  }
}
