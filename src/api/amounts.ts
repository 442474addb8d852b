import type { Response } from 'express';
import { isCurrency, type Money, parseAmount } from '../domain/money.ts';
import { sendProblem } from '../http/problem.ts';

/** Answers 422 about one field of a request that has the right form. Returns null. */
export function refuseField(response: Response, path: string, detail: string): null {
  const errors = [{ path, detail }];
  sendProblem(response, { status: 422, code: 'invalid_request', detail: `${path}: ${detail}`, errors });
  return null;
}

/** The service makes links for more than this. The spec names no currency (§8), and a creation takes none. */
const AMOUNT_ABOVE = '25';
/** What an amount must be, in the same words for the document and for the refusal of one that is not. */
export const ENOUGH = `more than ${AMOUNT_ABOVE}`;
const TOO_LITTLE = `must be ${ENOUGH}: the service makes no link of ${AMOUNT_ABOVE} or less`;

/** Whether the service makes links for so much. */
export function isEnough({ amountMinor, currency }: Money): boolean {
  const least = parseAmount(AMOUNT_ABOVE, currency);
  return !least.ok || amountMinor > least.amountMinor;
}

/** Answers 422 about an amount that is not enough. */
export function refuseTooLittle(response: Response): void {
  refuseField(response, 'amount', TOO_LITTLE);
}

/** Reads the amount of a request, in its own currency or the first that is configured; answers 422 and returns null where it is none. */
export function readAmount(
  { amount, currency: named }: { amount: string | number; currency?: string | undefined },
  configured: string,
  response: Response,
): Money | null {
  const currencies = configured.split(' ');
  const currency = named ?? (currencies[0] as string);
  if (!isCurrency(currency) && !currencies.includes(currency)) {
    const detail = 'must be an ISO 4217 code in capitals, like BRL, or one that SETTLED_CURRENCY names';
    return refuseField(response, 'currency', detail);
  }
  const parsed = parseAmount(String(amount), currency);
  if (parsed.ok) return { amountMinor: parsed.amountMinor, currency };
  const details = {
    not_a_number: 'must be a decimal number, like 100.50',
    not_positive: TOO_LITTLE,
    too_many_decimals: `has more decimals than ${currency} has`,
    too_large: 'is larger than can be counted exactly',
  };
  return refuseField(response, 'amount', details[parsed.fault]);
}
