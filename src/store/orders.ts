import type { LedgerEntry } from '../domain/ledger.ts';
import type { Flag, Hold, Order, OrderLink, OrderState, Settlement } from '../domain/order.ts';

/** An order as loaded, with the key of its row. `hasMatters`: whether a matter of it stands for a person. */
export type LoadedOrder = { orderKey: number; order: Order; hasMatters: boolean };

export type OrderRow = {
  key: number;
  reference: string;
  amount_minor: number;
  currency: string;
  state: OrderState;
  flags: string;
  version: number;
  adopted_payment_id: string | null;
  resolution: 'accept' | 'reject' | null;
  last_reading: number | null;
  created_at_ms: number;
};

export type LoadedRow = OrderRow & { has_matters: 0 | 1 | boolean };

export function loadedOrder({ key, has_matters }: LoadedRow, order: Order): LoadedOrder {
  return { orderKey: key, order, hasMatters: Boolean(has_matters) };
}

/** What stands in the tables beside an order's row. */
export type BesideOrder = {
  settlement: Settlement | null;
  entries: LedgerEntry[];
  holds: Hold[];
  link: OrderLink | null;
};

/** @param versionFloor what every version of an order is above; 0 unless the store was restored */
export function completeOrder(row: OrderRow, beside: BesideOrder, versionFloor: number): Order {
  return {
    reference: row.reference,
    amount: { amountMinor: row.amount_minor, currency: row.currency },
    state: row.state,
    flags: row.flags === '' ? [] : (row.flags.split(',') as Flag[]),
    version: Math.max(row.version, versionFloor),
    createdAtMs: row.created_at_ms,
    adoptedPaymentId: row.adopted_payment_id,
    resolution: row.resolution,
    lastReading: row.last_reading,
    ...beside,
  };
}

/** A line of the ledger: its columns as both engines name them. */
export type EntryRow = Omit<LedgerEntry, 'isAssumed' | 'customerPaid'> & {
  isAssumed: 0 | 1 | boolean;
  customerAmount: string | null;
  customerCurrency: string | null;
};

export function readEntry({ customerAmount, customerCurrency, isAssumed, ...entry }: EntryRow): LedgerEntry {
  const isSaid = customerAmount !== null && customerCurrency !== null;
  const customerPaid = isSaid ? { amount: customerAmount, currency: customerCurrency } : null;
  return { ...entry, isAssumed: Boolean(isAssumed), customerPaid };
}
