import type { EventDocument } from '../api/events.ts';
import type { CountDocument } from '../api/lists.ts';
import type { NoticeDocument } from '../api/notices.ts';
import { duration } from '../config/parsers.ts';
import { OUTCOMES } from '../domain/decision.ts';
import { MATTER_KINDS } from '../domain/matter.ts';
import { amountIn } from '../domain/money.ts';
import { NOTICE_TYPES, type OrderDocument, unreadWords } from '../domain/notice.ts';
import { FLAGS, HOLD_REASONS, ORDER_STATES } from '../domain/order.ts';
import { ROW_STATUSES } from '../domain/retry.ts';
import { countWords, inNumber } from '../explain/glossary.ts';
import { type Command, type Definition, type Options, type Report, wholeNumber } from '../terminal/command.ts';
import { UsageError } from '../terminal/failure.ts';
import type { Block } from '../terminal/output.ts';
import { type Columns, table } from '../terminal/table.ts';
import { KEPT_REASONS } from '../vocabulary.ts';
import { systemClock } from '../work/clock.ts';
import { type Around, defineCommand, type SettledCommand } from './command.ts';
import type { Query, ServerApi } from './connection.ts';
import { EXIT, Refusal } from './exit.ts';

/** What the commands that list have in common: their filters and pages; and what repeats something for rows. */

/** Options of every command that lists. */
export const PAGE_OPTIONS = {
  limit: { value: 'N', about: 'show at most N, the newest first (50)' },
  all: { about: 'show all' },
} as const;

/** Options of the commands whose list can be counted. */
export const LIST_OPTIONS = { ...PAGE_OPTIONS, count: { about: 'also say how many there are' } } as const;

export const SINCE = {
  value: 'TIME',
  about: 'only those since then: how long ago, like 90m, 2h or 3d, or a time like 2030-01-31T12:00:00Z',
} as const;
export const UNTIL = { value: 'TIME', about: 'only those until then' } as const;

export const ORDER_OPTIONS = {
  q: {
    value: 'TEXT',
    about:
      'search: a reference or its beginning; words of it, of the title or of the customer, or their beginnings; an e-mail ' +
      'address; an id or address of a link; an id of a payment, event or notice; or an amount, like 150,00 or "BRL 150"',
  },
  state: { value: 'STATE', choices: ORDER_STATES, about: 'only orders in this state' },
  flag: { value: 'FLAG', choices: FLAGS, about: 'only orders with this flag' },
  overpaid: { value: 'true', choices: ['true'], about: 'only orders that have more money than they ask for' },
  attention: { value: 'KIND', choices: MATTER_KINDS, about: 'only orders with an open matter of this kind' },
  hold: { value: 'REASON', choices: HOLD_REASONS, about: 'only orders with an open hold for this reason' },
  since: { value: 'TIME', about: 'only orders created since then: 90m, 2h or 3d ago, or 2030-01-31T12:00:00Z' },
  until: { value: 'TIME', about: 'only orders created until then' },
  'paid-since': { value: 'TIME', about: 'only orders paid since then' },
  'paid-until': { value: 'TIME', about: 'only orders paid until then' },
  'amount-from': { value: 'AMOUNT', about: 'only orders of this amount or more, like 100.50' },
  'amount-to': { value: 'AMOUNT', about: 'only orders of this amount or less' },
  currency: { value: 'CODE', about: 'only orders in this currency; SETTLED_CURRENCY if an amount is given without it' },
} as const;

const WITH_STATUS = (what: 'events' | 'notices') =>
  ({
    status: { value: 'STATUS', choices: ROW_STATUSES, about: `only ${what} with this status` },
    order: { value: 'REFERENCE', about: `only ${what} of this order` },
    since: SINCE,
    until: UNTIL,
  }) as const;

export const EVENT_OPTIONS = {
  ...WITH_STATUS('events'),
  type: { value: 'TYPE', about: 'only events of this type, as the service names it' },
  outcome: { value: 'OUTCOME', choices: OUTCOMES, about: 'only events with this outcome' },
} as const;

export const NOTICE_OPTIONS = {
  ...WITH_STATUS('notices'),
  type: { value: 'TYPE', choices: NOTICE_TYPES, about: 'only notices of this type' },
} as const;

export const REJECTION_OPTIONS = {
  order: { value: 'REFERENCE', about: 'only those of this order' },
  reason: { value: 'REASON', choices: KEPT_REASONS, about: 'only those for this reason' },
} as const;

export type ListOptions = { readonly [option: string]: string | true | undefined; limit?: string; all?: true };

/** The filters among the options, as the API takes them. */
export function queryOf({ limit, all, order, ...filters }: ListOptions): Query {
  const given = Object.entries({ reference: order, ...filters }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [inApi(name), inQuery(name, value as string | true)]));
}

