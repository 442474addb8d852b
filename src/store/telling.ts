import type { NoticeType } from '../domain/decision.ts';
import type { FaultNote } from './store.ts';

/**
 * What telling the shop needs of a database. The rules of store.ts hold: a verb is a transaction. The life of a notice:
 * pending → leased → done | dead; leased → pending on retry or when the lease expires. Pending and leased notices are owed.
 * One notice of each order has its turn; the next one has it once that one is done or dead.
 */
export type Telling = {
  /**
   * Leases notices that are due, the oldest first, each with its next attempt number: those that were never tried, or, if
   * `tried`, the others. The latter also raises `shop_refuses_notices` if an attempt failed two minutes ago and the shop has
   * taken none since.
   */
  claimNotices(claim: { tried: boolean; limit: number; nowMs: number; leaseMs: number }): Promise<ClaimedNotice[]>;
  /** The shop took it, which ends `shop_refuses_notices`. `lost`: the lease expired. */
  finishNotice(told: NoticeRef & { answer: ShopAnswer; nowMs: number }): Promise<'done' | 'lost'>;
  /**
   * Gives a claimed notice back, due again at `dueAtMs`. Counts an attempt that failed: the third in a row, or one two
   * minutes after the first of them, raises `shop_refuses_notices`. A notice that failed before begins no new count once
   * the shop has taken another: it may be the only one that the shop does not take.
   */
  retryNotice(
    failed: NoticeRef & { dueAtMs: number; fault: FaultNote; answer: ShopAnswer | null; nowMs: number },
  ): Promise<'pending' | 'lost'>;
  /** Retires a claimed notice, which a person may send again, and raises `notices_dead`. Counts as `retryNotice` does. */
  buryNotice(
    failed: NoticeRef & { fault: FaultNote; answer: ShopAnswer | null; nowMs: number },
  ): Promise<'dead' | 'lost'>;
  /**
   * Makes a notice that is done or dead pending again, with the same id; one that waits for its next attempt is due at
   * once. `in_work`: it is being sent, is due, or has its turn after another.
   */
  resendNotice(resent: { id: string; nowMs: number }): Promise<Resent | 'in_work' | 'unknown'>;
};

/** When it is due; or the id of the notice of its order that has its turn now, after which its own comes. */
export type Resent = { dueAtMs: number; waitsFor: null } | { dueAtMs: null; waitsFor: string };

type NoticeRef = { noticeKey: number; attempt: number };

export type ClaimedNotice = NoticeRef & {
  /** The same over all attempts: the shop's idempotency key. */
  id: string;
  reference: string;
  type: NoticeType;
  /** JSON. */
  body: string;
  createdAtMs: number;
  /** The time of this attempt if it is the first. */
  firstTriedAtMs: number;
};

/** What the shop answered: its status, and the beginning of its body as text. */
export type ShopAnswer = { status: number; body: string };
