import type { PostgresAddress, ServerAddress } from '../address.ts';
import { DegradedError, findOut, LEFT_MS, openingOf, type Probed, type TrialOptions, tryStore } from '../trial.ts';
import { inspect, onConnection, type ServerConnection } from './connection.ts';
import { connectionFault, failedStatement, storeFault } from './faults.ts';
import { refuseOthersTables, TABLES } from './open.ts';
import { Servers } from './servers.ts';
import { openPostgresStore } from './store.ts';

type Options = TrialOptions & { address: PostgresAddress; direct: PostgresAddress | null };

const REMOVE_TRIES = 3;

/**
 * Looks at the server, the role and the way to them; then applies every migration in a schema of this run, tries verbs
 * there, and removes the schema. Faults: those of connecting.
 */
export async function probePostgres(options: Options): Promise<Probed[]> {
  const { address, clock, trustsStorage } = options;
  const reach = ({ servers, name }: PostgresAddress) => new Servers({ servers, name, clock, trustsStorage }).primary();
  const server = await reach(address);
  const direct = options.direct === null ? server : await reach(options.direct);
  const probed = await onServer(server, (client) => look(client, server.name, trustsStorage));
  probed.push(await sessions('sessions', server));
  if (direct !== server) probed.push(await sessions('direct', direct));
  const isFit = probed.every(({ verdict }) => verdict !== 'missing');
  return isFit ? [...probed, ...(await tryIn(direct, options))] : probed;
}

/** Tries verbs in a schema of this run, and removes what earlier runs left. */
async function tryIn(direct: ServerAddress, options: Options): Promise<Probed[]> {
  const { address, clock, newId, trustsStorage } = options;
  const schema = `settled_probe_${Math.floor(clock.nowMs())}_${newId().slice(-12)}`;
  const random = () => Number.parseInt(newId().slice(-12), 16) / 2 ** 48;
  const identity = { replica: schema, version: 'trial', settings: () => ({}), newId, random };
  const place = { servers: address.servers, name: address.name, direct: options.direct, trustsStorage, schema };
  const open = () => openPostgresStore({ ...openingOf(options), ...identity, ...place });
  try {
    await remove(direct, (made) => isLeft(made, clock.nowMs()));
    await onServer(direct, (client) => client.query(`CREATE SCHEMA ${schema}`));
    return await tryStore(open, options, (error) => whyOf(error, address.name));
  } finally {
    await remove(direct, (made) => made === schema);
  }
}

/** `onConnection`, with faults for errors. */
function onServer<T>(server: ServerAddress, work: (client: ServerConnection) => Promise<T>): Promise<T> {
  return onConnection(server, work).catch((error) => {
    throw storeFault(connectionFault(error, server), server.name);
  });
}

/** Names are quoted as SQL needs it. */
type Rights = {
  version: string;
  fsync: string | null;
  role: string;
  database: string;
  schema: string | null;
  isReadOnly: boolean;
  mayMakeTables: boolean | null;
  mayMakeSchemas: boolean;
};

const RIGHTS = `SELECT current_setting('server_version') AS version, current_setting('fsync', true) AS fsync,
  quote_ident(current_user) AS role, quote_ident(current_database()) AS database,
  quote_ident(current_schema()) AS schema,
  current_setting('default_transaction_read_only')::boolean AS "isReadOnly",
  has_schema_privilege(current_schema(), 'CREATE') AS "mayMakeTables",
  has_database_privilege(current_database(), 'CREATE') AS "mayMakeSchemas"`;

/** What the server says of itself, of the database and of the role. */
async function look(client: ServerConnection, name: string, trustsStorage: boolean): Promise<Probed[]> {
  const [rights] = (await client.query<Rights>(RIGHTS)).rows as [Rights];
  return [
    await findOut('server', async () => {
      await inspect(client, name, { trustsStorage });
      const declared = trustsStorage ? ', declared durable' : '';
      return `PostgreSQL ${rights.version} at ${name}, fsync ${rights.fsync ?? 'not shown'}${declared}`;
    }),
    await findOut('rights', () => {
      const lacks = lacking(rights);
      if (lacks !== null) throw lacks;
      return `${rights.role} may create tables`;
    }),
    await findOut('database', async () => {
      const tables = refuseOthersTables(name, (await client.query<{ tablename: string }>(TABLES)).rows);
      return tables.includes('migration') ? "settled's" : 'empty';
    }),
  ];
}

/** What the role lacks, and what gives it; null if it lacks nothing. */
function lacking({ role, database, schema, isReadOnly, mayMakeTables, mayMakeSchemas }: Rights): Error | null {
  if (isReadOnly) {
    return new Error(
      `The database ${database} is read-only for the role. Set default_transaction_read_only = off for the role or the database.`,
    );
  }
  if (schema === null) return new Error(`No schema of the role's search_path is there. Make one that ${role} owns.`);
  if (mayMakeTables !== true) {
    return new Error(
      `The role ${role} may create no tables in the schema ${schema}. Let it own the database, or: GRANT CREATE ON SCHEMA ` +
        `${schema} TO ${role}`,
    );
  }
  if (mayMakeSchemas) return null;
  return new Error(
    `The role ${role} may create no schema, in which this command tries settled's statements. settled itself needs none. For ` +
      `the trial: GRANT CREATE ON DATABASE ${database} TO ${role}`,
  );
}

/**
 * Whether a connection keeps its session. Another connection takes the session that this one has just used: a pooler
 * that lends sessions for one transaction then gives this one a different session.
 */
function sessions(capability: 'sessions' | 'direct', server: ServerAddress): Promise<Probed> {
  const backend = async (client: ServerConnection) =>
    (await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]?.pid;
  return findOut(capability, async () => {
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
    if (capability === 'direct') {
      throw new DegradedError('SETTLED_STORE_DIRECT leads to a pooler too. Name the server itself.');
    }
    throw new DegradedError(
      'A pooler in transaction mode gives each transaction another session. Set the timeouts for the role, and name the ' +
        'server in SETTLED_STORE_DIRECT: see A pooler in docs/postgres.md.',
    );
  });
}

/** The words of the fault, and the line of the statement that failed. */
function whyOf(error: unknown, name: string): string {
  const { message } = storeFault(error, name) as Error;
  const line = failedStatement(error);
  return line === null ? message : `${message}: ${line}`;
}

/** Whether a schema was made by a run that was killed. */
function isLeft(schema: string, nowMs: number): boolean {
  const [, madeAtMs] = /^settled_probe_([0-9]+)_/.exec(schema) ?? [];
  return Number(madeAtMs) < nowMs - LEFT_MS;
}

/** Removes schemas of trials. Tries again if a connection is lost, or if an opening that was stopped is still under way. */
async function remove(server: ServerAddress, which: (schema: string) => boolean): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await onServer(server, async (client) => {
        const sql =
          "SELECT nspname::text AS schema FROM pg_catalog.pg_namespace WHERE nspname LIKE 'settled\\_probe\\_%'";
        const { rows } = await client.query<{ schema: string }>(sql);
        const made = rows.map(({ schema }) => schema).filter(which);
        for (const one of made) await client.query(`DROP SCHEMA IF EXISTS ${client.escapeIdentifier(one)} CASCADE`);
      });
      return;
    } catch (error) {
      if (tries === REMOVE_TRIES) throw error;
    }
  }
}
