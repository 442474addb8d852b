import type { Clock } from '../work/clock.ts';
import type { StoreAddress } from './address.ts';
import type { Durability } from './postgres/transaction.ts';

/**
 * What `settled doctor --store` tries on a store, and what it finds. `probeStore` tries each capability with a real
 * statement; src/explain/capabilities.ts has the sentences for people.
 */

/** Capabilities of PostgreSQL, and of the path to it. */
export type PostgresCapability =
  | ('version' | 'encoding' | 'primary' | 'fsync' | 'synchronous_commit' | 'timeouts' | 'connections' | 'clock')
  | ('isolation' | 'sessions' | 'session_settings' | 'prepared_statements' | 'direct' | 'listen')
  | ('schema_changes' | 'tables' | 'triggers' | 'identity' | 'partial_unique_index' | 'writable_cte')
  | ('reading_anew' | 'one_moment' | 'skip_locked' | 'no_key_update' | 'advisory_locks' | 'index_concurrently');

/** Capabilities of the disk that holds SQLite's file. */
export type SqliteCapability =
  | ('folder' | 'file_system' | 'free_space' | 'disk_sync' | 'rename' | 'wal' | 'synchronous' | 'foreign_keys')
  | ('lock' | 'read_beside_write' | 'copy' | 'database');

export type Capability = PostgresCapability | SqliteCapability;

/** `degraded`: settled works, but slower or with more care from a person. `missing`: settled cannot use the store. */
type Verdict = 'ok' | 'degraded' | 'missing';

/** The finding for a capability that was not tried, because it needs a table and none could be made. */
export type NotTried = 'no table';

/** `found`: what the statement showed, in a few words. */
export type Probed = { capability: Capability; verdict: Verdict; found: string };

export type ProbeOptions = Durability & {
  store: StoreAddress;
  /** The server behind the pooler that `store` leads to; null if there is no pooler. */
  direct: StoreAddress | null;
  clock: Clock;
  newId: () => string;
  /** Ends the probe early. It still removes what it made. */
  signal: AbortSignal;
};
