import { hostname } from 'node:os';
import { Fault } from '../fault.ts';
import type { Log } from '../observe/log.ts';
import type { Clock } from '../work/clock.ts';
import type { StoreAddress } from './address.ts';
import type { Probed, ProbeOptions } from './contract_probe.ts';
import type { KeysGiven, Migrated, MigrateOptions, OpenedEngine } from './engine.ts';
import type { Wakeups } from './postgres/notify.ts';
import type { PostgresStoreOptions } from './postgres/store.ts';
import { openSqliteStore, type SqliteStoreOptions } from './sqlite/client.ts';
import { migrateSqlite } from './sqlite/open.ts';

/** settled waits for a database that is started together with it. */
const REACHABLE_WITHIN_MS = 30_000;
const TRY_EVERY_MS = 500;

/** What either engine needs. `olderKeyIds` has no default: leaving it out would refuse a key that is being changed. */
export type OpenOptions = Omit<SqliteStoreOptions, 'path' | 'newInstanceId'> &
  Omit<PostgresStoreOptions, 'servers' | 'name' | 'replica' | 'newInstanceId'> &
  Required<Pick<KeysGiven, 'olderKeyIds'>> & { log: Log };

export type OpenedStore = OpenedEngine & {
  /** The time by which leases and what is due are compared. */
  clock: Clock;
  /** By which replicas wake each other. */
  wakeups: Wakeups;
  /** How far this machine's clock is ahead of the store's. */
  skewMs: () => number;
  /** Whether other processes change it as well. */
  isShared: boolean;
  /** What this process is called among those; null if it is alone. */
  replica: string | null;
};

/** Opens the store that the configuration names, whichever engine it has. */
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

/** One process alone wakes no other. */
const NO_WAKEUPS: Wakeups = { send: () => {}, listen: () => {}, close: async () => {} };

/** A machine's name says where to look; the addition makes the name unique to this process. */
function replicaName(id: string): string {
  return `${hostname()}-${id.slice(-12)}`;
}

/** Repeats what needs the store at the start, for as long as settled waits for a database that does not answer. */
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
 * Brings a database to the newest schema, and mends what a restore or the loss of its key left. Closes it again. Of
 * PostgreSQL the database may be empty, and replicas may serve meanwhile, but for a restore and a lost key. Faults:
 * `store_missing`, `store_in_use`, and those of `openStore`.
 */
export async function migrateStore(options: MigrateOptions): Promise<Migrated> {
  const { store } = options;
  if (store.engine === 'sqlite') return migrateSqlite({ ...options, path: store.path });
  const { migratePostgres } = await import('./postgres/migrating.ts');
  return migratePostgres({ ...options, ...store });
}

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
