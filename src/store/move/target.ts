import { Fault, terminalFault, transientFault } from '../../fault.ts';
import type { ServerConnection } from '../postgres/connection.ts';
import { confirmed, storeFault } from '../postgres/faults.ts';
import { refuseOthersTables, TABLES } from '../postgres/open.ts';
import { beginDurable } from '../postgres/transaction.ts';
import { TURNS } from '../transaction.ts';

/** The target of a move: a PostgreSQL database that no replica serves. */
export type Destination = { client: ServerConnection; name: string };

/**
 * A move may be slow and silent, and compares text: settings of a role or a database could get in the way. Without sorting,
 * the server reads a table by its index, and needs no room for a second copy of it.
 */
const SET_SESSION = `SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('statement_timeout',
    'idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout');
  SET bytea_output = hex; SET quote_all_identifiers = off; SET enable_sort = off`;
/** Refused if the role may make no tables. */
const TRY_TABLE = 'BEGIN; CREATE TABLE settled_move (n INTEGER); ROLLBACK';
/** How long the server may need to notice that a mover was killed. */
const TURN_WAIT_MS = 5_000;
const TAKE_TURN = `SET lock_timeout = ${TURN_WAIT_MS}; SELECT pg_advisory_lock(${TURNS.move}); SET lock_timeout = 0`;
/** Roles without rights to statistics see only how many standbys there are. */
const STANDBYS = `SELECT nullif(current_setting('synchronous_standby_names', true), '') AS names,
  (SELECT count(*)::int FROM pg_stat_replication) AS followers`;

/** Makes a connection fit for as long as a move takes, and keeps other movers out of the target until it ends. */
export async function prepareTarget({ client, name }: Destination): Promise<void> {
  await client.query(TRY_TABLE);
  await client.query(SET_SESSION);
  const { rows } = await client.query<{ names: string | null; followers: number }>(STANDBYS);
  const [{ names, followers }] = rows as [(typeof rows)[0]];
  if (names !== null && followers === 0) {
    // No timeout ends a commit that waits for a standby, so a move would hang silently.
    throw transientFault(
      'store_busy',
      `Commits at ${name} wait for a standby (synchronous_standby_names: ${names}), and none follows it. Start one, or take ` +
        'it out of synchronous_standby_names and reload the server.',
    );
  }
  await client.query(TAKE_TURN).catch((cause) => {
    if (cause.code !== '55P03') throw cause;
    throw terminalFault('store_in_use', `Another \`settled move\` works on ${name}. Wait for it, or stop it.`, {
      cause,
    });
  });
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
  const { client, name } = target;
  await inTransaction(target, async () => {
    // Names no key that a program holds, so a program that does not know the mark refuses the database.
    const { rowCount } = await client.query(
      `INSERT INTO instance (one, instance_id, secrets_key_id, created_at_ms, alive_at_ms, moving)
       SELECT 1, $1, '', 0, 0, 'copy' WHERE EXISTS (SELECT FROM instance) OR NOT EXISTS (SELECT FROM orders)
       ON CONFLICT (one) DO UPDATE SET moving = excluded.moving
         WHERE instance.moving IS NOT NULL AND instance.instance_id = excluded.instance_id`,
      [instanceId],
    );
    if (rowCount === 0) throw notEmpty(name);
  });
}

export function notEmpty(name: string): Fault {
  return terminalFault(
    'store_foreign',
    `${name} holds a store already, and a move needs an empty database. Name another one, or remove that one: DROP ` +
      'DATABASE, then CREATE DATABASE as docs/postgres.md says.',
  );
}

/**
 * Runs `work` in one durable transaction. A commit that a required standby did not confirm counts as failed. After a
 * failure the connection has to be closed.
 */
export async function inTransaction<T>({ client, name }: Destination, work: () => Promise<T>): Promise<T> {
  await client.query(beginDurable({}));
  const value = await work();
  await confirmed(client, name, () => client.query('COMMIT'));
  return value;
}

/**
 * Opens the target to replicas, with the source's instance row: its content is the moved store. The file is marked, so
 * nothing serves until this is done: a failure says so.
 */
export async function openTarget(target: Destination, instance: object): Promise<void> {
  const { client, name } = target;
  const columns = Object.keys(instance).map((column, at) => `${column} = $${at + 1}`);
  const opening = inTransaction(target, async () => {
    await client.query(`UPDATE instance SET ${columns.join(', ')}, moving = NULL`, Object.values(instance));
    await client.query('DROP TABLE IF EXISTS move_range');
  });
  await opening.catch((error) => {
    const fault = storeFault(error, name);
    if (!(fault instanceof Fault)) throw fault;
    const { kind, code, message, cause } = fault;
    throw new Fault(
      kind,
      code,
      `${message} The file is marked as moved, so nothing serves until the same command has completed the move.`,
      { cause },
    );
  });
}
