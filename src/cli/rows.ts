import type { EventDocument } from '../api/events.ts';
import type { CountDocument } from '../api/lists.ts';
import type { NoticeDocument } from '../api/notices.ts';
import { amountIn } from '../domain/money.ts';
import { type OrderDocument, unreadWords } from '../domain/notice.ts';
import { countWords, inNumber } from '../explain/glossary.ts';
import { type Command, defineCommand, type Report, wholeNumber } from './command.ts';
import type { Query, ServerApi } from './connection.ts';
import { EXIT, type ExitCode, failure, Refusal } from './exit.ts';
import { type ListOptions, queryOf } from './filters.ts';
import type { Block } from './output.ts';
import { table } from './table.ts';

/** What the commands that list have in common, filters and pages; and what repeats something for rows. */

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

/** A command that repeats something for the rows that it names: events are replayed, notices are sent again. */
type Repeat = Required<Pick<Command, 'name' | 'about' | 'details' | 'examples'>> & {
  /** One row in words; with an s it is the name of the list in the API. */
  one: 'event' | 'notice';
  /** The last part of the route that does it, and the name of the command that has the server do it for many. */
  action: 'replay' | 'resend';
  done: string;
  /** What becomes of a row, from the API's answer about it. */
  result: (answer: { waitsFor?: string | null }) => string;
};

export function repeatCommand({ name, about, details, examples, one, action, done, result }: Repeat): Command {
  return defineCommand({
    usage: `${name} ID...`,
    about,
    details: [
      ...details,
      'If one is refused it continues with the others; the exit code is that of the first refusal.',
      `For all of an order, a status or a time: settled bulk ${action}.`,
    ],
    examples,
    async run({ positionals: ids, server }) {
      const results = await repeatEach(ids, async (id) => {
        const path = `/v1/${one}s/${encodeURIComponent(id)}/${action}`;
        const answer = await server().post<Record<string, Parameters<typeof result>[0]>>(path);
        return result(answer[one] ?? {});
      });
      const n = results.filter(({ exit }) => exit === EXIT.ok).length;
      const left = ids.length - results.length;
      const untried = left === 0 ? '' : ` ${left} were not tried: give the command again.`;
      return {
        data: { count: n, notTried: left, [`${one}s`]: results.map(({ id, result }) => ({ id, result })) },
        lines: [`${inNumber(n, one)} ${done}.${untried}`, '', ...table(results, { id: 'id', result: 'result' })],
        exit: results.map(({ exit }) => exit).find((exit) => exit !== EXIT.ok) ?? EXIT.ok,
      };
    },
  });
}

type Done = { id: string; result: string; exit: ExitCode };

async function repeatEach(ids: readonly string[], repeat: (id: string) => Promise<string>): Promise<Done[]> {
  const results: Done[] = [];
  for (const id of ids) {
    try {
      results.push({ id, result: await repeat(id), exit: EXIT.ok });
    } catch (error) {
      const { message, exit } = failure(error);
      const goesOn = error instanceof Refusal && exit !== EXIT.tryAgain;
      // What was done before must be reported, whatever ends the command.
      if (!goesOn && results.length === 0) throw error;
      results.push({ id, result: goesOn ? message : `${message} It ended here.`, exit });
      if (!goesOn) break;
    }
  }
  return results;
}

/** What was captured for an order, and what is left of it if some was refunded. */
export function capturedWords({ payments, paymentsTotal }: Pick<OrderDocument, 'payments' | 'paymentsTotal'>): string {
  const sums = paymentsTotal.sums.map(
    ({ captured, balance, currency }) =>
      `${amountIn({ amount: captured, currency })}${captured === balance ? '' : ` (${balance} left)`}`,
  );
  return [...sums, ...unreadWords(payments)].join(', ');
}