/** `paid-since` is `paidSince`. */
function inApi(option: string): string {
  return option.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function inQuery(option: string, value: string | true): string {
  if (value === true) return 'true';
  return /(^|-)(since|until)$/.test(option) ? timeOf(option, value) : value;
}

const LENGTH = duration('1m', '3650d');
/** With its offset: the time zone of this machine says nothing about where a person read the time. The server reads it. */
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;

function timeOf(option: string, given: string): string {
  try {
    return ISO_TIME.test(given) ? given : new Date(systemClock.nowMs() - LENGTH(given)).toISOString();
  } catch {
    throw new UsageError(
      `--${option} is "${given}". Write how long ago in minutes, hours or days, like 90m, 2h or 3d, or a time with its ` +
        'offset, like 2030-01-31T12:00:00Z.',
    );
  }
}

type Row = EventDocument | NoticeDocument;

/** A row that a worker holds is being sent, or settled. */
export function statusWords(row: Row): string {
  if ('superseded' in row && row.superseded) return 'superseded';
  return row.status !== 'leased' ? row.status : 'superseded' in row ? 'being sent' : 'in work';
}

export function faultWords({ fault }: Row): string | null {
  return fault === null ? null : `${fault.code}: ${fault.message}`;
}

type ListName = 'orders' | 'events' | 'notices' | 'rejections' | 'attention' | 'audit' | 'bulk';

/** A list of the API, and its table. `options` are filters. */
type Listing<R> = Omit<Definition<Options, Around>, 'run'> & {
  list: ListName;
  columns: Columns<R> | ((rows: readonly R[], page: Record<string, unknown>) => Columns<R>);
  /** What stands in place of a table without rows. */
  nothing: string;
  /** What is said of a row below it. */
  below?: (row: R) => string | null;
  /** What is said below the table of what the answer has beside its rows. */
  after?: (page: Record<string, unknown>) => Block[];
};

const NOT_COUNTED: ReadonlySet<ListName> = new Set(['audit', 'bulk']);

/** A command that lists rows of one kind. */
export function listCommand<R>({ options = {}, ...listing }: Listing<R>): SettledCommand {
  return defineCommand({
    ...listing,
    options: { ...options, ...(NOT_COUNTED.has(listing.list) ? PAGE_OPTIONS : LIST_OPTIONS) },
    run: ({ options, server }) => list(server(), listing, options as ListOptions),
  });
}

export type ListTable<R> = Pick<Listing<R>, 'list' | 'columns' | 'nothing' | 'below' | 'after'>;

/** The rows that the options select. */
export async function list<R>(
  server: ServerApi,
  { list: name, columns, nothing, below = () => null, after = () => [] }: ListTable<R>,
  options: ListOptions,
): Promise<Report> {
  const { rows, more, page } = await listRows<R>(server, name, queryOf(options), options);
  const { count, ...beside } = page as { count?: CountDocument };
  const counted = count === undefined ? [] : ['', thereAre(count, name.replace(/s$/, ''))];
  return {
    data: { [keyOf(name)]: rows, more, ...(count === undefined ? {} : { count }), ...beside },
    lines: [
      ...table(rows, typeof columns === 'function' ? columns(rows, beside) : columns, { nothing, below }),
      ...counted,
      ...moreLine(more),
      ...after(beside),
    ],
  };
}

/** Where the answer has the rows. */
function keyOf(name: ListName): string {
  return name === 'bulk' ? 'runs' : name;
}

const LIMIT = 50;
/** The server's own limit of a page. */
const PAGE_MAX = 200;

/** Follows a list page by page until there are as many rows as the options ask for. `page`: what the last has beside them. */
export async function listRows<R>(
  server: ServerApi,
  name: ListName,
  query: Query,
  { limit, all }: { limit?: string | undefined; all?: true | undefined },
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
    const { [keyOf(name)]: its, nextCursor, ...beside } = page;
    rows.push(...(its as R[]));
    cursor = (nextCursor as string | null) ?? undefined;
    if (cursor === undefined || rows.length >= most) {
      return { rows, more: cursor !== undefined, page: count === undefined ? beside : { ...beside, count } };
    }
  }
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
      const results: { id: string; result: string; exit: number }[] = [];
      for (const id of ids) {
        try {
          const path = `/v1/${one}s/${encodeURIComponent(id)}/${action}`;
          const answer = await server().post<Record<string, Parameters<typeof result>[0]>>(path);
          results.push({ id, result: result(answer[one] ?? {}), exit: EXIT.ok });
        } catch (error) {
          if (!(error instanceof Refusal) || error.exit === EXIT.tryAgain) throw error;
          results.push({ id, result: error.message, exit: error.exit });
        }
      }
      const n = results.filter(({ exit }) => exit === EXIT.ok).length;
      return {
        data: { count: n, [`${one}s`]: results.map(({ id, result }) => ({ id, result })) },
        lines: [`${inNumber(n, one)} ${done}.`, '', ...table(results, { id: 'id', result: 'result' })],
        exit: results.find(({ exit }) => exit !== EXIT.ok)?.exit ?? EXIT.ok,
      };
    },
  });
}

/** What was captured for an order, and what is left of it if some was refunded. */
export function capturedWords({ payments, paymentsTotal }: Pick<OrderDocument, 'payments' | 'paymentsTotal'>): string {
  const sums = paymentsTotal.sums.map(
    ({ captured, balance, currency }) =>
      `${amountIn({ amount: captured, currency })}${captured === balance ? '' : ` (${balance} left)`}`,
  );
  return [...sums, ...unreadWords(payments)].join(', ');
}
