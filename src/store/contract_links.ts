import type { BudgetAsk, BudgetReturn, BudgetTaken } from '../domain/budget.ts';
import type { AskReason, ClaimedCheck, WatchedLink } from '../domain/check_queue.ts';
import type { Rule, StateChange } from '../domain/decision.ts';
import type { Money, StatedMoney } from '../domain/money.ts';
import type { OpeningState } from '../domain/opening.ts';
import type { Order, OrderState } from '../domain/order.ts';
import type { Customer } from '../domain/payment_details.ts';
import type { RegisteredLink, RegistrationRefusal } from '../domain/registration.ts';
import type { FaultNote } from '../domain/retry.ts';
import type { Author } from './contract_access.ts';
import type { ClaimedEvent, ServiceLink } from './contract_inbox.ts';

export type Links = {
  /**
   * Registers an order and its link, or changes an existing one. Without `linkId` it reserves the link. It binds a
   * missing id, and corrects a signing secret, or the link's id while the order is open. Always queues a check of the
   * link.
   */
  registerLink(registration: Registration): Promise<Registered>;
};

export type Registration = RegisteredLink & {
  reference: string;
  /** The public address that a new link delivers to; null if it is not known. */
  webhookBase?: string | null;
  /** The token of a new link. */
  token: string;
  /** Null keeps the stored secret; a new link then gets `freshSecret`. */
  secret: SealedSecret | null;
  freshSecret: SealedSecret;
  by: Author | null;
  atMs: number;
};

/** A sealed signing secret and its fingerprints. */
export type SealedSecret = NonNullable<RegisteredLink['secret']> & { sealed: Uint8Array };

export type Registered =
  | { outcome: 'created' | 'same' | 'bound' | 'corrected'; order: Order; token: string; linkKey: number }
  | { outcome: RegistrationRefusal; order: Order };

/** One budget for the requests of all replicas. `domain/budget.ts` has its rules. */
export type ApiBudget = {
  /**
   * Takes a slot before a request leaves. The slot stays in use until a minute after it is returned, or a minute after
   * the deadline if it never is. Refused during a pause, and while the slots in use, including those of other programs,
   * reach the cap of the class.
   */
  takeBudget(ask: BudgetAsk): Promise<BudgetTaken>;
  /**
   * Returns a slot with what the answer said about the rate limit, the pause that follows, and whether the API key was
   * accepted. A refused key raises attention; `well` ends it. Several requests in a row without an answer raise
   * `service_unanswered`; the first answer ends it.
   */
  returnBudget(given: BudgetReturn): Promise<void>;
};

