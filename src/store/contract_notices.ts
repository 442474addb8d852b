import type { NoticeType } from '../domain/decision.ts';
import type { ShopAnswer, ShopFailures, ShopRefusal } from '../domain/notice.ts';
import type { FaultNote, RowStatus } from '../domain/retry.ts';
import type { Author } from './contract_access.ts';
import type { Listed, NoticeFilter, RowPage } from './contract_lists.ts';

/**
 * Sends notices to the shop. Pending and leased notices are owed. Only one notice of an order is sent at a time; the
 * next follows once it is done or dead. `domain/retry.ts` describes the statuses.
 */
export type Telling = {
  /**
   * Leases due notices, oldest first, each with its next attempt number: those never tried or, with `tried`, the
   * others. With `tried` it also raises `shop_refuses_notices` if an attempt failed two minutes ago and the shop has
   * accepted none since.
   */
  claimNotices(claim: { tried: boolean; limit: number; nowMs: number; leaseMs: number }): Promise<ClaimedNotice[]>;
  /** Records that the shop accepted a notice, which ends `shop_refuses_notices`. `lost`: the lease expired. */
  finishNotice(told: NoticeRef & { answer: ShopAnswer; nowMs: number }): Promise<'done' | 'lost'>;
  /**
   * Returns a claimed notice to the queue, due at `dueAtMs`. Counts the failed attempt: the third in a row, or one two
   * minutes after the first, raises `shop_refuses_notices`. If the shop has accepted another notice since, a notice
   * that failed before begins no new count: it may be the only one that the shop refuses.
   */
  retryNotice(
    failed: NoticeRef & { dueAtMs: number; fault: FaultNote; answer: ShopAnswer | null; nowMs: number },
  ): Promise<'pending' | 'lost'>;
  /** Gives a claimed notice up, and raises `notices_dead`. A person may send it again. Counts as `retryNotice` does. */
  buryNotice(
    failed: NoticeRef & { fault: FaultNote; answer: ShopAnswer | null; nowMs: number },
  ): Promise<'dead' | 'lost'>;
  /**
   * Makes a done or dead notice pending again, with the same id. A notice that waits for its next attempt becomes due
   * now. `in_work`: it is being sent, is due, or waits for another notice of its order.
   */
  resendNotice(resent: { id: string; by: Author | null; nowMs: number }): Promise<Resent | 'in_work' | 'unknown'>;
  /**
   * Ends `shop_refuses_notices` because the shop no longer has a callback. The count of attempts stays: if the shop has
   * a callback again, the next failed attempt raises the matter.
   */
  stopTelling(stopped: { nowMs: number }): Promise<void>;
};

/** When the notice is due; or the id of the notice of its order that comes first. */
export type Resent = { dueAtMs: number; waitsFor: null } | { dueAtMs: null; waitsFor: string };

type NoticeRef = { noticeKey: number; attempt: number };

export type ClaimedNotice = NoticeRef & {
  /** The same for all attempts: the shop's idempotency key. */
  id: string;
  reference: string;
  type: NoticeType;
  /** JSON. */
  body: string;
  createdAtMs: number;
  /** The time of this attempt, if it is the first. */
  firstTriedAtMs: number;
};

/** Notices as people see them, and as the shop reads them. */
export type NoticeQueries = {
  listNotices(page: RowPage & NoticeFilter): Promise<Listed<NoticeSummary>>;
  findNotice(id: string): Promise<NoticeDetail | null>;
  /**
   * Reads notices after a position of the feed, oldest first, and the newest position; 0 is before the first. The
   * bodies of a page have at most `bytesMax`, unless it is a single notice.
   */
  readFeed(page: { after: number; limit: number; bytesMax: number }): Promise<FeedPage>;
  /**
   * Finds the end of the feed: no committed notice comes after it, and every later one does. Null if one transaction
   * could not give every notice its position: call it again.
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
  /** Of a dead notice: whether the shop took a later one that makes it needless, so that nobody need look. */
  isSuperseded: boolean;
  attempt: number;
  createdAtMs: number;
  /** When a pending notice is sent next; null while another notice of its order comes first. */
  dueAtMs: number | null;
  endedAtMs: number | null;
  fault: FaultNote | null;
  /** The shop's last answer. */
  answer: ShopAnswer | null;
};
export type NoticeDetail = NoticeSummary & { body: string };

/** How the shop accepts notices. */
export type ShopState = {
  /** When the oldest notice that the shop has not accepted was made, dead ones included; null if it accepted all. */
  untakenSinceMs: number | null;
  /** The failure of the oldest waiting notice, or else of the oldest dead one; null if none failed. */
  failure: ShopRefusal | null;
  /** When the shop last accepted one of the newest thousand notices; null if it accepted none of them. */
  takenAtMs: number | null;
  /** Failed attempts since the shop last accepted a notice; null if none failed. */
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
