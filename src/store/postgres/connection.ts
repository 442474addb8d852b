import { Socket } from 'node:net';
import pg from 'pg';
import { type Fault, transientFault } from '../../fault.ts';
import type { ServerAddress } from '../address.ts';
import { notDurable } from './faults.ts';
import { lookUpServer } from './lookups.ts';
import type { Durability } from './transaction.ts';

/**
 * Limits of one call, in milliseconds: `connect` finds a connection; `lock` waits for a row that another transaction
 * holds; `statement` runs at the server; `answer` arrives here, in case the server does not run at all; `idle` ends a
 * transaction that a vanished replica left open.
 */
const TIMEOUTS = { connect: 3_000, lock: 2_000, statement: 4_000, answer: 5_000, idle: 10_000 } as const;
/** The options of every connection. */
export function connectionOptions(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: 'settled',
    connectionTimeoutMillis: TIMEOUTS.connect,
    query_timeout: TIMEOUTS.answer,
    keepAlive: true,
    types: { getTypeParser },
    stream: () => new GatheringSocket(),
  };
}

/** Set by a statement, because a pooler refuses them as connection parameters. */
const SET_TIMEOUTS = `SELECT set_config('lock_timeout', '${TIMEOUTS.lock}', false),
  set_config('statement_timeout', '${TIMEOUTS.statement}', false),
  set_config('idle_in_transaction_session_timeout', '${TIMEOUTS.idle}', false)`;

const INT8 = 20;
/** The type of `sum`. */
const NUMERIC = 1700;

/** Reads 64-bit integers as numbers: keys, times and money stay below 2^53. */
const getTypeParser: typeof pg.types.getTypeParser = ((oid: number, format: 'text' | 'binary') =>
  format !== 'binary' && (oid === INT8 || oid === NUMERIC)
    ? wholeNumber
    : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser;

function wholeNumber(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number)) throw new Error(`${text} from the database is no whole number below 2^53`);
  return number;
}

/**
 * A socket that sends everything of one turn of the event loop as one piece. `pg` corks and uncorks it around each
 * statement, and a transaction sends several at once. This takes an eighth off the processor time of settlements.
 */
class GatheringSocket extends Socket {
  #isGathering = false;

  /** `pg` passes a port and a host, or the path of a socket. */
  override connect(...to: readonly unknown[]): this {
    const [place, host] = to as [number, string] | [string];
    if (typeof place === 'string' || host === undefined) return super.connect(place as string);
    return super.connect({ port: place, host, lookup: lookUpServer });
  }

  override cork(): void {
    if (!this.#isGathering) super.cork();
  }

  override uncork(): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    process.nextTick(() => {
      this.#isGathering = false;
      super.uncork();
    });
  }
}

/** A connection that knows its server. */
export class ServerConnection extends pg.Client {
  readonly server: ServerAddress;

  constructor(server: ServerAddress, config: pg.ClientConfig = {}) {
    super({ ...connectionOptions(server.url), ...config });
    this.server = server;
    // A connection that is lost while idle is replaced when one is needed.
    this.on('error', () => {});
  }

