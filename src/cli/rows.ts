import type { EventDocument } from '../api/events.ts';
import type { CountDocument } from '../api/lists.ts';
import type { NoticeDocument } from '../api/notices.ts';
import { countWords, inNumber } from '../explain/glossary.ts';
import { type Command, defineCommand, type Report, wholeNumber } from './command.ts';
import type { Query, ServerApi } from './connection.ts';
import { CommandError, EXIT, type ExitCode, failure, Refusal, UsageError } from './exit.ts';
import { type ListOptions, queryOf, SINCE } from './filters.ts';
import type { Block } from './output.ts';
import { table } from './table.ts';

/** What the commands that list have in common, filters and pages; and what repeats something for one row or for many. */

type Row = EventDocument | NoticeDocument;

/** `leased`: what a person calls that status. */
export function statusWords({ status }: Row, leased: string): string {
  return status === 'leased' ? leased : status;
}

export function faultWords({ fault }: Row): string | null {
  return fault === null ? null : `${fault.code}: ${fault.message}`;
}

type ListName = 'orders' | 'events' | 'notices' | 'rejections' | 'attention' | 'audit' | 'bulk';

/** Runs a command that only lists: `lines` shows the rows to a person. */
export async function list<R>(
  { options, server }: { options: ListOptions; server: () => ServerApi },
  name: ListName,
  lines: (rows: R[]) => Block[],
): Promise<Report> {
  const { rows, more, page } = await listRows<R>(server(), name, queryOf(options), options);
  const count = page.count as CountDocument | undefined;
  return {
    data: { [name]: rows, more, ...(count === undefined ? {} : { count }) },
    lines: [...lines(rows), ...countLine(count, name.replace(/s$/, '')), ...moreLine(more)],
  };
}

const LIMIT = 50;
/** The server's own limit of a page. */
const PAGE_MAX = 200;

/** Follows a list page by page until there are as many rows as the options ask for. `page` is the last one. */
export async function listRows<R>(
  server: ServerApi,
  name: ListName,
  query: Query,
  { limit, all }: { limit?: string; all?: true },
): Promise<{ rows: R[]; more: boolean; page: Record<string, unknown> }> {
  const most = all ? Number.POSITIVE_INFINITY : limit === undefined ? LIMIT : wholeNumber('limit', limit, 1);
  const rows: R[] = [];
  let cursor: string | undefined;
  let count: unknown;
  for (;;) {
    const left = Math.min(PAGE_MAX, most - rows.length);
    // Counted once, with the first page.
    const asked = { ...query, limit: left, cursor, count: cursor === undefined ? query.count : undefined };
    const page: Record<string, unknown> = await server.get(`/v1/${name}`, asked);
    count ??= page.count;
    rows.push(...(page[name === 'bulk' ? 'runs' : name] as R[]));
    cursor = (page.nextCursor as string | null) ?? undefined;
    if (cursor === undefined || rows.length >= most)
      return { rows, more: cursor !== undefined, page: { ...page, count } };
  }
}

/** How many rows the filters let through, if that was asked. `one`: what one of them is called. */
export function countLine(count: CountDocument | undefined, one: string): string[] {
  return count === undefined ? [] : ['', thereAre(count, one)];
}

/** `There is 1 order.`, `There are more than 1 000 orders.` */
export function thereAre(count: CountDocument, one: string): string {
  const isOne = count.n === 1 && !count.isMore;
  return isOne ? `There is 1 ${one}.` : `There are ${countWords(count)} ${one}s.`;
}

/** The line that ends a list which was cut. */
export function moreLine(more: boolean): string[] {
  return more ? ['', 'There are more: give --limit N or --all.'] : [];
}

/** A command that repeats something for one row or for many: events are replayed, notices are sent again. */
type Bulk<R extends Row> = Required<Pick<Command, 'name' | 'about' | 'details' | 'examples'>> & {
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
  table: (rows: readonly R[]) => Block[];
};

/** A command that counts first, and does nothing to rows that are not named without --yes. */
export function bulkCommand<R extends Row>(bulk: Bulk<R>): Command {
  const { name, about, details, examples, one, done, failed } = bulk;
  return defineCommand({
    usage: `${name} [ID...]`,
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
          `${inNumber(rows.length, one)} would be ${done}, and nothing was done. ` +
            'Add --dry-run to look at them, or --yes to do it.',
        );
      }
      return doAll(connection, bulk, rows?.map(({ id }) => id) ?? ids);
    },
  });
}

type Selection = { failed?: true; order?: string; since?: string };

/** The oldest first. */
async function select<R extends Row>(server: ServerApi, bulk: Bulk<R>, { failed, order, since }: Selection) {
  const query = queryOf({ order, since });
  const selected: R[] = [];
  for (const status of failed ? bulk.failed.statuses : [undefined]) {
    const { rows } = await listRows<R>(server, `${bulk.one}s`, { ...query, status }, { all: true });
    // Equal times stay in this order.
    selected.push(...rows.reverse());
  }
  return selected
    .filter((row) => (failed ? bulk.failed.is(row) : isRepeatable(bulk, row)))
    .sort((one, other) => Date.parse(bulk.at(one)) - Date.parse(bulk.at(other)));
}

/** Whether it is neither in work, nor waits for it. */
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
      `${inNumber(would.length, one)} would be ${done}. Nothing was done.`,
      ...(rows.length === 0 ? [] : ['', ...bulk.table(rows)]),
    ],
  };
}

type Done = { id: string; result: string; exit: ExitCode };

async function doAll<R extends Row>(server: ServerApi, bulk: Bulk<R>, ids: readonly string[]): Promise<Report> {
  const { one, action, done, result } = bulk;
  const results: Done[] = [];
  for (const id of ids) {
    try {
      const path = `/v1/${one}s/${encodeURIComponent(id)}/${action}`;
      const answer = await server.post<Record<string, Parameters<typeof result>[0]>>(path);
      results.push({ id, result: result(answer[one] ?? {}), exit: EXIT.ok });
    } catch (error) {
      const { message, exit } = failure(error);
      const goesOn = error instanceof Refusal && exit !== EXIT.tryAgain;
      // What was done before must be reported, whatever ends the command.
      if (!goesOn && results.length === 0) throw error;
      results.push({ id, result: goesOn ? message : `${message} It ended here.`, exit });
      if (!goesOn) break;
    }
  }
  const n = results.filter(({ exit }) => exit === EXIT.ok).length;
  const left = ids.length - results.length;
  const untried = left === 0 ? '' : ` ${left} were not tried: give the command again.`;
  return {
    data: { dryRun: false, count: n, notTried: left, [`${one}s`]: results.map(({ id, result }) => ({ id, result })) },
    lines: [
      ...[`${inNumber(n, one)} ${done}.${untried}`, ''],
      ...table(results, { id: 'id', result: 'result' }, { nothing: `No such ${one}s.` }),
    ],
    exit: results.map(({ exit }) => exit).find((exit) => exit !== EXIT.ok) ?? EXIT.ok,
  };
}
