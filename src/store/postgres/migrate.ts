import pg from 'pg';
import { Fault } from '../../fault.ts';
import { type Applied, missingMigrations, readMigrations } from '../migrate.ts';
import { assertUsable, connectionOptions } from './connection.ts';
import { connectionFault, storeFault } from './faults.ts';
import { BEGIN_DURABLE } from './transaction.ts';

/** Carries out work in one transaction, while no other replica does so. */

/** `settled`, as the number under which replicas that start at once take turns. */
const TURN = 0x5e771ed;
/** Serving replicas are not held up for longer by a table that a migration has to wait for. */
const LOCK_TIMEOUT_MS = 5_000;
const MIGRATION_TIMEOUT_MS = 15 * 60_000;

/**
 * Brings a database to the newest schema: every numbered file of migrations/postgres that it has not seen, all in one
 * transaction, one replica at a time. Replicas of the release before go on serving meanwhile and after: docs/postgres.md
 * has the rule for what a migration may do. Returns the names of what was applied.
 */
export async function migrate(url: string, name: string): Promise<string[]> {
  const known = readMigrations('postgres');
  const turn = { turn: TURN, lockTimeoutMs: LOCK_TIMEOUT_MS, timeoutMs: MIGRATION_TIMEOUT_MS };
  return alone(url, name, turn, async (run) => {
    await refuseForeign(run, name);
    await run(
      `CREATE TABLE IF NOT EXISTS migration (
           number INTEGER PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL, expands BOOLEAN NOT NULL)`,
    );
    const applied = (await run('SELECT number, name, sha256, expands FROM migration ORDER BY number')) as Applied[];
    const missing = missingMigrations(known, applied, name);
    for (const { number, name: file, sql, sha256, expands } of missing) {
      await run(sql);
      await run('INSERT INTO migration VALUES ($1, $2, $3, $4)', [number, file, sha256, expands]);
    }
    return missing.map((migration) => migration.name);
  });
}

/** A table of ours that is another program's would be used as if it were ours. */
async function refuseForeign(run: (sql: string) => Promise<unknown[]>, name: string): Promise<void> {
  const tables = (await run('SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = current_schema()')) as {
    tablename: string;
  }[];
  const names = tables.map(({ tablename }) => tablename);
  if (names.length === 0 || names.includes('migration')) return;
  throw new Fault(
    'terminal',
    'store_foreign',
    `${name} holds tables of another program (${names.slice(0, 3).join(', ')}). Give settled a database of its own.`,
  );
}

type Run = (sql: string, values?: readonly unknown[]) => Promise<unknown[]>;
type Turn = { turn: number; lockTimeoutMs: number; timeoutMs: number };

/** Carries out work in one transaction on a connection of its own, while no other replica does so. */
async function alone<T>(
  url: string,
  name: string,
  { turn, lockTimeoutMs, timeoutMs }: Turn,
  work: (run: Run) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ ...connectionOptions(url), query_timeout: timeoutMs });
  client.on('error', () => {});
  try {
    await client.connect().catch((error) => {
      throw connectionFault(error, { url, name });
    });
    await assertUsable(client, name);
    await client.query(BEGIN_DURABLE);
    await client.query(`SET LOCAL statement_timeout = ${timeoutMs}; SET LOCAL lock_timeout = ${timeoutMs}`);
    await client.query('SELECT pg_advisory_xact_lock($1)', [turn]);
    await client.query(`SET LOCAL lock_timeout = ${lockTimeoutMs}`);
    const value = await work(async (sql, values) => (await client.query(sql, values as unknown[])).rows);
    await client.query('COMMIT');
    return value;
  } catch (error) {
    throw storeFault(error, name);
  } finally {
    await client.end().catch(() => {});
  }
}
