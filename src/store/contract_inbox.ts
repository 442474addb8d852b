import type { Outcome, Rule, SettlementPolicy, StateChange } from '../domain/decision.ts';
import type { PaymentFact } from '../domain/fact.ts';
import type { AttentionKind } from '../domain/matter.ts';
import type { LearnedBy, Order, OrderState } from '../domain/order.ts';
import type { SaidDetails } from '../domain/payment_details.ts';
import type { KeptReason } from '../domain/rejection.ts';
import type { FaultNote } from '../domain/retry.ts';
import type { Author } from './contract_access.ts';

/** What a delivery's acknowledgement waits for. An engine serves these verbs before all others. */
export type Intake = {
  /** The credentials of a link; null if there is no such link. */
  findCredentials(by: CredentialsKey): Promise<SealedCredentials | null>;
  /** Records an authentic, fresh delivery. The row is the job: settlement needs nothing else. */
  recordDelivery(delivery: Delivery): Promise<Recorded>;
  /** Keeps an authentic but stale delivery as a hint, outside the dedupe key, and queues a check of its link. */
  recordHint(hint: Hint): Promise<void>;
  /** Counts refused deliveries of one link and reason, and queues a check of the link. Many such links raise attention. */
  recordRejection(rejection: Rejection): Promise<void>;
};

/** `reference`: of the order, whose newest link is meant. */
export type CredentialsKey = { token: string } | { linkId: string } | { linkKey: number } | { reference: string };

/** A link's credentials as they rest: the signing secret is sealed under `keyId`, bound to the order's reference. */
export type SealedCredentials = {
  linkKey: number;
  token: string;
  reference: string;
  /** Its id at the service, if it is known. */
  linkId?: string | null;
  sealedSecret: Uint8Array;
  keyId: string;
  /** The secret that the service named beside ours, and its key; absent if it named none. */
  serviceSealedSecret?: Uint8Array | null;
  serviceKeyId?: string | null;
  /** Whether the answer to the link's creation may still come, and name a secret. */
  isProvisional?: boolean | 0 | 1;
};

export type Delivery = {
  linkKey: number;
  /** The event's id, or `sha256:` and the body's digest in hex if it has none. */
  eventId: string;
  bodySha256: Uint8Array;
  body: Uint8Array;
  /** The timestamp header's characters, and the verified signature: settlement verifies the stored bytes again. */
  timestamp: string;
  mac: Uint8Array;
  type: string | null;
  /** False if the body is not JSON that can be read: a check is queued. */
  readable: boolean;
  receivedAtMs: number;
};

export type Recorded = {
  /** `conflict`: this event id came before with other content; this one is recorded as a row of its own. */
  outcome: 'recorded' | 'duplicate' | 'conflict';
  eventKey: number;
};

/** A stale delivery. */
export type Hint = Omit<Delivery, 'mac' | 'type' | 'readable'>;

export type Rejection = {
  linkKey: number;
  reason: KeptReason;
  count: number;
  lastAtMs: number;
  /** JSON of what the last of them turned out to be; null keeps what is known already. */
  diagnosis?: string | null;
  /**
   * A person is told once this many links had deliveries refused for this reason within an hour, and no authentic one
   * since. `atFirst`: one link is enough while no authentic delivery of any link came lately.
   */
  matter?: { fromLinks: number; atFirst?: boolean };
};

/** What concerns refused deliveries and is done behind the deliveries themselves. */
export type Refusals = {
  /**
   * Ends the matter of each reason for which deliveries were refused, once an authentic one came for a link of it: after it
   * was refused last, and after the matter was raised. For a reason of `ENDED_BY_ANY` an authentic delivery of any link
   * after the matter was raised is enough. Returns how many matters stay open.
   */
  endRefusals(atMs: number): Promise<{ open: number }>;
};

