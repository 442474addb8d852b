import type { Request } from 'express';
import type { ListedOrderDocument } from '../api/order.ts';
import { listOrders } from '../api/orders.ts';
import { MATTER_KINDS } from '../domain/matter.ts';
import { unreadWords } from '../domain/notice.ts';
import { FLAGS, HOLD_REASONS, ORDER_STATES } from '../domain/order.ts';
import { readSearch } from '../domain/search.ts';
import { type HtmlValue, html } from '../http/app.ts';
import { bulkForm } from './bulk_page.ts';
import { type Column, emptyState, type Filter, filterForm, pagination, problemPanel, table } from './components.ts';
import type { Shown } from './layout.ts';
import { orderLink } from './listing.ts';
import { amountAsked, asked, BY_EXAMPLE, choices, dayFilter, given, loaded, timeAsked } from './query.ts';
import { badge, count, money, stateBadge, time } from './values.ts';
import { type ConsoleOptions, hrefOf, orderPath, type View } from './view.ts';

const PATH = '/orders';
const TITLE = 'Orders';
const NAMES = [
  'q',
  'state',
  'attention',
  'since',
  'until',
  'hold',
  'flag',
  'overpaid',
  'paidSince',
  'paidUntil',
  'amountFrom',
  'amountTo',
  'currency',
  'limit',
  'cursor',
] as const;
type Typed = Record<(typeof NAMES)[number], string>;

/** The list of orders. The address contains the search; a single hit leads to its order. */
export async function showOrders(options: ConsoleOptions, view: View, request: Request): Promise<Shown> {
  const typed = given(request, NAMES);
  const { cursor, ...query } = typed;
  const { document, refused } = await loaded(
    listOrders.load(options, { query: { ...askedOf(view, typed), count: 'true' } }),
  );
  const parts = { title: TITLE, here: PATH, search: query.q } as const;
  const faultOf = (name: string) => refused?.faultOf(name) ?? null;
  const head = html`<h1>${TITLE}</h1>${filterForm(view, { path: PATH, label: 'Filter orders', ...filtersOf(typed, faultOf), kept: { limit: query.limit } })}`;
  if (document === null) {
    const { status } = refused;
    const detail = refused.detailBeside(NAMES.filter((name) => name !== 'cursor' && name !== 'limit'));
    return { ...parts, status, body: html`${head}${problemPanel({ title: 'This search is invalid', detail })}` };
  }
  const { orders, nextCursor: next, count: counted } = document;
  const [only] = orders;
  // An amount names no order: the customer may mean one that is not counted yet.
  const namesOrder = query.q !== '' && readSearch(query.q).amount === null;
  if (namesOrder && only !== undefined && orders.length === 1 && next === null && cursor === '') {
    return { goTo: hrefOf(view, orderPath(only.reference)) };
  }
  const isNone = orders.length === 0 && next === null;
  const body = html`${head}
${counted === undefined || isNone ? null : html`<p class="soft">${count(counted, { one: 'order', many: 'orders' })} · <a href="${hrefOf(view, '/v1/orders.csv', { ...csvQuery(view, typed), bom: 'true' })}" download>CSV</a></p>`}
${isNone || options.asking === null ? null : bulkForm(view, { action: 'check_orders', filter: csvQuery(view, typed) })}
${isNone || query.hold === '' ? null : bulkForm(view, { action: 'accept_orders', filter: csvQuery(view, typed) })}
${isNone ? html`${nothingFound(view, query)}${await nearBy(options, view, query.q)}` : orderTable(view, orders)}
${pagination(view, { path: PATH, query, cursor: cursor === '' ? null : cursor, next })}`;
  return { ...parts, body };
}

/** The query of the API for what was typed: days as times, and nothing that was left empty. */
function askedOf({ zone }: View, typed: Typed): Record<string, string> {
  const times = (['since', 'paidSince'] as const).map((name) => [name, timeAsked(zone, typed[name], 'first')]);
  const ends = (['until', 'paidUntil'] as const).map((name) => [name, timeAsked(zone, typed[name], 'last')]);
  const from = amountAsked(typed.amountFrom);
  const to = amountAsked(typed.amountTo);
  const currency = typed.currency || from.currency || to.currency || '';
  const money = { amountFrom: from.amount, amountTo: to.amount, currency: currency.toUpperCase() };
  return asked({ ...typed, ...Object.fromEntries([...times, ...ends]), ...money });
}

/** The filters without the cursor: the CSV of all rows has no pages. */
function csvQuery(view: View, typed: Typed): Record<string, string> {
  const { limit: _limit, cursor: _cursor, ...filters } = askedOf(view, typed);
  return filters;
}

/** Choices of states in addition to each single state. */
const SEVERAL_STATES = { 'awaiting_payment,payment_pending,expired': 'not paid yet' };

type Filters = { filters: Filter[]; more: Filter[] };

