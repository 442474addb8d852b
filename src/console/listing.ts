import type { Request } from 'express';
import type { CountDocument } from '../api/lists.ts';
import { ProblemError } from '../api/problem.ts';
import { readSearch } from '../domain/search.ts';
import { type Html, type HtmlValue, html } from '../http/app.ts';
import type { Problem } from '../http/problem.ts';
import { endOfDay, momentOf } from '../work/zone.ts';
import { type Filter, filterForm, pagination, problemPanel, table } from './components.ts';
import { age, count, type Noun, STATUS_WORDS, statusBadge } from './values.ts';
import { DONE, hrefOf, OPEN, orderPath, type View } from './view.ts';

/** A list of the API as a page: its filters as they were typed, its rows, and the way to the next ones. */

/** Values of a page's address by their names, as they were typed; what was left empty is left out. */
export type Typed = Readonly<Record<string, string>>;

/** Of a name that is repeated: all its values, with commas between. */
export function typedQuery(request: Pick<Request, 'url'>): Typed {
  const { searchParams } = new URL(request.url, 'http://settled');
  const names = [...new Set(searchParams.keys())].filter((name) => name !== DONE && name !== OPEN);
  const typed = names.map((name) => [
    name,
    searchParams
      .getAll(name)
      .filter((value) => value !== '')
      .join(','),
  ]);
  return Object.fromEntries(typed.filter(([, value]) => value !== ''));
}

/** `count`: of all rows that the filters let through, if the list counts them. */
type ListDocument = { nextCursor: string | null; count?: CountDocument | undefined };

/** `example`: said after what is wrong with a value. */
type ListFilter = Omit<Filter, 'value' | 'problem'> & { example?: string };

type List<Document, Row> = Pick<Parameters<typeof table<Row>>[0], 'caption' | 'columns' | 'rowId'> & {
  view: View;
  request: Request;
  path: string;
  label: string;
  /** What the list has, in one and in many. */
  noun: Noun;
  /** Of the query as the API takes it. */
  load: (query: Typed) => Promise<Document>;
  /** What the API is asked for what was typed. Times are times already. */
  asked?: (typed: Typed) => Typed;
  filters?: readonly ListFilter[];
  /** Filters that are folded away until one is set. */
  more?: readonly ListFilter[];
  /** What stands between the filters and the rows, given the query as the API takes it. */
  above?: (asked: Typed, document: Document) => HtmlValue;
  rows: (document: Document) => readonly Row[];
  /** What stands in place of a table without rows. */
  nothing: (isFiltered: boolean, document: Document, typed: Typed) => string | Html | Promise<string | Html>;
};

/** Shows a list. A query that the API refuses gets the same page with what is wrong, beside what was typed. */
export async function listPage<Document extends ListDocument, Row>({
  filters = [],
  more = [],
  asked = (typed) => typed,
  above = () => null,
  ...given
}: List<Document, Row>): Promise<{ list: Html; document: Document | null; status: number }> {
  const { view, request, path, label, noun, load, rows: rowsOf, nothing } = given;
  const typed = typedQuery(request);
  const { cursor = null, ...query } = typed;
  const { limit = null, ...filtering } = query;
  const wanted = asked(inZone(view, typed));
  const { document, refused } = await loaded(load(wanted));
  const show = ({ example, ...filter }: ListFilter): Filter => {
    const fault = refused?.faultOf(filter.name) ?? null;
    const value = typed[filter.name] ?? '';
    const said = fault === null || example === undefined ? fault : `${fault}. ${example}`;
    return { ...filter, value, problem: said, ...(Object.hasOwn(TIMES, filter.name) ? dayFilter(value, fault) : {}) };
  };
  const shown = { filters: filters.map(show), more: more.map(show) };
  const all = [...shown.filters, ...shown.more];
  const form = all.length === 0 ? null : filterForm(view, { path, label, ...shown, kept: { limit } });
  if (refused !== null) {
    const isNamed = all.some(({ problem }) => problem !== null && problem !== undefined);
    const title = isNamed ? 'A filter is not valid' : 'This address is not valid';
    const remedy = html`<a href="${hrefOf(view, path)}">See the whole list</a>`;
    const detail = refused.detailBeside(all.map(({ name }) => name));
    const list = html`${form}${problemPanel({ title, detail, remedy })}`;
    return { list, document, status: refused.status };
  }
  const rows = rowsOf(document);
  const empty = rows.length > 0 ? '' : await nothing(Object.keys(filtering).length > 0, document, typed);
  const list = html`${form}${counted(document, noun)}${above(wanted, document)}${table({ ...given, rows, empty })}
${pagination(view, { path, query, cursor, next: document.nextCursor })}`;
  return { list, document, status: 200 };
}

/** How many rows there are, as the list itself counts them. */
function counted({ count: counting }: ListDocument, noun: Noun): Html | null {
  if (counting === undefined || counting.n === 0) return null;
  return html`<p class="soft" role="status">${count(counting, noun)}</p>`;
}

/** Filters by time. A day that was typed begins and ends in the zone of the pages. */
const TIMES: Readonly<Record<string, 'first' | 'last'>> = {
  since: 'first',
  until: 'last',
  paidSince: 'first',
  paidUntil: 'last',
};

