import type pg from 'pg';
import { Fault } from '../../fault.ts';
import type { Clock } from '../../work/clock.ts';
import type { PostgresAddress } from '../address.ts';
import type { ServerConnection } from '../postgres/connection.ts';
import { isWarning, type Notice, storeFault, unconfirmed } from '../postgres/faults.ts';
import { Servers } from '../postgres/servers.ts';
import { beginDurable } from '../postgres/transaction.ts';
import { copyIn, copyOut } from './copying.ts';
import type { Lines } from './source.ts';
import type { MovedTable, TargetColumn } from './tables.ts';

/** The target of a move: a PostgreSQL database that settled has migrated and no replica serves yet. */
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

/** The advisory lock of the one mover (`settled move`). */
const MOVER = 0x5e7710e;

/** A move may be slow and silent, and compares text. Settings of a role or a database could get in the way. */
const SET_SESSION = `SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('statement_timeout', 'lock_timeout',
    'idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout');
  SET bytea_output = hex; SET quote_all_identifiers = off`;

/** Connects for as long as a move takes. Faults: those of `inspect`, `store_busy`. */
export async function connectTarget({ to, clock }: { to: PostgresAddress; clock: Clock }): Promise<Destination> {
  const { name } = to;
  const warnings: Notice[] = [];
  let client: ServerConnection | null = null;
  try {
    client = await new Servers({ ...to, clock }).connect({ query_timeout: 0 });
    client.on('notice', (notice) => void (isWarning(notice) && warnings.push(notice)));
    await refuseWithoutStandby(client, name);
    await client.query(SET_SESSION);
    return { client, name, warnings };
  } catch (error) {
    await client?.end().catch(() => {});
    throw ofTarget(storeFault(error, name));
  }
}

/** Roles without rights to statistics see only how many standbys there are. */
const STANDBYS = `SELECT nullif(current_setting('synchronous_standby_names', true), '') AS names,
  (SELECT count(*)::int FROM pg_stat_replication) AS followers`;

/** No timeout ends a commit that waits for a standby, so a move would hang silently. */
async function refuseWithoutStandby(client: pg.Client, name: string): Promise<void> {
  const { names, followers } = (await client.query(STANDBYS)).rows[0] as { names: string | null; followers: number };
  if (names === null || followers > 0) return;
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
  return new Fault(kind, code, message.replaceAll('in SETTLED_STORE', 'in the address given to `settled move`'), {
    cause,
  });
}

/** Takes the mover's lock, until the connection ends; false if another mover has it. */
export async function takeTurn({ client }: Destination): Promise<boolean> {
  const { rows } = await client.query<{ isMine: boolean }>(`SELECT pg_try_advisory_lock(${MOVER}) AS "isMine"`);
  return rows[0]?.isMine === true;
}

/** `tables`: of any program. `instance`: null if settled has never used the database. */
export type DestinationState = {
  tables: string[];
  instance: { instanceId: string; moving: 'copy' | 'rehearsal' | null } | null;
};

export async function lookAtTarget({ client }: Destination): Promise<DestinationState> {
  const { rows } = await client.query<{ tablename: string }>(
    'SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = current_schema() ORDER BY tablename',
  );
  const tables = rows.map(({ tablename }) => tablename);
  if (!tables.includes('instance')) return { tables, instance: null };
  const found = await client.query<{ instanceId: string; moving: 'copy' | 'rehearsal' | null }>(
    `SELECT instance_id AS "instanceId", to_jsonb(instance) ->> 'moving' AS moving FROM instance`,
  );
  return { tables, instance: found.rows[0] ?? null };
}

