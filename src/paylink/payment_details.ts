import { parseAmount } from '../domain/money.ts';
import { type PaymentDetails, type SaidDetails, saysAnything, TOTAL_CURRENCY } from '../domain/payment_details.ts';
import { asObject, field, scalarText } from './values.ts';

/**
 * Reads what the service says about a payment besides its status and money (spec §2, Payment and quote). These values
 * are only shown and searched: one that is missing, odd or too long becomes null.
 */

const METHOD_LENGTH_MAX = 64;
const NAME_LENGTH_MAX = 255;
/** RFC 5321 §4.5.3.1.3. */
const EMAIL_LENGTH_MAX = 254;
const INSTALLMENTS_MAX = 999;

type Detail = keyof PaymentDetails;

/** Where a payment of a reading has each detail, and how it is read from a value at one of its places. */
const READ: { readonly [D in Detail]: { at: readonly string[]; read: (value: unknown) => PaymentDetails[D] } } = {
  method: {
    at: ['quote', 'paymentMethod'],
    read: (value) => readLine(value, METHOD_LENGTH_MAX)?.toUpperCase().slice(0, METHOD_LENGTH_MAX) ?? null,
  },
  installments: { at: ['quote', 'installments'], read: readInstallments },
  totalBrlMinor: { at: ['quote', 'totalBRL'], read: readTotal },
  customerName: { at: ['customer', 'name'], read: (value) => readLine(value, NAME_LENGTH_MAX) },
  customerEmail: { at: ['customer', 'email'], read: readEmail },
  createdAtMs: { at: ['createdAt'], read: readMoment },
  completedAtMs: { at: ['completedAt'], read: readMoment },
  availableAtMs: { at: ['availableAt'], read: readMoment },
};
const DETAILS = Object.keys(READ) as readonly Detail[];

/** Reads one payment's details from the values at their places; empty if there are none. */
export function readPaymentDetails(
  paymentId: string | null,
  valuesOf: (detail: Detail) => readonly unknown[],
): SaidDetails[] {
  const read = DETAILS.map((detail) => [detail, theOne<string | number>(valuesOf(detail), READ[detail].read)]);
  const said = Object.fromEntries(read) as PaymentDetails;
  return saysAnything(said) ? [{ paymentId, ...said }] : [];
}

/** Reads the payments in a link's details. A payment listed twice gets no details. */
export function readListedDetails(
  payments: readonly (readonly [id: string | null, payment: unknown])[],
): SaidDetails[] {
  const ids = payments.map(([id]) => id);
  const isTold = (id: string | null) => (id === null ? ids.length === 1 : ids.indexOf(id) === ids.lastIndexOf(id));
  return payments.flatMap(([id, payment]) =>
    isTold(id) ? readPaymentDetails(id, (detail) => [valueAt(payment, READ[detail].at)]) : [],
  );
}

function valueAt(payment: unknown, path: readonly string[]): unknown {
  return path.reduce((value, name) => field(asObject(value) ?? {}, name), payment);
}

/** The value of several places; null if none is readable, or two differ. */
export function theOne<T extends string | number>(
  values: readonly unknown[],
  read: (value: unknown) => T | null,
): T | null {
  let first: T | null = null;
  for (const value of values) {
    const said = read(value);
    if (said === null || said === first) continue;
    if (first !== null) return null;
    first = said;
  }
  return first;
}

/** Text on one line, without terminal control characters; null if it is then empty or longer than `lengthMax`. */
function readLine(value: unknown, lengthMax: number): string | null {
  if (typeof value !== 'string' || value.length > 4 * lengthMax) return null;
  const line = PLAIN.test(value) ? value : cleaned(value);
  return line === '' || line.length > lengthMax ? null : line;
}

/** Text that cleaning would not change: most names and addresses. Cleaning costs several times as much. */
const PLAIN = /^[!-~]+(?: [!-~]+)*$/;

function cleaned(text: string): string {
  return text.normalize('NFC').replace(/\s/g, ' ').replace(/\p{C}/gu, '').replace(/ +/g, ' ').trim();
}

/** An e-mail address, checked only for a local part and a domain. */
function readEmail(value: unknown): string | null {
  const line = readLine(value, EMAIL_LENGTH_MAX);
  return line !== null && /^[^\s@]+@[^\s@]+$/.test(line) ? line : null;
}

function readInstallments(value: unknown): number | null {
  const count = Number(scalarText(value) || Number.NaN);
  return Number.isSafeInteger(count) && count >= 1 && count <= INSTALLMENTS_MAX ? count : null;
}

function readTotal(value: unknown): number | null {
  const text = scalarText(value);
  const read = text === null ? null : parseAmount(text, TOTAL_CURRENCY);
  return read?.ok === true ? read.amountMinor : null;
}

// ISO 8601 (spec §2). A time without a zone is no instant.
const INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

/** Reads a time with its zone into epoch milliseconds; null if it is none. */
export function readInstant(value: unknown): number | null {
  if (typeof value !== 'string' || !INSTANT.test(value)) return null;
  const ms = Date.parse(value);
  return Number.isNaN(ms) ? null : ms;
}

/** Placeholders that programs write for no time lie outside these years. */
const MOMENTS = { fromMs: Date.UTC(2000), untilMs: Date.UTC(2200) };

/** As `readInstant`, but only within the years in which payments may be made. */
export function readMoment(value: unknown): number | null {
  const ms = readInstant(value);
  return ms !== null && ms >= MOMENTS.fromMs && ms < MOMENTS.untilMs ? ms : null;
}