  /** Drops the connection without a goodbye, which its server may never answer. */
  cut(): void {
    (this as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  }
}

/** Sent on every new connection. A standby has replayed its log up to `logEnd`; a primary has written up to it. */
const INSPECT = `SELECT current_setting('fsync', true) AS fsync, current_setting('server_version_num')::int AS version,
  current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS "isStandby",
  (SELECT system_identifier::text FROM pg_control_system()) AS cluster, pg_postmaster_start_time()::text AS "startedAt",
  CASE WHEN NOT pg_is_in_recovery() THEN substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END AS timeline,
  (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END - '0/0')::text AS "logEnd",
  (SELECT substring(obj_description(to_regclass('instance'), 'pg_class')
      FROM '^settled: replaced by timeline ([0-9]+) of cluster ' || system_identifier || '$')
    FROM pg_control_system()) AS "supersededBy",
  nullif(current_setting('synchronous_standby_names', true), '') AS standbys`;
const VERSION_MIN = 140_000;

type ServerAnswer = {
  fsync: string | null;
  version: number;
  encoding: string;
  isStandby: boolean;
  cluster: string;
  startedAt: string;
  timeline: string | null;
  logEnd: string | null;
  supersededBy: string | null;
  standbys: string | null;
};

/** What a server said about itself. */
export type Inspected = {
  isStandby: boolean;
  /** Equal for a primary and its standbys. */
  cluster: string;
  /** When this server started, to the microsecond: unique within a cluster. */
  startedAt: string;
  /** For a primary: rises with each promotion. A standby does not say it. */
  timeline: number | null;
  /** In bytes since the beginning of the log. */
  logEnd: number | null;
  /** The timeline of the server that replaced this one, as a replica marked in its database; null without a mark. */
  supersededBy: number | null;
  /** The standbys that its commits wait for (`synchronous_standby_names`); null if they wait for none. */
  standbys: string | null;
};

/**
 * Throws if a connection must not be used, because its server is a standby, is too old, or would acknowledge commits
 * that a crash undoes. Sets the timeouts of the connection; each transaction sets `synchronous_commit`. All faults are
 * transient: while settled serves, another server may take over the address, and no event is given up for that.
 */
export async function inspect(
  client: pg.ClientBase,
  name: string,
  { acceptsStandby = false, trustsStorage = false }: Durability & { acceptsStandby?: boolean } = {},
): Promise<Inspected> {
  void client.query(SET_TIMEOUTS).catch(() => {});
  const found = (await client.query<ServerAnswer>(INSPECT)).rows[0] as ServerAnswer;
  const refusal = refusalOf(found, name, { acceptsStandby, trustsStorage });
  if (refusal !== null) throw refusal;
  const { isStandby, cluster, startedAt, timeline, logEnd, supersededBy, standbys } = found;
  return {
    isStandby,
    cluster,
    startedAt,
    // The first eight digits of a log file's name, which are hexadecimal.
    timeline: timeline === null ? null : Number.parseInt(timeline, 16),
    logEnd: logEnd === null ? null : Number(logEnd),
    supersededBy: supersededBy === null || supersededBy === '' ? null : Number(supersededBy),
    standbys,
  };
}

/** Why settled does not use a server; null if it does. */
function refusalOf(
  { isStandby, version, encoding, fsync }: ServerAnswer,
  name: string,
  { acceptsStandby, trustsStorage }: Durability & { acceptsStandby: boolean },
): Fault | null {
  const unfit = (what: string) => transientFault('configuration_invalid', `${name} ${what}`);
  if (isStandby && !acceptsStandby) {
    return transientFault(
      'store_unwritable',
      `${name} is a standby, which cannot be written. Name the primary, or all servers of which one is the primary.`,
    );
  }
  if (version < VERSION_MIN) {
    return unfit(`runs PostgreSQL ${Math.floor(version / 10_000)}; settled needs 14 or later.`);
  }
  if (encoding !== 'UTF8') return unfit(`is encoded as ${encoding}. Make a database with the encoding UTF8.`);
  return fsync === 'off' && trustsStorage !== true ? notDurable(name) : null;
}

/** Whether two names lead to the same server. */
export function isSameServer(one: Inspected, other: Inspected): boolean {
  return one.cluster === other.cluster && one.startedAt === other.startedAt;
}

const CLUSTER = 'SELECT system_identifier::text AS cluster FROM pg_control_system()';
const END_OTHERS = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
    AND application_name = current_setting('application_name')`;

/** Asks a server what it is, on a separate connection. A standby may answer too. */
export function ask(server: ServerAddress, durability: Durability): Promise<Inspected> {
  return onConnection(server, (client) => inspect(client, server.name, { ...durability, acceptsStandby: true }));
}

/**
 * Marks a server's database as replaced by another server, on this timeline, and ends all replicas' connections to it:
 * each new one sees the mark. The mark is a comment on a table that settled's role owns: only superusers may give a
 * database a setting of our own (PostgreSQL, section 20.16). It names the cluster, because dumps contain it.
 */
export function markReplaced(server: ServerAddress, timeline: number): Promise<void> {
  return onConnection(server, async (client) => {
    const { cluster } = (await client.query<Pick<ServerAnswer, 'cluster'>>(CLUSTER)).rows[0] as ServerAnswer;
    await client.query(setMark(`'settled: replaced by timeline ${timeline} of cluster ${cluster}'`));
    await client.query(END_OTHERS);
  });
}

/** Removes the mark of `markReplaced`. */
export function unmarkReplaced(server: ServerAddress): Promise<void> {
  return onConnection(server, async (client) => void (await client.query(setMark('NULL'))));
}

/** The standby that it would wait for follows another primary now. */
function setMark(mark: string): string {
  return `BEGIN; SET LOCAL synchronous_commit = local; SET LOCAL lock_timeout = 2000; COMMENT ON TABLE instance IS ${mark}; COMMIT`;
}

/** Runs `work` on a separate connection, and does not wait for that to close. */
export async function onConnection<T>(
  server: ServerAddress,
  work: (client: ServerConnection) => Promise<T>,
): Promise<T> {
  const client = new ServerConnection(server);
  try {
    await client.connect();
    return await work(client);
  } finally {
    client.end().catch(() => {});
  }
}
