import type { Outcome, Rule, SettlementPolicy, StateChange } from '../domain/decision.ts';
import type { PaymentFact } from '../domain/fact.ts';
import type { AttentionKind } from '../domain/matter.ts';
import type { LearnedBy, Order, OrderState } from '../domain/order.ts';
import type { SaidDetails } from '../domain/payment_details.ts';
import type { KeptReason } from '../domain/rejection.ts';
import type { FaultNote } from '../domain/retry.ts';
import type { Author } from './contract_access.ts';

/** The verbs that a delivery's acknowledgement waits for. An engine serves these before all others. */
export type Intake = {
  /** The credentials of a link; null if the link is unknown. */
  findCredentials(by: CredentialsKey): Promise<SealedCredentials | null>;
  /** Records an authentic, fresh delivery. Settlement needs nothing but this row. */
  recordDelivery(delivery: Delivery): Promise<Recorded>;
  /**
   * Keeps an authentic but stale delivery as a hint, apart from events and their dedupe key. Queues a check of its
   * link.
   */
  recordHint(hint: Hint): Promise<void>;
  /** Counts rejections of one link and reason, and queues a check of the link if it `asks`. Many such links raise a matter. */
  recordRejection(rejection: Rejection): Promise<void>;
};

/** `reference`: the newest link of this order. */
export type CredentialsKey = { token: string } | { linkId: string } | { linkKey: number } | { reference: string };

/** A link's credentials as stored. The signing secret is sealed under `keyId` and bound to the order's reference. */
export type SealedCredentials = {
  linkKey: number;
  token: string;
  reference: string;
  /** The service's id of the link; null if unknown. */
  linkId?: string | null;
  sealedSecret: Uint8Array;
  keyId: string;
  /** The secret that the service named in addition to ours, and the id of its key; absent if it named none. */
  serviceSealedSecret?: Uint8Array | null;
  serviceKeyId?: string | null;
  /** Whether the answer to the link's creation may still arrive and name a secret. */
  isProvisional?: boolean | 0 | 1;
};

export type Delivery = {
  linkKey: number;
  /** The event id, or `sha256:` and the hex digest of the body if the event has none. */
  eventId: string;
  bodySha256: Uint8Array;
  body: Uint8Array;
  /** The characters of the timestamp header, and the verified signature. Settlement verifies the stored bytes again. */
  timestamp: string;
  mac: Uint8Array;
  type: string | null;
  /** False if the body is not JSON that settled can read; a check is then queued. */
  readable: boolean;
  /** Whether the event id is the payment's, which its events share. Other content under it is then no matter. */
  isPaymentId: boolean;
  receivedAtMs: number;
};

export type Recorded = {
  /** `conflict`: this event id came before with other content. The delivery is recorded as a separate row. */
  outcome: 'recorded' | 'duplicate' | 'conflict';
  eventKey: number;
};

/** A stale delivery. */
export type Hint = Omit<Delivery, 'mac' | 'type' | 'readable' | 'isPaymentId'>;

export type Rejection = {
  linkKey: number;
  reason: KeptReason;
  count: number;
  lastAtMs: number;
  /** JSON of the newest diagnosis; null keeps the stored one. */
  diagnosis?: string | null;
  /** True by default. */
  asks?: boolean;
  /**
   * Raises a matter once this many links had deliveries rejected for this reason within an hour, and no authentic one
   * since. `atFirst`: one link is enough if no authentic delivery of any link came lately.
   */
  matter?: { fromLinks: number; atFirst?: boolean };
};

/** Work on rejections that no delivery waits for. */
export type Refusals = {
  /**
   * Ends the matter of a reason once an authentic delivery came for one of its links, after that link's last rejection
   * and after the matter was raised. For a reason of `ENDED_BY_ANY`, an authentic delivery of any link after the matter
   * was raised is enough. Returns the number of matters still open.
   */
  endRefusals(atMs: number): Promise<{ open: number }>;
};

/** Settles recorded rows. `domain/retry.ts` describes their statuses. */
export type Inbox = {
  /**
   * Leases due rows, oldest first, each with its next attempt number. At most `limit`; fewer if their bodies are large,
   * but at least one if any is due.
   */
  claimEvents(claim: { limit: number; nowMs: number; leaseMs: number }): Promise<ClaimedEvent[]>;
  /**
   * Applies a claimed event's facts to its order: order, ledger, history, notices and the end of the row in one
   * transaction. `lost`: another process has the lease, and nothing changed. `link_mismatch`: the event names another
   * link than the one it was delivered for. The row becomes a dead letter, and the order stays as it was.
   */
  settle(job: SettleJob): Promise<SettleResult>;
  /** Returns a claimed row to the queue, due at `dueAtMs`. */
  retryEvent(job: ClaimRef & { dueAtMs: number; fault: FaultNote }): Promise<void>;
  /**
   * Makes a claimed row a dead letter, for a person to look at. A replayed row that was settled before stays `done`
   * with the fault noted, because its facts were applied.
   */
  buryEvent(job: ClaimRef & { nowMs: number; fault: FaultNote }): Promise<'dead' | 'done' | 'lost'>;
  /**
   * Makes a dead or done row pending again. The unique settlement row still prevents paying twice. `body_dropped`: no
   * bytes are left to settle.
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
  /** Whether the event says too little, so that settled should ask the API. */
  unsure: boolean;
  /** Whether the event says that the link's status changed: a reason to ask the API, not to doubt the event. */
  linkChanged: boolean;
  /** The link's status, if the event names it. */
  linkStatus: string | null;
  /** Why the event was not understood; null if it was. If settled cannot ask the service, it tells a person. */
  notUnderstood: string | null;
  /** What the event says about payments besides status and money. It is stored, and decides nothing. */
  details: readonly SaidDetails[];
  /** When the link expires, if the event names it. Stored only if unknown so far. */
  expiresAtMs: number | null;
  /** The link as a reading shows it; null for an event. */
  link: ServiceLink | null;
  /** When settled asks the service. Whether quotes are doubtful is in the store. */
  policy: Pick<SettlementPolicy, 'asks'>;
  nowMs: number;
};

export type SettleResult =
  | { outcome: 'lost' }
  | { outcome: 'link_mismatch' }
  /**
   * `outcome` and `rule` are those of the last fact; `ignored` and null if there was no fact. `learnedBy` is set if the
   * event made the order paid. `change` is null if the state stayed.
   */
  | {
      outcome: Outcome;
      rule: Rule | null;
      reference: string;
      state: OrderState;
      change: StateChange | null;
      notices: number;
      learnedBy: LearnedBy | null;
      /** Attention that it raised, or would raise if settled could not ask the service. */
      raised: readonly AttentionKind[];
    };

export type Orders = {
  /** Ends an order's holds by a person's decision. Null if there is no such order. */
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
    /** Set if the decision made the order paid. */
    learnedBy: LearnedBy | null;
  } | null>;
  /**
   * Ends an open matter for a person. Their reason goes into the history of its order. The matter is raised again if
   * its cause is found again. Null if it does not exist or has ended.
   */
  endAttention(end: { key: number; reason: string; by: Author | null; atMs: number }): Promise<EndedMatter | null>;
};

/** A matter that a person ended; `reference` is null if it was not about an order. */
type EndedMatter = { kind: string; reference: string | null };

/** A link as the service shows it. */
export type ServiceLink = {
  id: string;
  url: string | null;
  shortUrl: string | null;
  status: string;
  expiresAtMs: number | null;
};
