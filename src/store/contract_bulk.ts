import type { Actor } from '../domain/access.ts';
import type { MatterKind } from '../domain/matter.ts';
import type { Author } from './contract_access.ts';
import type { EventFilter, NoticeFilter, OrderFilter } from './contract_lists.ts';

/** A filter, and what to do to all rows that match it. */
export type BulkSelection =
  | { action: 'replay_events'; filter: EventFilter }
  | { action: 'resend_notices'; filter: NoticeFilter }
  | { action: 'check_orders'; filter: OrderFilter }
  | { action: 'accept_orders'; filter: OrderFilter }
  | { action: 'end_attention'; filter: MatterFilter };

export type BulkAction = BulkSelection['action'];

/** Open matters of one kind, raised within a time. */
export type MatterFilter = { kind: MatterKind; sinceMs?: number | null; untilMs?: number | null };

/**
 * Work on all rows that match a filter. A run lists its rows when it starts; settled then carries it out row by row,
 * each by the verb for one row. On a shared store one replica works at a run; if that replica goes away, another
 * continues.
 */
export type Bulk = {
  /** Starts a run over the rows `keys`. `filter` is the request as JSON, for people. */
  startBulk(started: {
    action: BulkAction;
    filter: string;
    reason: string | null;
    keys: readonly number[];
    isMore: boolean;
    by: Author | null;
    atMs: number;
  }): Promise<BulkRun>;
  /** Cancels a run; what it did stays. `ended`: it had ended before. */
  cancelBulk(cancelled: { key: number; by: Author | null; atMs: number }): Promise<BulkRun | 'ended' | null>;
  /**
   * Leases the oldest run whose lease is free or ours, and lists its next rows. Null if there is none. Cancels runs
   * whose token was revoked or has expired.
   */
  claimBulk(claim: { limit: number; nowMs: number; leaseMs: number }): Promise<ClaimedBulk | null>;
  /**
   * Carries a run out for one row and records the outcome, in one transaction, so that no row is done twice even if the
   * process crashes. `lost`: the run was cancelled, the row is done, or another replica has the lease. The last row
   * ends the run.
   */
  carryOutBulk(item: BulkItem): Promise<BulkOutcome | 'lost'>;
  /** Records a failure for one row, so that the run continues with the others. `lost`: as in `carryOutBulk`. */
  failBulk(item: BulkItem & { detail: string }): Promise<'failed' | 'lost'>;
};

export type BulkItem = { run: ClaimedBulk; itemKey: number; auditKey: Uint8Array; nowMs: number };

/** `skipped`: there was nothing to do. `detail`: the reason, as a code. */
export type BulkOutcome = { outcome: 'changed' | 'skipped' | 'failed'; detail: string | null };

export type ClaimedBulk = {
  key: number;
  action: BulkAction;
  reason: string | null;
  author: Actor | null;
  items: readonly number[];
};

export type BulkQueries = {
  /** The keys of the rows that match a filter, at most `limit`. `isMore`: there are more. */
  findBulkKeys(asked: BulkSelection & { limit: number }): Promise<{ keys: number[]; isMore: boolean }>;
  /** Newest first. */
  listBulk(page: { limit: number; after: number | null }): Promise<BulkRun[]>;
  findBulk(key: number): Promise<BulkRun | null>;
};

export type BulkRun = {
  key: number;
  action: BulkAction;
  /** The request as JSON. */
  filter: string;
  reason: string | null;
  author: Actor | null;
  status: 'running' | 'done' | 'cancelled';
  /** Why settled cancelled the run; null if it did not. */
  detail: 'token_ended' | null;
  total: number;
  /** Whether more rows matched than one run takes. */
  isMore: boolean;
  changed: number;
  skipped: number;
  failed: number;
  startedAtMs: number;
  endedAtMs: number | null;
};
