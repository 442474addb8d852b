import { Fault } from '../../fault.ts';
import type { Migrated, MigrateOptions } from '../open.ts';
import { countUnopenable } from '../verbs/secrets.ts';
import { aliveReplicas } from '../verbs/sweep.ts';
import { databaseClock } from './clock.ts';
import { Database, type DatabaseOptions } from './database.ts';
import { assertUsable, openDatabase } from './open.ts';
import { tlsFilesFault } from './tls.ts';
import { finish, type Transaction } from './transaction.ts';

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
    const undecipherable = await db.read((tx) => finish(countUnopenable(tx, keyIds)));
    return { applied: migrated, restoredFromMs, undecipherable };
  } finally {
    await db.close();
  }
}

/** What a serving replica knows of keys and of the feed it would go on by. */
async function refuseServed(tx: Transaction, name: string, nowMs: number): Promise<void> {
  const serving = await finish(aliveReplicas(tx, nowMs));
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
