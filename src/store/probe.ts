import { Fault } from '../fault.ts';
import type { Clock } from '../work/clock.ts';
import type { StoreAddress } from './address.ts';
import type { Durability } from './postgres/transaction.ts';

/** What settled needs of PostgreSQL, and of the way to it. */
export type PostgresCapability =
  | ('version' | 'encoding' | 'primary' | 'fsync' | 'synchronous_commit' | 'timeouts' | 'connections' | 'clock')
  | ('isolation' | 'sessions' | 'session_settings' | 'prepared_statements' | 'direct' | 'listen')
  | ('schema_changes' | 'tables' | 'triggers' | 'identity' | 'partial_unique_index' | 'writable_cte')
  | ('reading_anew' | 'one_moment' | 'skip_locked' | 'no_key_update' | 'advisory_locks' | 'index_concurrently');

/** What settled needs of the disk on which SQLite's file is. */
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

/**
 * Tries by real statements what settled needs of a store, beside replicas that serve, and without settled's tables. It
 * removes what it makes. Faults: those of connecting, `store_stopped` if it was ended early.
 */
export async function probeStore(options: ProbeOptions): Promise<Probed[]> {
  const probed = await probe(options);
  if (!options.signal.aborted) return probed;
  throw new Fault('transient', 'store_stopped', 'The probe of the store was stopped. What it had made is removed.');
}

async function probe(options: ProbeOptions): Promise<Probed[]> {
  const { store, direct } = options;
  if (store.engine === 'sqlite') {
    const { probeSqlite } = await import('./sqlite/probe.ts');
    return probeSqlite({ ...options, path: store.path });
  }
  const { probePostgres } = await import('./postgres/probe.ts');
  return probePostgres({ ...options, address: store, direct: direct?.engine === 'postgres' ? direct : store });
}
