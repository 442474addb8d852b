import { payments, sums } from './ledger.ts';
import { compareKinds, type MatterKind, MONEY_KINDS } from './matter.ts';
import { formatAmount } from './money.ts';
import type { HoldReason, Order } from './order.ts';

/** Matters in groups, and the money of their orders. */

/** Matters of one kind and, for holds, one reason: that of the order's oldest hold. */
export type MatterGroup = {
  readonly kind: MatterKind;
  readonly reason: HoldReason | null;
  readonly count: number;
  /** When the oldest of them was raised. */
  readonly oldestAtMs: number;
  /** What their orders ask for and hold, for kinds about money; otherwise empty. */
  readonly sums: readonly MoneySum[];
};

/** A group of matters before its money is summed. */
export type CountedMatters = Omit<MatterGroup, 'sums'>;

/** Sorts groups as lists show them: by kind, then oldest first. */
export function inOrder<G extends Pick<MatterGroup, 'kind' | 'oldestAtMs'>>(groups: readonly G[]): G[] {
  return groups.toSorted((a, b) => compareKinds(a.kind, b.kind) || a.oldestAtMs - b.oldestAtMs);
}

/**
 * What orders ask for in one currency, and their balance: what was captured on them less what went back. Null if none of
 * it is readable.
 */
export type MoneySum = {
  readonly currency: string;
  readonly asked: bigint;
  readonly balance: bigint | null;
  /** What webhooks reported that the service did not confirm, so that it is in no balance. */
  readonly reported: bigint;
};

/** The same of one order, and of what was captured in other currencies. */
export type OrderSum = Omit<MoneySum, 'reported'>;

export function sumsOfOrder(order: Pick<Order, 'amount' | 'entries' | 'adoptedPaymentId'>): OrderSum[] {
  const { amountMinor, currency } = order.amount;
  const counted = payments(order);
  const found = sums(counted, currency).map(({ currency, balance }) => ({ currency, asked: 0n, balance }));
  const none = counted.length > 0 && found.length === 0 ? null : 0n;
  const own = found.find((sum) => sum.currency === currency);
  const asked = { currency, asked: BigInt(amountMinor), balance: own?.balance ?? none };
  return [asked, ...found.filter((sum) => sum !== own)];
}

/** A sum as documents write it. */
export function inDecimals({ currency, asked, balance }: OrderSum) {
  const written = (amountMinor: bigint) => formatAmount({ amountMinor, currency });
  return { currency, asked: written(asked), balance: balance === null ? null : written(balance) };
}

/** The money of orders that need a person for it. */
export type MatterMoney = {
  readonly orders: number;
  /** Orders of which at least one currency has a balance. */
  readonly withBalance: number;
  readonly sums: readonly MoneySum[];
  /** False if there are too many orders to read; `sums` then covers only the oldest. */
  readonly isWhole: boolean;
  /** Whether `sums` leave out money of held orders that is more than they ask for, and so cannot be right. */
  readonly hasMisread: boolean;
  /** Whether `sums` leave out captured money that is not readable. */
  readonly hasUnreadable: boolean;
};

/** Sums cover at most this many held orders, and as many matters about money. Reading more would take too long. */
export const SUMMED_MAX = 10_000;

/**
 * What orders of one kind and reason ask for and hold in one currency. Rows with `isFirst` have each order once, even
 * if several matters are about it. Each sum has two parts, millions of minor units and the rest, so that each part is
 * exact. Null if nothing was added.
 */
export type SummedMoney = {
  kind: MatterKind;
  reason: HoldReason | null;
  isFirst: boolean;
  currency: string;
  /** Orders that ask in this currency. */
  orders: number;
  askedMillions: number | null;
  askedRest: number | null;
  balanceMillions: number | null;
  balanceRest: number | null;
  /** Entries that the balance leaves out. */
  misread: number;
  /** Entries of payments that are not readable. */
  unread: number;
  reportedMillions: number | null;
  reportedRest: number | null;
  /** Orders with a balance, of all rows together. */
  withBalance: number;
};

/** Adds to each group what its orders ask for and hold. */
export function withSums(groups: readonly CountedMatters[], rows: readonly SummedMoney[]): MatterGroup[] {
  return groups.map((group) => {
    const own = rows.filter(({ kind, reason }) => kind === group.kind && reason === group.reason);
    return { ...group, sums: addUp(own) };
  });
}

/** The total money of all orders that need a person for it. */
export function totalMoney(groups: readonly CountedMatters[], rows: readonly SummedMoney[]): MatterMoney {
  const all = rows.filter(({ isFirst }) => isFirst);
  const count = (isCounted: (kind: MatterKind) => boolean) =>
    groups.reduce((sum, { kind, count }) => (isCounted(kind) ? sum + count : sum), 0);
  return {
    orders: all.reduce((sum, { orders }) => sum + orders, 0),
    withBalance: rows[0]?.withBalance ?? 0,
    sums: addUp(all),
    hasMisread: all.some(({ misread }) => misread > 0),
    hasUnreadable: all.some(({ unread }) => unread > 0),
    isWhole:
      count((kind) => kind === 'hold') <= SUMMED_MAX &&
      count((kind) => kind !== 'hold' && MONEY_KINDS.includes(kind)) <= SUMMED_MAX,
  };
}

/** One sum for each currency. */
function addUp(rows: readonly SummedMoney[]): MoneySum[] {
  const ofCurrencies = Map.groupBy(rows, ({ currency }) => currency);
  return [...ofCurrencies].map(([currency, own]) => {
    const asked = own.reduce((sum, row) => sum + whole(row.askedMillions, row.askedRest), 0n);
    const balance = own.reduce((sum, row) => sum + whole(row.balanceMillions, row.balanceRest), 0n);
    const reported = own.reduce((sum, row) => sum + whole(row.reportedMillions, row.reportedRest), 0n);
    return {
      currency,
      asked,
      balance: balance === 0n && own.some(({ unread }) => unread > 0) ? null : balance,
      reported,
    };
  });
}

function whole(millions: number | null, rest: number | null): bigint {
  return BigInt(millions ?? 0) * 1_000_000n + BigInt(rest ?? 0);
}
