import type { AccessControl, AccessQueries } from './contract_access.ts';
import type { Bulk, BulkQueries } from './contract_bulk.ts';
import type { Inbox, Intake, Orders, Refusals, SealedCredentials } from './contract_inbox.ts';
import type { ApiBudget, Checks, Links, Openings } from './contract_links.ts';
import type { NoticeQueries, Telling } from './contract_notices.ts';
import type { Queries } from './contract_queries.ts';
import type { ServiceQueries } from './contract_service.ts';

/**
 * What settled asks of a database. Every verb is one whole transaction: when its promise resolves, the change is on the
 * disk. When it rejects, nothing of the change happened; only after a lost connection it may have, so the caller tries
 * again. Times are epoch milliseconds and always the caller's. One contract suite runs on every engine.
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

/** What keeps the store itself in order. */
export type Keeping = ClockMending & {
  /** The sealed secrets of links, in the order of their keys, after that of a link. Sees what was written before. */
  listSecrets(page: { after: number; limit: number }): Promise<SealedCredentials[]>;
  /** Replaces the secret `was` by the same one sealed under another key. Does nothing if `was` is not there any more. */
  resealSecret(resealed: {
    linkKey: number;
    /** Ours, which is the default, or the one that the service named beside it. */
    whose?: 'ours' | 'service';
    was: Uint8Array;
    sealed: Uint8Array;
    keyId: string;
    fingerprint: Uint8Array;
  }): Promise<void>;
  /**
   * Notes that secrets are about to be sealed under this key as well: from now on the store opens only with all of its
   * keys. Throws `secrets_key_in_use` while another replica seals under another key, because the two would reseal each
   * other's secrets.
   */
  addSecretsKey(keyId: string): Promise<void>;
  /**
   * Notes that all secrets are sealed under this key, without which the store is not opened again. `damaged`: how many
   * secrets under other known keys do not open, and stay. Throws `secrets_key_in_use` while there are others, or while
   * another replica seals under another key.
   */
  adoptSecretsKey(adoption: { keyId: string; damaged: number }): Promise<void>;
  /** Writes a consistent copy to `path`, which must not exist, and makes it durable. Returns its size in bytes. */
  backup(to: { path: string }): Promise<{ bytes: number }>;
  /**
   * Notes that this process is alive and the store writable. Returns how long no process had done so. A shared store
   * reports an outage again until `catchUp` made links due after it. `aheadMs`: how far after this time the last sign of
   * life was given, by a clock that was ahead.
   */
  heartbeat(atMs: number): Promise<{ gapMs: number; aheadMs: number }>;
  /**
   * Drops old bytes: of events and readings that are settled, and of hints. Their rows stay, and what is not settled
   * keeps its bytes. One call does little, so that no delivery waits for it; the next continues at `next`.
   */
  dropBodies(drop: BodyDrop): Promise<BodiesDropped>;
  /**
   * Drops the names and e-mail addresses of customers that came so long ago, of payments and of their orders' notices. One
   * call does little; call it until there is no more. A notice that is owed keeps what it says, and is looked at again later.
   */
  dropCustomers(drop: CustomerDrop): Promise<CustomersDropped>;
  /**
   * Builds the indexes that a migration left for later, one after the other, unless another process does so. No delivery
   * waits for it, and it may take minutes. After `signal` it ends at once, by a fault.
   */
  buildIndexes(may: { signal: AbortSignal }): Promise<IndexesBuilt>;
  /** Waits for what was called before, then closes. Later calls fail. */
  close(): Promise<void>;
};

/** The names of the indexes that were built now, and of those that are still missing. */
export type IndexesBuilt = { built: string[]; missing: string[] };

export type BodyDrop = {
  /** What was settled later, or as a hint came later, is kept. */
  untilMs: number;
  nowMs: number;
  /** The `next` of the call before; 0 begins. */
  after: number;
  /** How many rows are read at most; fewer if they are large. */
  limit: number;
};

/** `next` is null if there is nothing more to drop. */
export type BodiesDropped = { dropped: number; next: number | null };

type CustomerDrop = {
  /** What came later is kept. */
  untilMs: number;
  /** How many payments are looked at at most. */
  limit: number;
  /** Whether settled sends notices: then one that was not taken is owed. Otherwise all of them are only read. */
  sendsNotices: boolean;
};

/** How many payments lost a name or an address, and whether another call would find more. */
type CustomersDropped = { dropped: number; isMore: boolean };

/** What is done to rows because the clock stepped. */
type ClockMending = {
  /**
   * Makes rows due at once that wait for longer than anything may: a clock that was ahead put them off. Leases that would
   * last longer expire within a minute. Changes `limit` rows of a kind at most; call it until it changes none.
   */
  hastenDue(hasten: { waitMsMax: number; nowMs: number; limit: number }): Promise<{ hastened: number }>;
  /**
   * Mends what a step of the clock did to `limit` rows with keys above `after`: notices that are owed do not age by it,
   * and after a step back no link is asked about later than its schedule says. Doing it twice is harmless. `stepMs` is
   * negative if the clock stepped back. `next` is null if there are no rows left.
   */
  mendTimes(mend: { stepMs: number; nowMs: number; after: number; limit: number }): Promise<{ next: number | null }>;
};

/** How replicas share a store. */
export type Sharing = {
  /** What the database is, which replicas work on it, and how many expired leases no replica has taken over. */
  storeState(nowMs: number): Promise<StoreState>;
};

export type StoreState = {
  /** The engine and its version, for people. */
  server: string;
  /** What the server says of its `fsync`; null if it does not say. SQLite has none. */
  fsync: string | null;
  /** Every process that gave a sign of life within a day, the oldest first; none if one process has the database to itself. */
  replicas: ReplicaSummary[];
  lapsed: LeaseCounts;
  /** The names of indexes that are still to be built: what needs them takes longer. */
  indexesMissing: string[];
  /** The servers that the address names, in its order; none of a file. */
  servers: readonly ServerState[];
  /** Commits of settled's role that wait for a standby at this moment, and for how long the first of them has; null if none does. */
  waitForStandby: { commits: number; longestMs: number } | null;
};

/** What settled found when it asked a server of the database last. */
export type ServerState = {
  name: string;
  /** A `replaced` one was the primary, and takes writes that would be lost. */
  role: 'primary' | 'replaced' | 'standby' | 'unusable' | 'unreachable';
  /** What is wrong with it; null if nothing is. */
  why: string | null;
  /** How many bytes of the primary's log a standby has still to replay; null if that is not known. */
  behindBytes: number | null;
  /** Counts the promotions; null if it did not say it. */
  timeline: number | null;
  /** For which standbys the commits of a primary wait; null if they wait for none. */
  waitsFor: string | null;
};

/** Rows that are leased. */
export type LeaseCounts = { events: number; openings: number; notices: number };

export type ReplicaSummary = {
  name: string;
  version: string;
  /** Of its current secrets key. */
  secretsKeyId: string;
  /** For each setting that all replicas must have alike, by its name: a digest that includes its secrets key. */
  settings: Readonly<Record<string, string>>;
  /** How far its clock was ahead of the database's. */
  skewMs: number;
  startedAtMs: number;
  aliveAtMs: number;
  /** Whether it gave a sign of life within a minute. */
  isAlive: boolean;
  leases: LeaseCounts;
};
