import { type Fault, terminalFault } from '../../fault.ts';
import type { Instance, Opened } from '../contract.ts';
import { type KeysGiven, type KeysNoted, keysInUse } from '../keys.ts';
import { type Applied, missingMigrations, readMigrations } from '../migrate.ts';
import { type Answer, statement, type Transaction, TURNS, type Work } from '../transaction.ts';
import type { ServerConnection } from './connection.ts';
import type { Database } from './database.ts';
import { noteStatement, storeFault } from './faults.ts';
import { inTransaction } from './indexes.ts';
import type { Servers } from './servers.ts';
import { beginDurable } from './transaction.ts';

type OpenOptions = InstanceOptions & {
  /** Runs before the instance row is read. Throws if the database must not be opened. */
  before?: (tx: Transaction) => Answer<unknown>;
};

/**
 * Migrates a database and reads its instance row. `migrated`: the names of the migrations applied. Faults: those of
 * `inspect`, `store_foreign`, `store_newer`.
 */
export async function openDatabase(
  db: Database,
  servers: Servers,
  options: OpenOptions,
): Promise<Opened & { migrated: string[] }> {
  const migrated = await migrate(servers);
  const opened = await db.write(function* (tx) {
    if (options.before !== undefined) yield* options.before(tx);
    return yield* openInstance(tx, options);
  });
  return { ...opened, migrated };
}

/** How long a migration waits for a table: serving replicas would queue behind it. */
const LOCK_TIMEOUT_MS = 5_000;
const MIGRATION_TIMEOUT_MS = 15 * 60_000;

/**
 * Migrates a database: applies every numbered file of migrations/postgres that it has not seen, all in one transaction,
 * one replica at a time. Indexes of large tables follow (`buildIndexes`). Replicas of the previous release keep
 * serving: docs/migrations.md has the rule for migrations. Returns the names applied.
 */
export async function migrate(servers: Servers): Promise<string[]> {
  const known = readMigrations('postgres');
  const { name } = servers;
  return alone(servers, async (run) => {
    // settled would use another program's table that has one of our names.
    refuseOthersTables(name, (await run(TABLES)) as { tablename: string }[]);
    await run(
      `CREATE TABLE IF NOT EXISTS migration (
           number INTEGER PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL, expands BOOLEAN NOT NULL)`,
    );
    const applied = (await run('SELECT number, name, sha256, expands FROM migration ORDER BY number')) as Applied[];
    const missing = missingMigrations(known, applied, name);
    const isEmpty = applied.length === 0;
    for (const { number, name: file, sql, sha256, expands } of missing) {
      await run(inTransaction(sql, { isEmpty }));
      await run('INSERT INTO migration VALUES ($1, $2, $3, $4)', [number, file, sha256, expands]);
    }
    return missing.map((migration) => migration.name);
  });
}

export const TABLES = 'SELECT tablename::text FROM pg_catalog.pg_tables WHERE schemaname = current_schema() ORDER BY 1';

/** Throws if the database's tables belong to another program. Returns their names. */
export function refuseOthersTables(name: string, tables: readonly { tablename: string }[]): string[] {
  // `settled doctor --store` of 0.2.0 made tables if it could make no schema, and left them if it was killed.
  const names = tables.map(({ tablename }) => tablename).filter((table) => !table.startsWith('settled_probe_'));
  if (names.length === 0 || names.includes('migration')) return names;
  throw terminalFault(
    'store_foreign',
    `${name} holds tables of another program (${names.slice(0, 3).join(', ')}). Give settled a database of its own.`,
  );
}

type Run = (sql: string, values?: readonly unknown[]) => Promise<unknown[]>;

