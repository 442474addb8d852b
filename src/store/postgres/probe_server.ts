import { VERSION_MIN } from './connection.ts';
import { BEGIN, type Ground, type Probe } from './probe_ground.ts';
import { WAIT_FOR_DISK, WAIT_FOR_STORAGE } from './transaction.ts';

/** What a server is and how it is configured. */

/** Leases and logs depend on the clocks. */
const SKEW_MS_SMALL = 2_000;
/** The connections of one replica, and of two during a restart: `CONNECTIONS` of the store and those in addition. */
const CONNECTIONS = { ofOne: 14, ofTwo: 28 } as const;

/** The one row of a statement. */
async function asked<Row extends object>({ one }: Pick<Ground, 'one'>, sql: string): Promise<Row> {
  return (await one.query<Row>(sql)).rows[0] as Row;
}

const version: Probe = async (ground) => {
  const { number, version: name } = await asked<{ number: number; version: string }>(
    ground,
    "SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS version",
  );
  return { verdict: number >= VERSION_MIN ? 'ok' : 'missing', found: name.split(' ', 1)[0] as string };
};

const encoding: Probe = async (ground) => {
  const sql = "SELECT current_setting('server_encoding') AS encoding";
  const { encoding: found } = await asked<{ encoding: string }>(ground, sql);
  return { verdict: found === 'UTF8' ? 'ok' : 'missing', found };
};

const primary: Probe = async (ground) => {
  const { isStandby, isReadOnly } = await asked<{ isStandby: boolean; isReadOnly: boolean }>(
    ground,
    `SELECT pg_is_in_recovery() AS "isStandby", current_setting('default_transaction_read_only')::boolean AS "isReadOnly"`,
  );
  if (isStandby) return { verdict: 'missing', found: 'a standby' };
  return isReadOnly
    ? { verdict: 'missing', found: 'read-only' }
    : { verdict: 'ok', found: ground.isOneOfSeveral ? ground.one.server.name : 'a primary' };
};

const fsync: Probe = async (ground) => {
  const sql = "SELECT current_setting('fsync', true) AS fsync";
  const { fsync: found } = await asked<{ fsync: string | null }>(ground, sql);
  if (found === null) return { verdict: 'degraded', found: 'not shown' };
  if (found === 'on') return { verdict: 'ok', found: ground.trustsStorage ? 'on, and declared' : 'on' };
  return ground.trustsStorage ? { verdict: 'ok', found: 'off, declared' } : { verdict: 'missing', found: 'off' };
};

const synchronousCommit: Probe = async (ground) => {
  const { one, trustsStorage } = ground;
  const raised: string[] = [];
  for (const set of ['off', 'remote_apply']) {
    await one.query(`${BEGIN}; SET LOCAL synchronous_commit = ${set}`);
    await one.query(`SELECT ${trustsStorage ? WAIT_FOR_STORAGE : WAIT_FOR_DISK}`);
    const sql = "SELECT current_setting('synchronous_commit') AS value";
    raised.push((await asked<{ value: string }>(ground, sql)).value);
    await one.query('ROLLBACK');
  }
  const [fromOff, fromMost] = raised;
  const isRaised = fromOff === 'on' && fromMost === 'remote_apply';
  return { verdict: isRaised ? 'ok' : 'missing', found: `off becomes ${fromOff}` };
};

const IDLE_MS = 100;
const IDLE_WITHIN_MS = 3_000;

const timeouts: Probe = async ({ one, other, connect, newLock, clock }) => {
  const without: string[] = [];
  const lock = newLock();
  await one.query(BEGIN);
  await one.query('SELECT pg_advisory_xact_lock($1)', [lock]);
  await other.query(`${BEGIN}; SET LOCAL lock_timeout = 50`);
  const waiting = other.query('SELECT pg_advisory_xact_lock($1)', [lock]);
  if ((await codeOf(waiting)) !== '55P03') without.push('lock');
  await other.query(`ROLLBACK; ${BEGIN}; SET LOCAL statement_timeout = 50`);
  if ((await codeOf(other.query('SELECT pg_sleep(2)'))) !== '57014') without.push('statement');
  const idle = await connect('store');
  const ended = new Promise<boolean>((resolve) => {
    idle.once('end', () => resolve(true));
    clock.after(IDLE_WITHIN_MS, () => resolve(false));
  });
  await idle.query(`BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${IDLE_MS}`);
  if (!(await ended)) without.push('idle');
  if (without.length === 0) return { verdict: 'ok', found: 'lock, statement, idle' };
  return { verdict: 'degraded', found: `not in force: ${without.join(', ')}` };
};

async function codeOf(query: Promise<unknown>): Promise<string | undefined> {
  return query.then(
    () => undefined,
    ({ code }: { code?: string }) => code,
  );
}

const ROOM = `
  SELECT least(current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
      nullif(r.rolconnlimit, -1), nullif(d.datconnlimit, -1)) AS most,
    (SELECT sum(numbackends)::int FROM pg_stat_database) AS used
  FROM pg_roles r, pg_database d WHERE r.rolname = current_user AND d.datname = current_database()`;

const connections: Probe = async (ground) => {
  const { most, used } = await asked<{ most: number; used: number }>(ground, ROOM);
  const verdict = most >= CONNECTIONS.ofTwo ? 'ok' : most >= CONNECTIONS.ofOne ? 'degraded' : 'missing';
  return { verdict, found: `${most}, ${used} in use` };
};

const clockSkew: Probe = async (ground) => {
  const { clock } = ground;
  const sinceMs = clock.monotonicMs();
  const sql = 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms';
  const { ms } = await asked<{ ms: number }>(ground, sql);
  const aheadMs = Math.round(clock.nowMs() - (clock.monotonicMs() - sinceMs) / 2 - ms);
  return { verdict: Math.abs(aheadMs) <= SKEW_MS_SMALL ? 'ok' : 'degraded', found: `${Math.abs(aheadMs)} ms apart` };
};

const isolation: Probe = async (ground) => {
  const sql = "SELECT current_setting('default_transaction_isolation') AS found";
  const { found } = await asked<{ found: string }>(ground, sql);
  return { verdict: found === 'read committed' ? 'ok' : 'degraded', found };
};

export const SERVER_PROBES = {
  version,
  encoding,
  primary,
  fsync,
  synchronous_commit: synchronousCommit,
  timeouts,
  connections,
  clock: clockSkew,
  isolation,
};