function inZone({ zone }: View, typed: Typed): Typed {
  const values = Object.entries(typed).map(([name, value]) => {
    const end = Object.hasOwn(TIMES, name) ? TIMES[name] : undefined;
    return [name, end === undefined ? value : timeAsked(zone, value, end)];
  });
  return Object.fromEntries(values);
}

export const ORDER_FILTER = { name: 'reference', label: 'Order' } as const;
export const SINCE = { name: 'since', label: 'Since' } as const;
export const UNTIL = { name: 'until', label: 'Until' } as const;

/** The statuses of rows, in the words of a filter. */
export const STATUS_FILTER = { name: 'status', label: 'Status', options: STATUS_WORDS } as const;

/** The status of an event or a notice, and when it is tried again. */
export function rowStatus(
  view: View,
  { status, dueAt }: { status: keyof typeof STATUS_WORDS; dueAt: string | null },
): Html {
  const isLater = status !== 'leased' && dueAt !== null && Date.parse(dueAt) > view.nowMs;
  return html`${statusBadge(status)}${isLater ? html` <span class="soft">${age(view, dueAt)}</span>` : null}`;
}

/** An order by its name, which a stranger may have chosen. */
export function orderLink(view: View, reference: string): Html {
  return html`<a class="reference" href="${hrefOf(view, orderPath(reference))}"><bdi>${reference}</bdi></a>`;
}

/** A long name with places at which a line may break: names of types have no spaces. */
export function breakable(name: string): Html {
  return html`<bdi>${name.split(/(?<=[._])/).map((part) => html`${part}<wbr>`)}</bdi>`;
}

/** Names as choices of a filter, in words. */
export function choices(names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, name.replaceAll('_', ' ')]));
}

/** What a filter by time and one by amount understand, said if one was not understood. */
export const BY_EXAMPLE = {
  time: 'Write a day like 2026-11-23 or 23/11/2026.',
  amount: 'Write an amount like 150, 150.00 or R$ 150,00.',
} as const;

/** An amount as people write it, as the API takes it, and the currency that was named. Any other text stays. */
export function amountAsked(typed: string): { amount: string; currency: string | null } {
  const read = readSearch(typed).amount;
  return { amount: read?.decimals[0] ?? typed, currency: read?.currency ?? null };
}

const DAY_FIRST = /^(\d{1,2})[/.](\d{1,2})[/.](\d{4})$/;
const DAY = /^\d{4}-\d\d-\d\d$/;
const MINUTE = /^\d{4}-\d\d-\d\dT\d\d:\d\d$/;

/**
 * A day or a minute that was typed in a time zone, as the API takes it. Any other text stays, so that the API says what is
 * wrong.
 */
function timeAsked(zone: string, typed: string, end: 'first' | 'last'): string {
  const [, day = '', month = '', year = ''] = DAY_FIRST.exec(typed.trim()) ?? [];
  const text = day === '' ? typed.trim() : `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`;
  const isDay = DAY.test(text);
  if (!isDay && !MINUTE.test(typed)) return typed;
  const atMs = isDay && end === 'last' ? endOfDay(zone, text) : momentOf(zone, text.replace('T', ' '));
  return atMs === null ? typed : new Date(atMs).toISOString();
}

/** What a filter by time shows of what was typed, and says if it was not understood. A control for days holds no other text. */
function dayFilter(typed: string, fault: string | null): { type: 'date' | 'text'; problem: string | null } {
  const isDay = typed === '' || DAY.test(typed);
  return { type: isDay ? 'date' : 'text', problem: fault === null ? null : BY_EXAMPLE.time };
}

/** What the API answers to a page's query; or, if it refuses the query, why, by the names of its parameters. */
type Loaded<Document> = { document: Document; refused: null } | { document: null; refused: Refused };

type Refused = {
  status: number;
  detail: string;
  /** Of a parameter that has one. */
  faultOf: (name: string) => string | null;
  /** What is wrong, given the names of the filters that say it of themselves. */
  detailBeside: (names: readonly string[]) => string;
};

/** Waits for what a page shows. A query that the API refuses is no fault: the page says what is wrong with it. */
export async function loaded<Document>(loading: Promise<Document>): Promise<Loaded<Document>> {
  try {
    return { document: await loading, refused: null };
  } catch (error) {
    if (!(error instanceof ProblemError) || !isAboutQuery(error.problem)) throw error;
    const { status, detail, errors = [] } = error.problem;
    const faultOf = (name: string) => errors.find(({ path }) => path === name)?.detail ?? null;
    const detailBeside = (names: readonly string[]) => {
      const others = errors.filter(({ path }) => !names.includes(path));
      if (errors.length === 0) return detail;
      return others.map((one) => `${one.path}: ${one.detail}`).join('; ') || 'The marked filter says what is wrong.';
    };
    return { document: null, refused: { status, detail, faultOf, detailBeside } };
  }
}

function isAboutQuery({ code, status }: Problem): boolean {
  return code === 'invalid_request' && (status === 400 || status === 422);
}
