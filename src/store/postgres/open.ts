import { Fault } from '../../fault.ts';
import type { Migrated, MigrateOptions, Opened } from '../engine.ts';
import type { Answer, Transaction, Work } from '../transaction.ts';
import { countUnopenable } from '../verbs/secrets.ts';
import { aliveReplicas } from '../verbs/sweep.ts';
import { databaseClock } from './clock.ts';
import { assertUsable } from './connection.ts';
import { Database, type DatabaseOptions } from './database.ts';
import { tlsFilesFault } from './faults.ts';
import { type InstanceOptions, openInstance } from './instance.ts';
import { migrate } from './migrate.ts';

type OpenOptions = InstanceOptions & {
  /** Looked at before the instance row is: throws where the database must not be opened. */
  before?: (tx: Transaction) => Answer<unknown>;
};

export type OpenedDatabase = Opened & {
  /** The names of the migrations that it was brought forward with. */
  migrated: string[];
};

/** Migrates a database and reads its instance row. Faults: those of `assertUsable`, `store_foreign`, `store_newer`. */
export async function openDatabase(db: Database, url: string, options: OpenOptions): Promise<OpenedDatabase> {
  const migrated = await migrate(url, options.name);
  const opened = await db.write(function* (tx) {
    if (options.before !== undefined) yield* options.before(tx);
    return yield* openInstance(tx, options);
  });
  return { ...opened, migrated };
}

type MigrationOptions = Pick<MigrateOptions, 'isRestored' | 'keyIsLost' | 'clock'> &
  Pick<DatabaseOptions, 'url' | 'name'> & {
    /** The current one first. */
    keyIds: readonly string[];
  };

type DatabaseMigrated = Omit<Migrated, 'newKey'> & { undecipherable: number };

/** All that a process which only migrates does is done by one call after the other. */
const CALL_TIMEOUT_MS = 60_000;

/** `settled migrate`, of a database that may be empty. */
export async function migratePostgres(options: MigrationOptions): Promise<DatabaseMigrated> {
  const { url, name, keyIds, isRestored, keyIsLost, clock: machine } = options;
  const unusable = tlsFilesFault(url, name);
  if (unusable !== null) throw unusable;
  const db = new Database({
    url,
    name,
    connections: 1,
    clock: machine,
    replica: 'migrate',
    newId: noIds,
    random: () => 0.5,
    callTimeoutMs: CALL_TIMEOUT_MS,
    onBatch: () => {},
    assertUsable: (client) => assertUsable(client, name),
  });
  try {
    const { nowMs } = await databaseClock(db, machine);
    const { migrated, restoredFromMs } = await openDatabase(db, url, {
      name,
      nowMs: nowMs(),
      secretsKeyId: keyIds[0] as string,
      olderKeyIds: keyIds.slice(1),
      newInstanceId: crypto.randomUUID(),
      adoptsKey: keyIsLost,
      isRestored,
      ...(isRestored || keyIsLost ? { before: (tx) => refuseServed(tx, name, nowMs()) } : {}),
    });
    const undecipherable = await db.read((tx) => countUnopenable(tx, keyIds));
    return { applied: migrated, restoredFromMs, undecipherable };
  } finally {
    await db.close();
  }
}

/** What a serving replica knows of keys and of the feed it would go on by. */
function* refuseServed(tx: Transaction, name: string, nowMs: number): Work<void> {
  const serving = yield* aliveReplicas(tx, nowMs);
  if (serving.length === 0) return;
  throw new Fault(
    'terminal',
    'store_in_use',
    `${name} is being served by ${serving.join(', ')}. Stop every replica first; one that was killed, or that came with ` +
      'the copy, counts for a minute after its last sign of life.',
  );
}

function noIds(): never {
  throw new Error('a migration makes nothing that has an id');
}
