import { createHash } from 'node:crypto';
import pg, { DatabaseError } from 'pg';
import { Fault } from '../../fault.ts';
import type { Clock } from '../../work/clock.ts';
import type { PostgresAddress } from '../address.ts';
import type { ServerConnection } from '../postgres/connection.ts';
import { isWarning, type Notice, storeFault, unconfirmed } from '../postgres/faults.ts';
import { Servers } from '../postgres/servers.ts';
import { beginDurable } from '../postgres/transaction.ts';
import type { MovedTable, TargetColumn } from './tables.ts';

/** The target of a move: a PostgreSQL database that no replica serves. */
export type Destination = {
  client: pg.Client;
  name: string;
  /** The server's warnings since the transaction began. */
  warnings: Notice[];
};

/** The source's instance row, in the target. */
export type MovedInstance = {
  instance_id: string;
  secrets_key_id: string;
  secrets_key_others: string;
  created_at_ms: number;
  alive_at_ms: number;
  generation: number;
  restored_from_ms: number | null;
};

/** A move may be slow and silent, and compares text. Settings of a role or a database could get in the way. */
const SET_SESSION = `SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('statement_timeout', 'lock_timeout',
    'idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout');
  SET bytea_output = hex; SET quote_all_identifiers = off`;

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
    throw ofTarget(storeFault(error, name));
  }
}

/** Roles without rights to statistics see only how many standbys there are. */
const FITNESS = `SELECT nullif(current_setting('synchronous_standby_names', true), '') AS names,
  (SELECT count(*)::int FROM pg_stat_replication) AS followers,
  has_schema_privilege(current_schema(), 'CREATE') AS "mayCreate"`;

async function refuseUnfit(client: pg.Client, name: string): Promise<void> {
  const { rows } = await client.query<{ names: string | null; followers: number; mayCreate: boolean }>(FITNESS);
  const [{ names, followers, mayCreate }] = rows as [(typeof rows)[0]];
  if (!mayCreate) {
    throw new Fault(
      'terminal',
      'store_unwritable',
      `The role may create no tables in ${name}. Let it own the database, as docs/postgres.md says.`,
    );
  }
  if (names === null || followers > 0) return;
  // No timeout ends a commit that waits for a standby, so a move would hang silently.
  throw new Fault(
    'transient',
    'store_busy',
    `Commits at ${name} wait for a standby (synchronous_standby_names: ${names}), and none follows it. Start one, or take it ` +
      'out of synchronous_standby_names and reload the server.',
  );
}

/** Faults of connecting name the setting of the store's address. Here that setting names the SQLite file. */
function ofTarget(fault: unknown): unknown {
  if (!(fault instanceof Fault)) return fault;
  const { kind, code, message, cause } = fault;
  const said = message.replaceAll('in SETTLED_STORE', 'in the address given to `settled move`');
  return new Fault(kind, code, said, { cause });
}

/** The advisory lock of the one mover (`settled move`), and how long the server may need to notice that one was killed. */
const TURN = { lock: 0x5e7710e, waitMs: 5_000 } as const;

/** Keeps other movers out of the target until the connection ends. */
export async function takeTurn({ client, name }: Destination): Promise<void> {
  try {
    await client.query(
      `SET lock_timeout = ${TURN.waitMs}; SELECT pg_advisory_lock(${TURN.lock}); SET lock_timeout = 0`,
    );
  } catch (error) {
    if (!(error instanceof DatabaseError) || error.code !== '55P03') throw error;
    throw new Fault('terminal', 'store_in_use', `Another \`settled move\` works on ${name}. Wait for it, or stop it.`, {
      cause: error,
    });
  }
}

/** `tables`: of any program. `instance`: null if settled has never used the database. */
export type DestinationState = { tables: string[]; instance: { instanceId: string; moving: string | null } | null };

export async function lookAtTarget({ client }: Destination): Promise<DestinationState> {
  const { rows } = await client.query<{ tablename: string }>(
    'SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = current_schema() ORDER BY tablename',
  );
  const tables = rows.map(({ tablename }) => tablename);
  if (!tables.includes('instance')) return { tables, instance: null };
  const found = await client.query<{ instanceId: string; moving: string | null }>(
    `SELECT instance_id AS "instanceId", to_jsonb(instance) ->> 'moving' AS moving FROM instance`,
  );
  return { tables, instance: found.rows[0] ?? null };
}

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
  return new Fault(
    'terminal',
    'store_foreign',
    `${name} holds a store already, and a move needs an empty database. Name another one, or remove that one: DROP ` +
      'DATABASE, then CREATE DATABASE as docs/postgres.md says.',
  );
}

