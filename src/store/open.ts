import { hostname } from 'node:os';
import { Fault } from '../fault.ts';
import type { Log } from '../observe/log.ts';
import type { Clock } from '../work/clock.ts';
import type { StoreAddress } from './address.ts';
import type { OpenedEngine } from './contract.ts';
import type { KeysGiven } from './keys.ts';
import type { Migrated, MigrateOptions } from './migrate.ts';
import type { Wakeups } from './postgres/notify.ts';
import type { PostgresStoreOptions } from './postgres/store.ts';
import { openSqliteStore, type SqliteStoreOptions } from './sqlite/client.ts';
import { migrateSqlite } from './sqlite/open.ts';
import type { TrialOptions, Tried } from './trial.ts';

/** How long settled waits for a database that was started together with it. */
const REACHABLE_WITHIN_MS = 30_000;
const TRY_EVERY_MS = 500;

/** What either engine needs. `olderKeyIds` has no default: leaving it out would refuse a key that is being changed. */
export type OpenOptions = Omit<SqliteStoreOptions, 'path' | 'newInstanceId'> &
  Omit<PostgresStoreOptions, 'servers' | 'name' | 'replica' | 'newInstanceId'> &
  Required<Pick<KeysGiven, 'olderKeyIds'>> & { log: Log };

export type OpenedStore = OpenedEngine & {
  /** The clock for leases and due times. */
  clock: Clock;
  /** Signals by which replicas wake each other. */
  wakeups: Wakeups;
  /** How far this machine's clock is ahead of the store's. */
  skewMs: () => number;
  /** Whether other processes use the store too. */
  isShared: boolean;
  /** The name of this process among the replicas; null if it is alone. */
  replica: string | null;
};

/** Opens the store that the configuration names, on either engine. */
export async function openStore(address: StoreAddress, options: OpenOptions): Promise<OpenedStore> {
  const newInstanceId = options.newId();
  if (address.engine === 'sqlite') {
    const opened = await openSqliteStore({ ...options, path: address.path, newInstanceId });
    return { ...opened, clock: options.clock, wakeups: NO_WAKEUPS, skewMs: () => 0, isShared: false, replica: null };
  }
  const { openPostgresStore } = await import('./postgres/store.ts');
  const { servers, name } = address;
  const replica = replicaName(options.newId());
  const open = () => openPostgresStore({ ...options, servers, name, replica, newInstanceId });
  const opened = await whenReachable(name, options, open);
  return { ...opened, skewMs: () => opened.clock.skewMs, isShared: true, replica };
}

/** A single process has no other to wake. */
const NO_WAKEUPS: Wakeups = { send: () => {}, listen: () => {}, close: async () => {} };

/** The machine's name tells people where to look; the suffix makes the name unique to this process. */
function replicaName(id: string): string {
  return `${hostname()}-${id.slice(-12)}`;
}

/** Retries `work` until the database can be reached, for at most 30 s. */
export async function whenReachable<T>(
  name: string,
  { clock, log }: Pick<OpenOptions, 'clock' | 'log'>,
  work: () => Promise<T>,
): Promise<T> {
  const untilMs = clock.monotonicMs() + REACHABLE_WITHIN_MS;
  for (let tries = 0; ; tries++) {
    try {
      return await work();
    } catch (fault) {
      const mayPass = fault instanceof Fault && fault.code === 'store_unreachable';
      if (!mayPass || clock.monotonicMs() + TRY_EVERY_MS > untilMs) throw fault;
      if (tries === 0) {
        const seconds = REACHABLE_WITHIN_MS / 1000;
        log.warn({ fault, store: name }, `the database cannot be reached; trying for ${seconds} s`);
      }
      await new Promise<void>((resume) => clock.after(TRY_EVERY_MS, resume));
    }
  }
}

/**
 * Migrates a database to the newest schema, and repairs it after a restore or the loss of its key. Closes it again. A
 * PostgreSQL database may be empty, and replicas may serve meanwhile, except during a restore and with a lost key.
 * Faults: `store_missing`, `store_in_use`, and those of `openStore`.
 */
export async function migrateStore(options: MigrateOptions): Promise<Migrated> {
  const { store } = options;
  if (store.engine === 'sqlite') return migrateSqlite({ ...options, path: store.path });
  const { migratePostgres } = await import('./postgres/migrating.ts');
  return migratePostgres({ ...options, ...store });
}

/**
 * Tries a store of its own beside the one that is named; replicas may serve meanwhile. It removes what
 * it makes. Faults: those of connecting.
 */
export async function probeStore(options: TrialOptions): Promise<Tried[]> {
  const { store, direct } = options;
  if (store.engine === 'sqlite') {
    const { probeSqlite } = await import('./sqlite/probe.ts');
    return probeSqlite({ ...options, path: store.path });
  }
  const { probePostgres } = await import('./postgres/probe.ts');
  return probePostgres({ ...options, address: store, direct: direct?.engine === 'postgres' ? direct : null });
}
