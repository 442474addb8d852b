import type { Outcome, Rule, SettlementPolicy } from '../domain/decision.ts';
import type { PaymentFact } from '../domain/fact.ts';
import type { Money } from '../domain/money.ts';
import type { AttentionKind, LearnedBy, Order, OrderState } from '../domain/order.ts';
import type { Rejection } from './rejections.ts';

/** Verbs that stand between a delivery and its acknowledgement. An engine serves them before all others. */
export type Intake = {
  /** The link that a token, a link id or our own key names; null where there is none. */
  findCredentials(by: CredentialsKey): Promise<SealedCredentials | null>;
  /** Records an authentic, fresh delivery. The row is the job: nothing else has to happen for it to be settled. */
  recordDelivery(delivery: Delivery): Promise<Recorded>;
  /** Keeps an authentic but stale delivery as a hint, outside the dedupe key, and queues a check of its link. */
  recordHint(hint: Hint): Promise<void>;
  /** Counts refused deliveries of one link and reason, and queues a check of the link; raises attention if many links are concerned. */
  recordRejection(rejection: Rejection): Promise<void>;
};

/** `reference`: of the link's order. */
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
  /** Whether the answer to the link's creation may come yet, and name a secret. */
  isProvisional?: boolean | 0 | 1;
};

export type Delivery = {
  linkKey: number;
  /** The event's id, or `sha256:` and the body's digest in hex where it has none. */
  eventId: string;
  bodySha256: Uint8Array;
  body: Uint8Array;
  /** The timestamp header's characters, and the verified signature: settlement verifies the stored bytes again. */
  timestamp: string;
  mac: Uint8Array;
  type: string | null;
  /** False where the body is not JSON that can be read: a check is queued. */
  readable: boolean;
  receivedAtMs: number;
};

export type Recorded = {
  /** conflict: this event id came before with other content; recorded as a row of its own. */
  outcome: 'recorded' | 'duplicate' | 'conflict';
  eventKey: number;
};

export type Hint = {
  linkKey: number;
  eventId: string;
  bodySha256: Uint8Array;
  body: Uint8Array;
  timestamp: string;
  receivedAtMs: number;
};

export type Links = {
  /**
   * Registers an order and its link, or compares with what is there: reserves without `linkId`, binds an id that was
   * missing, corrects a signing secret, or the id of a link while its order is open. Always queues a check of the link.
   */
  registerLink(registration: Registration): Promise<Registered>;
};

export type Registration = {
  reference: string;
  amount: Money;
  linkId: string | null;
  /** For a link that is not there yet. */
  token: string;
  /** Null: keep the secret that is there; on a new link `freshSecret` is used. */
  secret: SealedSecret | null;
  freshSecret: SealedSecret;
  /** Whether the caller may replace the signing secret of a link that is there, or the id of an open order's link. */
  mayCorrect: boolean;
  atMs: number;
};

/**
 * A sealed signing secret. Equal secrets have equal fingerprints under one key; those under older keys are for comparing
 * with what rests under one of them.
 */
export type SealedSecret = KeyedFingerprint & { sealed: Uint8Array; olderFingerprints?: readonly KeyedFingerprint[] };
type KeyedFingerprint = { keyId: string; fingerprint: Uint8Array };

export type Registered =
  | { outcome: 'created' | 'same' | 'bound' | 'corrected'; order: Order; token: string; linkKey: number }
  | {
      /** opened_by_settled: the order's link is not the shop's to register. */
      outcome:
        | 'reference_conflict'
        | 'opened_by_settled'
        | 'link_id_conflict'
        | 'link_id_taken'
        | 'correction_forbidden';
      order: Order;
    };