/** Runs `work` in one transaction on a separate connection, one replica at a time. */
export async function alone<T>(servers: Servers, work: (run: Run) => Promise<T>): Promise<T> {
  let client: ServerConnection | null = null;
  try {
    const opened = await servers.connect({ query_timeout: MIGRATION_TIMEOUT_MS });
    client = opened;
    await opened.query(beginDurable(servers));
    await opened.query(
      `SET LOCAL statement_timeout = ${MIGRATION_TIMEOUT_MS}; SET LOCAL lock_timeout = ${MIGRATION_TIMEOUT_MS}`,
    );
    await opened.query('SELECT pg_advisory_xact_lock($1)', [TURNS.open]);
    await opened.query(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
    const value = await work(async (sql, values) => {
      try {
        return (await opened.query(sql, values as unknown[])).rows;
      } catch (error) {
        noteStatement(error, sql);
        throw error;
      }
    });
    await opened.query('COMMIT');
    return value;
  } catch (error) {
    throw storeFault(error, servers.name);
  } finally {
    await client?.end().catch(() => {});
  }
}

type InstanceOptions = Omit<KeysGiven, 'keyPlaces'> & {
  nowMs: number;
  /** The id of the instance, for a database that is made now. */
  newInstanceId: string;
  /** Treats the database as a copy that replaced another; nothing in it says so. */
  isRestored?: boolean;
};

const KEY_PLACES = { current: 'SETTLED_SECRETS_KEY', older: 'SETTLED_SECRETS_KEY_PREVIOUS' };

type Row = KeysNoted & { instanceId: string; restoredFromMs: number | null; moving: string | null };

const SELECT = statement(`
  SELECT instance_id AS instanceId, secrets_key_id AS secretsKeyId, secrets_key_others AS otherKeyIds,
    restored_from_ms AS restoredFromMs, moving FROM instance FOR UPDATE`);
const INSERT = statement(`
  INSERT INTO instance (one, instance_id, secrets_key_id, created_at_ms, alive_at_ms)
  VALUES (1, @newInstanceId, @secretsKeyId, @nowMs, @nowMs) ON CONFLICT DO NOTHING`);
const NAME_KEYS = statement('UPDATE instance SET secrets_key_id = @first, secrets_key_others = @others');
// The generation comes from the time, so that a copy restored twice gets two different ones.
const PUT_TO_USE = statement(`
  UPDATE instance SET generation = greatest(generation + 1, @nowMs::bigint / 1000),
    restored_from_ms = least(restored_from_ms, alive_at_ms)
  RETURNING restored_from_ms AS restoredFromMs`);

/**
 * Reads the instance row, or writes it if the database is new. Refuses a database whose secrets cannot be opened. The
 * row names a key before any secret is sealed under it.
 */
export function* openInstance(tx: Transaction, options: InstanceOptions): Work<Instance & { created: boolean }> {
  const { nowMs, isRestored = false } = options;
  const row = yield* tx.one<Row>(SELECT);
  if (row === undefined) {
    if (isRestored) throw nothingRestored(options.name);
    // Another replica has just begun on the new database.
    if ((yield* tx.run(INSERT, options)) === 0) return yield* openInstance(tx, options);
    const { newInstanceId: instanceId, secretsKeyId } = options;
    return { instanceId, secretsKeyIds: [secretsKeyId], restoredFromMs: null, created: true };
  }
  if (row.moving !== null) throw incomplete(options.name, row.moving);
  const secretsKeyIds = keysInUse({ ...options, keyPlaces: KEY_PLACES }, row);
  const [first, ...others] = secretsKeyIds;
  yield* tx.run(NAME_KEYS, { first, others: others.join(' ') });
  const restored = isRestored ? yield* tx.one<Row>(PUT_TO_USE, { nowMs }) : row;
  const restoredFromMs = restored?.restoredFromMs ?? null;
  return { instanceId: row.instanceId, secretsKeyIds, restoredFromMs, created: false };
}

/** Two stores would settle the same orders, and this one knows only some of them. */
function incomplete(name: string, moving: string): Fault {
  return terminalFault(
    'store_incomplete',
    `${name} is a ${moving} that \`settled move\` made of a SQLite store, and is not complete. Serve the SQLite store, or give ` +
      '`settled move` again: it completes the move.',
  );
}

function nothingRestored(name: string): Fault {
  return terminalFault(
    'store_foreign',
    `${name} has no instance row, so it is no copy of a database of settled. Restore the dump, then migrate.`,
  );
}
