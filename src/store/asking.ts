import type { BudgetAsk, BudgetReturn, BudgetTaken, RequestClass } from '../domain/budget.ts';
import type { AskReason } from '../domain/check_queue.ts';
import type { Rule } from '../domain/decision.ts';
import type { Money, StatedMoney } from '../domain/money.ts';
import type { Order, OrderState } from '../domain/order.ts';
import type { ClaimedEvent, FaultNote, SealedSecret, ServiceLink, StateChange } from './store.ts';

/** What opening links and asking about them want of a database. The rules of store.ts hold: a verb is a transaction. */
export type Asking = ApiBudget & Openings & Checks;

/** One budget for every request of every replica. See domain/budget.ts. */
export type ApiBudget = {
  /**
   * Takes a slot, before the request leaves. It is in use until a minute after it is given back; if it never is, until a
   * minute after the deadline. Refused while the slots in use, and those that others use of the same limit, reach the
   * cap of the class, and during a pause.
   */
  takeBudget(ask: BudgetAsk): Promise<BudgetTaken>;
  /**
   * Gives a slot back, with what the answer said of the limit, a pause that follows from it, and how the service takes
   * our key: a refusal raises an attention, and `well` ends it.
   */
  returnBudget(given: BudgetReturn): Promise<void>;
};

/** The life of an opening: pending → leased → done, or `taken` where the reference belongs to a link that is not ours. */
export type Openings = {
  /**
   * Commits the intent to open a link: the order, its link with token and secret, and the opening. `same`: it is there,
   * with the same request. `conflict`: the reference is in use with another.
   */
  openIntent(intent: Intent): Promise<Intended>;
  /** Leases openings that are due: those never tried first, for somebody waits; then the oldest. */
  claimOpenings(claim: { limit: number; nowMs: number; leaseMs: number }): Promise<ClaimedOpening[]>;
  /**
   * Writes what the service made: the link's id and addresses. `withheld` says why the shop must not have it; then an
   * attention is raised. `taken`: another link here has that id, or this one has another; an attention is raised.
   */
  finishOpening(
    opening: OpeningRef & {
      link: ServiceLink;
      withheld: string | null;
      /** Whether the answer to the link's creation was not seen; it was unless this says so. */
      answerLost?: boolean;
      nowMs: number;
    },
  ): Promise<'bound' | 'taken' | 'lost'>;
  /**
   * Keeps the signing secret that the service named for a link beside ours; the first that it names stays. `secret` is null
   * if it cannot be used: `flaw` says why, and `secret_unusable` is raised. Nothing if the link is not there any more.
   */
  keepServiceSecret(named: {
    linkKey: number;
    token: string;
    secret: SealedSecret | null;
    flaw: string | null;
    nowMs: number;
  }): Promise<void>;
  /** Gives a claimed opening back. `waits` raises the attention that the order waits for a link. */
  retryOpening(
    opening: OpeningRef & {
      dueAtMs: number;
      mayExist: boolean;
      waits: boolean;
      fault: FaultNote;
      /** See `OpeningState`; false unless it is given. */
      needsId?: boolean;
      nowMs: number;
    },
  ): Promise<void>;
  /** Parks an opening whose reference belongs to a link that is not ours, and raises `reference_taken`. */
  parkOpening(
    opening: OpeningRef & {
      fault: FaultNote;
      /** The id of that link, where the service says it. */
      foreignId: string | null;
      nowMs: number;
    },
  ): Promise<void>;
  /**
   * Forgets an order whose link the service refused to make: the reference can be used again. `kept`: authentic events
   * came for it, so the service does have the link.
   */
  closeOpening(opening: OpeningRef & { nowMs: number }): Promise<'closed' | 'kept' | 'lost'>;
  /**
   * Gives an order the link that a person named, and queues a check of it: an order that is parked, or that waits and may
   * have a link at the service. An attempt under way is lost. The link's signing secret is not ours, unless it was made by
   * such an attempt: it is asked about. `not_open`: the order waits for no money. `taken`: another link here has that
   * id, or this one has another.
   */
  adoptLink(adoption: {
    reference: string;
    link: ServiceLink;
    nowMs: number;
  }): Promise<'adopted' | 'not_parked' | 'not_open' | 'taken'>;
};

export type Intent = {
  reference: string;
  amount: Money;
  /** The normalised request as JSON: equal requests are equal texts. */
  request: string;
  token: string;
  secret: SealedSecret;
  callbackUrl: string | null;
  returnToken: string | null;
  expiresAtMs: number;
  atMs: number;
};

export type Intended =
  | { outcome: 'created' | 'same'; order: Order; linkKey: number; opening: OpeningState }
  /** With the request that the reference is in use with; null where the shop registered its link itself. */
  | { outcome: 'conflict'; order: Order; request: string | null };

