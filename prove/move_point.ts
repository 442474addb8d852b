import { readdirSync, readFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import pg from 'pg';

/**
 * Loaded into `settled move` before its own code (`--import`). `MOVE_POINT` is `mover:120`, `settled:120` or `postgres:120`:
 * at its 120th step the mover kills itself, the process `MOVE_SETTLED`, or the PostgreSQL server `MOVE_POSTGRES` with all its
 * processes. A step is a statement that it sends to PostgreSQL, or one that writes the SQLite file. With `count:0` it kills
 * nothing, and says at its end on standard error how many steps there were.
 */

const [who = '', at = '0'] = (process.env.MOVE_POINT ?? '').split(':');
let steps = 0;

function step(): void {
  steps++;
  if (steps !== Number(at)) return;
  if (who === 'mover') process.kill(process.pid, 'SIGKILL');
  if (who === 'settled') killAll([Number(process.env.MOVE_SETTLED)]);
  if (who === 'postgres') killAll(serverAndChildren(Number(process.env.MOVE_POSTGRES)));
}

function killAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  }
}

/** Backends are children of the server. */
function serverAndChildren(pid: number): number[] {
  const threads = readdirSync(`/proc/${pid}/task`);
  const children = threads.flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').trim().split(' '),
  );
  return [pid, ...children.filter((child) => child !== '').map(Number)];
}

type Query = (...given: unknown[]) => unknown;
const client = pg.Client.prototype as unknown as { query: Query };
const { query } = client;
client.query = function (...given) {
  step();
  return query.apply(this, given);
};

type Prepared = { run: (...values: unknown[]) => unknown; readonly: boolean };
const sqlite = Database.prototype as unknown as { prepare: (sql: string) => Prepared; exec: (sql: string) => unknown };
const { prepare, exec } = sqlite;
sqlite.prepare = function (sql) {
  const statement = prepare.call(this, sql);
  const { run } = statement;
  statement.run = function (...values) {
    step();
    const result = run.apply(this, values);
    // After a write the mover may be killed as well as before it.
    step();
    return result;
  };
  return statement;
};
sqlite.exec = function (sql) {
  step();
  return exec.call(this, sql);
};

if (who === 'count') process.once('exit', () => process.stderr.write(`steps: ${steps}\n`));
