import type { NoticeType, Outcome } from '../domain/decision.ts';
import type { MatterKind } from '../domain/matter.ts';
import type { Flag, HoldReason, OrderState } from '../domain/order.ts';
import type { KeptReason } from '../domain/rejection.ts';
import type { RowStatus } from '../domain/retry.ts';
import type { Search } from '../domain/search.ts';

/** What every list takes and answers, and what each can be narrowed to. */

/** A page of a list, newest first. `after`: the `next` of the page before; null or left out begins. */
export type RowPage = { limit: number; after?: number | null; isCounted?: boolean };

/**
 * `next` is null on the last page. A page may have fewer rows than were asked for although there are more: settled
 * looks at a bounded number of rows for each page.
 */
export type Listed<Row> = { rows: Row[]; next: number | null; count: Count | null };

/**
 * How many rows a filter lets through. If `isMore`, there are more than `n`; or, if `n` is below 1 000, there may be:
 * settled counts a bounded number of rows.
 */
export type Count = { n: number; isMore: boolean };

/** What lists let through. What is null or left out lets everything through. */
export type OrderFilter = {
  states?: readonly OrderState[] | null;
  flag?: Flag | null;
  /** Those on which more is left of what was captured than they ask, in their currency. */
  isOverpaid?: boolean;
  /** Those that an open matter of this kind is about; of the kind `hold`, those with an open hold. */
  matter?: MatterKind | null;
  /** Those with an open hold for this reason. */
  hold?: HoldReason | null;
  /** Created since, and until. */
  sinceMs?: number | null;
  untilMs?: number | null;
  paidSinceMs?: number | null;
  paidUntilMs?: number | null;
  /** What they ask. Amounts are minor units of the currency, both included. */
  currency?: string | null;
  fromMinor?: number | null;
  toMinor?: number | null;
  search?: Search | null;
};

export type EventFilter = {
  /** Delivered by the service, or its answer when settled asked. */
  kind?: 'event' | 'reading' | null;
  status?: RowStatus | null;
  type?: string | null;
  outcome?: Outcome | null;
  reference?: string | null;
  /** Received since, and until. */
  sinceMs?: number | null;
  untilMs?: number | null;
};

export type RejectionFilter = { reason?: KeptReason | null; reference?: string | null };

export type NoticeFilter = {
  status?: RowStatus | null;
  type?: NoticeType | null;
  reference?: string | null;
  /** Made since, and until. */
  sinceMs?: number | null;
  untilMs?: number | null;
};
