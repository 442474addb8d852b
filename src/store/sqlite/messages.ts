import { Fault, type FaultCode } from '../../fault.ts';
import type { Opened } from '../contract.ts';
import type { Call } from './group_commit.ts';
import type { WriterOptions } from './open.ts';

/** The messages between the thread that holds the database and the rest of the process. */
type ThreadRole = 'writer' | 'reader' | 'backup';

export type ThreadStart = WriterOptions & { role: ThreadRole; backupTo: string | null };

export type NumberedCall = Call & { id: number };
export type NumberedAnswer = { id: number; ok: true; value: unknown } | { id: number; ok: false; error: SentError };

export type ToThread = { calls: NumberedCall[]; packed: Packed } | { close: true };
export type FromThread =
  /** Null if the thread only reads. */
  | { opened: Opened | null }
  /** `changed`: whether a call other than a heartbeat changed anything, or may have. */
  | { answers: NumberedAnswer[]; packed: Packed; seconds: number; changed: boolean }
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

/** Records' byte arrays, joined into one. */
export type Packed = {
  /** The fields that held byte arrays, with the number of their record and the length, in the order of the arrays. */
  readonly fields: readonly string[];
  readonly records: Uint32Array;
  readonly lengths: Uint32Array;
  readonly bytes: ArrayBuffer;
};

type Fields = Record<string, unknown>;

/**
 * Moves the byte arrays of records into one, and leaves null in their place. A message would copy each of them with the
 * whole buffer that it is a view of (for a request's body, the socket's 64 KiB). Packed, they are copied once and
 * transferred.
 */
export function pack(records: readonly unknown[]): Packed {
  const fields: string[] = [];
  const owners: number[] = [];
  const arrays: Uint8Array[] = [];
  let size = 0;
  for (const [index, record] of records.entries()) {
    if (typeof record !== 'object' || record === null || ArrayBuffer.isView(record)) continue;
    for (const field in record) {
      const value = (record as Fields)[field];
      if (!(value instanceof Uint8Array)) continue;
      (record as Fields)[field] = null;
      fields.push(field);
      owners.push(index);
      arrays.push(value);
      size += value.length;
    }
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const array of arrays) {
    bytes.set(array, at);
    at += array.length;
  }
  const lengths = Uint32Array.from(arrays, (array) => array.length);
  return { fields, records: Uint32Array.from(owners), lengths, bytes: bytes.buffer };
}

/** Puts the byte arrays back into the same records, as views of one buffer. */
export function unpack(records: readonly unknown[], { fields, records: owners, lengths, bytes }: Packed): void {
  let at = 0;
  for (const [index, field] of fields.entries()) {
    const length = lengths[index] as number;
    (records[owners[index] as number] as Fields)[field] = Buffer.from(bytes, at, length);
    at += length;
  }
}
