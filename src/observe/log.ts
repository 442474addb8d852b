import pino from 'pino';
import { escapeMarks } from '../json.ts';
import type { LogLevel } from './level.ts';

/**
 * Structured JSON logs. What must never appear in one (secrets, tokens, signatures, bodies, payers) is not passed to
 * the log in the first place; the redaction below is the second fence.
 */
export type Log = pino.Logger;

const SECRET_FIELDS = [
  'secret',
  'webhookSecret',
  'token',
  'authorization',
  'signature',
  'apiKey',
  'body',
  'customer',
  'email',
  // Of a database's address, which may hold its password.
  'url',
  'password',
  'connectionString',
];

export function openLog(level: LogLevel): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { fault: serializeFault },
      redact: { paths: SECRET_FIELDS.flatMap((name) => [name, `*.${name}`]), censor: '[redacted]' },
    },
    openOutput(),
  );
}

/** Lines that wait while the output cannot be written, at most; later ones are lost. */
const WAITING_BYTES_MAX = 1024 * 1024;

/** Standard output. Where it is a file on a full disk the log pauses, and payments go on. */
function openOutput(): pino.DestinationStream {
  const output = pino.destination({ fd: 1, sync: true, maxLength: WAITING_BYTES_MAX });
  output.on('error', () => {});
  return { write: (line) => void output.write(escapeMarks(line)) };
}

/** The code, the message and, for a bug, the stack; never the cause, which may quote data. */
function serializeFault(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) };
  const { code } = error as { code?: unknown };
  return code === undefined
    ? { message: error.message, stack: error.stack }
    : { code, message: error.message };
}
