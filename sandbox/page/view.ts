import { aggregateStatus, type Environment, type Link, type Payment } from '../model.ts';

/** The data of a link's page. */
export type View = {
  link: Link;
  payments: readonly Payment[];
  /** The payment that the address names. */
  payment: Payment | null;
  environment: Environment;
  merchantName: string;
  /** Why the last attempt was refused. */
  problem: string | null;
};

/**
 * - `quote`: may be paid
 * - `pending`: this visit's payment has begun
 * - `receipt`: this visit's payment is complete
 * - `paid`: another payment has completed, or this one was reversed
 * - `expired`, `closed`: can no longer be paid
 */
type PageState = 'quote' | 'pending' | 'receipt' | 'paid' | 'expired' | 'closed';

export function pageState({ link, payments, payment }: Pick<View, 'link' | 'payments' | 'payment'>): PageState {
  if (payment?.status === 'COMPLETED') return 'receipt';
  if (link.status === 'ACTIVE') return payment?.status === 'PENDING' ? 'pending' : 'quote';
  if (aggregateStatus(payments) === 'COMPLETED') return 'paid';
  return link.status === 'EXPIRED' ? 'expired' : 'closed';
}

const FIGURE = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** `R$ 149.90`; an unknown currency is written by its code. */
export function money(amount: number, currency: string): string {
  return `${symbolOf(currency)}\u00a0${FIGURE.format(amount)}`;
}

/** Those of the currencies that were asked for last: to make a format takes longer than the rest of a page. */
const symbols = new Map<string, string>();
const SYMBOLS_MAX = 100;

function symbolOf(currency: string): string {
  const known = symbols.get(currency);
  if (known !== undefined) return known;
  if (symbols.size === SYMBOLS_MAX) symbols.clear();
  const symbol = findSymbol(currency);
  symbols.set(currency, symbol);
  return symbol;
}

function findSymbol(currency: string): string {
  try {
    const options = { style: 'currency', currency } as const;
    const parts = new Intl.NumberFormat('en', options).formatToParts(0);
    return parts.find(({ type }) => type === 'currency')?.value ?? currency;
  } catch {
    return currency;
  }
}

const TIME = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' });

/** `18 November 2026, 14:05 UTC` */
export function time(ms: number): string {
  return `${TIME.format(ms).replace(' at ', ', ')}\u00a0UTC`;
}

export function methodName({ method, installments }: Pick<Payment, 'method' | 'installments'>): string {
  if (method === 'PIX') return 'PIX';
  return installments === 1 ? 'Credit card' : `Credit card, ${installments} instalments`;
}
