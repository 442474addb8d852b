import { UNNAMED } from '../domain/ledger.ts';
import type { StatedMoney } from '../domain/money.ts';
import { JsonNumber } from './json.ts';

/** Reading single values of parsed JSON whose shape nobody promised. */
export type JsonObject = Record<string, unknown>;

export const ID_LENGTH_MAX = 255;
const CURRENCY_LENGTH_MAX = 16;

/**
 * An id that can be stored and compared: text of 1 to 255 characters, or a whole number that has one spelling only.
 * `unnamed` is the ledger's own word for a payment without an id.
 */
export function usableId(value: unknown): string | null {
  const id = typeof value === 'string' ? value : wholeNumberText(value);
  if (id === null || id.length === 0 || id.length > ID_LENGTH_MAX || id === UNNAMED) return null;
  return id.isWellFormed() && !id.includes('\0') ? id : null;
}

function wholeNumberText(value: unknown): string | null {
  const number = value instanceof JsonNumber ? Number(value.text) : value;
  return Number.isSafeInteger(number) ? String(number) : null;
}

export function readMoney(place: JsonObject): StatedMoney | null {
  const amount = statedText(field(place, 'amount'));
  const currency = readCurrency(field(place, 'currency'));
  return amount === null && currency === null ? null : { amount, currency };
}

/**
 * A currency's code in capitals, without the spaces around it. Characters that cannot be stored or shown (NUL, controls,
 * direction marks, half characters) become question marks.
 */
export function readCurrency(value: unknown): string | null {
  const text =
    statedText(value)
      ?.replace(/^ +| +$/g, '')
      .toUpperCase()
      .slice(0, CURRENCY_LENGTH_MAX) ?? null;
  return text === null ? null : text.replace(/\p{C}/gu, '?');
}

/** An amount or currency that is there but is neither becomes text that none has: it must not count as unnamed. */
export function statedText(value: unknown): string | null {
  return value === undefined || value === null ? null : (scalarText(value) ?? typeof value);
}

export function scalarText(value: unknown): string | null {
  if (typeof value === 'string') return value;
  if (value instanceof JsonNumber) return value.text;
  return typeof value === 'number' ? String(value) : null;
}

/** An own property; never one that the object inherits. */
export function field(object: JsonObject, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

export function asObject(value: unknown): JsonObject | null {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject && !(value instanceof JsonNumber) ? (value as JsonObject) : null;
}
