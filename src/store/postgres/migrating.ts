import { terminalFault } from '../../fault.ts';
import type { Clock } from '../../work/clock.ts';
import type { PostgresAddress, ServerAddress } from '../address.ts';
import type { Migrated, MigrateOptions } from '../migrate.ts';
import type { Transaction, Work } from '../transaction.ts';
import { countUnopenable } from '../verbs/secrets.ts';
import { aliveReplicas } from '../verbs/sweep.ts';
import { ask, isSameServer, markReplaced, unmarkReplaced } from './connection.ts';
import { Database } from './database.ts';
import { databaseClock } from './database_clock.ts';
import { assertTlsFiles } from './faults.ts';
import { buildIndexes } from './indexes.ts';
import { openDatabase } from './open.ts';
import { assertSameDatabase } from './pooler.ts';
import { Servers } from './servers.ts';

/** A process that only migrates makes one call at a time. */
const CALL_TIMEOUT_MS = 60_000;

const NEVER_ABORTED = new AbortController().signal;

/** `settled migrate` for PostgreSQL; the database may be empty. */
export async function migratePostgres(
  options: MigrateOptions & Pick<PostgresAddress, 'servers' | 'name'>,
): Promise<Migrated> {
  const { isRestored, keyIsLost, clock: machine, trustsStorage } = options;
  const address = options.direct ?? options;
  const { name } = address;
  const { keyIds, keyPlace } = options.readKeys({ makesFile: false });
  const keyId = keyIds[0] as string;
  assertTlsFiles(address.servers);
  const markAgain = isRestored ? await keepReplaced(address.servers, trustsStorage) : null;
  const servers = new Servers({ ...address, clock: machine, trustsStorage });
  const db = databaseOf(servers, machine);
  try {
    if (options.direct != null) {
      await refuseOther(new Servers({ ...options, clock: machine, trustsStorage }), servers, machine);
    }
    const { nowMs } = await databaseClock(db, machine);
    const { migrated, restoredFromMs } = await openDatabase(db, servers, {
      name,
      nowMs: nowMs(),
      secretsKeyId: keyId,
      olderKeyIds: keyIds.slice(1),
      newInstanceId: crypto.randomUUID(),
      adoptsKey: keyIsLost,
      isRestored,
      ...(isRestored || keyIsLost ? { before: (tx) => refuseServed(tx, name, nowMs()) } : {}),
    });
    await buildIndexes(servers, { signal: NEVER_ABORTED });
    const newKey = { keyId, keyPlace, undecipherable: await db.read((tx) => countUnopenable(tx, keyIds)) };
    return { applied: migrated, restoredFromMs, newKey: keyIsLost ? newKey : null };
  } catch (error) {
    await markAgain?.().catch(() => {});
    throw error;
  } finally {
    await db.close();
  }
}

/**
 * Removes the mark of a replaced primary if a person decided to keep that server. While another server accepts writes
 * too, that is not decided. Returns a function that restores the mark; null if there was none.
 */
async function keepReplaced(servers: readonly ServerAddress[], trustsStorage = false): Promise<Undo | null> {
  const said = await Promise.all(servers.map((server) => ask(server, { trustsStorage }).catch(() => null)));
  const [only, ...others] = servers.flatMap((server, place) => {
    const one = said[place];
    return one == null || one.isStandby ? [] : [{ server, one }];
  });
  if (only === undefined || others.some(({ one }) => !isSameServer(one, only.one))) return null;
  const { server } = only;
  const timeline = only.one.supersededBy;
  if (timeline === null) return null;
  await unmarkReplaced(server);
  return () => markReplaced(server, timeline);
}

type Undo = () => Promise<void>;

function databaseOf(servers: Servers, clock: Clock): Database {
  return new Database({
    servers,
    connections: 1,
    clock,
    replica: 'migrate',
    newId: noIds,
    random: () => 0.5,
    callTimeoutMs: CALL_TIMEOUT_MS,
    onBatch: () => {},
  });
}

/** A wrong direct address would migrate another database than the one that replicas use. */
async function refuseOther(pooled: Servers, direct: Servers, clock: Clock): Promise<void> {
  const db = databaseOf(pooled, clock);
  try {
    const [part = ''] = crypto.randomUUID().split('-');
    await assertSameDatabase(db, direct, () => Number.parseInt(part, 16) / 2 ** 32);
  } finally {
    await db.close();
  }
}

/** A serving replica would continue with the keys and the feed that it knows. */
function* refuseServed(tx: Transaction, name: string, nowMs: number): Work<void> {
  const serving = yield* aliveReplicas(tx, nowMs);
  if (serving.length === 0) return;
  throw terminalFault(
    'store_in_use',
    `${name} is being served by ${serving.join(', ')}. Stop every replica first; one that was killed, or that came with ` +
      'the copy, counts for a minute after its last sign of life.',
  );
}

function noIds(): never {
  throw new Error('a migration makes nothing that has an id');
}
