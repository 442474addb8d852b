import type { AccessControl, AccessQueries } from './contract_access.ts';
import type { Bulk, BulkQueries } from './contract_bulk.ts';
import type { Inbox, Intake, Orders, Refusals, SealedCredentials } from './contract_inbox.ts';
import type { ApiBudget, Checks, Links, Openings } from './contract_links.ts';
import type { NoticeQueries, Telling } from './contract_notices.ts';
import type { Queries } from './contract_queries.ts';
import type { ServiceQueries } from './contract_service.ts';

/**
 * What settled needs from a database. Every verb is one transaction. When its promise resolves, the change is on the
 * disk. When it rejects, nothing has changed, except that a lost connection leaves it unknown: the caller retries.
 * Times are epoch milliseconds from the caller's clock. One contract suite tests every engine.
 */
export type Store = Intake &
  Links &
  Inbox &
  Orders &
  Refusals &
  ApiBudget &
  Openings &
  Checks &
  Telling &
  NoticeQueries &
  Queries &
  Bulk &
  BulkQueries &
  ServiceQueries &
  AccessControl &
  AccessQueries &
  Sharing &
  Keeping;

/** Upkeep of the store itself. */
export type Keeping = ClockMending & {
  /** The sealed secrets of links with keys above `after`, in order. Sees everything written before the call. */
  listSecrets(page: { after: number; limit: number }): Promise<SealedCredentials[]>;
  /** Replaces the secret `was` by the same one sealed under another key. Does nothing if `was` is no longer stored. */
  resealSecret(resealed: {
    linkKey: number;
    /** `ours` (the default), or the secret that the service named in addition. */
    whose?: 'ours' | 'service';
    was: Uint8Array;
    sealed: Uint8Array;
    keyId: string;
    fingerprint: Uint8Array;
  }): Promise<void>;
  /**
   * Notes that settled will also seal secrets under this key. From then on the store opens only with all of its keys.
   * Throws `secrets_key_in_use` while another replica seals under another key: the two would reseal each other's
   * secrets.
   */
  addSecretsKey(keyId: string): Promise<void>;
  /**
   * Notes that all secrets are sealed under this key, which the store then needs to open. `damaged`: secrets under
   * other known keys that do not open, and stay. Throws `secrets_key_in_use` if there are others, or while another
   * replica seals under another key.
   */
  adoptSecretsKey(adoption: { keyId: string; damaged: number }): Promise<void>;
  /** Writes a consistent, durable copy to `path`, which must not exist. Returns its size in bytes. */
  backup(to: { path: string }): Promise<{ bytes: number }>;
  /**
   * Records that this process is alive and the store writable. Returns for how long no process had done so. A shared
   * store reports an outage again until `catchUp` has made links due after it. `aheadMs`: how far the last heartbeat
   * lies after `atMs`, written by a clock that was ahead.
   */
  heartbeat(atMs: number): Promise<{ gapMs: number; aheadMs: number }>;
  /**
   * Drops old bodies of settled events and readings, and of hints. Their rows stay, and unsettled rows keep their
   * bodies. Each call does little, so that no delivery waits for it; the next call continues at `next`.
   */
  dropBodies(drop: BodyDrop): Promise<BodiesDropped>;
  /**
   * Erases old customers' names and e-mail addresses, from payments and from their orders' notices. Each call does
   * little; repeat it while `isMore`. A notice that is still owed keeps its body and is examined again later.
   */
  dropCustomers(drop: CustomerDrop): Promise<CustomersDropped>;
  /**
   * Removes what was dropped before from the files of the store, log included, as far as settled can: in SQLite,
   * unless another connection reads what was there before. PostgreSQL does so itself.
   */
  eraseDropped(): Promise<{ isErased: boolean }>;
  /**
   * Builds the indexes that a migration left for later, one at a time, unless another process does so. Deliveries do
   * not wait for it. It may take minutes; `signal` ends it at once, with a fault.
   */
  buildIndexes(may: { signal: AbortSignal }): Promise<IndexesBuilt>;
  /** Waits for earlier calls, then closes. Later calls fail. */
  close(): Promise<void>;
};