function filtersOf(typed: Typed, faultOf: (name: string) => string | null): Filters {
  const filter = (name: keyof Typed, label: string, more: Partial<Filter> = {}): Filter => {
    return { name, label, value: typed[name], problem: faultOf(name), ...more };
  };
  const amount = (name: keyof Typed, label: string) => {
    const fault = faultOf(name);
    return filter(name, label, { problem: fault === null ? null : `${fault}. ${BY_EXAMPLE.amount}` });
  };
  const day = (name: keyof Typed, label: string) => filter(name, label, dayFilter(typed[name], faultOf(name)));
  return {
    filters: [
      filter('q', 'Search', { type: 'search' }),
      filter('state', 'State', { options: { ...choices(ORDER_STATES), ...SEVERAL_STATES } }),
      filter('attention', 'Needs attention', { options: choices(MATTER_KINDS) }),
      day('since', 'Created since'),
      day('until', 'Created until'),
    ],
    more: [
      filter('hold', 'Held because', { options: choices(HOLD_REASONS) }),
      filter('flag', 'Flag', { options: choices(FLAGS) }),
      filter('overpaid', 'Balance', { options: { true: 'more than asked' } }),
      day('paidSince', 'Paid since'),
      day('paidUntil', 'Paid until'),
      amount('amountFrom', 'Amount at least'),
      amount('amountTo', 'Asks at most'),
      filter('currency', 'Currency'),
    ],
  };
}

function orderTable(view: View, orders: readonly ListedOrderDocument[]): HtmlValue {
  const columns: Column<ListedOrderDocument>[] = [
    {
      head: 'Order',
      cell: ({ reference, title }) =>
        html`${orderLink(view, reference)}${title === null ? null : html`<br><span class="soft">${title}</span>`}`,
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
    { head: 'Created', cell: ({ createdAt }) => html`${time(view, Date.parse(createdAt))}` },
    { head: 'Paid', cell: ({ paidAt }) => (paidAt === null ? null : html`${time(view, Date.parse(paidAt))}`) },
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

/** What was captured in each currency, and what is left of it if some went back. */
function capturedOf(view: View, { payments, paymentsTotal }: ListedOrderDocument): HtmlValue {
  const sums = paymentsTotal.sums.map(
    ({ captured, balance, currency }) =>
      html`${money(view, captured, currency)}${
        captured === balance ? null : html`<br><span class="soft">${money(view, balance, currency)} left</span>`
      }`,
  );
  const said = unreadWords(payments).map((words) => html`<span class="soft">${words}</span>`);
  return [...sums, ...said].map((one, at) => html`${at === 0 ? null : html`<br>`}${one}`);
}

/** Who paid, as the service says it, or else who buys, as the shop said: the name, and the address if there is no name. */
function customerOf({ payment, customer: said }: ListedOrderDocument): HtmlValue {
  const customer = payment?.customer ?? said;
  if (customer === null) return null;
  return html`<bdi>${customer.name ?? customer.email ?? ''}</bdi>`;
}

const FILTER_WORDS: Readonly<Record<string, string>> = {
  state: 'in the state',
  attention: 'open for',
  since: 'created since',
  until: 'created until',
  hold: 'held because of',
  flag: 'flagged',
  overpaid: 'overpaid:',
  paidSince: 'paid since',
  paidUntil: 'paid until',
  amountFrom: 'of at least',
  amountTo: 'of at most',
  currency: 'in',
};

/** The parts of a search without a hit that settled tries as the beginning of a reference. */
const BEGINNINGS = [0.75, 0.5];
const BEGINNING_MIN = 3;
const NEAR_MAX = 5;

/** What a search understands, and orders that are found by the beginning of what was typed: its end may be mistyped. */
async function nearBy(options: ConsoleOptions, view: View, q: string): Promise<HtmlValue> {
  if (q === '') return null;
  const letters = [...q.trim()];
  const { amount } = readSearch(q);
  const lengths = amount === null ? BEGINNINGS.map((part) => Math.ceil(letters.length * part)) : [];
  let near: readonly ListedOrderDocument[] = [];
  for (const length of lengths.filter((length) => length >= BEGINNING_MIN && length < letters.length)) {
    if (near.length > 0) break;
    const query = { q: letters.slice(0, length).join(''), limit: String(NEAR_MAX) };
    near = (await listOrders.load(options, { query })).orders;
  }
  const found = near.length === 0 ? null : html`<h2>Orders with similar references</h2>${orderTable(view, near)}`;
  return html`<p class="soft">You can search by the reference of an order or its beginning; words of the reference, the title or the customer whom the shop named, or their first three letters or more; the id of a link, a payment, an event or a notice; the address of a link; an amount, like R$ 150,00; a customer's name, any word of it, or e-mail address. An id must be whole.</p>${found}`;
}

/** The search and the filters in words. */
function nothingFound(view: View, { q, limit: _, ...filters }: Omit<Typed, 'cursor'>): HtmlValue {
  const words = Object.entries(filters)
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${FILTER_WORDS[name]} ${value.replaceAll('_', ' ').replaceAll(',', ', ')}`);
  const which = [...(q === '' ? [] : [`matches “${q}”`]), ...(words.length === 0 ? [] : [`is ${words.join(', ')}`])];
  if (which.length === 0) return emptyState('There are no orders yet.', 'A shop opens one with POST /v1/orders.');
  const hint =
    q === '' || words.length === 0 ? null : html`<a href="${hrefOf(view, PATH, { q })}">Search without the filters</a>`;
  return emptyState(`No order ${which.join(' and ')}.`, hint);
}
