import { type Fault, transientFault } from '../fault.ts';
import type { Clock } from '../work/clock.ts';
import type { Called } from './transaction.ts';
import type { Delivery, Recorded } from './verbs/intake.ts';
import type { FeedEnd, FeedPage } from './verbs/notice_lists.ts';
import type { CredentialsKey, SealedCredentials } from './verbs/secrets.ts';
import type { LeaseCounts, Stats } from './verbs/stats.ts';
import type { INTAKE, READ, WORK } from './verbs/table.ts';

/**
 * What settled needs from a database. Every verb is one transaction. When its promise resolves, the change is on the
 * disk. When it rejects, nothing has changed, except that a lost connection leaves it unknown: the caller retries.
 * Times are epoch milliseconds from the caller's clock. One contract suite tests every engine.
 *
 * Most verbs have one text for both engines. They are described where they are written, in `verbs/`.
 */
export type Store = Called<typeof INTAKE & typeof WORK & typeof READ> & EngineVerbs;

/** The verbs that each engine writes for itself. */
export type EngineVerbs = {
  /** The credentials of a link; null if the link is unknown. */
  findCredentials(by: CredentialsKey): Promise<SealedCredentials | null>;
  /** Records an authentic, fresh delivery. Settlement needs nothing but this row. */
  recordDelivery(delivery: Delivery): Promise<Recorded>;
  /** Makes every link that can still be paid due now, also those of cancelled orders. `dryRun` only counts them. */
  catchUp(options: { dryRun: boolean; nowMs: number }): Promise<{ links: number }>;
  /**
   * Reads notices after a position of the feed, oldest first, and the newest position; 0 is before the first. The
   * bodies of a page have at most `bytesMax`, unless it is a single notice.
   */
  readFeed(page: { after: number; limit: number; bytesMax: number }): Promise<FeedPage>;
  /**
   * Finds the end of the feed: no committed notice comes after it, and every later one does. Null if one transaction
   * could not give every notice its position: call it again.
   */
  findFeedEnd(): Promise<FeedEnd | null>;
  stats(nowMs: number): Promise<Stats>;
  /** The database, the replicas that use it, and the number of expired leases that no replica has taken over. */
  storeState(nowMs: number): Promise<StoreState>;
  /** Only the servers of `storeState`, without a statement to the database. */
  serverStates(): Promise<readonly ServerState[]>;
  /**
   * A text that changes once any process commits anything. Heartbeats alone do not change it. Other processes cannot
   * compare it with their own.
   */
  changeMark(): Promise<string>;
  /** Milliseconds since this process changed anything; 0 if other processes use the store too. */
  quietMs(): number;
  /**
   * Records that this process is alive and the store writable. Returns for how long no process had done so. A shared
   * store reports an outage again until `catchUp` has made links due after it. `aheadMs`: how far the last heartbeat
   * lies after `atMs`, written by a clock that was ahead.
   */
  heartbeat(atMs: number): Promise<{ gapMs: number; aheadMs: number }>;
  /** Writes a consistent, durable copy to `path`, which must not exist. Returns its size in bytes. */
  backup(to: { path: string }): Promise<{ bytes: number }>;
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

/** The most calls that may wait. Further ones are refused, so that a stuck disk or server cannot fill memory. */
export const WAITING_MAX = 20_000;

/** What each engine needs to carry out calls. */
export type CallOptions = {
  clock: Clock;
  /** A call without an answer for this long is refused as `store_busy`. It may still be carried out. */
  callTimeoutMs: number;
  /** Called after each commit, with the number of calls that shared it and how long it took. */
  onBatch: (calls: number, seconds: number) => void;
};

export function stopped(): Fault {
  return transientFault('store_stopped', 'The store is closed because this process is stopping.');
}

/** What a database says about itself. */
export type Instance = {
  instanceId: string;
  /** Ids of the keys under which its secrets may be sealed: more than one while the key is being changed. */
  secretsKeyIds: readonly string[];
  /** When the copy was made that replaced the database, while settled searches for links made since; otherwise null. */
  restoredFromMs: number | null;
};

/** What an opened store says about itself. */
export type Opened = Instance & { created: boolean };

/** The result of opening an engine. */
export type OpenedEngine = {
  store: Store;
  opened: Opened;
  /** Refuses every call that waits for an answer. */
  abandon(): void;
};

/** Names of the indexes built by this call, and of those still missing. */
export type IndexesBuilt = { built: string[]; missing: string[] };

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
