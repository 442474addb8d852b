import type { Payment } from '../model.ts';

/** `R$ 149.90`; a currency that nobody knows is written by its code. */
export function money(amount: number, currency: string): string {
  const figure = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  return `${symbolOf(currency)}\u00a0${figure.format(amount)}`;
}

function symbolOf(currency: string): string {
  try {
    const options = { style: 'currency', currency } as const;
    const parts = new Intl.NumberFormat('en', options).formatToParts(0);
    return parts.find(({ type }) => type === 'currency')?.value ?? currency;
  } catch {
    return currency;
  }
}

/** `18 November 2026, 14:05 UTC` */
export function time(ms: number): string {
  const format = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' });
  return `${format.format(ms).replace(' at ', ', ')}\u00a0UTC`;
}

export function methodName({ method, installments }: Pick<Payment, 'method' | 'installments'>): string {
  if (method === 'PIX') return 'PIX';
  return installments === 1 ? 'Credit card' : `Credit card, ${installments} instalments`;
}
