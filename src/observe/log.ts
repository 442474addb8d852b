import pino from 'pino';
import type { OrderState } from '../domain/order.ts';
import { escapeMarks } from '../json.ts';
import type { Clock } from '../work/clock.ts';

/**
 * Structured logs, as lines of JSON or as text for people. Callers pass no secret, token, signature, body or payer to
 * the log; the redaction below is a second barrier. A field has the same name in every line: `order` is an order's
 * reference; `event`, `reading`, `notice` and `link` are ids.
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

/** @param asLine converts a line of JSON, with its line end, into the text to write */
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
 * Redacts fields at the top and one level below. pino's own redaction takes 10 µs a line, two thirds of a line's cost,
 * and every settled order has a line. This takes a tenth of that.
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

/** `fault` has a serializer. An error in any other field is shown without its own fields. */
function redactBelow(value: object): object {
  if (value instanceof Error) return serializeFault(value);
  const parts = Object.entries(value).map(([name, part]) => [name, SECRET_FIELDS.has(name) ? REDACTED : part]);
  return Object.fromEntries(parts);
}

/** A change of an order's state. */
type Change = Door & { order: string; from: OrderState; to: OrderState; rule: string };

/** How settled learned it; without a reading if the service has no such link. */
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

const COUNT_EVERY_MS = 1_000;
/** The most orders that a line names. */
const NAMED_MAX = 40;

/** A delivery that was refused or not recorded. */
type Refusal = {
  /** Its outcome, or why it is not authentic. */
  reason: string;
  /** The reference of the order whose link it named. */
  order?: string | undefined;
  /** The fault that kept it from being recorded. */
  fault?: unknown;
};

/** Logs refusals so that orders can be found, while a flood costs few lines: one a second for each reason. */
export function countRefusals({ clock, log }: { clock: Clock; log: Log }) {
  let found = new Map<string, { count: number; orders: Set<string>; fault: unknown }>();

  function flush(): void {
    const all = found;
    found = new Map();
    for (const [reason, { count, orders, fault }] of all) {
      const [order, ...more] = orders;
      const named = order === undefined ? {} : more.length === 0 ? { order } : { orders: [order, ...more] };
      log.warn(
        { ...named, reason, count, ...(fault === undefined ? {} : { fault }) },
        reason === 'stale'
          ? 'deliveries were stamped too early or too late, and were not believed'
          : 'deliveries were refused, or not recorded',
      );
    }
  }

  return {
    add: ({ reason, order, fault }: Refusal, count = 1) => {
      if (found.size === 0) clock.after(COUNT_EVERY_MS, flush);
      const one = found.get(reason) ?? { count: 0, orders: new Set(), fault };
      found.set(reason, one);
      one.fault ??= fault;
      one.count += count;
      if (order !== undefined && one.orders.size < NAMED_MAX) one.orders.add(order);
    },
    /** Logs them now. */
    flush,
  };
}

/** The most bytes that wait while the output cannot be written. Later lines are lost. */
const WAITING_BYTES_MAX = 1024 * 1024;
/** The most characters gathered before a write. */
const GATHERED_CHARACTERS_MAX = 64 * 1024;

type Output = { write(text: string): void; flush(): void };

let standardOutput: Output | undefined;

/**
 * Opens standard output. The lines of one turn of the event loop are one write, so a batch of settled orders costs one,
 * and only a kill in that turn loses lines. If the output is a file on a full disk, the log pauses and payments go on.
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

/** Shows the code, the message and, for a bug, the stack; never the cause, which may quote data. */
function serializeFault(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) };
  const { code } = error as { code?: unknown };
  return code === undefined ? { message: error.message, stack: error.stack } : { code, message: error.message };
}