/** Marks the target as a copy in progress, so that no replica serves it, and adds a table for its ranges. */
export async function claimTarget(
  target: Destination,
  instanceId: string,
  moving: 'copy' | 'rehearsal',
): Promise<void> {
  await inTransaction(target, async ({ client }) => {
    // Names no key that a program holds, so a program that does not know the mark refuses the database.
    const { rowCount } = await client.query(
      `INSERT INTO instance (one, instance_id, secrets_key_id, created_at_ms, alive_at_ms, moving)
       VALUES (1, $1, '', 0, 0, $2) ON CONFLICT (one) DO UPDATE SET moving = excluded.moving
         WHERE instance.moving IS NOT NULL AND instance.instance_id = excluded.instance_id`,
      [instanceId, moving],
    );
    if (rowCount === 0) throw notEmpty(target.name);
    await client.query(
      `CREATE TABLE IF NOT EXISTS move_range (
         table_name TEXT NOT NULL, number BIGINT NOT NULL, rows BIGINT NOT NULL, digest BYTEA NOT NULL,
         PRIMARY KEY (table_name, number))`,
    );
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

/** What is stored about a range that is equal in source and target. */
export type RangeDigest = Pick<Lines, 'rows' | 'digest'>;

/** The ranges of the copy, by table and number. */
export type Copied = Map<string, Map<number, RangeDigest>>;

export async function copiedRanges({ client }: Destination): Promise<Copied> {
  const { rows } = await client.query<{ table_name: string; number: number; rows: number; digest: Buffer }>(
    'SELECT table_name, number, rows, digest FROM move_range',
  );
  const copied: Copied = new Map();
  for (const { table_name, number, ...range } of rows) {
    copied.set(table_name, (copied.get(table_name) ?? new Map()).set(number, range));
  }
  return copied;
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
    throw storeFault(error, name);
  }
}

const FOREIGN_KEYS = `SELECT conrelid::regclass::text AS "table", conname AS name FROM pg_constraint
  WHERE contype = 'f' AND NOT condeferrable AND connamespace = current_schema()::regnamespace`;

/**
 * Defers foreign keys within the transaction, so that rows can be replaced that others refer to. The schema is as
 * before when the transaction commits.
 */
export async function withKeysDeferred<T>({ client }: Destination, work: () => Promise<T>): Promise<T> {
  const { rows } = await client.query<{ table: string; name: string }>(FOREIGN_KEYS);
  const alter = (how: string) =>
    rows.map(({ table, name }) => `ALTER TABLE ${table} ALTER CONSTRAINT ${name} ${how}`).join('; ');
  await client.query(alter('DEFERRABLE INITIALLY DEFERRED'));
  const value = await work();
  await client.query('SET CONSTRAINTS ALL IMMEDIATE');
  await client.query(alter('NOT DEFERRABLE'));
  return value;
}

/** The rows of a range in the target. */
export function targetRange({ client }: Destination, table: MovedTable, number: number): Promise<Lines> {
  const { name, lead, width, keyColumns } = table;
  const within = lead === null ? '' : `WHERE ${lead} >= ${number * width} AND ${lead} < ${(number + 1) * width}`;
  const order = keyColumns.map(({ name: key, type }) => (type === 'text' ? `${key} COLLATE "C"` : key)).join(', ');
  return copyOut(client, `COPY (SELECT ${listed(table)} FROM ${name} ${within} ORDER BY ${order}) TO STDOUT`);
}

export function addRows({ client }: Destination, table: MovedTable, bytes: Buffer): Promise<void> {
  return copyIn(client, `COPY ${table.name} (${listed(table)}) FROM STDIN`, bytes);
}

/** Removes the rows whose keys begin with one of these values, given in COPY's form. */
export async function removeRows({ client }: Destination, table: MovedTable, leads: readonly string[]): Promise<void> {
  const { name, type } = table.keyColumns[0] as MovedTable['keyColumns'][number];
  const values = leads.map((lead) => lead.replaceAll('\\\\', '\\'));
  await client.query(`DELETE FROM ${table.name} WHERE ${name} = ANY($1::${type}[])`, [values]);
}

function listed({ columns }: MovedTable): string {
  return columns.map(({ name }) => name).join(', ');
}

/** Records that a range is equal in source and target. */
export async function noteCopied(
  { client }: Destination,
  table: MovedTable,
  number: number,
  compared: RangeDigest,
): Promise<void> {
  await client.query(
    `INSERT INTO move_range (table_name, number, rows, digest) VALUES ($1, $2, $3, $4)
     ON CONFLICT (table_name, number) DO UPDATE SET rows = excluded.rows, digest = excluded.digest`,
    [table.name, number, compared.rows, compared.digest],
  );
}

/** Deletes that record, so that the range is compared again. */
export async function forgetCopied({ client }: Destination, table: string, number: number): Promise<void> {
  await client.query('DELETE FROM move_range WHERE table_name = $1 AND number = $2', [table, number]);
}

/** Makes new rows continue after the source's highest keys, and counts the rows. */
export async function continueNumbers(
  { client }: Destination,
  tables: readonly MovedTable[],
  highestKey: (table: MovedTable) => number,
): Promise<void> {
  for (const table of tables.filter(({ hasSequence }) => hasSequence)) {
    const high = highestKey(table);
    await client.query(`SELECT setval(pg_get_serial_sequence($1, $2), $3, $4)`, [
      table.name,
      table.lead,
      Math.max(1, high),
      high > 0,
    ]);
  }
  for (const table of ['inbox', 'outbox']) {
    await client.query(
      `UPDATE counted SET to_key = (SELECT coalesce(max(key), 0) FROM ${table}),
         n = (SELECT coalesce(sum(rows), 0) FROM move_range WHERE table_name = name) WHERE name = $1`,
      [table],
    );
  }
}

/** Opens the target to replicas: its content is the moved store. */
export async function openTarget(target: Destination, instance: MovedInstance): Promise<void> {
  const columns = Object.keys(instance);
  await inTransaction(target, async ({ client }) => {
    await client.query(
      `UPDATE instance SET ${columns.map((column, at) => `${column} = $${at + 1}`).join(', ')}, moving = NULL
       WHERE moving IS NOT NULL`,
      Object.values(instance),
    );
    await client.query('DROP TABLE IF EXISTS move_range');
    // Writes something each time, so that after an unconfirmed commit a second one waits for the standby as well.
    await client.query('UPDATE instance SET one = one');
  });
}