/** The life of an inbox row: pending → leased → done | dead; leased → pending on retry or when the lease lapses. */
export type Inbox = {
  /**
   * Leases rows that are due, oldest first, each with its next attempt number: `limit` at most, and fewer where their
   * bodies are large; at least one where one is due.
   */
  claimEvents(claim: { limit: number; nowMs: number; leaseMs: number }): Promise<ClaimedEvent[]>;
  /**
   * Applies a claimed event's facts to its order: the order, ledger, history, notices and the row's end in one
   * transaction. `lost`: the lease went to somebody else, nothing was done. `link_mismatch`: the event names another
   * link than the one that it was delivered for; the row is dead-lettered and the order untouched.
   */
  settle(job: SettleJob): Promise<SettleResult>;
  /** Gives a claimed row back, due again at `dueAtMs`. */
  retryEvent(job: ClaimRef & { dueAtMs: number; fault: FaultNote }): Promise<void>;
  /**
   * Retires a claimed row for a person to look at: `dead`. A row that was settled before and is replayed stays `done` as
   * it was, with the fault noted: what it says was applied.
   */
  buryEvent(job: ClaimRef & { nowMs: number; fault: FaultNote }): Promise<'dead' | 'done' | 'lost'>;
  /**
   * Makes dead and done rows pending again. The settlement row still guards against paying twice. `body_dropped`: nothing
   * is left to settle.
   */
  requeueEvent(replay: {
    eventKey: number;
    nowMs: number;
  }): Promise<'requeued' | 'in_work' | 'body_dropped' | 'unknown'>;
};

export type ClaimRef = { eventKey: number; attempt: number };
export type FaultNote = { code: string; message: string };

export type ClaimedEvent = ClaimRef & {
  linkKey: number;
  body: Uint8Array;
  timestamp: string;
  /** The signature that was verified; of a reading, the SHA-256 of its body. */
  mac: Uint8Array;
  receivedAtMs: number;
  /** The number of a reading; null for an event. */
  reading: number | null;
};

export type SettleJob = ClaimRef & {
  linkIds: readonly string[];
  facts: readonly PaymentFact[];
  /** Whether the event says too little, so that the API should be asked. */
  unsure: boolean;
  /** Whether it says that the link's own status changed: a reason to ask the API, and none to doubt. */
  linkChanged: boolean;
  /** Of an event that says so: the status that it names. */
  linkStatus: string | null;
  /** Why nothing that it must say could be read; null if it was understood. If nobody can be asked, a person is told. */
  notUnderstood: string | null;
  /** Of a reading: the link as the service shows it. Null for an event. */
  link: ServiceLink | null;
  /** How the service is asked; whether its quotes are doubtful the store knows. */
  policy: Pick<SettlementPolicy, 'asks'>;
  nowMs: number;
};

/** The state that an order left, and by which rule. */
export type StateChange = { from: OrderState; rule: Rule };

export type SettleResult =
  | { outcome: 'lost' }
  | { outcome: 'link_mismatch' }
  /**
   * `outcome` and `rule` are of the last fact; `ignored` with rule null where the event held no fact. `learnedBy` says
   * that it made the order paid. `change`: null where the state stayed.
   */
  | {
      outcome: Outcome;
      rule: Rule | null;
      reference: string;
      state: OrderState;
      change: StateChange | null;
      notices: number;
      learnedBy: LearnedBy | null;
      /** What it told a person of, or would if the service could not be asked. */
      raised: readonly AttentionKind[];
    };

export type Orders = {
  /** Ends an order's holds as a person decided. */
  resolveOrder(resolution: {
    reference: string;
    decision: 'accept' | 'reject';
    reason: string;
    atMs: number;
  }): Promise<{
    outcome: 'applied' | 'already_applied' | 'ignored';
    rule: Rule;
    order: Order;
    /** Where it made the order paid. */
    learnedBy: LearnedBy | null;
  } | null>;
  /**
   * A person ends a standing matter; the reason stands in the history of its order. What is found again is raised again.
   * Null: there is none, or it has ended.
   */
  endAttention(end: { key: number; reason: string; atMs: number }): Promise<EndedMatter | null>;
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
