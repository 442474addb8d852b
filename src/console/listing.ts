import type { Request } from 'express';
import type { CountDocument } from '../api/lists.ts';
import { type Html, type HtmlValue, html } from '../http/app.ts';
import { type Filter, filterForm, pagination, problemPanel } from './components.ts';
import { dayFilter, loaded, timeAsked } from './query.ts';
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

/** What a filter shows: its value, and what is wrong with it. */
export type FilterOf = (filter: Omit<Filter, 'value' | 'problem'>) => Filter;

type List<Document> = {
  label: string;
  /** What the list has, in one and in many. */
  noun: Noun;
  /** Of the query as the API takes it. */
  load: (query: Typed) => Promise<Document>;
  /** What the API is asked for what was typed. Times are times already. */
  asked?: (typed: Typed) => Typed;
  filters: (of: FilterOf) => readonly Filter[];
  /** Filters that are folded away until one is set. */
  more?: (of: FilterOf) => readonly Filter[];
  /** What stands between the filters and the rows, given the query as the API takes it. */
  above?: (asked: Typed, document: Document) => HtmlValue;
  rows: (document: Document, typed: Typed, isFiltered: boolean) => HtmlValue | Promise<HtmlValue>;
};

/** Shows a list. A query that the API refuses gets the same page with what is wrong, beside what was typed. */
export async function listPage<Document extends ListDocument>(
  { view, request, path }: { view: View; request: Request; path: string },
  { label, noun, load, asked = (typed) => typed, filters, more = () => [], above = () => null, rows }: List<Document>,
): Promise<{ list: Html; document: Document | null; status: number }> {
  const typed = typedQuery(request);
  const { cursor = null, ...query } = typed;
  const { limit = null, ...filtering } = query;
  const wanted = asked(inZone(view, typed));
  const { document, refused } = await loaded(load(wanted));
  const of: FilterOf = (filter) => {
    const fault = refused?.faultOf(filter.name) ?? null;
    const value = typed[filter.name] ?? '';
    return { ...filter, value, problem: fault, ...(Object.hasOwn(TIMES, filter.name) ? dayFilter(value, fault) : {}) };
  };
  const shown = { filters: filters(of), more: more(of) };
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
  const isFiltered = Object.keys(filtering).length > 0;
  const list = html`${form}${counted(document, noun)}${above(wanted, document)}${await rows(document, typed, isFiltered)}
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
  return html`${statusBadge(status)}${isLater ? html` <span class="soft">${age(view, Date.parse(dueAt))}</span>` : null}`;
}

/** An order by its name, which a stranger may have chosen. */
export function orderLink(view: View, reference: string): Html {
  return html`<a class="reference" href="${hrefOf(view, orderPath(reference))}"><bdi>${reference}</bdi></a>`;
}

/** A long name with places at which a line may break: names of types have no spaces. */
export function breakable(name: string): Html {
  return html`<bdi>${name.split(/(?<=[._])/).map((part) => html`${part}<wbr>`)}</bdi>`;
}

/** When something was, as a list shows it: how long ago, with the time as its title. */
export function since(view: View, iso: string): Html {
  return age(view, Date.parse(iso));
}
