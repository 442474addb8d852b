import { DatabaseError } from 'pg';
import type { PostgresAddress, ServerAddress } from '../address.ts';
import { DegradedError, openingOf, type TrialOptions, type Tried, trySteps, tryStore } from '../trial.ts';
import { inspect, onConnection, type ServerConnection } from './connection.ts';
import { connectionFault, failedStatement, storeFault } from './faults.ts';
import { refuseOthersTables, TABLES } from './open.ts';
import { Servers } from './servers.ts';
import { openPostgresStore } from './store.ts';

type Options = TrialOptions & { address: PostgresAddress; direct: PostgresAddress | null };

/**
 * Looks at the server, the role and the way to them; then opens a store in a schema of this run, which it removes.
 * Faults: those of connecting.
 */
export async function probePostgres(options: Options): Promise<Tried[]> {
  const { address, clock, newId, stopped, trustsStorage } = options;
  const reach = ({ servers, name }: PostgresAddress) => new Servers({ servers, name, clock, trustsStorage }).primary();
  const server = await reach(address);
  const direct = options.direct === null ? server : await reach(options.direct);
  const schema = `settled_probe_${newId().slice(-12)}`;
  const random = () => Number.parseInt(newId().slice(-12), 16) / 2 ** 48;
  const identity = { replica: schema, version: 'trial', settings: () => ({}), newId, random };
  const place = { servers: address.servers, name: address.name, direct: options.direct, trustsStorage, schema };
  const open = () => openPostgresStore({ ...openingOf(options), ...identity, ...place });
  let made: Promise<string> | null = null;
  const makeOnce = (client: ServerConnection) => {
    made = makeSchema(client, schema);
    return made;
  };
  const trying = trySteps(
    [
      ['server', () => onServer(server, (client) => look(client, trustsStorage))],
      ['rights', () => onServer(direct, makeOnce)],
      ['sessions', () => assertKeepsSession(direct)],
      ['store', () => tryStore(open, options)],
    ],
    (error) => whyOf(error, address.name),
  );
  try {
    return await Promise.race([trying, stopped]);
  } finally {
    // A trial that is stopped may still be making it, and one that got no answer may have made it.
    const [{ status }] = await Promise.allSettled([made]);
    const removed = made === null ? null : onServer(direct, (client) => client.query(unmake(schema)));
    await (status === 'fulfilled' ? removed : removed?.catch(() => {}));
  }
}

/** `onConnection`, with faults for errors. */
function onServer<T>(server: ServerAddress, work: (client: ServerConnection) => Promise<T>): Promise<T> {
  return onConnection(server, work).catch((error) => {
    throw storeFault(connectionFault(error, server), server.name);
  });
}

/** Whether a start would use the server and its database. */
async function look(client: ServerConnection, trustsStorage: boolean): Promise<string> {
  const { name } = client.server;
  await inspect(client, name, { trustsStorage });
  refuseOthersTables(name, (await client.query<{ tablename: string }>(TABLES)).rows);
  const { rows } = await client.query("SELECT current_setting('server_version') AS version");
  return `PostgreSQL ${rows[0].version} at ${name}`;
}

// For what lasts no longer than the trial, no standby is waited for.
const make = (schema: string) => `BEGIN; SET LOCAL synchronous_commit = local; CREATE SCHEMA ${schema}; COMMIT`;
const unmake = (schema: string) =>
  `BEGIN; SET LOCAL synchronous_commit = local; DROP SCHEMA IF EXISTS ${schema} CASCADE; COMMIT`;

/** Makes the schema, after a table where settled would make its own, which is not kept. */
async function makeSchema(client: ServerConnection, schema: string): Promise<string> {
  try {
    await client.query(`BEGIN; CREATE TABLE ${schema} (n INTEGER); ROLLBACK`);
    await client.query(make(schema));
    return 'may create tables and schemas';
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    throw new Error(
      `${error.message}. The role must be able to create tables, and a schema for this trial: let it own the database, as ` +
        'docs/postgres.md says, and look at its search_path and default_transaction_read_only',
    );
  }
}

/**
 * Warns of a connection that does not keep its session. Another connection takes the session that this one has just
 * used: a pooler that lends sessions for one transaction then gives this one a different session.
 */
async function assertKeepsSession(server: ServerAddress): Promise<string> {
  const backend = async (client: ServerConnection) =>
    (await client.query('SELECT pg_backend_pid() AS pid')).rows[0].pid;
  const isKept = await onServer(server, (mine) =>
    onServer(server, async (others) => {
      const before = await backend(mine);
      await others.query('BEGIN');
      const after = await backend(mine);
      await others.query('ROLLBACK');
      return before === after;
    }),
  );
  if (isKept) return 'kept between transactions';
  throw new DegradedError(
    `${server.name} is a pooler in transaction mode, which gives each transaction another session. Set the timeouts for the ` +
      'role, and name the server itself in SETTLED_STORE_DIRECT: see A pooler in docs/postgres.md.',
  );
}

/** The words of the fault, and the line of the statement that failed. */
function whyOf(error: unknown, name: string): string {
  const { message } = storeFault(error, name) as Error;
  const line = failedStatement(error);
  return line === null ? message : `${message}: ${line}`;
}
