import pg from 'pg';
import { Fault } from '../../fault.ts';
import type { Opened } from '../instance.ts';
import { connectionOptions, type Database, SET_TIMEOUTS } from './database.ts';
import { connectionFault, notDurable, storeFault } from './faults.ts';
import { type InstanceOptions, openInstance } from './instance.ts';
import { migrate } from './migrate.ts';
import { BEGIN_DURABLE, type Transaction } from './transaction.ts';

/** Tells what every connection must be before it is used, and makes it so. */
const INSPECT = `SELECT current_setting('fsync', true) AS fsync, current_setting('server_version_num')::int AS version,
  current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS "isStandby"`;
const VERSION_MIN = 140_000;

type Inspected = { fsync: string | null; version: number; encoding: string; isStandby: boolean };

/**
 * Throws where a connection must not be used: its server is a standby, too old, or would acknowledge what a crash of its
 * machine undoes. Sets the timeouts of the connection. `synchronous_commit` is each transaction's own. All faults are transient: while settled serves, another
 * server may come to answer at the same address, and no event is given up for what that server is.
 */
export async function assertUsable(client: pg.ClientBase, name: string): Promise<void> {
  void client.query(SET_TIMEOUTS).catch(() => {});
  const found = await inspect(client);
  if (found.isStandby) {
    throw new Fault(
      'transient',
      'store_unwritable',
      `${name} is a standby, which cannot be written. Name the primary, by an address that follows it.`,
    );
  }
  if (found.version < VERSION_MIN) {
    const what = `${name} runs PostgreSQL ${Math.floor(found.version / 10_000)}; settled needs 14 or later.`;
    throw new Fault('transient', 'configuration_invalid', what);
  }
  if (found.encoding !== 'UTF8') {
    const what = `${name} is encoded as ${found.encoding}. Make a database with the encoding UTF8.`;
    throw new Fault('transient', 'configuration_invalid', what);
  }
  if (found.fsync === 'off') throw notDurable(name);
}

async function inspect(client: pg.ClientBase): Promise<Inspected> {
  return (await client.query<Inspected>(INSPECT)).rows[0] as Inspected;
}

type OpenOptions = InstanceOptions & {
  /** Looked at before the instance row is: throws where the database must not be opened. */
  before?: (tx: Transaction) => Promise<void>;
};

export type OpenedDatabase = Opened & {
  /** The names of the migrations that it was brought forward with. */
  migrated: string[];
};

/** Migrates a database and reads its instance row. Faults: those of `assertUsable`, `store_foreign`, `store_newer`. */
export async function openDatabase(db: Database, url: string, options: OpenOptions): Promise<OpenedDatabase> {
  const migrated = await migrate({ alone: (turn, work) => alone(url, options.name, turn, work) }, options.name);
  const opened = await db.write(async (tx) => {
    await options.before?.(tx);
    return openInstance(tx, options);
  });
  return { ...opened, migrated };
}

export type Run = (sql: string, values?: readonly unknown[]) => Promise<unknown[]>;
export type Turn = { turn: number; lockTimeoutMs: number; timeoutMs: number };

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
