import { type Command, defineCommand, type Report } from './command.ts';
import type { ServerApi } from './connection.ts';
import { CommandError, EXIT, type ExitCode, failure, Refusal, UsageError } from './exit.ts';
import { listRows, queryOf, type Row, SINCE } from './lists.ts';
import { count, table } from './output.ts';

/** A command that repeats something for one row or for many: events are replayed, notices are sent again. */
type Bulk<R extends Row> = Pick<Command, 'name' | 'about' | 'details' | 'examples'> & {
  /** One row in words; with an s it is the name of the list in the API. */
  one: 'event' | 'notice';
  /** The last part of the route that does it. */
  action: 'replay' | 'resend';
  done: string;
  /** What becomes of a row, from the API's answer about it. */
  result: (answer: { waitsFor?: string | null }) => string;
  /** What --failed selects; all of them have one of the statuses. */
  failed: { about: string; statuses: readonly string[]; is: (row: R) => boolean };
  /** When the row was created. */
  at: (row: R) => string;
  table: (rows: readonly R[]) => string[];
};

/** A command that counts first, and does nothing to rows that are not named without --yes. */
export function bulkCommand<R extends Row>(bulk: Bulk<R>): Command {
  const { name, about, details = [], examples = [], one, done, failed } = bulk;
  return defineCommand({
    name,
    positionals: '[ID...]',
    about,
    details: [
      ...details,
      `With IDs, the ${one}s are ${done} at once.`,
      'Otherwise the command takes those that match all of --failed, --order and --since, the oldest first;',
      'without --yes it only counts them, does nothing and ends with 1.',
      'If one is refused it continues with the others; the exit code is that of the first refusal.',
    ],
    examples,
    options: {
      failed: { about: failed.about },
      order: { value: 'REFERENCE', about: 'all of this order that are done or failed' },
      since: SINCE,
      'dry-run': { about: 'only list which they would be' },
      yes: { about: 'do it for all that --failed, --order and --since select' },
    },
    async run({ positionals: ids, options, server }) {
      const selects = Boolean(options.failed ?? options.order ?? options.since);
      if (ids.length > 0 && selects) {
        throw new UsageError(`Name ${one}s by ID, or select them by --failed, --order and --since: not both.`);
      }
      if (ids.length === 0 && !selects) {
        throw new UsageError(`\`settled ${name}\` needs ID..., or --failed, --order or --since.`);
      }
      const connection = server();
      const rows = selects ? await select(connection, bulk, options) : null;
      if (options['dry-run']) return dryRun(bulk, rows ?? (await fetchNamed(connection, bulk, ids)));
      if (rows !== null && rows.length > 0 && !options.yes) {
        throw new CommandError(
          'not_confirmed',
          `${count(rows.length, one)} would be ${done}, and nothing was done. ` +
            'Add --dry-run to look at them, or --yes to do it.',
        );
      }
      return doAll(connection, bulk, rows?.map(({ id }) => id) ?? ids);
    },
  });
}

type Selection = { failed?: true; order?: string; since?: string };

/** The oldest first. */
async function select<R extends Row>(server: ServerApi, bulk: Bulk<R>, selection: Selection) {
  const { one, failed, at } = bulk;
  const { failed: onlyFailed, order, since } = selection;
  const query = queryOf({ order, since });
  const selected: R[] = [];
  for (const status of onlyFailed ? failed.statuses : [undefined]) {
    const { rows } = await listRows<R>(server, `${one}s`, { ...query, status }, { all: true });
    // Equal times stay in this order.
    selected.push(...rows.reverse());
  }
  return selected
    .filter((row) => (onlyFailed ? failed.is(row) : isRepeatable(bulk, row)))
    .sort((one, other) => Date.parse(at(one)) - Date.parse(at(other)));
}

/** The others are in work, or wait for it. */
function isRepeatable<R extends Row>({ failed }: Bulk<R>, row: R): boolean {
  return row.status === 'done' || failed.is(row);
}

async function fetchNamed<R extends Row>(server: ServerApi, { one }: Bulk<R>, ids: readonly string[]): Promise<R[]> {
  const rows: R[] = [];
  for (const id of ids) {
    const answer = await server.get<Record<string, R>>(`/v1/${one}s/${encodeURIComponent(id)}`);
    rows.push(answer[one] as R);
  }
  return rows;
}

function dryRun<R extends Row>(bulk: Bulk<R>, rows: readonly R[]): Report {
  const { one, done } = bulk;
  const would = rows.filter((row) => isRepeatable(bulk, row));
  return {
    data: { dryRun: true, count: would.length, [`${one}s`]: would.map(({ id }) => ({ id, result: null })) },
    lines: [
      `${count(would.length, one)} would be ${done}. Nothing was done.`,
      ...(rows.length === 0 ? [] : ['', ...bulk.table(rows)]),
    ],
  };
}

type Done = { id: string; result: string; exit: ExitCode };

async function doAll<R extends Row>(server: ServerApi, bulk: Bulk<R>, ids: readonly string[]): Promise<Report> {
  const { one, done } = bulk;
  const results: Done[] = [];
  for (const id of ids) {
    try {
      results.push(await doOne(server, bulk, id));
    } catch (error) {
      // What was done before must be reported, whatever ends the command.
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

/** Throws if the next would fare no better. */
async function doOne<R extends Row>(server: ServerApi, { one, action, result }: Bulk<R>, id: string): Promise<Done> {
  try {
    const path = `/v1/${one}s/${encodeURIComponent(id)}/${action}`;
    const answer = await server.post<Record<string, Parameters<typeof result>[0]>>(path);
    return { id, result: result(answer[one] ?? {}), exit: EXIT.ok };
  } catch (error) {
    if (!(error instanceof Refusal) || error.exit === EXIT.tryAgain) throw error;
    return { id, result: error.message, exit: error.exit };
  }
}
