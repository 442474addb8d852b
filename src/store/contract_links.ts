import type { BudgetAsk, BudgetReturn, BudgetTaken } from '../domain/budget.ts';
import type { AskReason, ClaimedCheck, WatchedLink } from '../domain/check_queue.ts';
import type { Rule, StateChange } from '../domain/decision.ts';
import type { Money, StatedMoney } from '../domain/money.ts';
import type { OpeningState } from '../domain/opening.ts';
import type { Order, OrderState } from '../domain/order.ts';
import type { RegisteredLink, RegistrationRefusal } from '../domain/registration.ts';
import type { FaultNote } from '../domain/retry.ts';
import type { Author } from './contract_access.ts';
import type { ClaimedEvent, ServiceLink } from './contract_inbox.ts';

export type Links = {
  /**
   * Registers an order and its link, or compares with what is there: it reserves the link without `linkId`, binds an id
   * that was missing, corrects a signing secret, or the id of a link while its order is open. Always queues a check of the
   * link.
   */
  registerLink(registration: Registration): Promise<Registered>;
};

export type Registration = RegisteredLink & {
  reference: string;
  /** For a link that is not there yet. */
  token: string;
  /** Null: keep the secret that is there; on a new link `freshSecret` is used. */
  secret: SealedSecret | null;
  freshSecret: SealedSecret;
  by: Author | null;
  atMs: number;
};

/** A sealed signing secret, with its fingerprints. */
export type SealedSecret = NonNullable<RegisteredLink['secret']> & { sealed: Uint8Array };

export type Registered =
  | { outcome: 'created' | 'same' | 'bound' | 'corrected'; order: Order; token: string; linkKey: number }
  | { outcome: RegistrationRefusal; order: Order };

/** One budget for every request of every replica. `domain/budget.ts` has its rules. */
export type ApiBudget = {
  /**
   * Takes a slot before the request leaves. The slot is in use until a minute after it is given back; if it never is, until
   * a minute after the deadline. Refused during a pause, and while the slots in use, and those that other programs use of
   * the same limit, reach the cap of the class.
   */
  takeBudget(ask: BudgetAsk): Promise<BudgetTaken>;
  /**
   * Gives a slot back, with what the answer said of the limit, a pause that follows from it, and how the service takes
   * our key: a refusal raises attention, and `well` ends it.
   */
  returnBudget(given: BudgetReturn): Promise<void>;
};

