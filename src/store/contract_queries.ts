import type { RequestClass } from '../domain/budget.ts';
import type { Decision } from '../domain/decision.ts';
import type { AttentionKind, CountedMatters, MatterGroup, MatterKind, MatterMoney } from '../domain/matter.ts';
import type { OpeningState } from '../domain/opening.ts';
import type { HoldReason, Order, OrderState } from '../domain/order.ts';
import type { FaultNote, RowStatus } from '../domain/retry.ts';
import type { EventFilter, Listed, OrderFilter, RejectionFilter, RowPage } from './contract_lists.ts';
import type { NoticeSummary } from './contract_notices.ts';

/** Lists, timelines and counts for people. They see committed rows only, never delay a commit, and page by key. */
export type Queries = {
  findOrder(reference: string): Promise<Order | null>;
  listOrders(page: RowPage & OrderFilter): Promise<Listed<ListedOrder>>;
  /** Everything known about an order, oldest first. Null if there is no such order. */
  timeline(reference: string): Promise<Timeline | null>;
  listEvents(page: RowPage & EventFilter): Promise<Listed<EventSummary>>;
  findEvent(eventKey: number): Promise<EventDetail | null>;
  listRejections(page: RowPage & RejectionFilter): Promise<Listed<RejectionSummary>>;
  /** Everything that needs a person, as one list: held orders and open attention. */
  listMatters(page: MatterPage): Promise<Matters>;
  /** Open matters about the service or the shop as a whole, in the order of the list. */
  openTroubles(): Promise<Trouble[]>;
  /** What a person's decision about a held order would do now. Null if there is no such order. */
  previewResolution(asked: { reference: string; decision: 'accept' | 'reject' }): Promise<PreviewedDecision | null>;
  stats(nowMs: number): Promise<Stats>;
  /**
   * A text that changes once any process commits anything. Heartbeats alone do not change it. Other processes cannot
   * compare it with their own.
   */
  changeMark(): Promise<string>;
  /** The number of links whose secret is sealed under none of these keys. Reads every link. */
  countUnopenable(keyIds: readonly string[]): Promise<number>;
  /** Where links that may still be paid deliver to, if not to `publicUrl`: the addresses of most links first. */
  otherAddresses(asked: { publicUrl: string; limit: number; nowMs: number }): Promise<OtherAddress[]>;
};

/** An order, a decision about it that was not made, and the order after it. */
export type PreviewedDecision = { order: Order; made: Decision; after: Order };

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
  fault: FaultNote | null;
  /** The number of a reading, which is an answer of the API; null for an event. */
  reading: number | null;
};
export type EventDetail = EventSummary & {
  timestamp: string;
  /** Null if the body was dropped because the event is old. */
  body: Uint8Array | null;
  bodySha256: Uint8Array;
};

export type RejectionSummary = {
  key: number;
  reference: string;
  reason: string;
  count: number;
  /** JSON of the newest diagnosis. */
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
  /** Empty, except in rows that an older version wrote: its sentence, or an addition that begins with a space. */
  detail: string;
  count: number;
  openedAtMs: number;
  lastAtMs: number;
};

/** A matter about the whole installation. At most one of a kind and subject is open. */
export type Trouble = Pick<AttentionSummary, 'key' | 'subject' | 'params' | 'detail' | 'openedAtMs'> & {
  kind: AttentionKind;
};

export type MatterPage = {
  limit: number;
  /** The place of the last row of the previous page. */
  after: MatterPlace | null;
  kind: MatterKind | null;
  /** Only matters of orders in this state. */
  state: OrderState | null;
  /** Only orders whose oldest hold has this reason. */
  reason?: HoldReason | null;
};

/** A matter's place in the list: by kind, then by its beginning, then by its key (for a hold, its order's key). */
export type MatterPlace = { kind: MatterKind; openedAtMs: number; key: number };

export type Matters = {
  /** All that match the filters, in the order of the list. */
  groups: MatterGroup[];
  money: MatterMoney;
  rows: ListedMatter[];
};

/** `reason`: the reason of the order's oldest hold. */
export type ListedMatter = MatterPlace & {
  reason: HoldReason | null;
  subject: string;
  /** As in `AttentionSummary`. A hold has neither: its order explains it. */
  params: object | null;
  detail: string;
  /** How often it was raised; for a hold, how many of its order are open. */
  count: number;
  lastAtMs: number;
  order: Order | null;
};

export type HistoryRow = {
  atMs: number;
  what: string;
  outcome: string | null;
  from: string | null;
  to: string | null;
  /** `event` with the event's key, `reading` with its number, or `person` with the reason, if one was given. */
  cause: { kind: 'event' | 'reading' | 'person'; id: string | null };
  /** Who decided, as in the audit; null if it was no named person. */
  by: string | null;
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
  /** When the order's link expires; null if unknown. */
  linkExpiresAtMs: number | null;
  /** The check of this order's link that waits for the API; null if none does. */
  check: { reason: string; requestedAtMs: number; dueAtMs: number } | null;
  /** When the schedule asks about the order's link next; null if never. */
  nextCheckAtMs: number | null;
  /** Failed attempts to ask about it since the service last answered. */
  checkFailures: number;
  /** Why settled cannot use the signing secret that the service named for the link; null if there is no such flaw. */
  secretFlaw: string | null;
  /** The progress of the opening, if settled opens the link itself. */
  opening:
    | (OpeningState & {
        attempt: number;
        dueAtMs: number;
        /** Whether settled missed the service's answer to the creation, which may have named a secret. */
        secretUnseen?: boolean;
      })
    | null;
  drift: DriftRow[];
};

/** A difference found between the service and settled. */
export type DriftRow = {
  atMs: number;
  /** The number of the reading that showed it, and why settled asked. */
  reading: number;
  learnedBy: string;
  /** The order's state and money before and after, in words. While undecided, `theirs` is what the service says. */
  ours: string;
  theirs: string;
  rule: string;
  rightSide: 'service' | 'undecided';
};

export type Stats = {
  orders: Record<string, number>;
  events: Record<string, number>;
  notices: Record<string, number>;
  /** What needs a person, in the order of the list. */
  matters: CountedMatters[];
  /** Links in the queue of checks: all, and by the class of their requests. Scheduled checks do not count. */
  checks: number;
  checksByClass: Record<Exclude<RequestClass, 'create'>, number>;
  /** Links that settled is still opening, by status. */
  openings: Record<string, number>;
  /** The number of drifts found. */
  drift: number;
  api: { slotsInUse: number; pausedUntilMs: number | null };
  rejections: number;
  /** Age of the oldest row that is due and not yet settled; 0 if there is none. */
  lagMs: number;
  /** How long the oldest notice has been due, from its first attempt if it is retried; 0 if there is none. */
  noticesLagMs: number;
  /** Failed attempts in a row to send notices to the shop. */
  shopFailures: number;
  /** How long the oldest check has been due, by the class of its request. Scheduled checks are the janitor's. */
  checksLagMs: Stats['checksByClass'];
  /** Orders paid in the week that ended a day ago that settled learned of from the API alone: no webhook has come. */
  webhooksMissing: number;
  /** The feed's newest position, and the time of the copy while settled searches for links that it does not know. */
  feed: { newest: number; generation: number; restoredFromMs: number | null };
};

/** `untilMs`: when the last of its links expires; null if none says when. */
export type OtherAddress = { address: string; links: number; untilMs: number | null };
