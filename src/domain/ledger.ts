import type { Money } from './money.ts';
import { amountIn, assertAmountMinor, formatAmount, inMoney, parseAmount } from './money.ts';

type EntryKind = 'captured' | 'refunded' | 'disputed';

/** The key of a payment that the service reported without an id. An order has at most one. */
export const UNNAMED = 'unnamed';

/**
 * One line of an order's ledger. Entries are only added. `captured` adds money or corrects an earlier capture;
 * `refunded` and `disputed` subtract it; so the balance is the sum. Unique by order, paymentKey, kind and occurrence.
 */
export type LedgerEntry = {
  readonly paymentKey: string;
  readonly kind: EntryKind;
  /** Counts from 1 for each payment and kind. */
  readonly occurrence: number;
  readonly amountMinor: number;
  readonly currency: string;
  /**
   * Whether the service did not name this money. The entry then has the order's amount, or zero if the money was
   * unreadable; the next capture may correct it.
   */
  readonly isAssumed: boolean;
  /** What the customer paid, if this entry is the first to record it; see `Payment`. */
  readonly customerPaid: Stated | null;
  /** What the service named, if the entry cannot say it; see `Payment`. A readable capture has it if it `isBeside`. */
  readonly stated: Stated | null;
};

/** An amount that the service named: a decimal number, or for people what stands in its place if it is not readable. */
export type Stated = { readonly amount: string; readonly currency: string };

export type Payment = {
  readonly key: string;
  readonly id: string | null;
  readonly status: 'completed' | 'refunded' | 'disputed';
  /** The money captured when it was completed. */
  readonly captured: Money;
  /** Captures less refunds and disputes. */
  readonly balance: Money;
  /** Whether `captured` is assumed, because the service did not name it. */
  readonly isAssumed: boolean;
  /** What the customer paid if it differs from `captured`: with instalment interest, or in another currency. */
  readonly customerPaid: Stated | null;
  /** What the service named last if it is not `captured`: the sum of a refund or dispute, or what is not readable. */
  readonly stated: Stated | null;
  /** Whether it went back with a sum that is not known to be all of it, so that a part may still be there. */
  readonly mayBeLeft: boolean;
  /** Whether it was counted only once it had gone back, beside another payment: it may be a part of that one. */
  readonly isBeside: boolean;
};

export type Books = { readonly entries: readonly LedgerEntry[]; readonly adoptedPaymentId: string | null };

/** The order's payments, in the order in which they were first counted. */
export function payments(books: Books): Payment[] {
  const found = new Map<string, Payment>();
  for (const entry of books.entries) {
    const before = found.get(entry.paymentKey);
    // A correction into another currency first removes all money of the former one.
    const left = before?.balance.currency === entry.currency ? before.balance.amountMinor : 0;
    const balance = { amountMinor: left + entry.amountMinor, currency: entry.currency };
    const isCapture = entry.kind === 'captured';
    const captured = isCapture ? balance : (before?.captured ?? balance);
    const said = entry.customerPaid ?? before?.customerPaid ?? null;
    const stated = entry.stated ?? (isCapture && isReadable(captured) ? null : (before?.stated ?? null));
    const isBeside = isCapture ? isReadable(entry) && entry.stated !== null : before?.isBeside === true;
    const isLeft = entry.stated === null ? before?.mayBeLeft === true : !isAllOf(captured, entry.stated);
    found.set(entry.paymentKey, {
      key: entry.paymentKey,
      id: entry.paymentKey === UNNAMED ? books.adoptedPaymentId : entry.paymentKey,
      status: isCapture ? 'completed' : entry.kind,
      captured,
      balance,
      isAssumed: isCapture ? entry.isAssumed : (before?.isAssumed ?? false),
      customerPaid: said === null || isWorth(captured, said) ? null : said,
      stated: stated === null || (isReadable(captured) && isWorth(captured, stated)) ? null : stated,
      mayBeLeft: isLeft && !isCapture && !isBeside,
      isBeside,
    });
  }
  return [...found.values()];
}

/** Whether settled could read this captured money. The service names no payment of zero, so zero stands for none. */
export function isReadable({ amountMinor }: Money): boolean {
  return amountMinor !== 0;
}

/** A sum in words, and what the service names instead. `sum`: null if it is not readable; the words quote what is named. */
export function sumWords(sum: string | null, stated: Stated | null): string {
  if (sum === null) return `not readable${stated === null ? '' : ` ("${stated.amount} ${stated.currency}")`}`;
  return stated === null ? sum : `${sum} (the service names ${statedWords(stated)})`;
}

