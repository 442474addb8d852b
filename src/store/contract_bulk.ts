import type { Actor } from '../domain/access.ts';
import type { MatterKind } from '../domain/matter.ts';
import type { Author } from './contract_access.ts';
import type { EventFilter, NoticeFilter, OrderFilter } from './contract_lists.ts';

/** What is done to all rows that a filter lets through. */
export type BulkSelection =
  | { action: 'replay_events'; filter: EventFilter }
  | { action: 'resend_notices'; filter: NoticeFilter }
  | { action: 'check_orders'; filter: OrderFilter }
  | { action: 'end_attention'; filter: MatterFilter };

export type BulkAction = BulkSelection['action'];

/** Open matters of one kind; opened since, and until. */
export type MatterFilter = { kind: MatterKind; sinceMs?: number | null; untilMs?: number | null };

/**
 * Work on all rows that a filter lets through: a run lists them when it starts, and settled carries it out row by row, each
 * by the verb that does it to one row. On a shared store one replica works at a run, and another goes on when it is gone.
 */
export type Bulk = {
  /** Lists `keys` as what the run is to do. `filter` is for people: what they asked, as JSON. */
  startBulk(started: {
    action: BulkAction;
    filter: string;
    reason: string | null;
    keys: readonly number[];
    isMore: boolean;
    by: Author | null;
    atMs: number;
  }): Promise<BulkRun>;
  /** Ends a run; what it did stays. `ended`: it had ended before. */
  cancelBulk(cancelled: { key: number; by: Author | null; atMs: number }): Promise<BulkRun | 'ended' | null>;
  /**
   * Leases the oldest run whose lease is free or ours, and lists the next of its rows. Null if there is none. Cancels runs
   * whose token was revoked or has expired.
   */
  claimBulk(claim: { limit: number; nowMs: number; leaseMs: number }): Promise<ClaimedBulk | null>;
  /**
   * Does it to one row and notes what became of it, in one transaction: a row is never done twice, wherever the process
   * ends. `lost`: the run was cancelled, the row is done, or another replica has the lease. The last row ends the run.
   */
  carryOutBulk(item: BulkItem): Promise<BulkOutcome | 'lost'>;
  /** Notes that it failed for one row, so that the run goes on with the others. `lost`: as of `carryOutBulk`. */
  failBulk(item: BulkItem & { detail: string }): Promise<'failed' | 'lost'>;
};

export type BulkItem = { run: ClaimedBulk; itemKey: number; auditKey: Uint8Array; nowMs: number };

/** `skipped`: there was nothing to do. `detail` says why, as a code. */
export type BulkOutcome = { outcome: 'changed' | 'skipped' | 'failed'; detail: string | null };

export type ClaimedBulk = {
  key: number;
  action: BulkAction;
  reason: string | null;
  author: Actor | null;
  items: readonly number[];
};

export type BulkQueries = {
  /** The keys that a filter lets through, at most `limit`. `isMore`: there are more. */
  findBulkKeys(asked: BulkSelection & { limit: number }): Promise<{ keys: number[]; isMore: boolean }>;
  /** The newest first. */
  listBulk(page: { limit: number; after: number | null }): Promise<BulkRun[]>;
  findBulk(key: number): Promise<BulkRun | null>;
};

export type BulkRun = {
  key: number;
  action: BulkAction;
  /** JSON. */
  filter: string;
  reason: string | null;
  author: Actor | null;
  status: 'running' | 'done' | 'cancelled';
  /** Why settled cancelled it; null if it did not. */
  detail: 'token_ended' | null;
  total: number;
  /** Whether the filter let more rows through than one run takes. */
  isMore: boolean;
  changed: number;
  skipped: number;
  failed: number;
  startedAtMs: number;
  endedAtMs: number | null;
};
