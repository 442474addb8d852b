import { ROW_STATUSES } from '../domain/row.ts';
import { duration } from '../settings.ts';
import { systemClock } from '../work/clock.ts';
import { type Command, defineCommand, type Report, wholeNumber } from './command.ts';
import type { Connection, Query } from './connection.ts';
import { CommandError, EXIT, type ExitCode, failure, Refusal, UsageError } from './exit.ts';
import { count, table } from './output.ts';

/** What the commands that list have in common: filters and pages; and the commands that do something to what they select. */

/** Options of every command that lists. */
export const PAGE_OPTIONS = {
  limit: { value: 'N', about: 'show at most so many, the newest first (50)' },
  all: { about: 'show all' },
} as const;

const SINCE = {
  value: 'TIME',
  about: 'only those since then: how long ago, like 90m, 2h or 3d, or a time like 2030-01-31T12:00:00Z',
} as const;

/** Options of the commands that list events or notices. */
export function rowOptions(what: 'events' | 'notices') {
  return {
    status: { value: 'STATUS', choices: ROW_STATUSES, about: `only ${what} with this status` },
    order: { value: 'REFERENCE', about: `only ${what} of this order` },
    since: SINCE,
    ...PAGE_OPTIONS,
  } as const;
}

type ListOptions = { readonly [option: string]: string | true | undefined; limit?: string; all?: true };
type ListName = 'orders' | 'events' | 'notices' | 'rejections' | 'attention';

/** Runs a command that only lists: `lines` shows the rows to a person. */
export async function list<Row>(
  { options, server }: { options: ListOptions; server: () => Connection },
  name: ListName,
  lines: (rows: Row[]) => string[],
): Promise<Report> {
  const { rows, more } = await listRows<Row>(server(), name, queryOf(options), options);
  return { data: { [name]: rows, more }, lines: [...lines(rows), ...moreLine(more)] };
}

/** The filters among the options, as the API takes them. */
export function queryOf({ limit, all, json, order, since, until, ...filters }: ListOptions): Query {
  const times = { since: timeOf('since', since), until: timeOf('until', until) };
  return { ...(filters as Query), reference: order as string | undefined, ...times };
}

const LENGTH = duration('1m', '3650d');
/** With its offset: the time zone of this machine says nothing about where a person read the time. */
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;

function timeOf(name: string, given: string | true | undefined): string | undefined {
  if (typeof given !== 'string') return undefined;
  const atMs = ISO_TIME.test(given) ? Date.parse(given) : systemClock.nowMs() - lengthMs(given);
  if (!Number.isNaN(atMs)) return new Date(atMs).toISOString();
  throw new UsageError(
    `--${name} is "${given}". Write how long ago in minutes, hours or days, like 90m, 2h or 3d, or a time with its offset, ` +
      'like 2030-01-31T12:00:00Z.',
  );
}

function lengthMs(text: string): number {
  try {
    return LENGTH(text);
  } catch {
    return Number.NaN;
  }
}

const LIMIT = 50;
/** The server's own limit of a page. */
const PAGE_MAX = 200;

/** Follows a list page by page until there are as many rows as the options ask for. `page` is the last one. */
export async function listRows<Row>(
  server: Connection,
  name: ListName,
  query: Query,
  { limit, all }: { limit?: string; all?: true },
): Promise<{ rows: Row[]; more: boolean; page: Record<string, unknown> }> {
  const most = all ? Number.POSITIVE_INFINITY : limit === undefined ? LIMIT : wholeNumber('limit', limit, 1);
  const rows: Row[] = [];
  let cursor: string | undefined;
  for (;;) {
    const left = Math.min(PAGE_MAX, most - rows.length);
    const page = await server.get<Record<string, unknown>>(`/v1/${name}`, { ...query, limit: left, cursor });
    rows.push(...(page[name] as Row[]));
    cursor = (page.nextCursor as string | null) ?? undefined;
    if (cursor === undefined || rows.length >= most) return { rows, more: cursor !== undefined, page };
  }
}

/** The line that ends a list which was cut. */
export function moreLine(more: boolean): string[] {
  return more ? ['', 'There are more: give --limit N or --all.'] : [];
}

/** A command that repeats something for one row or for many: events are replayed, notices are sent again. */
type Bulk<Row> = Pick<Command, 'name' | 'about' | 'details' | 'examples'> & {
  /** One row in words; with an s it is the name of the list in the API. */
  one: 'event' | 'notice';
  /** The last part of the route that does it. */
  action: 'replay' | 'resend';
  done: string;
  /** What becomes of a row, from the API's answer about it. */
  result: (answer: { waitsFor?: string | null }) => string;
  /** What --failed selects; all of them have one of the statuses. */
  failed: { about: string; statuses: readonly string[]; is: (row: Row) => boolean };
  /** When the row was created. */
  at: (row: Row) => string;
  table: (rows: readonly Row[]) => string[];
};

type Repeatable = { id: string; status: string };

/** A command that counts first, and does nothing to rows that are not named without --yes. */
export function bulkCommand<Row extends Repeatable>(bulk: Bulk<Row>): Command {
  const { name, about, details = [], examples = [], one, done, failed } = bulk;
  return defineCommand({
    name,
    positionals: '[ID...]',
    about,
    details: [
      ...details,
      `With IDs, the ${one}s are ${done} at once. Otherwise --failed, --order and --since select those that match all of`,
      'them; the command counts them, and without --yes it does nothing and ends with 1. It takes the oldest first. If one',
      'is refused it goes on with the others; the exit code is that of the first refusal.',
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
      const query = queryOf({ order: options.order, since: options.since });
      const connection = server();
      const rows = selects ? await select(connection, bulk, query, options.failed === true) : null;
      if (options['dry-run']) return dryRun(bulk, rows ?? (await fetchNamed(connection, bulk, ids)));
      if (rows !== null && rows.length > 0 && !options.yes) {
        throw new CommandError(
          'not_confirmed',
          `${count(rows.length, one)} would be ${done}, and nothing was done. Add --dry-run to look at them, or --yes to do it.`,
        );
      }
      return doAll(connection, bulk, rows?.map(({ id }) => id) ?? ids);
    },
  });
}

/** The oldest first. */
async function select<Row extends Repeatable>(
  server: Connection,
  bulk: Bulk<Row>,
  query: Query,
  onlyFailed: boolean,
): Promise<Row[]> {
  const { one, failed, at } = bulk;
  const selected: Row[] = [];
  for (const status of onlyFailed ? failed.statuses : [undefined]) {
    const { rows } = await listRows<Row>(server, `${one}s`, { ...query, status }, { all: true });
    selected.push(...rows.reverse());
  }
  return selected
    .filter((row) => (onlyFailed ? failed.is(row) : isRepeatable(bulk, row)))
    .sort((one, other) => Date.parse(at(one)) - Date.parse(at(other)));
}

/** The others are in work, or wait for it. */
function isRepeatable<Row extends Repeatable>({ failed }: Bulk<Row>, row: Row): boolean {
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

function dryRun<Row extends Repeatable>(bulk: Bulk<Row>, rows: readonly Row[]): Report {
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

async function doAll<Row>(server: Connection, bulk: Bulk<Row>, ids: readonly string[]): Promise<Report> {
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
