import Database from 'better-sqlite3';
import pg from 'pg';
import { signalAll } from '../test/support/postgres.ts';

/**
 * Loaded into `settled move` before its own code (`--import`). `MOVE_POINT` is who is killed, from where steps are
 * counted, and at which step: `mover:start:120`, `postgres:mark:0`. The mover kills itself, or the PostgreSQL server
 * `MOVE_POSTGRES` with all its processes. A step is a statement that it sends to PostgreSQL, or the moment before and
 * after one that writes the SQLite file. `mark` is when the mover marks the file as moved. `count:start:0` kills
 * nothing, and says on standard error how many steps there were from each.
 */

const [who = '', from = 'start', at = '0'] = (process.env.MOVE_POINT ?? '').split(':');
/** What the mover says on standard error then: the harness may not have seen the server's end so far. */
const POSTGRES_KILLED = 'PostgreSQL was killed\n';
const MARK = 'UPDATE instance SET moved_to';
const steps: Record<string, number> = { start: 0 };

function step(sql: string): void {
  if (sql.startsWith(MARK)) steps.mark ??= -1;
  for (const place of Object.keys(steps)) (steps[place] as number)++;
  if (steps[from] !== Number(at)) return;
  if (who === 'mover') process.kill(process.pid, 'SIGKILL');
  if (who !== 'postgres') return;
  signalAll({ pid: Number(process.env.MOVE_POSTGRES) }, 'SIGKILL');
  process.stderr.write(POSTGRES_KILLED);
}

type Query = (...given: unknown[]) => unknown;
const client = pg.Client.prototype as unknown as { query: Query };
const { query } = client;
client.query = function (...given) {
  step(typeof given[0] === 'string' ? given[0] : '');
  return query.apply(this, given);
};

type Prepared = { run: (...values: unknown[]) => unknown; readonly: boolean };
const sqlite = Database.prototype as unknown as { prepare: (sql: string) => Prepared; exec: (sql: string) => unknown };
const { prepare, exec } = sqlite;
sqlite.prepare = function (sql) {
  const statement = prepare.call(this, sql);
  const { run } = statement;
  statement.run = function (...values) {
    step(sql);
    const result = run.apply(this, values);
    step('');
    return result;
  };
  return statement;
};
sqlite.exec = function (sql) {
  step('');
  return exec.call(this, sql);
};

if (who === 'count') process.once('exit', () => process.stderr.write(`steps: ${JSON.stringify(steps)}\n`));
