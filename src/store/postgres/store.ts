import { terminalFault } from '../../fault.ts';
import type { Cancel } from '../../work/clock.ts';
import type { PostgresAddress } from '../address.ts';
import { type OpenedEngine, type Store, stopped } from '../contract.ts';
import type { KeysGiven } from '../keys.ts';
import { called, type Transaction, type Work } from '../transaction.ts';
import type { SettleJob } from '../verbs/inbox.ts';
import { settle, settleTogether } from '../verbs/settle.ts';
import { readStats } from '../verbs/stats.ts';
import { INTAKE, READ, WORK } from '../verbs/table.ts';
import { batched } from './batches.ts';
import { watchChanges } from './changes.ts';
import { Database, type DatabaseOptions } from './database.ts';
import { type DatabaseClock, databaseClock } from './database_clock.ts';
import { assertTlsFiles } from './faults.ts';
import { buildIndexes, missingIndexes } from './indexes.ts';
import { intakeVerbs } from './intake.ts';
import { openWakeups, WAKEUPS, type Wakeups } from './notify.ts';
import { openDatabase } from './open.ts';
import { assertKeepsStatements, assertSameDatabase } from './pooler.ts';
import { arrive, catchUp, heartbeat, leave, type Replica, replicaVerbs } from './replicas.ts';
import { Servers, type ServersOptions } from './servers.ts';
import { COUNTERS, feedVerbs, openCensus } from './verbs.ts';

export type PostgresStoreOptions = Omit<DatabaseOptions, 'connections' | 'servers'> &
  Pick<PostgresAddress, 'servers' | 'name'> &
  Pick<ServersOptions, 'onSwitch' | 'onReplaced' | 'trustsStorage' | 'schema'> &
  Pick<KeysGiven, 'secretsKeyId' | 'olderKeyIds'> &
  Pick<Replica, 'version' | 'settings'> & {
    newInstanceId: string;
    /** The server behind the pooler, for wakeups, migrations and indexes; null if there is no pooler. */
    direct?: PostgresAddress | null;
  };

export type OpenedPostgresStore = OpenedEngine & {
  /** The database's clock, equal for all replicas. */
  clock: DatabaseClock;
  wakeups: Wakeups;
};

/** Connections of a replica. Deliveries have separate ones, so that they never wait for other work like a long list. */
const CONNECTIONS = { intake: 6, work: 6 } as const;

/** The most events settled in one transaction, which locks their orders until all of them are settled. */
const SETTLED_TOGETHER_MAX = 32;