/** Openings: pending → leased → done, or `taken` if the reference belongs to a link that settled did not make. */
export type Openings = {
  /**
   * Commits the intent to open a link: the order, its link with token and secret, and the opening. `same`: an equal
   * request did so before. `conflict`: the reference is in use with another request.
   */
  openIntent(intent: Intent): Promise<Intended>;
  /** Leases due openings: first those never tried, because a customer waits; then the oldest. */
  claimOpenings(claim: { limit: number; nowMs: number; leaseMs: number }): Promise<ClaimedOpening[]>;
  /**
   * Records the link that the service made: its id and addresses. `withheld` says why the shop must not have it, and
   * raises attention. `taken`: another link here has that id, or this one has another; this raises attention too.
   */
  finishOpening(
    opening: OpeningRef & {
      link: ServiceLink;
      withheld: string | null;
      /** Whether settled missed the answer to the link's creation; false by default. */
      answerLost?: boolean;
      /** The public address in the link's webhookUrl; null or absent if it is not known. */
      webhookBase?: string | null;
      /**
       * The address to which the service says it delivers instead of ours, without the token: raises
       * `webhook_address_changed`. Null if it is ours, which ends that matter; undefined if it does not say.
       */
      webhookChangedTo?: string | null | undefined;
      nowMs: number;
    },
  ): Promise<'bound' | 'taken' | 'lost'>;
  /**
   * Stores the signing secret that the service named for a link in addition to ours; the first one stays. If it cannot
   * be used, `secret` is null, `flaw` says why, and `secret_unusable` is raised. Does nothing if the link is gone.
   */
  keepServiceSecret(named: {
    linkKey: number;
    token: string;
    secret: SealedSecret | null;
    flaw: string | null;
    nowMs: number;
  }): Promise<void>;
  /** Returns a claimed opening to the queue. `waits` raises the attention that the order waits for a link. */
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
  /** Parks an opening whose reference belongs to a link that settled did not make. Raises `reference_taken`. */
  parkOpening(
    opening: OpeningRef & {
      fault: FaultNote;
      /** The id of that link, if the service names it. */
      foreignId: string | null;
      nowMs: number;
    },
  ): Promise<void>;
  /**
   * Deletes an order whose link the service refused to make, so that its reference can be used again. `kept`: authentic
   * events came for it, so the service has the link after all.
   */
  closeOpening(opening: OpeningRef & { nowMs: number }): Promise<'closed' | 'kept' | 'lost'>;
  /**
   * Gives an order the link that a person named, and queues a check of it. The opening must be parked, or waiting with
   * a link possibly at the service. An attempt under way loses its lease. The link's signing secret is not ours, unless
   * such an attempt made it, so settled asks about the link. `not_open`: the order does not wait for money. `taken`:
   * another link here has that id, or this one has another.
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
  /** As the shop names them: for people, never sent to the service. */
  customer?: Customer | null;
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
  /** `request`: the one with which the reference is in use; null if the shop registered its link itself. */
  | { outcome: 'conflict'; order: Order; request: string | null };

export type OpeningRef = { linkKey: number; attempt: number };

export type ClaimedOpening = OpeningRef &
  Pick<Intent, 'reference' | 'amount' | 'request' | 'token' | 'returnToken' | 'expiresAtMs'> & {
    sealedSecret: Uint8Array;
    keyId: string;
    /** Set before the link is opened if an authentic event named it. */
    linkId: string | null;
    mayExist: boolean;
    createdAtMs: number;
  };

export type Checks = {
  /**
   * Leases as many links as the budget admits now: first those in the queue, strongest reason first, then those due in
   * the schedule. Drops reasons for which asking would tell nothing new.
   */
  claimChecks(claim: { limit: number; slots: number; nowMs: number; leaseMs: number }): Promise<ClaimedCheck[]>;
  /** The link of an order, for a person who asks now. Null if there is no such order. */
  findLink(reference: string): Promise<WatchedLink | null>;
  /**
   * Records the API's answer about a link as a row that is leased to the caller and settled like an event. Binds
   * `linkId` if the link had none. Null if another link has that id.
   */
  recordReading(reading: Reading): Promise<ClaimedEvent | null>;
  /**
   * Records that a check failed. It is retried at `dueAtMs`; if that is null, the service has no such link yet, and the
   * schedule asks again. `missing`: the service knows no link with that id, which raises attention. `sent`: whether a
   * request was sent; a check without a slot is no failure. Returns the change of the order's state: a completion that
   * stays unconfirmed is held in the end.
   */
  failCheck(failure: {
    linkKey: number;
    dueAtMs: number | null;
    missing: boolean;
    sent: boolean;
    nowMs: number;
  }): Promise<StateChange | null>;
  /** Queues a check because the customer came back, at most one a link and minute. Null if the token is unknown. */
  recordReturn(returned: { returnToken: string; nowMs: number }): Promise<{ callbackUrl: string } | null>;
  /**
   * Compares a page of the service's list with the store, and queues a check of every open link that differs. After a
   * restore, raises `link_not_known` for each unknown link made since the copy, or at most `toleranceMs` before it.
   */
  compareListed(page: { items: readonly ListedLink[]; toleranceMs: number; nowMs: number }): Promise<Compared>;
  /** What a sweep of the service's list needs before it begins. Reads every link. */
  sweepBounds(at: { nowMs: number }): Promise<SweepBounds>;
  /** Ends the search after a restore: the list was read back to the time of the copy. */
  endRestore(ended: { nowMs: number }): Promise<void>;
  /** Records that the service's list is unreadable. After a restore, tells a person once where to look instead. */
  noteNoList(noted: { why: string; nowMs: number }): Promise<void>;
  /** Makes every link that can still be paid due now, also those of cancelled orders. `dryRun` only counts them. */
  catchUp(options: { dryRun: boolean; nowMs: number }): Promise<{ links: number }>;
  /**
   * Cancels an order for a person. If the service has its link, the caller has checked it before. A link that was not
   * requested yet is never opened. Null if there is no such order.
   */
  cancelOrder(cancelled: { reference: string; by: Author | null; atMs: number }): Promise<Cancelled | null>;
};

type Cancelled =
  | { outcome: 'decided'; rule: Rule; order: Order; from: OrderState }
  /** The link is being opened, or may exist unknown to settled, so the order cannot be cancelled yet. */
  | { outcome: 'opening'; order: Order };

export type Reading = {
  number: number;
  linkKey: number;
  linkId: string;
  reason: AskReason;
  /** The body of the answer, as received. */
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
  /** Whether this process should sweep: of several replicas, the one that started first. */
  isOurTurn: boolean;
  /** When the oldest open link with an id was created; null if there is none. */
  oldestOpenMs: number | null;
  /** Whether the service made any known link. If so, its list cannot be empty. */
  hasLinks: boolean;
};

export type Compared = {
  differing: number;
  notKnown: number;
  /** The time of the copy, while settled searches for links made since. */
  restoredFromMs: number | null;
};
