import type { RequestClass } from '../domain/budget.ts';
import type { MatterGroup, MatterKind, MatterMoney } from '../domain/matter.ts';
import type { HoldReason, Order, OrderState } from '../domain/order.ts';
import type { RowStatus } from '../domain/retry.ts';
import type { ShopFailures, ShopRefusal } from '../domain/shop_failures.ts';
import type { OpeningState } from './asking.ts';

/**
 * Reading for people: lists, timelines and counts. They see committed rows only, never hold up a commit, and page by
 * key: `after` is the key of the last row of the page before.
 */
export type Queries = {
  findOrder(reference: string): Promise<Order | null>;
  listOrders(
    page: Page & {
      state: OrderState | null;
      search: string | null;
      /** Created since, and until. */
      sinceMs: number | null;
      untilMs: number | null;
    },
  ): Promise<ListedOrder[]>;
  /** Everything known of an order, oldest first; null where there is no such order. */
  timeline(reference: string): Promise<Timeline | null>;
  listEvents(
    page: Page & {
      status: EventSummary['status'] | null;
      reference: string | null;
      /** Received since. */
      sinceMs: number | null;
    },
  ): Promise<EventSummary[]>;
  findEvent(eventKey: number): Promise<EventDetail | null>;
  listRejections(page: Page & { reference: string | null }): Promise<RejectionSummary[]>;
  /** What needs a person, as one list: held orders and open attention. */
  listMatters(page: MatterPage): Promise<Matters>;
  listNotices(
    page: Page & { status: NoticeSummary['status'] | null; reference: string | null; sinceMs: number | null },
  ): Promise<NoticeSummary[]>;
  findNotice(id: string): Promise<NoticeDetail | null>;
  /**
   * Notices after a position of the feed, oldest first, and the newest position there is; 0 is before the first. The page
   * ends before the bodies come to more than `bytesMax`, and has one notice at least.
   */
  readFeed(page: { after: number; limit: number; bytesMax: number }): Promise<FeedPage>;
  /**
   * Where the feed ends: every notice that is committed stands up to there, and every later one after it. Null if so many
   * have no position yet that one transaction cannot give them all: ask again.
   */
  findFeedEnd(): Promise<FeedEnd | null>;
  stats(nowMs: number): Promise<Stats>;
  shopState(): Promise<ShopState>;
  /** How many links have a secret that rests under none of these keys. Reads every link. */
  countUnopenable(keyIds: readonly string[]): Promise<number>;
};

type Page = { limit: number; after: number | null };
export type ListedOrder = {
  key: number;
  value: Order;
  /** The kinds of its open attention. */
  attention: string[];
};

export type EventSummary = {
  key: number;
  eventId: string;
  type: string | null;
  reference: string;
  linkId: string | null;
  status: RowStatus;
  outcome: string | null;
  rule: string | null;
  attempt: number;
  conflict: boolean;
  duplicates: number;
  receivedAtMs: number;
  dueAtMs: number;
  endedAtMs: number | null;
  fault: { code: string; message: string } | null;
  /** The number of a reading, which is an answer of the API and no event; null for an event. */
  reading: number | null;
};
export type EventDetail = EventSummary & {
  timestamp: string;
  /** Null where it was dropped, as the event is old. */
  body: Uint8Array | null;
  bodySha256: Uint8Array;
};

export type RejectionSummary = {
  key: number;
  reference: string;
  reason: string;
  count: number;
  /** JSON of what the last that was looked at turned out to be. */
  diagnosis: string | null;
  firstAtMs: number;
  lastAtMs: number;
};

export type AttentionSummary = {
  key: number;
  kind: string;
  subject: string;
  reference: string | null;
  /** `AttentionParams` of its kind; null in rows that an older version wrote. */
  params: object | null;
  /** Empty, but for what an older version wrote: the whole sentence for a person, or one more after a space. */
  detail: string;
  count: number;
  openedAtMs: number;
  lastAtMs: number;
};

export type MatterPage = {
  limit: number;
  /** The place of the last row of the page before. */
  after: MatterPlace | null;
  kind: MatterKind | null;
  /** Only those of orders in this state. */
  state: OrderState | null;
};

/** Where a matter stands in the list: by kind, then by when it began, then by its key (a hold's: that of its order). */
export type MatterPlace = { kind: MatterKind; openedAtMs: number; key: number };

export type Matters = {
  /** All that the filters let through, in the order of the list; none only if nothing needs a person. */
  groups: MatterGroup[];
  money: MatterMoney;
  rows: ListedMatter[];
};

