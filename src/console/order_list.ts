import type { Request } from 'express';
import type { ListedOrderDocument } from '../api/order.ts';
import { listOrders } from '../api/orders.ts';
import { MATTER_KINDS } from '../domain/matter.ts';
import { unreadWords } from '../domain/notice.ts';
import { FLAGS, HOLD_REASONS, ORDER_STATES } from '../domain/order.ts';
import { readSearch } from '../domain/search.ts';
import { type HtmlValue, html } from '../http/app.ts';
import { bulkForm } from './bulk_page.ts';
import { type Column, emptyState, table } from './components.ts';
import type { Shown } from './layout.ts';
import { amountAsked, BY_EXAMPLE, choices, listPage, orderLink, type Typed, typedQuery } from './listing.ts';
import { badge, money, stateBadge, time } from './values.ts';
import { type ConsoleOptions, hrefOf, orderPath, type View } from './view.ts';

const PATH = '/orders';
const TITLE = 'Orders';

/** The list of orders. The address contains the search; a single hit leads to its order. */
export async function showOrders(options: ConsoleOptions, view: View, request: Request): Promise<Shown> {
  const { list, document, status } = await listPage({
    ...{ view, request, path: PATH, ...orderTable(view) },
    label: 'Filter orders',
    noun: { one: 'order', many: 'orders' },
    load: (query) => listOrders.load(options, { query: { ...query, count: 'true' } }),
    asked: inDecimals,
    filters: [
      { name: 'q', label: 'Search', type: 'search' },
      { name: 'state', label: 'State', options: { ...choices(ORDER_STATES), ...SEVERAL_STATES } },
      { name: 'attention', label: 'Needs attention', options: choices(MATTER_KINDS) },
      { name: 'since', label: 'Created since' },
      { name: 'until', label: 'Created until' },
    ],
    more: [
      { name: 'hold', label: 'Held because', options: choices(HOLD_REASONS) },
      { name: 'flag', label: 'Flag', options: choices(FLAGS) },
      { name: 'overpaid', label: 'Balance', options: { true: 'more than asked' } },
      { name: 'paidSince', label: 'Paid since' },
      { name: 'paidUntil', label: 'Paid until' },
      { name: 'amountFrom', label: 'Amount at least', example: BY_EXAMPLE.amount },
      { name: 'amountTo', label: 'Asks at most', example: BY_EXAMPLE.amount },
      { name: 'currency', label: 'Currency' },
    ],
    above: (asked, document) => (isNone(document) ? null : forAll(options, view, asked)),
    rows: ({ orders }) => orders,
    nothing: async (_isFiltered, document, { q = '', ...filters }) =>
      isNone(document) ? html`${nothingFound(view, q, filters)}${await nearBy(options, view, q)}` : 'No order.',
  });
  const { q = '', cursor } = typedQuery(request);
  // An amount names no order: the customer may mean one that is not counted yet.
  const namesOrder = q !== '' && cursor === undefined && readSearch(q).amount === null;
  const [only, ...others] = document?.orders ?? [];
  if (namesOrder && only !== undefined && others.length === 0 && document?.nextCursor === null) {
    return { goTo: hrefOf(view, orderPath(only.reference)) };
  }
  return { title: TITLE, here: PATH, search: q, body: html`<h1>${TITLE}</h1>${list}`, status };
}

function isNone({ orders, nextCursor }: { orders: readonly unknown[]; nextCursor: string | null }): boolean {
  return orders.length === 0 && nextCursor === null;
}

/** What can be had or done of all orders that the filters let through, on however many pages. */
function forAll(options: ConsoleOptions, view: View, { limit: _, cursor: __, ...filter }: Typed): HtmlValue {
  return html`<p><a href="${hrefOf(view, '/v1/orders.csv', { ...filter, bom: 'true' })}" download>CSV</a></p>
${options.asking === null ? null : bulkForm(view, { action: 'check_orders', filter })}
${filter.hold === undefined ? null : bulkForm(view, { action: 'accept_orders', filter })}`;
}

/** Amounts as decimals, in the currency that was named beside one of them. */
function inDecimals(typed: Typed): Typed {
  const amounts = (['amountFrom', 'amountTo'] as const).flatMap((name) => {
    const value = typed[name];
    return value === undefined ? [] : [{ name, ...amountAsked(value) }];
  });
  const currency = typed.currency ?? amounts.find((one) => one.currency !== null)?.currency ?? null;
  return {
    ...typed,
    ...Object.fromEntries(amounts.map(({ name, amount }) => [name, amount])),
    ...(currency === null ? {} : { currency: currency.toUpperCase() }),
  };
}

/** Choices of states in addition to each single state. */
const SEVERAL_STATES = { 'awaiting_payment,payment_pending,expired': 'not paid yet' };

function orderTable(view: View) {
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
    { head: 'Created', cell: ({ createdAt }) => time(view, createdAt) },
    { head: 'Paid', cell: ({ paidAt }) => time(view, paidAt) },
  ];
  return { caption: TITLE, columns, rowId: ({ reference }: ListedOrderDocument) => reference };
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
  const found =
    near.length === 0
      ? null
      : html`<h2>Orders with similar references</h2>${table({ ...orderTable(view), rows: near })}`;
  return html`<p class="soft">You can search by the reference of an order or its beginning; words of the reference, the title or the customer whom the shop named, or their first three letters or more; the id of a link, a payment, an event or a notice; the address of a link; an amount, like R$ 150,00; a customer's name, any word of it, or e-mail address. An id must be whole.</p>${found}`;
}

function nothingFound(view: View, q: string, { limit: _, cursor: __, ...filters }: Typed): HtmlValue {
  const isFiltered = Object.keys(filters).length > 0;
  if (q !== '') {
    const hint = isFiltered ? html`<a href="${hrefOf(view, PATH, { q })}">Search without the filters</a>` : null;
    return emptyState(`No order matches “${q}”${isFiltered ? ' and these filters' : ''}.`, hint);
  }
  if (isFiltered) return emptyState('No order matches these filters.');
  return emptyState('There are no orders yet.', 'A shop opens one with POST /v1/orders.');
}
