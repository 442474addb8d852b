import type pg from 'pg';
import type { NotTried } from '../probed.ts';
import { BEGIN, type Ground, type Probe } from './probe_ground.ts';

/** What statements can do with tables and rows. Each probe uses its own rows in the table of the run. */

const NO_TABLE: NotTried = 'no table';

const schemaChanges: Probe = async ({ one, name }) => {
  const table = `${name}_changed`;
  await one.query(BEGIN);
  await one.query(`CREATE TABLE ${table} (n int)`);
  await one.query(`ALTER TABLE ${table} ADD COLUMN other text`);
  await one.query(`CREATE INDEX ON ${table} (other)`);
  await one.query('ROLLBACK');
  const { rows } = await one.query('SELECT to_regclass($1) IS NULL AS "isGone"', [table]);
  return rows[0]?.isGone === true ? { verdict: 'ok', found: 'rolled back' } : { verdict: 'missing', found: 'kept' };
};

const columns = '(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int NOT NULL, open boolean NOT NULL)';

/** Makes a schema for the run, or tables beside settled's if the role may make no schema. */
const tables: Probe = async (ground) => {
  const { one, name } = ground;
  const make = async (table: string) => {
    await one.query(`CREATE TABLE ${table} ${columns}`);
    await one.query(`CREATE UNIQUE INDEX ON ${table} (n) WHERE open`);
    await one.query('COMMIT');
    ground.table = table;
  };
  try {
    await one.query(`${BEGIN}; CREATE SCHEMA ${name}`);
    await make(`${name}.row`);
    return { verdict: 'ok', found: 'in a schema' };
  } catch (error) {
    if ((error as { code?: string }).code !== '42501') throw error;
    await one.query(`ROLLBACK; ${BEGIN}`);
    await make(`${name}_row`);
    return { verdict: 'ok', found: 'no right to schemas' };
  }
};

/** Adds rows, and returns their ids in order. */
async function addRows({ table }: Ground, client: pg.Client, ...ns: number[]): Promise<number[]> {
  const sql = `INSERT INTO ${table} (n, open) SELECT n, false FROM unnest($1::int[]) AS given (n) RETURNING id`;
  const { rows } = await client.query<{ id: number }>(sql, [ns]);
  return rows.map(({ id }) => id).sort((a, b) => a - b);
}

const triggers: Probe = async ({ one, table }) => {
  const change = `${table}_changed`;
  await one.query(BEGIN);
  await one.query(`CREATE FUNCTION ${change}() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN NEW.n := 7; RETURN NEW; END $$`);
  await one.query(`CREATE TRIGGER changed BEFORE INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION ${change}()`);
  const { rows } = await one.query(`INSERT INTO ${table} (n, open) VALUES (1, false) RETURNING n`);
  return rows[0]?.n === 7 ? { verdict: 'ok', found: 'ran' } : { verdict: 'missing', found: 'did not run' };
};

const identity: Probe = async (ground) => {
  const { one, other } = ground;
  const ids: number[] = [];
  for (const client of [one, other, one, other]) ids.push(...(await addRows(ground, client, 0)));
  const isAscending = ids.every((id, at) => at === 0 || id > (ids[at - 1] as number));
  return { verdict: isAscending ? 'ok' : 'missing', found: ids.join(', ') };
};

const partialUniqueIndex: Probe = async ({ one, table }) => {
  await one.query(BEGIN);
  const insert = `INSERT INTO ${table} (n, open) VALUES (5, $1) ON CONFLICT`;
  const counts = [
    (await one.query(`${insert} DO NOTHING`, [true])).rowCount,
    (await one.query(`${insert} DO NOTHING`, [true])).rowCount,
    (await one.query(`${insert} DO NOTHING`, [false])).rowCount,
    (await one.query(`${insert} (n) WHERE open DO UPDATE SET n = 6 RETURNING n`, [true])).rows[0]?.n,
  ];
  return { verdict: counts.join() === '1,0,1,6' ? 'ok' : 'missing', found: `rows ${counts.join(', ')}` };
};

const writableCte: Probe = async ({ one, table }) => {
  await one.query(BEGIN);
  const { rows } = await one.query(`
    WITH made AS (INSERT INTO ${table} (n, open) VALUES (1, false), (2, false) RETURNING id, n)
    SELECT count(id)::int AS made, sum(n)::int AS sum FROM made`);
  const { made, sum } = rows[0] as { made: number; sum: number };
  return { verdict: made === 2 && sum === 3 ? 'ok' : 'missing', found: `${made} rows` };
};

/** Long enough for a statement to reach the server; the second value is for a slow network. */
const ARRIVES_MS = [60, 1_000];

