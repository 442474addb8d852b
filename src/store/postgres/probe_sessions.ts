import type { Ground, Probe } from './probe_ground.ts';

/** What a connection keeps from one transaction to the next, which a pooler may lose. */

const HEARD_WITHIN_MS = 1_000;

const sessions: Probe = async ({ keepsSessions }) =>
  (await keepsSessions('store'))
    ? { verdict: 'ok', found: 'kept' }
    : { verdict: 'degraded', found: 'lent for one transaction' };

/** Settings that a new session gets from the role, the database or the server. */
const BY_DEFAULT = `SELECT name FROM pg_settings WHERE reset_val = '0'
  AND name IN ('lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout')`;

const sessionSettings: Probe = async ({ one, keepsSessions }) => {
  if (await keepsSessions('store')) {
    await one.query("SELECT set_config('settled_probe.mark', 'kept', false)");
    const { rows } = await one.query("SELECT current_setting('settled_probe.mark', true) AS mark");
    await one.query("SELECT set_config('settled_probe.mark', '', false)");
    return rows[0]?.mark === 'kept' ? { verdict: 'ok', found: 'kept' } : { verdict: 'degraded', found: 'lost' };
  }
  const { rows } = await one.query<{ name: string }>(BY_DEFAULT);
  if (rows.length === 0) return { verdict: 'ok', found: "the role's timeouts" };
  return { verdict: 'degraded', found: `no ${rows.map(({ name }) => name).join(', ')}` };
};

/** The other connection takes the session in which the first prepared the statement. */
const preparedStatements: Probe = async ({ one, other, name }) => {
  const prepared = { name, text: 'SELECT 1 AS n' };
  await one.query(prepared);
  await other.query('BEGIN');
  await other.query(prepared);
  await one.query(prepared);
  await other.query('ROLLBACK');
  return { verdict: 'ok', found: 'kept' };
};

const direct: Probe = async ({ one, direct: server, hasDirect, keepsSessions, newLock }) => {
  if (!hasDirect) {
    return (await keepsSessions('store'))
      ? { verdict: 'ok', found: 'not needed' }
      : { verdict: 'degraded', found: 'not given' };
  }
  const lock = newLock();
  await server.query('BEGIN');
  await server.query('SELECT pg_advisory_xact_lock($1)', [lock]);
  const { rows } = await one.query('SELECT pg_try_advisory_xact_lock($1) AS "isFree"', [lock]);
  if (rows[0]?.isFree !== false) return { verdict: 'missing', found: 'another database' };
  return (await keepsSessions('direct'))
    ? { verdict: 'ok', found: 'the same database' }
    : { verdict: 'degraded', found: 'a pooler too' };
};

const listen: Probe = async (ground: Ground) => {
  const { one, direct: listener, clock, keepsSessions, name } = ground;
  if (!(await keepsSessions('direct'))) return { verdict: 'degraded', found: 'no session is kept' };
  const sinceMs = clock.monotonicMs();
  const heard = new Promise<boolean>((resolve) => {
    listener.once('notification', ({ payload }) => resolve(payload === 'probe'));
    clock.after(HEARD_WITHIN_MS, () => resolve(false));
  });
  try {
    await listener.query(`LISTEN ${name}`);
    await one.query('SELECT pg_notify($1, $2)', [name, 'probe']);
  } catch (error) {
    return { verdict: 'degraded', found: (error as Error).message };
  }
  if (!(await heard)) return { verdict: 'degraded', found: 'nothing was heard' };
  await listener.query(`UNLISTEN ${name}`);
  const ms = Math.ceil(clock.monotonicMs() - sinceMs);
  return { verdict: 'ok', found: `heard in ${ms} ms` };
};

export const SESSION_PROBES = {
  sessions,
  session_settings: sessionSettings,
  prepared_statements: preparedStatements,
  direct,
  listen,
};
