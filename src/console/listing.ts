import type { Request } from 'express';
import type { CountDocument } from '../api/lists.ts';
import { type Html, type HtmlValue, html } from '../http/app.ts';
import { type Filter, filterForm, pagination, problemPanel } from './components.ts';
import type { PageParts, Shown } from './layout.ts';
import { dayFilter, loaded, timeAsked } from './query.ts';
import { age, count, type Noun, STATUS_WORDS, statusBadge } from './values.ts';
import { DONE, hrefOf, OPEN, orderPath, type View } from './view.ts';

/** A list of the API as a page: its filters as they were typed, its rows, and the way to the next ones. */

/** Values of a page's address by their names, as they were typed; what was left empty is left out. */
type Typed = Readonly<Record<string, string>>;

export function typedQuery(request: Pick<Request, 'url'>): Typed {
  const { searchParams } = new URL(request.url, 'http://settled');
  return Object.fromEntries(
    [...searchParams].filter(([name, value]) => name !== DONE && name !== OPEN && value !== ''),
  );
}

/** `count`: of all rows that the filters let through, if the list counts them. */
type ListDocument = { nextCursor: string | null; count?: CountDocument | undefined };

/** What a filter shows: its value, and what is wrong with it. */
type FilterOf = (filter: Omit<Filter, 'value' | 'problem'>) => Filter;

/**
 * Shows a list. A query that the API refuses gets the same page with what is wrong, beside what was typed.
 *
 * @param above what stands between the filters and the rows, given the query as the API takes it
 */
export async function listPage<Document extends ListDocument>(
  { view, request, path }: { view: View; request: Request; path: string },
  {
    label,
    noun,
    load,
    filters,
    above = () => null,
    rows,
  }: {
    label: string;
    /** What the list has, in one and in many. */
    noun: Noun;
    load: (query: object) => Promise<Document>;
    filters: (of: FilterOf) => readonly Filter[];
    above?: (asked: Typed) => HtmlValue;
    rows: (document: Document, isFiltered: boolean) => Html;
  },
): Promise<{ list: Html; document: Document | null; status: number }> {
  const typed = typedQuery(request);
  const { cursor = null, ...query } = typed;
  const asked = inZone(view, typed);
  const { document, refused } = await loaded(load(asked));
  const of: FilterOf = (filter) => {
    const fault = refused?.faultOf(filter.name) ?? null;
    const isTime = filter.name === 'since' || filter.name === 'until';
    const value = typed[filter.name] ?? '';
    return { ...filter, value, problem: fault, ...(isTime ? dayFilter(value, fault) : {}) };
  };
  const shown = filters(of);
  const form = shown.length === 0 ? null : filterForm(view, { path, label, filters: shown });
  if (refused !== null) {
    const isNamed = shown.some(({ problem }) => problem !== null && problem !== undefined);
    const title = isNamed ? 'A filter is not valid' : 'This address is not valid';
    const remedy = html`<a href="${hrefOf(view, path)}">See the whole list</a>`;
    const detail = refused.detailBeside(shown.map(({ name }) => name));
    const list = html`${form}${problemPanel({ title, detail, remedy })}`;
    return { list, document, status: refused.status };
  }
  const list = html`${form}${counted(document, noun)}${above(asked)}${rows(document, Object.keys(query).length > 0)}
${pagination(view, { path, query, cursor, next: document.nextCursor })}`;
  return { list, document, status: 200 };
}

/** How many rows there are, as the list itself counts them. */
function counted({ count: counting }: ListDocument, noun: Noun): Html | null {
  if (counting === undefined || counting.n === 0) return null;
  return html`<p class="soft" role="status">${count(counting, noun)}</p>`;
}

/** A page of the console around a list. */
export function withList(parts: PageParts, { status }: { status: number }): Shown {
  return { ...parts, status };
}

/** A day that was typed begins and ends in the zone of the pages. */
function inZone({ zone }: View, typed: Typed): Typed {
  const times = { since: 'first', until: 'last' } as const;
  const given = Object.entries(times).flatMap(([name, end]): [string, string][] =>
    typed[name] === undefined ? [] : [[name, timeAsked(zone, typed[name], end)]],
  );
  return { ...typed, ...Object.fromEntries(given) };
}

/** Filters by time. */
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