/** The second transaction begins its statement before the first commits, by the server's times. */
const readingAnew: Probe = async (ground) => {
  const { one, other, table, clock } = ground;
  for (const arrivesMs of ARRIVES_MS) {
    const [id] = await addRows(ground, one, 0);
    await one.query(BEGIN);
    await one.query(`UPDATE ${table} SET n = 1 WHERE id = $1`, [id]);
    await other.query(BEGIN);
    const changing = other.query<{ n: number; atMs: number }>(
      `UPDATE ${table} SET n = n + 10 WHERE id = $1 RETURNING n, extract(epoch FROM statement_timestamp())::float8 AS "atMs"`,
      [id],
    );
    changing.catch(() => {});
    await new Promise<void>((resume) => clock.after(arrivesMs, resume));
    const { rows } = await one.query<{ atMs: number }>(
      'SELECT extract(epoch FROM clock_timestamp())::float8 AS "atMs"',
    );
    await one.query('COMMIT');
    const changed = (await changing).rows[0];
    await other.query('ROLLBACK');
    if (changed === undefined || changed.atMs >= (rows[0]?.atMs as number)) continue;
    return changed.n === 11 ? { verdict: 'ok', found: 'read anew' } : { verdict: 'missing', found: 'read before' };
  }
  return { verdict: 'missing', found: 'no statement waited' };
};

const oneMoment: Probe = async (ground) => {
  const { one, other, table } = ground;
  const count = async () => (await one.query(`SELECT count(*)::int AS n FROM ${table}`)).rows[0]?.n as number;
  await one.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
  const before = await count();
  await addRows(ground, other, 0);
  const after = await count();
  return { verdict: before === after ? 'ok' : 'missing', found: `${before} rows, then ${after}` };
};

const skipLocked: Probe = async (ground) => {
  const { one, other, table } = ground;
  const ids = await addRows(ground, one, 0, 0);
  const claim = `SELECT id FROM ${table} WHERE id = ANY($1) ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED`;
  await one.query(BEGIN);
  await other.query(BEGIN);
  const first = (await one.query(claim, [ids])).rows[0]?.id;
  const second = (await other.query(claim, [ids])).rows[0]?.id;
  const isSkipped = first === ids[0] && second === ids[1];
  return { verdict: isSkipped ? 'ok' : 'missing', found: isSkipped ? 'skipped' : 'not skipped' };
};

const noKeyUpdate: Probe = async (ground) => {
  const { one, other, table } = ground;
  const [id] = await addRows(ground, one, 0);
  await one.query(BEGIN);
  await one.query(`SELECT id FROM ${table} WHERE id = $1 FOR NO KEY UPDATE`, [id]);
  await other.query(BEGIN);
  await other.query(`SELECT id FROM ${table} WHERE id = $1 FOR KEY SHARE NOWAIT`, [id]);
  const second = other.query(`SELECT id FROM ${table} WHERE id = $1 FOR NO KEY UPDATE NOWAIT`, [id]);
  const isKeptOut = await second.then(
    () => false,
    ({ code }: { code?: string }) => code === '55P03',
  );
  return isKeptOut ? { verdict: 'ok', found: 'one at a time' } : { verdict: 'missing', found: 'two at once' };
};

const advisoryLocks: Probe = async ({ one, other, newLock }) => {
  const lock = newLock();
  const attempt = async () => {
    const { rows } = await other.query('SELECT pg_try_advisory_xact_lock($1) AS "isMine"', [lock]);
    return rows[0]?.isMine as boolean;
  };
  await one.query(BEGIN);
  await one.query('SELECT pg_advisory_xact_lock($1)', [lock]);
  if (await attempt()) return { verdict: 'missing', found: 'two at once' };
  await one.query('COMMIT');
  return (await attempt())
    ? { verdict: 'ok', found: 'one at a time' }
    : { verdict: 'missing', found: 'not given back' };
};

/** Waits for older transactions of the database, at most as long as any statement of settled. */
const indexConcurrently: Probe = async ({ direct, table, keepsSessions }) => {
  if (table === null) return { verdict: 'missing', found: NO_TABLE };
  if (!(await keepsSessions('direct'))) return { verdict: 'degraded', found: 'no session is kept' };
  await direct.query('SET statement_timeout = 4000');
  try {
    await direct.query(`CREATE INDEX CONCURRENTLY ON ${table} (n)`);
    return { verdict: 'ok', found: 'built' };
  } catch (error) {
    return { verdict: 'degraded', found: (error as Error).message };
  }
};

/** Probes of rows fail with their own message if there is no table. */
const onTable =
  (probe: Probe): Probe =>
  async (ground) =>
    ground.table === null ? { verdict: 'missing', found: NO_TABLE } : probe(ground);

export const ROW_PROBES = {
  schema_changes: schemaChanges,
  tables,
  triggers: onTable(triggers),
  identity: onTable(identity),
  partial_unique_index: onTable(partialUniqueIndex),
  writable_cte: onTable(writableCte),
  reading_anew: onTable(readingAnew),
  one_moment: onTable(oneMoment),
  skip_locked: onTable(skipLocked),
  no_key_update: onTable(noKeyUpdate),
  advisory_locks: advisoryLocks,
  index_concurrently: onTable(indexConcurrently),
};
