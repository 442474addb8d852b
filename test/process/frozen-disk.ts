import { existsSync, openSync, writeFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';
import Database from 'better-sqlite3';

/**
 * Loaded into a settled process before anything else (NODE_OPTIONS=--import). While the named pipe at FROZEN_DISK is
 * there, every COMMIT hangs in a system call, as on a disk that does not answer: nothing but a kill ends such a call.
 */
const pipe = process.env.FROZEN_DISK;

if (!isMainThread && pipe !== undefined) {
  const prepare = Database.prototype.prepare;
  Database.prototype.prepare = function (this: Database.Database, sql: string) {
    const statement = prepare.call(this, sql) as Database.Statement<unknown[]>;
    if (sql !== 'COMMIT') return statement;
    const run = statement.run.bind(statement);
    const runWhenThawed = (...values: unknown[]) => {
      if (existsSync(pipe)) {
        writeFileSync(`${pipe}.waiting`, '');
        openSync(pipe, 'r');
      }
      return run(...values);
    };
    return Object.assign(statement, { run: runWhenThawed });
  } as typeof prepare;
}
