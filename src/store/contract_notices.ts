import type { NoticeType } from '../domain/decision.ts';
import type { ShopAnswer, ShopFailures, ShopRefusal } from '../domain/notice.ts';
import type { FaultNote, RowStatus } from '../domain/retry.ts';
import type { Author } from './contract_access.ts';
import type { Listed, NoticeFilter, RowPage } from './contract_lists.ts';

/**
 * Telling the shop. Pending and leased notices are owed. One notice of each order has its turn; the next one has it once
 * that one is done or dead. `domain/retry.ts` has the life of a row.
 */
export type Telling = {
  /**
   * Leases notices that are due, the oldest first, each with its next attempt number: those that were never tried, or if
   * `tried`, the others. With `tried` it also raises `shop_refuses_notices` if an attempt failed two minutes ago and the
   * shop has taken none since.
   */
  claimNotices(claim: { tried: boolean; limit: number; nowMs: number; leaseMs: number }): Promise<ClaimedNotice[]>;
  /** Notes that the shop took it, which ends `shop_refuses_notices`. `lost`: the lease expired. */
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
  resendNotice(resent: { id: string; by: Author | null; nowMs: number }): Promise<Resent | 'in_work' | 'unknown'>;
  /**
   * Ends `shop_refuses_notices`, because the shop has no callback any more. The attempts stay counted: if it has one again,
   * the next attempt that fails raises the matter.
   */
  stopTelling(stopped: { nowMs: number }): Promise<void>;
};

/** When it is due; or if another notice of its order has its turn, the id of that one. */
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

/** Notices as people see them, and as the shop reads them. */
export type NoticeQueries = {
  listNotices(page: RowPage & NoticeFilter): Promise<Listed<NoticeSummary>>;
  findNotice(id: string): Promise<NoticeDetail | null>;
  /**
   * Reads notices after a position of the feed, oldest first, and the newest position; 0 is before the first. The bodies of
   * a page come to at most `bytesMax`, unless it has a single notice.
   */
  readFeed(page: { after: number; limit: number; bytesMax: number }): Promise<FeedPage>;
  /**
   * Finds where the feed ends: no committed notice comes after it, and every later one does. Null if one transaction cannot
   * give a position to all notices that have none yet: ask again.
   */
  findFeedEnd(): Promise<FeedEnd | null>;
  shopState(): Promise<ShopState>;
};

export type NoticeSummary = {
  key: number;
  /** The shop's idempotency key: `webhook-id`. */
  id: string;
  reference: string;
  type: string;
  version: number;
  status: RowStatus;
  attempt: number;
  createdAtMs: number;
  /** When a pending notice is tried next; null while another one of its order has its turn. */
  dueAtMs: number | null;
  endedAtMs: number | null;
  fault: FaultNote | null;
  /** The shop's last answer. */
  answer: ShopAnswer | null;
};
export type NoticeDetail = NoticeSummary & { body: string };

/** How the shop takes notices. */
export type ShopState = {
  /** When the oldest notice was made that the shop has not taken, dead ones included; null if it has taken all. */
  untakenSinceMs: number | null;
  /** How sending failed for the oldest notice that waits, or else for the oldest that is dead; null if none failed. */
  failure: ShopRefusal | null;
  /** When the last one was taken of the newest thousand; null if none of them was. */
  takenAtMs: number | null;
  /** Attempts that failed since the last notice was taken; null if none did. */
  failures: ShopFailures | null;
};

export type FeedPage = {
  /** Rises when a copy replaces the store. */
  generation: number;
  newest: number;
  /** Each with its position. */
  notices: { position: number; id: string; body: string }[];
};

export type FeedEnd = { generation: number; position: number };
