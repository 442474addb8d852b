import type { Clock } from '../work/clock.ts';
import type { StoreAddress } from './address.ts';
import type { Durability } from './postgres/transaction.ts';

/**
 * What `settled doctor --store` tries of a store, and what it finds. `probeStore` tries each capability by a real
 * statement; the sentences for people are in `src/explain/capabilities.ts`.
 */

/** Of PostgreSQL, and of the way to it. */
export type PostgresCapability =
  | ('version' | 'encoding' | 'primary' | 'fsync' | 'synchronous_commit' | 'timeouts' | 'connections' | 'clock')
  | ('isolation' | 'sessions' | 'session_settings' | 'prepared_statements' | 'direct' | 'listen')
  | ('schema_changes' | 'tables' | 'triggers' | 'identity' | 'partial_unique_index' | 'writable_cte')
  | ('reading_anew' | 'one_moment' | 'skip_locked' | 'no_key_update' | 'advisory_locks' | 'index_concurrently');

/** Of the disk on which SQLite's file is. */
export type SqliteCapability =
  | ('folder' | 'file_system' | 'free_space' | 'disk_sync' | 'rename' | 'wal' | 'synchronous' | 'foreign_keys')
  | ('lock' | 'read_beside_write' | 'copy' | 'database');

export type Capability = PostgresCapability | SqliteCapability;

/** `degraded`: settled works without it, but slower or with more care of a person's; `missing`: it cannot use the store. */
type Verdict = 'ok' | 'degraded' | 'missing';

/** What is found of a capability that needs a table, if none could be made: it was not tried. */
export type NotTried = 'no table';

/** `found`: what the statement showed, in few words. */
export type Probed = { capability: Capability; verdict: Verdict; found: string };

export type ProbeOptions = Durability & {
  store: StoreAddress;
  /** The server without the pooler that `store` leads to; null if there is none. */
  direct: StoreAddress | null;
  clock: Clock;
  newId: () => string;
  /** Ends it early: what it made is removed all the same. */
  signal: AbortSignal;
};
