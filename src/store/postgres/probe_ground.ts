import type { PostgresAddress, ServerAddress } from '../address.ts';
import type { Probed, ProbeOptions } from '../probed.ts';
import { ServerConnection } from './connection.ts';
import { connectionFault, storeFault } from './faults.ts';
import { Servers } from './servers.ts';

/** Tries one capability. A refused statement makes it `missing`. */
export type Probe = (ground: Ground) => Promise<Omit<Probed, 'capability'>>;

/** What probes use: connections as settled opens them, and a schema for this run. */
export type Ground = Pick<ProbeOptions, 'clock' | 'trustsStorage'> & {
  /** Two connections by the address of the store, and one to the server behind a pooler. */
  readonly one: ServerConnection;
  readonly other: ServerConnection;
  readonly direct: ServerConnection;
  readonly hasDirect: boolean;
  /** Whether the address of the store names other servers too. */
  readonly isOneOfSeveral: boolean;
  /** Opens a further connection, which closes with the others. */
  connect(way: 'store' | 'direct'): Promise<ServerConnection>;
  /** The key of an unused advisory lock. */
  newLock(): number;
  /** The prefix of all names that this run makes. */
  readonly name: string;
  /** The table that all connections see; null until it is made. */
  table: string | null;
  /** Whether a connection keeps its session from one transaction to the next. Tested once. */
  keepsSessions(way: 'store' | 'direct'): Promise<boolean>;
  /** Ends what the connections are doing, and replaces lost ones. */
  reset(): Promise<void>;
  close(): Promise<void>;
};

/** Begins a transaction as settled does. Its timeouts end with it. */
export const BEGIN = `BEGIN ISOLATION LEVEL READ COMMITTED;
  SET LOCAL statement_timeout = 4000; SET LOCAL lock_timeout = 2000`;

/** What a run has made and not removed: a schema, or tables if the role may make no schema. */
export const LEFT_BEHIND = `
  SELECT nspname AS name, format('DROP SCHEMA IF EXISTS %I CASCADE', nspname) AS removal FROM pg_catalog.pg_namespace
  WHERE nspname LIKE 'settled\\_probe\\_%'
  UNION ALL
  SELECT tablename, format('DROP TABLE IF EXISTS %I.%I', schemaname, tablename) FROM pg_catalog.pg_tables
  WHERE schemaname = current_schema() AND tablename LIKE 'settled\\_probe\\_%'`;

type Options = ProbeOptions & { address: PostgresAddress; direct: PostgresAddress };

/** Connects. Faults: those of connecting. */
export async function openGround(options: Options): Promise<Ground> {
  const { clock, newId, trustsStorage, address } = options;
  const servers = {
    store: await new Servers({ ...address, clock, trustsStorage }).primary(),
    direct: await new Servers({ ...options.direct, clock, trustsStorage }).primary(),
  };
  const open = new Set<ServerConnection>();
  const connect = async (way: 'store' | 'direct') => {
    const client = await connectTo(servers[way]);
    open.add(client);
    return client;
  };
  const close = async () => {
    await Promise.all([...open].map(cut));
  };
  const kept = new Map<'store' | 'direct', Promise<boolean>>();
  try {
    const ground: { -readonly [Key in keyof Ground]: Ground[Key] } = {
      clock,
      trustsStorage,
      one: await connect('store'),
      other: await connect('store'),
      direct: await connect('direct'),
      hasDirect: servers.direct.url !== servers.store.url,
      isOneOfSeveral: address.servers.length > 1,
      connect,
      name: `settled_probe_${Math.floor(clock.nowMs())}_${newId().slice(-12)}`,
      newLock: () => -1 - Number.parseInt(newId().slice(-12), 16),
      table: null,
      keepsSessions: (way) => {
        const answer = kept.get(way) ?? keepsSession(() => connect(way));
        kept.set(way, answer);
        return answer;
      },
      reset: async () => {
        ground.one = await fresh(ground.one, () => connect('store'));
        ground.other = await fresh(ground.other, () => connect('store'));
        ground.direct = await fresh(ground.direct, () => connect('direct'));
      },
      close,
    };
    return ground;
  } catch (error) {
    await close();
    throw error;
  }
}

async function connectTo(server: ServerAddress): Promise<ServerConnection> {
  try {
    const client = new ServerConnection(server);
    await client.connect();
    return client;
  } catch (error) {
    throw storeFault(connectionFault(error, server), server.name);
  }
}

/** The same connection without its open transaction; a new one if it does not answer. */
async function fresh(client: ServerConnection, connect: () => Promise<ServerConnection>): Promise<ServerConnection> {
  try {
    await client.query('ROLLBACK');
    return client;
  } catch {
    await cut(client);
    return connect();
  }
}

/** Closes a connection, at once if the server does not answer. */
async function cut(client: ServerConnection): Promise<void> {
  const ended = client.end().catch(() => {});
  await Promise.race([ended, new Promise<void>((resolve) => setImmediate(resolve))]);
  client.cut();
}

async function backend(client: ServerConnection): Promise<number> {
  return (await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]?.pid as number;
}

/**
 * Makes another connection take the session that this one has just used. A pooler that lends sessions for one
 * transaction then gives this one a different session.
 */
async function keepsSession(connect: () => Promise<ServerConnection>): Promise<boolean> {
  const [mine, others] = [await connect(), await connect()];
  const before = await backend(mine);
  await others.query('BEGIN');
  const after = await backend(mine);
  await others.query('ROLLBACK');
  await Promise.all([cut(mine), cut(others)]);
  return before === after;
}
