/** A replica that was silent for longer is not counted on. */
export const ALIVE_MS = 60_000;

/** How a store is worked on. */
export type Sharing = {
  /** What the database is, who works on it, and which leases have lapsed that nobody took over so far. */
  storeState(nowMs: number): Promise<StoreState>;
};

type StoreState = {
  /** The engine and the version of what runs it, in words. */
  server: string;
  /** Every process that was heard of within a day, the oldest first; none where one process has the database for itself. */
  replicas: ReplicaSummary[];
  lapsed: LeaseCounts;
};

/** Rows that are leased. */
export type LeaseCounts = { events: number; openings: number; notices: number };

export type ReplicaSummary = {
  name: string;
  version: string;
  /** Of its current secrets key. */
  secretsKeyId: string;
  /** Of each setting that all must have alike, by its name: a digest that its secrets key is part of. */
  settings: Readonly<Record<string, string>>;
  /** How far its clock was ahead of the database's. */
  skewMs: number;
  startedAtMs: number;
  aliveAtMs: number;
  /** Whether it gave a sign of life within a minute. */
  isAlive: boolean;
  leases: LeaseCounts;
};
