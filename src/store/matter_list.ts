import {
  compareKinds,
  type MatterGroup,
  type MatterKind,
  type MatterMoney,
  MONEY_KINDS,
  type MoneySum,
} from '../domain/matter.ts';
import type { HoldReason, Order, OrderState } from '../domain/order.ts';
import type { OrderRow } from './orders.ts';
import type { ListedMatter, MatterPage, MatterPlace } from './queries.ts';

/** Held orders, and matters about money, whose money is summed at most: reading more would take too long. */
export const SUMMED_MAX = 10_000;

/** Kinds of attention about money, as SQL lists them. */
export const MONEY_ATTENTION = `('${MONEY_KINDS.filter((kind) => kind !== 'hold').join("', '")}')`;

/** A filter that lets everything through. */
export const EVERY_MATTER = { kind: null, state: null } as const;

export type GroupRow = { kind: MatterKind; reason: HoldReason | null; count: number; oldestAtMs: number };

/**
 * What orders of one kind and reason ask and hold in one currency. `isFirst`: of orders that no other such row counts as
 * first, so that these are each order once. Sums are in two parts, each of which stays exact: millions of minor units, and
 * the rest. They are null if nothing was added.
 */
export type SumRow = {
  kind: MatterKind;
  reason: HoldReason | null;
  isFirst: 0 | 1 | boolean;
  currency: string;
  /** That ask in this currency. */
  orders: number;
  askedMillions: number | null;
  askedRest: number | null;
  balanceMillions: number | null;
  balanceRest: number | null;
};

/** Whether the filters let held orders through: they are all in one state. */
export function wantsHolds({ kind, state }: { kind: MatterKind | null; state: OrderState | null }): boolean {
  return (kind === null || kind === 'hold') && (state === null || state === 'held');
}

/** Groups with their sums, in the order in which they come. */
export function withSums(groups: readonly GroupRow[], rows: readonly SumRow[]): MatterGroup[] {
  return groups.map((group) => {
    const own = rows.filter(({ kind, reason }) => kind === group.kind && reason === group.reason);
    return { ...group, sums: addUp(own) };
  });
}

/** The money of all orders that need a person for money. */
export function totalMoney(groups: readonly GroupRow[], rows: readonly SumRow[]): MatterMoney {
  const all = rows.filter(({ isFirst }) => isFirst);
  const count = (isCounted: (kind: MatterKind) => boolean) =>
    groups.reduce((sum, { kind, count }) => (isCounted(kind) ? sum + count : sum), 0);
  return {
    orders: all.reduce((sum, { orders }) => sum + orders, 0),
    sums: addUp(all),
    isWhole:
      count((kind) => kind === 'hold') <= SUMMED_MAX &&
      count((kind) => kind !== 'hold' && MONEY_KINDS.includes(kind)) <= SUMMED_MAX,
  };
}

/** One sum for each currency. */
function addUp(rows: readonly SumRow[]): MoneySum[] {
  const sums = new Map<string, MoneySum>();
  for (const { currency, ...parts } of rows) {
    const before = sums.get(currency) ?? { currency, asked: 0n, balance: 0n };
    sums.set(currency, {
      currency,
      asked: before.asked + whole(parts.askedMillions, parts.askedRest),
      balance: before.balance + whole(parts.balanceMillions, parts.balanceRest),
    });
  }
  return [...sums.values()];
}

function whole(millions: number | null, rest: number | null): bigint {
  return BigInt(millions ?? 0) * 1_000_000n + BigInt(rest ?? 0);
}

/** The kinds of which a page may hold rows, in the order of the list: those from the place where the last one ended. */
export function kindsFrom(groups: readonly { kind: MatterKind }[], after: MatterPlace | null): MatterKind[] {
  const kinds = [...new Set(groups.map(({ kind }) => kind))];
  return after === null ? kinds : kinds.filter((kind) => compareKinds(kind, after.kind) >= 0);
}

/** Where a kind's rows begin. */
export function placeWithin(kind: MatterKind, { after }: MatterPage): Omit<MatterPlace, 'kind'> {
  return after?.kind === kind ? after : { openedAtMs: 0, key: 0 };
}

export type HoldRow = OrderRow & { reason: HoldReason; openedAtMs: number; lastAtMs: number };

export function heldMatter(row: HoldRow, order: Order): ListedMatter {
  const { key, reason, openedAtMs, lastAtMs } = row;
  const count = order.holds.length;
  return { kind: 'hold', key, reason, subject: order.reference, detail: null, count, openedAtMs, lastAtMs, order };
}

export type AttentionRow = Omit<ListedMatter, 'kind' | 'reason' | 'order'> & { orderKey: number | null };

export function openMatter(kind: MatterKind, { orderKey: _, ...row }: AttentionRow, order: Order | null): ListedMatter {
  return { ...row, kind, reason: null, order };
}
