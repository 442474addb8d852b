import type { Request } from 'express';
import type { ListedOrderDocument } from '../api/order.ts';
import { listOrders } from '../api/orders.ts';
import { ORDER_STATES } from '../domain/order.ts';
import { type HtmlValue, html } from '../http/app.ts';
import { type Column, emptyState, type Filter, filterForm, pagination, problemPanel, table } from './components.ts';
import type { Shown } from './layout.ts';
import { asked, choices, given, isDay, loaded, timeAsked } from './query.ts';
import { age, badge, money, stateBadge, time } from './values.ts';
import { type ConsoleOptions, hrefOf, orderPath, type View } from './view.ts';

const PATH = '/orders';
const TITLE = 'Orders';
const NAMES = ['q', 'state', 'since', 'until', 'cursor'] as const;
type Typed = Record<(typeof NAMES)[number], string>;

/** The list of orders: what was searched stands in the address, and one hit leads to its order. */
export async function showOrders(options: ConsoleOptions, view: View, request: Request): Promise<Shown> {
  const typed = given(request, NAMES);
  const { cursor, ...query } = typed;
  const times = { since: timeAsked(query.since, 'first'), until: timeAsked(query.until, 'last') };
  const { document, refused } = await loaded(
    listOrders.load(options, { query: asked({ ...query, ...times, cursor }) }),
  );
  const parts = { title: TITLE, here: PATH, search: query.q } as const;
  const faultOf = (name: string) => refused?.faultOf(name) ?? null;
  const head = html`<h1>${TITLE}</h1>${filterForm(view, { path: PATH, label: 'Filter orders', filters: filtersOf(typed, faultOf) })}`;
  if (document === null) {
    const { status, detail } = refused;
    return { ...parts, status, body: html`${head}${problemPanel({ title: 'This cannot be searched', detail })}` };
  }
  const { orders, nextCursor: next } = document;
  const [only] = orders;
  if (query.q !== '' && only !== undefined && orders.length === 1 && next === null && cursor === '') {
    return { goTo: hrefOf(view, orderPath(only.reference)) };
  }
  const body = html`${head}
${orders.length === 0 ? nothingFound(view, query) : orderTable(view, orders)}
${pagination(view, { path: PATH, query, cursor: cursor === '' ? null : cursor, next })}`;
  return { ...parts, body };
}

function filtersOf({ q, state, since, until }: Typed, faultOf: (name: string) => string | null): Filter[] {
  const date = (value: string) => (isDay(value) ? 'date' : 'text');
  return [
    { name: 'q', label: 'Search', value: q, type: 'search', problem: faultOf('q') },
    { name: 'state', label: 'State', value: state, options: choices(ORDER_STATES), problem: faultOf('state') },
    { name: 'since', label: 'Created since (UTC)', value: since, type: date(since), problem: faultOf('since') },
    { name: 'until', label: 'Created until (UTC)', value: until, type: date(until), problem: faultOf('until') },
  ];
}

function orderTable(view: View, orders: readonly ListedOrderDocument[]): HtmlValue {
  const columns: Column<ListedOrderDocument>[] = [
    {
      head: 'Order',
      cell: ({ reference, title }) =>
        html`<a href="${hrefOf(view, orderPath(reference))}">${reference}</a>${title === null ? null : html`<br><span class="soft">${title}</span>`}`,
    },
    {
      head: 'State',
      cell: ({ state, hold }) =>
        html`${stateBadge(state)}${hold === null ? null : html`<br><span class="soft">${hold.reason.replaceAll('_', ' ')}</span>`}`,
    },
    { head: 'Asked', isNumber: true, cell: ({ amount, currency }) => money(view, amount, currency) },
    { head: 'Captured', isNumber: true, cell: (order) => capturedOf(view, order) },
    { head: 'Customer', cell: (order) => customerOf(order) },
    {
      head: 'To look at',
      cell: ({ flags, attention }) =>
        [...new Set([...flags, ...attention])].map((name) => html`${badge(name.replaceAll('_', ' '), 'wait')} `),
    },
    { head: 'Created', cell: ({ createdAt }) => html`${time(Date.parse(createdAt))}` },
    { head: 'Paid', cell: ({ paidAt }) => (paidAt === null ? null : html`${age(view, Date.parse(paidAt))}`) },
  ];
  return table({
    caption: TITLE,
    hidesCaption: true,
    columns,
    rows: orders,
    rowId: ({ reference }) => reference,
    empty: 'No order.',
  });
}

/** What was captured and has not gone back, in each currency. */
export function capturedOf(view: View, { paymentsTotal }: Pick<ListedOrderDocument, 'paymentsTotal'>): HtmlValue {
  return paymentsTotal.sums.map(
    ({ balance, currency }, at) => html`${at === 0 ? null : html`<br>`}${money(view, balance, currency)}`,
  );
}

/** Who paid, as the service says it: the name, and the address if there is no name. */
function customerOf({ payment }: ListedOrderDocument): HtmlValue {
  const customer = payment?.customer ?? null;
  if (customer === null) return null;
  return html`<bdi>${customer.name ?? customer.email ?? ''}</bdi>`;
}

const FILTER_WORDS: Readonly<Record<string, string>> = {
  state: 'in the state',
  since: 'created since',
  until: 'created until',
};

/** Says what was looked for. */
function nothingFound(view: View, { q, ...filters }: Omit<Typed, 'cursor'>): HtmlValue {
  const words = Object.entries(filters)
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${FILTER_WORDS[name]} ${value.replaceAll('_', ' ')}`);
  const which = [...(q === '' ? [] : [`matches “${q}”`]), ...(words.length === 0 ? [] : [`is ${words.join(', ')}`])];
  if (which.length === 0) return emptyState('There is no order yet.', 'A shop opens one with POST /v1/orders.');
  const hint =
    q === '' || words.length === 0
      ? null
      : html`<a href="${hrefOf(view, PATH, { q })}">Look for it without the filters</a>`;
  return emptyState(`No order ${which.join(' and ')}.`, hint);
}