/** The life of an opening: pending → leased → done, or `taken` if the reference belongs to a link that is not ours. */
export type Openings = {
  /**
   * Commits the intent to open a link: the order, its link with token and secret, and the opening. `same`: it is there
   * already, with the same request. `conflict`: the reference is in use with another request.
   */
  openIntent(intent: Intent): Promise<Intended>;
  /** Leases openings that are due: first those that were never tried, because a customer waits; then the oldest. */
  claimOpenings(claim: { limit: number; nowMs: number; leaseMs: number }): Promise<ClaimedOpening[]>;
  /**
   * Writes what the service made: the link's id and addresses. `withheld` says why the shop must not have it, and raises
   * attention. `taken`: another link here has that id, or this one has another; that raises attention too.
   */
  finishOpening(
    opening: OpeningRef & {
      link: ServiceLink;
      withheld: string | null;
      /** Whether the answer to the link's creation was not seen; false by default. */
      answerLost?: boolean;
      nowMs: number;
    },
  ): Promise<'bound' | 'taken' | 'lost'>;
  /**
   * Keeps the signing secret that the service named for a link beside ours; the first that it names stays. `secret` is null
   * if it cannot be used: `flaw` says why, and `secret_unusable` is raised. Does nothing if the link is gone.
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
      /** As in `OpeningState`; false by default. */
      needsId?: boolean;
      nowMs: number;
    },
  ): Promise<void>;
  /** Parks an opening whose reference belongs to a link that is not ours, and raises `reference_taken`. */
  parkOpening(
    opening: OpeningRef & {
      fault: FaultNote;
      /** The id of that link, if the service says it. */
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
   * Gives an order the link that a person named, and queues a check of it. The order must be parked, or wait and possibly
   * have a link at the service. An attempt under way is lost. The link's signing secret is not ours, unless such an attempt
   * made the link, so settled asks about it. `not_open`: the order waits for no money. `taken`: another link here has that
   * id, or this one has another.
   */
  adoptLink(adoption: {
    reference: string;
    link: ServiceLink;
    by: Author | null;
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
  by: Author | null;
  atMs: number;
};

export type Intended =
  | { outcome: 'created' | 'same'; order: Order; linkKey: number; opening: OpeningState }
  /** With the request that the reference is in use with; null if the shop registered its link itself. */
  | { outcome: 'conflict'; order: Order; request: string | null };

export type OpeningRef = { linkKey: number; attempt: number };

export type ClaimedOpening = OpeningRef &
  Pick<Intent, 'reference' | 'amount' | 'request' | 'token' | 'returnToken' | 'expiresAtMs'> & {
    sealedSecret: Uint8Array;
    keyId: string;
    /** Known already if an authentic event brought it. */
    linkId: string | null;
    mayExist: boolean;
    createdAtMs: number;
  };

export type Checks = {
  /**
   * Leases as many links as the budget admits now: first those in the queue, the strongest reason first, then those whose
   * scheduled time has come. Drops reasons for which asking would tell nothing new.
   */
  claimChecks(claim: { limit: number; slots: number; nowMs: number; leaseMs: number }): Promise<ClaimedCheck[]>;
  /** The link of an order, for a person who asks now; null if there is no such order. */
  findLink(reference: string): Promise<WatchedLink | null>;
  /**
   * Records what the API answered about a link as a row that is leased to the caller and settled like an event. Binds
   * `linkId` if the link had none. Null if that id belongs to another link.
   */
  recordReading(reading: Reading): Promise<ClaimedEvent | null>;
  /**
   * Notes that a check failed. It is retried at `dueAtMs`; if that is null, the service has no such link yet, and the
   * schedule asks again. `missing`: the service knows no link of that id, which raises attention. `sent`: whether the
   * service was asked at all; a check that had no slot is no failure. Returns how the state of the order changed: a
   * completion that no reading confirms is held in the end.
   */
  failCheck(failure: {
    linkKey: number;
    dueAtMs: number | null;
    missing: boolean;
    sent: boolean;
    nowMs: number;
  }): Promise<StateChange | null>;
  /** Queues a check because the customer came back, at most one per link and minute. Null if the token is none of ours. */
  recordReturn(returned: { returnToken: string; nowMs: number }): Promise<{ callbackUrl: string } | null>;
  /**
   * Compares a page of the service's list with what is known, and queues a check of every open link that differs. After a
   * restore, raises `link_not_known` for each link that the store does not know and that was made since the copy, or at most
   * `toleranceMs` before it.
   */
  compareListed(page: { items: readonly ListedLink[]; toleranceMs: number; nowMs: number }): Promise<Compared>;
  /** What a sweep of the service's list needs to know before it begins. Reads every link. */
  sweepBounds(at: { nowMs: number }): Promise<SweepBounds>;
  /** Ends the search after a restore: the list was read back to when the copy was made. */
  endRestore(ended: { nowMs: number }): Promise<void>;
  /** Notes that the service's list cannot be read: after a restore, a person is told once what to look at instead. */
  noteNoList(noted: { why: string; nowMs: number }): Promise<void>;
  /** Makes every link that can still be paid due now, or only counts them: cancelled orders' links among them. */
  catchUp(options: { dryRun: boolean; nowMs: number }): Promise<{ links: number }>;
  /**
   * Cancels an order for a person. If the service has its link, the caller has asked about it before. A link that was not
   * asked for so far is not opened any more. Null if there is no such order.
   */
  cancelOrder(cancelled: { reference: string; by: Author | null; atMs: number }): Promise<Cancelled | null>;
};

type Cancelled =
  | { outcome: 'decided'; rule: Rule; order: Order; from: OrderState }
  /** Its link is being opened, or may exist unknown to settled: the order cannot be cancelled yet. */
  | { outcome: 'opening'; order: Order };

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
  /** Whether this process is the one to sweep: of several replicas, the one that started first. */
  isOurTurn: boolean;
  /** When the oldest open link that has an id was created; null if there is none. */
  oldestOpenMs: number | null;
  /** Whether any known link was made by the service: then its list is not empty. */
  hasLinks: boolean;
};

export type Compared = {
  differing: number;
  notKnown: number;
  /** When the copy was made, while links made since are looked for. */
  restoredFromMs: number | null;
};