/** A stated sum in words. */
export function statedWords(stated: Stated): string {
  return readSum(stated) === null ? `something ${sumWords(null, stated)}` : amountIn(stated);
}

/** What a stated sum is worth; null if it is not readable. */
export function readSum({ amount, currency }: Stated): Money | null {
  const read = parseAmount(amount, currency);
  return read.ok ? { amountMinor: read.amountMinor, currency } : null;
}

/** Whether a stated sum is at least this money. False if the two cannot be compared. */
export function isAllOf(money: Money, stated: Stated): boolean {
  const sum = readSum(stated);
  return isReadable(money) && sum?.currency === money.currency && sum.amountMinor >= money.amountMinor;
}

/** Whether money of the payment is there, or may be: what went back may have been a part. */
export function mayBeThere({ status, mayBeLeft }: Payment): boolean {
  return status === 'completed' || mayBeLeft;
}

export function completedPayments(books: Books): Payment[] {
  return payments(books).filter(({ status }) => status === 'completed');
}

/** Whether money was counted that settled could read, and that did not go back. */
export function hasCounted(books: Books): boolean {
  return completedPayments(books).some(({ captured }) => isReadable(captured));
}

/** Whether payments were counted, and the money of all of them has gone back: a held order then cannot be accepted. */
export function hasNothingLeft(books: Books): boolean {
  return payments(books).length > 0 && completedPayments(books).length === 0;
}

/** The most payments that a document or a sentence lists. An order may have any number. */
export const PAYMENTS_LISTED_MAX = 20;

/** The payments to list: `first` and the newest, in the order in which they were counted. */
export function listed(counted: readonly Payment[], first?: Payment): readonly Payment[] {
  if (counted.length <= PAYMENTS_LISTED_MAX) return counted;
  const newest = counted.slice(-PAYMENTS_LISTED_MAX);
  return first === undefined || newest.includes(first) ? newest : [first, ...newest.slice(1)];
}

export type Sum = { readonly currency: string; readonly captured: bigint; readonly balance: bigint };

/** Exact sums of readable payments by currency: the currency `first`, then the others in the order of their first payment. */
export function sums(counted: readonly Payment[], first: string): Sum[] {
  const found = new Map<string, Sum>();
  const add = (currency: string, captured: number, balance: number) => {
    const before = found.get(currency) ?? { captured: 0n, balance: 0n };
    const sum = { captured: before.captured + BigInt(captured), balance: before.balance + BigInt(balance) };
    found.set(currency, { currency, ...sum });
  };
  for (const { captured, balance } of counted.filter(({ captured }) => isReadable(captured))) {
    add(captured.currency, captured.amountMinor, balance.amountMinor);
  }
  const isFirst = ({ currency }: Sum) => Number(currency === first);
  return [...found.values()].sort((a, b) => isFirst(b) - isFirst(a));
}

/** The number of payments and their sums, in words. */
export function inSum(counted: readonly Payment[]): string {
  const brought = sums(counted, '').map(({ captured, currency }) => inMoney({ amountMinor: captured, currency }));
  const said = brought.slice(0, CURRENCIES_SAID).join(' and ') || 'nothing readable';
  return `${counted.length} payments of ${said}${brought.length > CURRENCIES_SAID ? ' and others' : ''} in all`;
}

const CURRENCIES_SAID = 5;

/** Whether what the customer paid equals this money. */
export function isWorth(money: Money, { amount, currency }: Stated): boolean {
  return currency === money.currency && amount === formatAmount(money);
}

type Claim = { readonly amount: Money; readonly settlement: { readonly paymentKey: string | null } | null };

/** Whether a completed payment is worth the claim or made the order paid; a person may have accepted less. */
export function covers({ key, status, balance }: Payment, { amount, settlement }: Claim): boolean {
  if (status !== 'completed') return false;
  const isWorthIt = balance.currency === amount.currency && balance.amountMinor >= amount.amountMinor;
  return isWorthIt || key === settlement?.paymentKey;
}

export type NewEntry = Pick<LedgerEntry, 'paymentKey' | 'kind' | 'amountMinor' | 'currency'> &
  Partial<Pick<LedgerEntry, 'isAssumed' | 'customerPaid' | 'stated'>>;

/** The next entry for a payment, numbered after those of its kind. Throws if its amount is not allowed. */
export function nextEntry(books: Books, entry: NewEntry): LedgerEntry {
  assertAmountMinor(entry.amountMinor);
  const earlier = books.entries.filter((e) => e.paymentKey === entry.paymentKey && e.kind === entry.kind);
  return { isAssumed: false, customerPaid: null, stated: null, ...entry, occurrence: earlier.length + 1 };
}
