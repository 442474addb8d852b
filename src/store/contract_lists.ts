import type { NoticeType, Outcome } from '../domain/decision.ts';
import type { MatterKind } from '../domain/matter.ts';
import type { Flag, HoldReason, OrderState } from '../domain/order.ts';
import type { KeptReason } from '../domain/rejection.ts';
import type { RowStatus } from '../domain/retry.ts';
import type { Search } from '../domain/search.ts';

/** Pages, filters and counts that all lists share. */

/** A page of a list, newest first. `after`: the `next` of the previous page; null or absent to begin. */
export type RowPage = { limit: number; after?: number | null; isCounted?: boolean };

/**
 * `next` is null on the last page. A page may have fewer rows than requested although more follow: settled examines a
 * bounded number of rows for each page.
 */
export type Listed<Row> = { rows: Row[]; next: number | null; count: Count | null };

/**
 * The number of rows that match a filter. `isMore`: there are more than `n` or, if `n` is below 1 000, there may be,
 * because settled counts a bounded number of rows.
 */
export type Count = { n: number; isMore: boolean };

/** Filters of lists. Null or absent matches everything. */
export type OrderFilter = {
  states?: readonly OrderState[] | null;
  flag?: Flag | null;
  /** Orders with more captured money left, in their currency, than they ask for. */
  isOverpaid?: boolean;
  /** Orders with an open matter of this kind; for `hold`, those with an open hold. */
  matter?: MatterKind | null;
  /** Orders with an open hold for this reason. */
  hold?: HoldReason | null;
  /** Created within this time. */
  sinceMs?: number | null;
  untilMs?: number | null;
  paidSinceMs?: number | null;
  paidUntilMs?: number | null;
  /** The amount that they ask for, in minor units of the currency; both bounds are inclusive. */
  currency?: string | null;
  fromMinor?: number | null;
  toMinor?: number | null;
  search?: Search | null;
};

export type EventFilter = {
  /** A delivery of the service, or its answer when settled asked. */
  kind?: 'event' | 'reading' | null;
  status?: RowStatus | null;
  type?: string | null;
  outcome?: Outcome | null;
  reference?: string | null;
  /** Received within this time. */
  sinceMs?: number | null;
  untilMs?: number | null;
};

export type RejectionFilter = { reason?: KeptReason | null; reference?: string | null };

export type NoticeFilter = {
  status?: RowStatus | null;
  type?: NoticeType | null;
  reference?: string | null;
  /** Made within this time. */
  sinceMs?: number | null;
  untilMs?: number | null;
};