/** Names of the indexes built by this call, and of those still missing. */
export type IndexesBuilt = { built: string[]; missing: string[] };

export type BodyDrop = {
  /** Bodies of rows settled later than this, and of hints received later, are kept. */
  untilMs: number;
  nowMs: number;
  /** The `next` of the previous call; 0 to begin. */
  after: number;
  /** The most rows read; fewer if they are large. */
  limit: number;
};

/** `next` is null if nothing more can be dropped. */
export type BodiesDropped = { dropped: number; next: number | null };

type CustomerDrop = {
  /** Details that came later than this are kept. */
  untilMs: number;
  /** The most payments examined. */
  limit: number;
  /** Whether settled sends notices. Only then is a pending notice owed. */
  sendsNotices: boolean;
};

/** `dropped`: payments that lost a name or an address. `isMore`: whether another call would find more. */
type CustomersDropped = { dropped: number; isMore: boolean };

/** Corrections to rows after the clock stepped. */
type ClockMending = {
  /**
   * Makes rows due now if they wait longer than any row may, because a clock that was ahead put them off. Leases that
   * would last too long expire within a minute. Changes at most `limit` rows of a kind; repeat until it changes none.
   */
  hastenDue(hasten: { waitMsMax: number; nowMs: number; limit: number }): Promise<{ hastened: number }>;
  /**
   * Corrects `limit` rows with keys above `after` for a step of the clock. Owed notices do not age by it, and after a
   * step back no link is checked later than its schedule says. Repeating it is harmless. `stepMs` is negative for a
   * step back. `next` is null if no rows are left.
   */
  mendTimes(mend: { stepMs: number; nowMs: number; after: number; limit: number }): Promise<{ next: number | null }>;
};

/** How replicas share a store. */
export type Sharing = {
  /** The database, the replicas that use it, and the number of expired leases that no replica has taken over. */
  storeState(nowMs: number): Promise<StoreState>;
};

export type StoreState = {
  /** The engine and its version, for people. */
  server: string;
  /** The server's `fsync` setting; null if it does not show it, and for SQLite. */
  fsync: string | null;
  /** Processes with a heartbeat within a day, oldest first. Empty if one process has the database to itself. */
  replicas: ReplicaSummary[];
  lapsed: LeaseCounts;
  /** Names of indexes still to be built. Queries that need them are slower until then. */
  indexesMissing: string[];
  /** The servers that the address names, in its order. Empty for a file. */
  servers: readonly ServerState[];
  /** How many commits of settled's role wait for a standby now, and for how long the first has; null if none does. */
  waitForStandby: { commits: number; longestMs: number } | null;
};

/** What settled found when it last asked a server of the database. */
export type ServerState = {
  name: string;
  /** `replaced`: a former primary. It accepts writes that would be lost. */
  role: 'primary' | 'replaced' | 'standby' | 'unusable' | 'unreachable';
  /** What is wrong with the server; null if nothing is. */
  why: string | null;
  /** Bytes of the primary's log that a standby has still to replay; null if unknown. */
  behindBytes: number | null;
  /** Rises with each promotion; null if the server did not say it. */
  timeline: number | null;
  /** The standbys that a primary's commits wait for; null if they wait for none. */
  waitsFor: string | null;
};

/** Leased rows. */
export type LeaseCounts = { events: number; openings: number; notices: number };

export type ReplicaSummary = {
  name: string;
  version: string;
  /** The id of its current secrets key. */
  secretsKeyId: string;
  /** A digest of each setting that must be equal on all replicas, by its name. Digests depend on the secrets key. */
  settings: Readonly<Record<string, string>>;
  /** How far its clock is ahead of the database's. */
  skewMs: number;
  startedAtMs: number;
  aliveAtMs: number;
  /** Whether it had a heartbeat within a minute. */
  isAlive: boolean;
  leases: LeaseCounts;
};
