import type { FactKind } from '../domain/fact.ts';
import { UNNAMED } from '../domain/ledger.ts';
import { parseAmount, type StatedMoney } from '../domain/money.ts';
import { ExactNumber } from '../json.ts';

/** Reads single values of parsed JSON of any shape, and compares those that several places name. */
export type JsonObject = Record<string, unknown>;

/** What each payment status means (spec §2, Payment). */
export const FACT_KINDS_BY_STATUS: ReadonlyMap<string, FactKind> = new Map([
  ['PENDING', 'pending'],
  ['COMPLETED', 'completed'],
  ['REFUNDED', 'refunded'],
  ['DISPUTED', 'disputed'],
]);

export const ID_LENGTH_MAX = 255;
const CURRENCY_LENGTH_MAX = 16;

/**
 * An id that can be stored and compared: text of 1 to 255 characters, or a whole number with a single spelling.
 * `unnamed` is refused: the ledger uses it for a payment without an id.
 */
export function usableId(value: unknown): string | null {
  const id = typeof value === 'string' ? value : wholeNumberText(value);
  if (id === null || id.length === 0 || id.length > ID_LENGTH_MAX || id === UNNAMED) return null;
  return id.isWellFormed() && !id.includes('\0') ? id : null;
}

function wholeNumberText(value: unknown): string | null {
  const number = value instanceof ExactNumber ? Number(value.text) : value;
  return Number.isSafeInteger(number) ? String(number) : null;
}

export function readMoney(place: JsonObject): StatedMoney | null {
  return agreedMoney([field(place, 'amount')], [field(place, 'currency')]).first;
}

/**
 * A currency code in capitals, trimmed. Characters that cannot be stored or shown (NUL, controls, direction marks,
 * unpaired surrogates) become question marks.
 */
function readCurrency(value: unknown): string | null {
  const code = statedText(value)
    ?.replace(/^ +| +$/g, '')
    .toUpperCase();
  return code?.slice(0, CURRENCY_LENGTH_MAX).replace(/\p{C}/gu, '?') ?? null;
}

/**
 * Returns text and numbers as text. Any other value becomes the name of its type, because it must not count as missing.
 */
export function statedText(value: unknown): string | null {
  return value === undefined || value === null ? null : (scalarText(value) ?? typeof value);
}

export function scalarText(value: unknown): string | null {
  if (typeof value === 'string') return value;
  if (value instanceof ExactNumber) return value.text;
  return typeof value === 'number' ? String(value) : null;
}

/** A property of the object itself, never an inherited one. */
export function field(object: JsonObject, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

export function asObject(value: unknown): JsonObject | null {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject && !(value instanceof ExactNumber) ? (value as JsonObject) : null;
}

/** The value that several places name: the first one, and whether all are the same. */
export type Agreed<T> = { first: T | null; isAgreed: boolean };

export function agreed(
  named: readonly (string | null)[],
  isSame: (one: string, other: string) => boolean = (one, other) => one === other,
): Agreed<string> {
  let first: string | null = null;
  let isAgreed = true;
  for (const value of named) {
    if (first === null) first = value;
    else if (value !== null && !isSame(first, value)) isAgreed = false;
  }
  return { first, isAgreed };
}

/** Amounts and currencies are compared separately: one place may name what another leaves out. */
export function agreedMoney(amounts: readonly unknown[], currencies: readonly unknown[]): Agreed<StatedMoney> {
  const currency = agreed(currencies.map(readCurrency));
  const amount = agreed(
    amounts.map(statedText),
    (one, other) => one === other || isSameAmount(one, other, currency.first ?? ''),
  );
  const isNamed = amount.first !== null || currency.first !== null;
  const money = isNamed ? { amount: amount.first, currency: currency.first } : null;
  return { first: money, isAgreed: amount.isAgreed && currency.isAgreed };
}

/** `100` and `100.00` are the same amount. */
function isSameAmount(one: string, other: string, currency: string): boolean {
  const [read, reread] = [parseAmount(one, currency), parseAmount(other, currency)];
  return read.ok && reread.ok && read.amountMinor === reread.amountMinor;
}
