import type { OpenedEngine } from '../engine.ts';
import { type DatabaseClock, databaseClock } from './clock.ts';
import { Database, type DatabaseOptions } from './database.ts';
import { storeVerbs } from './engine.ts';
import { type Hints, openHints } from './hints.ts';
import type { InstanceOptions } from './instance.ts';
import { assertUsable, openDatabase } from './open.ts';
import { arrive, type Replica } from './replicas.ts';
import { tlsFilesFault } from './tls.ts';
import type { Transaction } from './transaction.ts';

export type PostgresStoreOptions = Omit<DatabaseOptions, 'connections' | 'assertUsable'> &
  Pick<InstanceOptions, 'secretsKeyId' | 'olderKeyIds' | 'newInstanceId'> &
  Pick<Replica, 'version' | 'settings'>;

export type OpenedPostgresStore = OpenedEngine & {
  /** The database's: the same for all replicas. */
  clock: DatabaseClock;
  hints: Hints;
};

/**
 * Connections of a replica. Deliveries have some of their own: they wait for nobody else's work, and a long list in
 * somebody's hands holds up none of them.
 */
const CONNECTIONS = { intake: 6, work: 6 } as const;

/** Opens the store that replicas share. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<OpenedPostgresStore> {
  const { url, name, clock: machine } = options;
  const unusable = tlsFilesFault(url, name);
  if (unusable !== null) throw unusable;
  const [db, intake] = [CONNECTIONS.work, CONNECTIONS.intake].map(
    (connections) => new Database({ ...options, connections, assertUsable: (client) => assertUsable(client, name) }),
  ) as [Database, Database];
  try {
    const clock = await databaseClock(intake, machine);
    const { skewMs } = clock;
    const nowMs = clock.nowMs();
    const before = (tx: Transaction) => arrive(tx, { ...options, skewMs }, nowMs);
    const { migrated: _, ...opened } = await openDatabase(db, url, { ...options, nowMs, before });
    const hints = openHints({ ...options, db });
    const store = storeVerbs({ db, intake }, { ...options, clock, hints });
    const abandon = () => {
      db.abandon();
      intake.abandon();
    };
    return { store, opened, clock, hints, abandon };
  } catch (error) {
    await Promise.all([db.close(), intake.close()]);
    throw error;
  }
}