export async function targetColumns({ client }: Destination): Promise<TargetColumn[]> {
  const { rows } = await client.query<TargetColumn>(
    `SELECT table_name::text AS "table", column_name::text AS name, data_type::text AS type,
       is_identity = 'YES' AS "isIdentity"
     FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position`,
  );
  return rows;
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

/** Removes what an earlier move left, and checks references at the end of each statement, which bounds the server's memory. */
export async function emptyTables({ client }: Destination, tables: readonly MovedTable[]): Promise<void> {
  await client.query(`TRUNCATE ${tables.map(({ name }) => name).join(', ')}; SET CONSTRAINTS ALL IMMEDIATE`);
}

/** The parts of `pg`'s connection that carry COPY: https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-COPY */
type Wire = { sendCopyFromChunk(bytes: Buffer): void; endCopyFrom(): void };
type Handlers = { handleCopyInResponse?: (wire: Wire) => void; handleCopyData?: (message: { chunk: Buffer }) => void };

function copy(client: pg.Client, sql: string, handlers: Handlers): Promise<void> {
  return new Promise((resolve, reject) => {
    const query = new pg.Query(sql, (error: Error | undefined) => (error ? reject(error) : resolve()));
    client.query(Object.assign(query, handlers) as unknown as pg.Submittable);
  });
}

/** The most bytes in one message. */
const MESSAGE_BYTES = 1024 * 1024;

export function addRows({ client }: Destination, table: MovedTable, bytes: Buffer): Promise<void> {
  return copy(client, `COPY ${table.name} (${listed(table)}) FROM STDIN`, {
    handleCopyInResponse: (wire) => {
      for (let at = 0; at < bytes.length; at += MESSAGE_BYTES)
        wire.sendCopyFromChunk(bytes.subarray(at, at + MESSAGE_BYTES));
      wire.endCopyFrom();
    },
  });
}

/** The SHA-256 of the rows of a range in the target, in the form in which the source gives them. */
export async function digestRange({ client }: Destination, table: MovedTable, number: number): Promise<Buffer> {
  const { name, lead, width, keyColumns } = table;
  const within = lead === null ? '' : `WHERE ${lead} >= ${number * width} AND ${lead} < ${(number + 1) * width}`;
  const order = keyColumns.map(({ name: key, type }) => (type === 'text' ? `${key} COLLATE "C"` : key)).join(', ');
  const hash = createHash('sha256');
  await copy(client, `COPY (SELECT ${listed(table)} FROM ${name} ${within} ORDER BY ${order}) TO STDOUT`, {
    handleCopyData: ({ chunk }) => void hash.update(chunk),
  });
  return hash.digest();
}

export async function countRows({ client }: Destination, { name }: MovedTable): Promise<number> {
  return (await client.query<{ n: number }>(`SELECT count(*) AS n FROM ${name}`)).rows[0]?.n ?? 0;
}

function listed({ columns }: MovedTable): string {
  return columns.map(({ name }) => name).join(', ');
}

/** Makes new rows continue after the source's highest keys, and counts the rows. */
export async function continueNumbers(
  { client }: Destination,
  tables: readonly MovedTable[],
  highestKey: (table: MovedTable) => number,
): Promise<void> {
  for (const table of tables.filter(({ hasSequence }) => hasSequence)) {
    const { name, lead } = table;
    const high = highestKey(table);
    const values = [name, lead, Math.max(1, high), high > 0];
    await client.query('SELECT setval(pg_get_serial_sequence($1, $2), $3, $4)', values);
  }
  for (const table of ['inbox', 'outbox']) {
    await client.query(
      `UPDATE counted SET to_key = (SELECT coalesce(max(key), 0) FROM ${table}), n = (SELECT count(*) FROM ${table})
       WHERE name = $1`,
      [table],
    );
  }
}

/** Opens the target to replicas: its content is the moved store. */
export async function openTarget(target: Destination, instance: MovedInstance): Promise<void> {
  const columns = Object.keys(instance);
  await inTransaction(target, async ({ client }) => {
    await client.query(
      `UPDATE instance SET ${columns.map((column, at) => `${column} = $${at + 1}`).join(', ')}, moving = NULL`,
      Object.values(instance),
    );
    await client.query('DROP TABLE IF EXISTS move_range');
  });
}