/** `key`: as `MatterPlace` has it. `reason`: of a hold, the oldest of its order. */
export type ListedMatter = MatterPlace & {
  reason: HoldReason | null;
  subject: string;
  /** See `AttentionSummary`. A hold has neither: its order explains it. */
  params: object | null;
  detail: string;
  /** How often it was raised; of a hold, how many of its order are open. */
  count: number;
  lastAtMs: number;
  order: Order | null;
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
  /** Of a pending notice: when it is tried next; null while another one of its order has its turn. */
  dueAtMs: number | null;
  endedAtMs: number | null;
  fault: { code: string; message: string } | null;
  /** The shop's last answer. */
  answer: { status: number; body: string } | null;
};
export type NoticeDetail = NoticeSummary & { body: string };

/** How the shop takes notices. */
export type ShopState = {
  /** When the oldest was made that the shop has not taken, be it dead; null where it has taken all. */
  untakenSinceMs: number | null;
  /** What came of sending the oldest that waits, else the oldest that is dead; null where none was sent in vain. */
  failure: ShopRefusal | null;
  /** When one of the last thousand was taken; null where none of them was. */
  takenAtMs: number | null;
  /** Attempts that failed since the last notice was taken; null if none did. */
  failures: ShopFailures | null;
};

export type FeedPage = {
  /** Rises when a copy takes the place of the store. */
  generation: number;
  newest: number;
  /** Each with its position. */
  notices: { position: number; id: string; body: string }[];
};

export type FeedEnd = { generation: number; position: number };

export type HistoryRow = {
  atMs: number;
  what: string;
  outcome: string | null;
  from: string | null;
  to: string | null;
  /** `event` with the event's key, `reading` with its number, or `person` with the reason, where one was given. */
  cause: { kind: 'event' | 'reading' | 'person'; id: string | null };
  effects: string[];
};

export type Timeline = {
  order: Order;
  history: HistoryRow[];
  events: EventSummary[];
  hints: { eventId: string; timestamp: string; lastAtMs: number; count: number }[];
  rejections: RejectionSummary[];
  attention: AttentionSummary[];
  notices: NoticeSummary[];
  /** When the order's link expires, as far as it is known. */
  linkExpiresAtMs: number | null;
  /** The check of this order's link that waits for the API, if one does. */
  check: { reason: string; requestedAtMs: number; dueAtMs: number } | null;
  /** When the schedule asks about the order's link next; null where it never does again. */
  nextCheckAtMs: number | null;
  /** How often settled tried in vain to ask about it, since the service answered last. */
  checkFailures: number;
  /** Why the signing secret that the service named for the link cannot be used; null if it named no such secret. */
  secretFlaw: string | null;
  /** Where settled opens the link itself: how far it is. */
  opening:
    | (OpeningState & {
        attempt: number;
        dueAtMs: number;
        /** Whether nobody saw the service's answer to the creation: it may have named a secret that is not known. */
        secretUnseen?: boolean;
      })
    | null;
  drift: DriftRow[];
};

/** The service knew something else than settled. */
export type DriftRow = {
  atMs: number;
  /** The number of the reading that showed it, and why the service was asked. */
  reading: number;
  learnedBy: string;
  /** The order's state and money before and after, in words. Where nobody was right the second is what the service says. */
  ours: string;
  theirs: string;
  rule: string;
  rightSide: 'service' | 'undecided';
};

export type Stats = {
  orders: Record<string, number>;
  events: Record<string, number>;
  notices: Record<string, number>;
  /** What needs a person, in the order of its list. */
  matters: Omit<MatterGroup, 'sums'>[];
  /** Links that wait to be asked about, scheduled ones aside: all of them, and by the class of their requests. */
  checks: number;
  checksByClass: Record<Exclude<RequestClass, 'create'>, number>;
  /** Links that settled opens itself and that are not there so far, by status. */
  openings: Record<string, number>;
  /** Disagreements with the service that were found. */
  drift: number;
  api: { slotsInUse: number; pausedUntilMs: number | null };
  rejections: number;
  /** Age of the oldest row that is due and not yet settled; 0 where there is none. */
  lagMs: number;
  /** For how long the oldest notice that is due, or was and is tried again, has been so; 0 where there is none. */
  noticesLagMs: number;
  /** Attempts to tell the shop that failed in a row. */
  shopFailures: number;
  /** For how long the oldest check that is due has been so, by the class of its request; scheduled ones are the janitor's. */
  checksLagMs: Stats['checksByClass'];
  /**
   * Orders paid in the week that ended a day ago, as the service's API said before any webhook did; and none has said so
   * since.
   */
  webhooksMissing: number;
  /** The feed's newest position, and since when links are looked for that a restored copy does not know; null where none are. */
  feed: { newest: number; generation: number; restoredFromMs: number | null };
};
