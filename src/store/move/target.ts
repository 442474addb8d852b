import { DatabaseError } from 'pg';
import { Fault, terminalFault, transientFault } from '../../fault.ts';
import type { Clock } from '../../work/clock.ts';
import type { PostgresAddress } from '../address.ts';
import type { ServerConnection } from '../postgres/connection.ts';
import { isWarning, type Notice, storeFault, unconfirmed } from '../postgres/faults.ts';
import { refuseOthersTables, TABLES } from '../postgres/open.ts';
import { Servers } from '../postgres/servers.ts';
import { beginDurable } from '../postgres/transaction.ts';
import { TURNS } from '../transaction.ts';

/** The target of a move: a PostgreSQL database that no replica serves. */
export type Destination = {
  client: ServerConnection;
  name: string;
  /** The server's warnings since the transaction began. */
  warnings: Notice[];
};

/**
 * A move may be slow and silent, and compares text: settings of a role or a database could get in the way. Without sorting,
 * the server reads a table by its index, and needs no room for a second copy of it.
 */
const SET_SESSION = `SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('statement_timeout', 'lock_timeout',
    'idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout');
  SET bytea_output = hex; SET quote_all_identifiers = off; SET enable_sort = off`;

/** Connects for as long as a move takes. Faults: those of `inspect`, `store_busy`, `store_unwritable`. */
export async function connectTarget({ to, clock }: { to: PostgresAddress; clock: Clock }): Promise<Destination> {
  const { name } = to;
  const warnings: Notice[] = [];
  let client: ServerConnection | null = null;
  try {
    client = await new Servers({ ...to, clock }).connect({ query_timeout: 0 });
    client.on('notice', (notice) => void (isWarning(notice) && warnings.push(notice)));
    await refuseUnfit(client, name);
    await client.query(SET_SESSION);
    return { client, name, warnings };
  } catch (error) {
    await client?.end().catch(() => {});
    const fault = storeFault(error, name);
    if (!(fault instanceof Fault)) throw fault;
    // Faults of connecting name the setting of the store's address. Here that setting names the SQLite file.
    const message = fault.message.replaceAll('in SETTLED_STORE', 'in the address given to `settled move`');
    throw new Fault(fault.kind, fault.code, message, { cause: fault.cause });
  }
}

/** Roles without rights to statistics see only how many standbys there are. */
const FITNESS = `SELECT nullif(current_setting('synchronous_standby_names', true), '') AS names,
  (SELECT count(*)::int FROM pg_stat_replication) AS followers,
  has_schema_privilege(current_schema(), 'CREATE') AS "mayCreate"`;

async function refuseUnfit(client: ServerConnection, name: string): Promise<void> {
  const { rows } = await client.query<{ names: string | null; followers: number; mayCreate: boolean }>(FITNESS);
  const [{ names, followers, mayCreate }] = rows as [(typeof rows)[0]];
  if (!mayCreate) {
    throw terminalFault(
      'store_unwritable',
      `The role may create no tables in ${name}. Let it own the database, as docs/postgres.md says.`,
    );
  }
  if (names === null || followers > 0) return;
  // No timeout ends a commit that waits for a standby, so a move would hang silently.
  throw transientFault(
    'store_busy',
    `Commits at ${name} wait for a standby (synchronous_standby_names: ${names}), and none follows it. Start one, or take it ` +
      'out of synchronous_standby_names and reload the server.',
  );
}

/** How long the server may need to notice that a mover was killed. */
const TURN_WAIT_MS = 5_000;

/** Keeps other movers out of the target until the connection ends. */
export async function takeTurn({ client, name }: Destination): Promise<void> {
  try {
    await client.query(
      `SET lock_timeout = ${TURN_WAIT_MS}; SELECT pg_advisory_lock(${TURNS.move}); SET lock_timeout = 0`,
    );
  } catch (error) {
    if (!(error instanceof DatabaseError) || error.code !== '55P03') throw error;
    throw terminalFault('store_in_use', `Another \`settled move\` works on ${name}. Wait for it, or stop it.`, {
      cause: error,
    });
  }
}

/** What the target has; `store`: one that replicas may serve. */
export type Holds = { what: 'nothing' | 'copy' | 'store'; instanceId: string | null };

/** Looks what the target has. Refuses tables of another program: `store_foreign`. */
export async function lookInto({ client, name }: Destination): Promise<Holds> {
  const tables = refuseOthersTables(name, (await client.query<{ tablename: string }>(TABLES)).rows);
  const [found] = tables.includes('instance') ? (await client.query(INSTANCE)).rows : [];
  if (found === undefined) return { what: 'nothing', instanceId: null };
  return { what: found.moving === null ? 'store' : 'copy', instanceId: found.instanceId };
}

// A database of an earlier settled has no such column.
const INSTANCE = `SELECT instance_id AS "instanceId", to_jsonb(instance) ->> 'moving' AS moving FROM instance`;

/** Marks the target as an incomplete copy, so that no replica serves it. */
export async function claimTarget(target: Destination, instanceId: string): Promise<void> {
  await inTransaction(target, async ({ client }) => {
    // Names no key that a program holds, so a program that does not know the mark refuses the database.
    const { rowCount } = await client.query(
      `INSERT INTO instance (one, instance_id, secrets_key_id, created_at_ms, alive_at_ms, moving)
       SELECT 1, $1, '', 0, 0, 'copy' WHERE EXISTS (SELECT FROM instance) OR NOT EXISTS (SELECT FROM orders)
       ON CONFLICT (one) DO UPDATE SET moving = excluded.moving
         WHERE instance.moving IS NOT NULL AND instance.instance_id = excluded.instance_id`,
      [instanceId],
    );
    if (rowCount === 0) throw notEmpty(target.name);
  });
}

export function notEmpty(name: string): Fault {
  return terminalFault(
    'store_foreign',
    `${name} holds a store already, and a move needs an empty database. Name another one, or remove that one: DROP ` +
      'DATABASE, then CREATE DATABASE as docs/postgres.md says.',
  );
}

/** Runs `work` in one durable transaction. A commit that a required standby did not confirm counts as failed. */
export async function inTransaction<T>(target: Destination, work: (target: Destination) => Promise<T>): Promise<T> {
  const { client, name } = target;
  try {
    await client.query(beginDurable({}));
    const value = await work(target);
    target.warnings.length = 0;
    await client.query('COMMIT');
    const [warning] = target.warnings;
    if (warning !== undefined) throw unconfirmed(name, warning);
    return value;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  }
}

/**
 * Opens the target to replicas, with the source's instance row: its content is the moved store. The file is marked, so
 * nothing serves until this is done: a failure says so.
 */
export async function openTarget(target: Destination, instance: object): Promise<void> {
  const columns = Object.keys(instance).map((column, at) => `${column} = $${at + 1}`);
  try {
    await inTransaction(target, async ({ client }) => {
      await client.query(`UPDATE instance SET ${columns.join(', ')}, moving = NULL`, Object.values(instance));
      await client.query('DROP TABLE IF EXISTS move_range');
    });
  } catch (error) {
    const fault = storeFault(error, target.name);
    if (!(fault instanceof Fault)) throw fault;
    throw new Fault(
      fault.kind,
      fault.code,
      `${fault.message} The file is marked as moved, so nothing serves until the same command has completed the move.`,
      { cause: error },
    );
  }
}