/** Opens the store that replicas share. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<OpenedPostgresStore> {
  const { clock: machine } = options;
  assertTlsFiles([...options.servers, ...(options.direct?.servers ?? [])]);
  const servers = new Servers(options);
  const direct =
    options.direct == null
      ? servers
      : new Servers({
          ...options.direct,
          clock: machine,
          trustsStorage: options.trustsStorage,
          schema: options.schema,
        });
  const [db, intake] = [CONNECTIONS.work, CONNECTIONS.intake].map(
    (connections) => new Database({ ...options, servers, connections }),
  ) as [Database, Database];
  try {
    const clock = await databaseClock(intake, machine);
    const { skewMs } = clock;
    const nowMs = clock.nowMs();
    const before = (tx: Transaction) => arrive(tx, { ...options, skewMs }, nowMs);
    await assertKeepsStatements(intake, db);
    if (direct !== servers) await assertSameDatabase(intake, direct, options.random);
    const { migrated: _, ...opened } = await openDatabase(db, direct, { ...options, nowMs, before });
    const watches = [...new Set([servers, direct])].map((each) => each.watch());
    const wakeups = openWakeups({ ...options, servers: direct, db });
    const store = storeVerbs({ db, intake }, { ...options, clock, wakeups, servers, direct, watches });
    const abandon = () => {
      db.abandon();
      intake.abandon();
    };
    return { store, opened, clock, wakeups, abandon };
  } catch (error) {
    await Promise.all([db.close(), intake.close()]);
    throw error;
  }
}

type StoreParts = Replica &
  Pick<PostgresStoreOptions, 'callTimeoutMs'> & {
    clock: DatabaseClock;
    wakeups: Wakeups;
    servers: Servers;
    direct: Servers;
    watches: readonly Cancel[];
  };

/** The verbs of the contract on an open database. Deliveries have separate connections. */
function storeVerbs({ db, intake }: { db: Database; intake: Database }, parts: StoreParts): Store {
  const { clock, wakeups, servers, direct } = parts;
  const gate = openGate();
  type Verb = (tx: Transaction, ...args: readonly unknown[]) => Work<unknown>;
  const by =
    (way: 'read' | 'write', on = db) =>
    (_: string, verb: unknown, args: readonly unknown[]) =>
      gate.enter(() => on[way]((tx) => (verb as Verb)(tx, ...args)));
  const { findCredentials, recordDelivery } = intakeVerbs(intake, clock);
  const settleAtOnce = batched({
    together: (jobs: readonly SettleJob[]) => db.write((tx) => settleTogether(tx, jobs), jobs.length),
    alone: (job) => db.write((tx) => settle(tx, job)),
    callsMax: SETTLED_TOGETHER_MAX,
    isAwaited: false,
    clock,
    timeoutMs: parts.callTimeoutMs,
  });
  const changes = watchChanges(db);
  const census = openCensus(db, clock);
  let closed: Promise<void> | undefined;
  return {
    ...called(INTAKE, by('write', intake)),
    ...called({ ...WORK, ...feedVerbs }, by('write')),
    ...called({ ...READ, ...replicaVerbs }, by('read')),
    storeState: (nowMs) =>
      gate.enter(async () => {
        const [state, states] = await Promise.all([
          db.read((tx) => replicaVerbs.storeState(tx, nowMs)),
          servers.states(),
        ]);
        return { ...state, servers: states };
      }),
    serverStates: () => gate.enter(() => servers.states()),
    stats: (nowMs) =>
      gate.enter(async () => {
        const counted = await census.get();
        return db.read((tx) => readStats(tx, nowMs, COUNTERS, counted));
      }),
    findCredentials: (by) => gate.enter(() => findCredentials(by)),
    recordDelivery: (delivery) => gate.enter(() => recordDelivery(delivery)),
    settle: (job) => gate.enter(() => settleAtOnce(job)),
    catchUp: (options) => gate.enter(() => catchUp(db, options)),
    changeMark: () => gate.enter(changes.mark),
    quietMs: () => 0,
    heartbeat: (atMs) =>
      gate.enter(async () => {
        await clock.measure();
        return intake.write((tx) => heartbeat(tx, { ...parts, skewMs: clock.skewMs }, atMs));
      }),
    buildIndexes: async (may) => {
      const missing = await gate.enter(() => db.read(missingIndexes));
      // On separate connections, and without the time limit of other calls.
      return missing.length === 0 ? { built: [], missing } : buildIndexes(direct, may);
    },
    eraseDropped: async () => ({ isErased: true }),
    backup: async () => {
      throw terminalFault(
        'configuration_invalid',
        `settled does not copy ${db.name}. Use pg_dump or your provider's backups: see Back up in docs/postgres.md.`,
      );
    },
    close: () => (closed ??= close()),
  };

  async function close(): Promise<void> {
    for (const cancel of parts.watches) cancel();
    await gate.shut();
    // If it fails, the leases expire, and another replica takes over.
    await db.write(leave).catch(() => {});
    for (const wakeup of WAKEUPS) wakeups.send(wakeup);
    await wakeups.close();
    await Promise.all([db.close(), intake.close()]);
  }
}

/** Admits the verbs of a store until it is closed. */
type Gate = {
  /** Carries out a call, or refuses it once the gate is shut. */
  enter<T>(call: () => Promise<T>): Promise<T>;
  /** Refuses later calls. Resolves when earlier ones have ended. */
  shut(): Promise<void>;
};

function openGate(): Gate {
  let inside = 0;
  let isShut = false;
  const empty = Promise.withResolvers<void>();

  function leave(): void {
    inside--;
    if (isShut && inside === 0) empty.resolve();
  }

  return {
    enter: async (call) => {
      if (isShut) throw stopped();
      inside++;
      try {
        return await call();
      } finally {
        leave();
      }
    },
    shut: () => {
      isShut = true;
      if (inside === 0) empty.resolve();
      return empty.promise;
    },
  };
}