export type OpeningState = {
  status: 'pending' | 'leased' | 'done' | 'taken';
  /** Why the link is not shown, where it was made otherwise than asked. */
  withheld: string | null;
  fault: FaultNote | null;
  /** Of a parked opening: the service's link of this reference, if settled did not make it. */
  foreignId: string | null;
  /** Whether the service may have made the link, and only a person can find its id. */
  needsId: boolean;
};

export type OpeningRef = { linkKey: number; attempt: number };

export type ClaimedOpening = OpeningRef & {
  reference: string;
  amount: Money;
  request: string;
  token: string;
  returnToken: string | null;
  sealedSecret: Uint8Array;
  keyId: string;
  /** Known already where an authentic event brought it. */
  linkId: string | null;
  mayExist: boolean;
  createdAtMs: number;
  expiresAtMs: number;
};

export type Checks = {
  /**
   * Leases links to ask about, the strongest reason first, as many as the budget admits now: first those in the queue,
   * then those whose scheduled time has come. Drops what asking would not tell anything new about.
   */
  claimChecks(claim: { limit: number; slots: number; nowMs: number; leaseMs: number }): Promise<ClaimedCheck[]>;
  /** The link of an order, for a person who asks now; null where there is no such order. */
  findLink(reference: string): Promise<WatchedLink | null>;
  /**
   * Records what the API answered about a link, leased to the caller: the row is settled like an event. `linkId` is
   * bound where the link had none. Null where that id belongs to another link.
   */
  recordReading(reading: Reading): Promise<ClaimedEvent | null>;
  /**
   * A check failed; it is tried again at `dueAtMs`, or where that is null by the schedule, as the service has no such link
   * yet. `missing`: it knows no link of that id; an attention is raised. `sent`: whether the service was asked at all; a
   * check that had no slot is no failure. Returns how the state of the order changed: a completion that nobody confirms is
   * held in the end.
   */
  failCheck(failure: {
    linkKey: number;
    dueAtMs: number | null;
    missing: boolean;
    sent: boolean;
    nowMs: number;
  }): Promise<StateChange | null>;
  /** The customer came back: queues a check, at most one per link and minute. Null where the token is none of ours. */
  recordReturn(returned: { returnToken: string; nowMs: number }): Promise<{ callbackUrl: string } | null>;
  /**
   * Compares a page of the service's list with what is known, and queues a check of every open link that differs. After a
   * restore, raises `link_not_known` for each that was made since the copy, or at most `toleranceMs` before it, and that
   * is not there.
   */
  compareListed(page: { items: readonly ListedLink[]; toleranceMs: number; nowMs: number }): Promise<Compared>;
  /** What a sweep of the service's list asks before it begins. Reads every link. */
  sweepBounds(at: { nowMs: number }): Promise<SweepBounds>;
  /** The list was read back to when the copy was made: links made since are known, or a person was told of them. */
  endRestore(ended: { nowMs: number }): Promise<void>;
  /** The service's list cannot be read. After a restore a person is told, once, what to look at instead. */
  noteNoList(noted: { why: string; nowMs: number }): Promise<void>;
  /** Makes every link that can still be paid due now, or only counts them: cancelled orders' links among them. */
  catchUp(options: { dryRun: boolean; nowMs: number }): Promise<{ links: number }>;
  /**
   * Cancels an order, as a person wants. The service was asked before, where it has the link. Where none was asked for so
   * far, none is opened any more. Null where there is no such order.
   */
  cancelOrder(cancelled: { reference: string; atMs: number }): Promise<Cancelled | null>;
};

type Cancelled =
  | { outcome: 'decided'; rule: Rule; order: Order; from: OrderState }
  /** Its link is being opened, or may be there without our knowing it: it cannot be cancelled yet. */
  | { outcome: 'opening'; order: Order };

export type WatchedLink = {
  linkKey: number;
  reference: string;
  token: string;
  linkId: string | null;
  /** Whether settled opens it and has not got its address so far. */
  isOpening: boolean;
};

export type ClaimedCheck = WatchedLink & { class: RequestClass; reason: AskReason; failures: number };

export type Reading = {
  number: number;
  linkKey: number;
  linkId: string;
  reason: AskReason;
  /** The answer's body, as it came. */
  body: Uint8Array;
  nowMs: number;
  leaseMs: number;
};

export type ListedLink = {
  id: string;
  reference: string | null;
  status: string;
  money: StatedMoney;
  createdAtMs: number | null;
};

type SweepBounds = {
  /** Whether this process shall do it: of several replicas the one that is there for the longest does. */
  isOurTurn: boolean;
  /** Since when the oldest open link that has an id is there; null where there is none. */
  oldestOpenMs: number | null;
  /** Whether the service has made any link that is known: then its list is not empty. */
  hasLinks: boolean;
};

export type Compared = {
  differing: number;
  notKnown: number;
  /** When the copy was made, while links made since are looked for. */
  restoredFromMs: number | null;
};
