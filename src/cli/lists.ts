import { duration } from '../config/parsers.ts';
import { ROW_STATUSES, type RowStatus } from '../domain/retry.ts';
import { systemClock } from '../work/clock.ts';
import { type Report, wholeNumber } from './command.ts';
import type { Query, ServerApi } from './connection.ts';
import { UsageError } from './exit.ts';

/** What the commands that list have in common: filters, pages, and the rows of events and notices. */

/** Options of every command that lists. */
export const PAGE_OPTIONS = {
  limit: { value: 'N', about: 'show at most so many, the newest first (50)' },
  all: { about: 'show all' },
} as const;

export const SINCE = {
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

/** An event or a notice, as the API lists both. */
export type Row = {
  id: string;
  reference: string;
  status: RowStatus;
  attempt: number;
  dueAt: string | null;
  endedAt: string | null;
  fault: { code: string; message: string } | null;
};

/** `leased`: what a person calls that status. */
export function statusWords({ status }: Row, leased: string): string {
  return status === 'leased' ? leased : status;
}

export function faultWords({ fault }: Row): string | null {
  return fault === null ? null : `${fault.code}: ${fault.message}`;
}

type ListOptions = { readonly [option: string]: string | true | undefined; limit?: string; all?: true };
type ListName = 'orders' | 'events' | 'notices' | 'rejections' | 'attention';

/** Runs a command that only lists: `lines` shows the rows to a person. */
export async function list<R>(
  { options, server }: { options: ListOptions; server: () => ServerApi },
  name: ListName,
  lines: (rows: R[]) => string[],
): Promise<Report> {
  const { rows, more } = await listRows<R>(server(), name, queryOf(options), options);
  return { data: { [name]: rows, more }, lines: [...lines(rows), ...moreLine(more)] };
}

/** The filters among the options, as the API takes them. */
export function queryOf({ limit, all, order, since, until, ...filters }: ListOptions): Query {
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
export async function listRows<R>(
  server: ServerApi,
  name: ListName,
  query: Query,
  { limit, all }: { limit?: string; all?: true },
): Promise<{ rows: R[]; more: boolean; page: Record<string, unknown> }> {
  const most = all ? Number.POSITIVE_INFINITY : limit === undefined ? LIMIT : wholeNumber('limit', limit, 1);
  const rows: R[] = [];
  let cursor: string | undefined;
  for (;;) {
    const left = Math.min(PAGE_MAX, most - rows.length);
    const page = await server.get<Record<string, unknown>>(`/v1/${name}`, { ...query, limit: left, cursor });
    rows.push(...(page[name] as R[]));
    cursor = (page.nextCursor as string | null) ?? undefined;
    if (cursor === undefined || rows.length >= most) return { rows, more: cursor !== undefined, page };
  }
}

/** The line that ends a list which was cut. */
export function moreLine(more: boolean): string[] {
  return more ? ['', 'There are more: give --limit N or --all.'] : [];
}
