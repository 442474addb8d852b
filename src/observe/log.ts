import pino from 'pino';
import type { OrderState } from '../domain/order.ts';
import { escapeMarks } from '../json.ts';

/**
 * Structured logs, as lines of JSON or as text for a person. Secrets, tokens, signatures, bodies and payers are not
 * passed to the log in the first place; the redaction below is the second fence. A field has the same name in every
 * line: `order` is an order's reference; `event`, `reading`, `notice` and `link` are ids.
 */
export type Log = pino.Logger;

const SECRET_FIELDS: ReadonlySet<string> = new Set([
  'secret',
  'webhookSecret',
  'token',
  'authorization',
  'signature',
  'apiKey',
  'body',
  'customer',
  'email',
  // A database's address, which may hold its password.
  'url',
  'password',
  'connectionString',
]);
const REDACTED = '[redacted]';

/** @param asLine converts a line of JSON, with its line end, into the text that is written */
export function openLog(level: pino.LevelWithSilent, asLine: (json: string) => string = escapeMarks): Log {
  standardOutput ??= openOutput();
  const { write, flush } = standardOutput;
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: redact },
      serializers: { fault: serializeFault },
    },
    {
      write: (json: string) => write(asLine(json)),
      flush: (done?: () => void) => {
        flush();
        done?.();
      },
      // pino calls it after a line of level fatal.
      flushSync: flush,
    } as pino.DestinationStream,
  );
}

/**
 * Redacts fields at the top and one level below. pino's own redaction takes 10 µs a line, two thirds of what the line
 * costs, and every settled order has a line. This takes a tenth of that.
 */
function redact(fields: Record<string, unknown>): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const name of Object.keys(fields)) {
    const value = fields[name];
    shown[name] = SECRET_FIELDS.has(name)
      ? REDACTED
      : name !== 'fault' && holdsSecret(value)
        ? redactBelow(value)
        : value;
  }
  return shown;
}

function holdsSecret(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  return Object.keys(value).some((name) => SECRET_FIELDS.has(name));
}

/** An error in another field than `fault`, which has a serializer, is shown without its own fields. */
function redactBelow(value: object): object {
  if (value instanceof Error) return serializeFault(value);
  const parts = Object.entries(value).map(([name, part]) => [name, SECRET_FIELDS.has(name) ? REDACTED : part]);
  return Object.fromEntries(parts);
}

/** The state of an order changed. */
type Change = Door & { order: string; from: OrderState; to: OrderState; rule: string };

/** How it was learned; without a reading if the service has no such link. */
type Door = { by: 'webhook'; event: number } | { by: 'reconciliation'; reading?: number } | { by: 'person' };

const CHANGES: Readonly<Record<OrderState, string>> = {
  awaiting_payment: 'order waits for its payment',
  payment_pending: 'a payment was begun',
  paid: 'order is paid',
  held: 'money is held for a person',
  expired: 'link has expired and can no longer be paid',
  cancelled: 'order is cancelled',
  refunded: 'payment was refunded',
  disputed: 'payment is disputed',
};

/** Logs one line for a change of an order's state. */
export function logChange(log: Log, change: Change): void {
  const { order, from, to, rule, ...by } = change;
  log[to === 'held' ? 'warn' : 'info']({ order, from, to, rule, ...by }, CHANGES[to]);
}

/** Lines that may wait while the output cannot be written; later ones are lost. */
const WAITING_BYTES_MAX = 1024 * 1024;
/** The longest text that is gathered before it is written. */
const GATHERED_CHARACTERS_MAX = 64 * 1024;

type Output = { write(text: string): void; flush(): void };

let standardOutput: Output | undefined;

/**
 * Standard output. The lines of one turn of the event loop are one write, so a batch of settled orders costs one, and
 * only a kill in that turn loses lines. If the output is a file on a full disk, the log pauses, but payments continue.
 */
function openOutput(): Output {
  const output = pino.destination({ fd: 1, sync: true, maxLength: WAITING_BYTES_MAX });
  output.on('error', () => {});
  let gathered = '';
  const flush = () => {
    const text = gathered;
    gathered = '';
    if (text !== '') output.write(text);
  };
  process.on('exit', flush);
  return {
    write: (text) => {
      if (gathered === '') setImmediate(flush);
      gathered += text;
      if (gathered.length > GATHERED_CHARACTERS_MAX) flush();
    },
    flush,
  };
}

/** The code, the message and, for a bug, the stack; never the cause, which may quote data. */
function serializeFault(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) };
  const { code } = error as { code?: unknown };
  return code === undefined ? { message: error.message, stack: error.stack } : { code, message: error.message };
}
