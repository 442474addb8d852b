import { UsageError } from './arguments.ts';
import { type Command, defineCommand, type Report } from './command.ts';
import { type Connection, type Query, Refusal } from './connection.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { failure, NotConfirmed } from './failure.ts';
import { count, table } from './layout.ts';
import { listRows } from './pages.ts';
import { SINCE, sinceTime } from './since.ts';

/** What a person may have done once more, to one or to many: events are replayed, notices are sent again. */
export type Bulk<Row> = Pick<Command, 'name' | 'about' | 'details' | 'examples'> & {
  /** One row in words; with an s it is the name of the list in the API. */
  one: 'event' | 'notice';
  /** The last part of the route that does it. */
  action: 'replay' | 'resend';
  done: string;
  /** What becomes of a row for which it was done, from the API's answer about it. */
  result: (answer: { waitsFor?: string | null }) => string;
  /** What --failed selects; all of them have one of the statuses. */
  failed: { about: string; statuses: readonly string[]; is: (row: Row) => boolean };
  /** When it came about. */
  at: (row: Row) => string;
  table: (rows: readonly Row[]) => string[];
};

type Again = { id: string; status: string };

const OPTIONS = {
  failed: { about: 'all that failed' },
  order: { value: 'REFERENCE', about: 'all of this order that are done or failed' },
  since: SINCE,
  'dry-run': { about: 'only list which they would be' },
  yes: { about: 'do it for all that --failed, --order and --since select' },
} as const;

/** A command that counts first, and does nothing to what was not named without --yes. */
export function bulkCommand<Row extends Again>(bulk: Bulk<Row>): Command {
  const { name, about, details = [], examples = [], one, done } = bulk;
  return defineCommand({
    name,
    positionals: '[ID...]',
    about,
    details: [
      ...details,
      `${capital(one)}s that are named by ID are ${done} at once. Others are selected: what --failed, --order and --since`,
      'have in common; then it says how many there are, and ends with 1 without --yes: nothing is done. The oldest goes first.',
      'One that is refused does not hold up the others; the exit code is that of the first that was refused.',
    ],
    examples,
    options: { ...OPTIONS, failed: { about: bulk.failed.about } },
    async run(call) {
      const { positionals, options } = call;
      const selects = Boolean(options.failed ?? options.order ?? options.since);
      if (positionals.length > 0 && selects) {
        throw new UsageError(`Name ${one}s by ID, or select them by --failed, --order and --since: not both.`);
      }
      if (positionals.length === 0 && !selects) {
        throw new UsageError(`\`settled ${name}\` needs ID..., or --failed, --order or --since.`);
      }
      const query = { reference: options.order, since: sinceTime(options.since) };
      const server = call.server();
      const rows = selects ? await select(server, bulk, query, options.failed === true) : null;
      if (options['dry-run']) return dryRun(bulk, rows ?? (await fetchNamed(server, bulk, positionals)));
      if (rows !== null && rows.length > 0 && !options.yes) {
        throw new NotConfirmed(
          `${count(rows.length, one)} would be ${done}, and nothing was done. Add --dry-run to look at them, or --yes to do it.`,
        );
      }
      return doAll(server, bulk, rows?.map(({ id }) => id) ?? positionals);
    },
  });
}

/** The oldest first. */
async function select<Row extends Again>(
  server: Connection,
  bulk: Bulk<Row>,
  query: Query,
  onlyFailed: boolean,
): Promise<Row[]> {
  const { one, failed, at } = bulk;
  const selected: Row[] = [];
  for (const status of onlyFailed ? failed.statuses : [undefined]) {
    const list = { path: `/v1/${one}s`, field: `${one}s`, query: { ...query, status } };
    const { rows } = await listRows<Row>(server, list, { all: true });
    selected.push(...rows.reverse());
  }
  return selected
    .filter((row) => (onlyFailed ? failed.is(row) : mayBeDone(bulk, row)))
    .sort((one, other) => Date.parse(at(one)) - Date.parse(at(other)));
}

/** The others are in work, or will be by themselves. */
function mayBeDone<Row extends Again>({ failed }: Bulk<Row>, row: Row): boolean {
  return row.status === 'done' || failed.is(row);
}

async function fetchNamed<Row>(server: Connection, { one }: Bulk<Row>, ids: readonly string[]): Promise<Row[]> {
  const rows: Row[] = [];
  for (const id of ids) {
    const answer = await server.get<Record<string, Row>>(`/v1/${one}s/${encodeURIComponent(id)}`);
    rows.push(answer[one] as Row);
  }
  return rows;
}

function dryRun<Row extends Again>(bulk: Bulk<Row>, rows: readonly Row[]): Report {
  const { one, done, table } = bulk;
  const would = rows.filter((row) => mayBeDone(bulk, row));
  const lines = [`${count(would.length, one)} would be ${done}. Nothing was done.`];
  if (rows.length > 0) lines.push('', ...table(rows));
  return {
    data: { dryRun: true, count: would.length, [`${one}s`]: would.map(({ id }) => ({ id, result: null })) },
    lines,
  };
}

type Done = { id: string; result: string; exit: ExitCode };

async function doAll<Row>(server: Connection, bulk: Bulk<Row>, ids: readonly string[]): Promise<Report> {
  const { one, done } = bulk;
  const results: Done[] = [];
  for (const id of ids) {
    try {
      results.push(await doOne(server, bulk, id));
    } catch (error) {
      // What was done before must be told, whatever ends it.
      if (results.length === 0) throw error;
      const { message, exit } = failure(error);
      results.push({ id, result: `${message} It ended here.`, exit });
      break;
    }
  }
  const n = results.filter(({ exit }) => exit === EXIT.ok).length;
  const left = ids.length - results.length;
  const rows = results.map(({ id, result }) => [id, result]);
  const untried = left === 0 ? '' : ` ${left} were not tried: give the command again.`;
  return {
    data: { dryRun: false, count: n, notTried: left, [`${one}s`]: results.map(({ id, result }) => ({ id, result })) },
    lines: [`${count(n, one)} ${done}.${untried}`, '', ...table(['id', 'result'], rows, `No such ${one}s.`)],
    exit: results.map(({ exit }) => exit).find((exit) => exit !== EXIT.ok) ?? EXIT.ok,
  };
}

/** Throws where the next would fare no better. */
async function doOne<Row>(server: Connection, { one, action, result }: Bulk<Row>, id: string): Promise<Done> {
  try {
    const path = `/v1/${one}s/${encodeURIComponent(id)}/${action}`;
    const answer = await server.post<Record<string, Parameters<typeof result>[0]>>(path);
    return { id, result: result(answer[one] ?? {}), exit: EXIT.ok };
  } catch (error) {
    if (!(error instanceof Refusal) || error.exit === EXIT.tryAgain) throw error;
    return { id, result: error.message, exit: error.exit };
  }
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
