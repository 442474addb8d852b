import { isMainThread } from 'node:worker_threads';

/**
 * Loaded into a settled process before its own code (`--import`). The thread that holds the database kills the process
 * with SIGKILL at one commit. `KILL_POINT` is `before:3:SQL` or `after:3:SQL`: before or after the commit of the
 * transaction in which a statement that begins with SQL runs for the third time.
 */

type Run = (...values: unknown[]) => unknown;
type Prepare = (source: string) => { run: Run };

const point = process.env.KILL_POINT ?? '';
if (!isMainThread && point !== '') await prepareKill(point);

async function prepareKill(text: string): Promise<void> {
  const [when, occurrence, ...rest] = text.split(':');
  const sql = rest.join(':');
  const { default: Database } = await import('better-sqlite3');
  const prototype = Database.prototype as unknown as { prepare: Prepare };
  const { prepare } = prototype;
  let left = Number(occurrence);
  prototype.prepare = function (source) {
    const statement = prepare.call(this, source);
    const run = statement.run.bind(statement);
    if (source.startsWith(sql)) {
      statement.run = (...values) => {
        left--;
        return run(...values);
      };
    }
    if (source === 'COMMIT') {
      statement.run = () => {
        if (left <= 0 && when === 'before') process.kill(process.pid, 'SIGKILL');
        const result = run();
        if (left <= 0) process.kill(process.pid, 'SIGKILL');
        return result;
      };
    }
    return statement;
  };
}