/** Settling what was recorded. `domain/retry.ts` has the life of a row. */
export type Inbox = {
  /**
   * Leases rows that are due, oldest first, each with its next attempt number: at most `limit`, fewer if their bodies are
   * large, and at least one if any is due.
   */
  claimEvents(claim: { limit: number; nowMs: number; leaseMs: number }): Promise<ClaimedEvent[]>;
  /**
   * Applies a claimed event's facts to its order: the order, ledger, history, notices and the row's end in one
   * transaction. `lost`: another process has the lease, and nothing was done. `link_mismatch`: the event names another
   * link than the one that it was delivered for; the row is dead-lettered and the order untouched.
   */
  settle(job: SettleJob): Promise<SettleResult>;
  /** Gives a claimed row back, due again at `dueAtMs`. */
  retryEvent(job: ClaimRef & { dueAtMs: number; fault: FaultNote }): Promise<void>;
  /**
   * Retires a claimed row as `dead`, for a person to look at. A replayed row that was settled before stays `done`, with the
   * fault noted: what it says was applied.
   */
  buryEvent(job: ClaimRef & { nowMs: number; fault: FaultNote }): Promise<'dead' | 'done' | 'lost'>;
  /**
   * Makes a dead or done row pending again. The settlement row still guards against paying twice. `body_dropped`: nothing
   * is left to settle.
   */
  requeueEvent(replay: {
    eventKey: number;
    by: Author | null;
    nowMs: number;
  }): Promise<'requeued' | 'in_work' | 'body_dropped' | 'unknown'>;
};

export type ClaimRef = { eventKey: number; attempt: number };

export type ClaimedEvent = ClaimRef &
  Pick<Delivery, 'linkKey' | 'body' | 'timestamp' | 'mac' | 'receivedAtMs'> & {
    /** The number of a reading, whose `mac` is the SHA-256 of its body; null for an event. */
    reading: number | null;
  };

export type SettleJob = ClaimRef & {
  linkIds: readonly string[];
  facts: readonly PaymentFact[];
  /** Whether the event says too little, so that the API should be asked. */
  unsure: boolean;
  /** Whether it says that the link's own status changed: a reason to ask the API, but not to doubt the event. */
  linkChanged: boolean;
  /** The link's status, if an event names it. */
  linkStatus: string | null;
  /** Why it was not understood; null if it was. If settled cannot ask the service, a person is told. */
  notUnderstood: string | null;
  /** What is said of payments beside their status and money. It is kept, and decides nothing. */
  details: readonly SaidDetails[];
  /** When the link expires, as an event names it: kept if it is not known. */
  expiresAtMs: number | null;
  /** The link as a reading shows it; null for an event. */
  link: ServiceLink | null;
  /** How the service is asked. Whether its quotes are doubtful is in the store. */
  policy: Pick<SettlementPolicy, 'asks'>;
  nowMs: number;
};

export type SettleResult =
  | { outcome: 'lost' }
  | { outcome: 'link_mismatch' }
  /**
   * `outcome` and `rule` are of the last fact; `ignored` with rule null if the event held no fact. `learnedBy` says
   * that it made the order paid. `change`: null if the state stayed.
   */
  | {
      outcome: Outcome;
      rule: Rule | null;
      reference: string;
      state: OrderState;
      change: StateChange | null;
      notices: number;
      learnedBy: LearnedBy | null;
      /** Attention that it raised, or would raise if the service could not be asked. */
      raised: readonly AttentionKind[];
    };

export type Orders = {
  /** Ends an order's holds as a person decided. Null if there is no such order. */
  resolveOrder(resolution: {
    reference: string;
    decision: 'accept' | 'reject';
    reason: string;
    by: Author | null;
    atMs: number;
  }): Promise<{
    outcome: 'applied' | 'already_applied' | 'ignored';
    rule: Rule;
    order: Order;
    /** Set if it made the order paid. */
    learnedBy: LearnedBy | null;
  } | null>;
  /**
   * Ends an open matter for a person, whose reason stands in the history of its order. A matter that is found again is
   * raised again. Null if there is no such matter, or if it has ended.
   */
  endAttention(end: { key: number; reason: string; by: Author | null; atMs: number }): Promise<EndedMatter | null>;
};

/** A matter that a person ended; `reference` is null if it was about no order. */
type EndedMatter = { kind: string; reference: string | null };

/** A link as the service shows it. */
export type ServiceLink = {
  id: string;
  url: string | null;
  shortUrl: string | null;
  status: string;
  expiresAtMs: number | null;
};
