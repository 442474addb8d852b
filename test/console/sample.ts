import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express, { type Request } from 'express';
import { beforeAll } from 'vitest';
import { assetRoutes } from '../../src/console/assets.ts';
import {
  actionButton,
  actionForm,
  definitions,
  emptyState,
  filterForm,
  pagination,
  problemPanel,
  table,
  tabs,
} from '../../src/console/components.ts';
import { page } from '../../src/console/layout.ts';
import { sendConsolePage } from '../../src/console/send.ts';
import { age, count, lasting, money, stateBadge, time, timeAndAge } from '../../src/console/values.ts';
import { localeOf, orderPath, type View } from '../../src/console/view.ts';
import { type Html, html } from '../../src/http/app.ts';

export const NOW_MS = Date.UTC(2026, 10, 23, 8, 3, 55);

/** What a page is told in these tests. */
export function viewOf(more: Partial<View> = {}): View {
  return {
    prefix: '',
    path: '/orders?state=held',
    environment: 'sandbox',
    session: { name: 'ana', role: 'operator' },
    nowMs: NOW_MS,
    locale: 'en',
    zone: 'UTC',
    ...more,
  };
}

type SampleOrder = { reference: string; amount: string; currency: string; state: string; atMs: number };

export const ORDERS: readonly SampleOrder[] = [
  { reference: 'tea-4f1c2a', amount: '48.00', currency: 'BRL', state: 'paid', atMs: NOW_MS - 42_000 },
  { reference: 'lamp-0b77e1', amount: '149.90', currency: 'BRL', state: 'held', atMs: NOW_MS - 7_800_000 },
  {
    reference: 'chair-99',
    amount: '1234567.80',
    currency: 'BRL',
    state: 'awaiting_payment',
    atMs: NOW_MS - 86_400_000,
  },
  { reference: 'kimono-1', amount: '12000', currency: 'JPY', state: 'disputed', atMs: NOW_MS - 400 },
];

/** A page with one of each component. `typed`: a text from outside, in every place that takes one. */
export function samplePage(
  view: View,
  { orders = ORDERS, typed = 'order' }: { orders?: readonly SampleOrder[]; typed?: string } = {},
): Html {
  const body = html`<h1>${typed}</h1>
<p class="lead">${count(3, { one: 'order', many: 'orders' })} with ${money(view, '412.50', 'BRL')} need a person; the oldest has waited ${lasting(view, NOW_MS - 7_800_000)}.</p>
${tabs(view, {
  label: 'Kinds',
  pages: { [typed]: '/orders', Held: '/held' },
  path: '/orders',
  counts: { [typed]: '12' },
})}
${filterForm(view, {
  path: '/orders',
  label: 'Filter orders',
  kept: { q: typed },
  filters: [
    { name: 'state', label: 'State', value: 'held', options: { held: 'held', paid: 'paid' } },
    {
      name: 'amount',
      label: 'Amount',
      value: typed,
      problem: `${typed} is not an amount`,
      hint: `like 48.00, not ${typed}`,
    },
    { name: 'flag', label: 'Flag', value: typed, options: { late: 'late' } },
    { name: 'since', label: 'Since', value: '2026-11-23', type: 'date' },
  ],
})}
<section><h2>Orders</h2>
${table({
  caption: 'Orders',
  columns: [
    {
      head: 'Order',
      cell: ({ reference }) => html`<a href="${view.prefix}${orderPath(reference)}"><bdi>${reference}</bdi></a>`,
    },
    { head: 'Amount', cell: ({ amount, currency }) => money(view, amount, currency), isNumber: true },
    { head: 'State', cell: ({ state }) => stateBadge(state) },
    { head: 'Customer', cell: () => typed },
    { head: 'Opened', cell: ({ atMs }) => time(view, atMs) },
    { head: 'Age', cell: ({ atMs }) => age(view, atMs) },
  ],
  rows: orders,
  rowId: ({ reference }) => reference,
  empty: 'No order.',
})}
${pagination(view, { path: '/orders', query: { state: 'held', q: typed }, cursor: 'abc', next: typed })}</section>
<div class="columns"><section class="card"><h2>The service says</h2>
${definitions([
  ['Paid', money(view, '149.90', 'BRL')],
  ['Completed', timeAndAge(view, NOW_MS - 3_000)],
  [typed, typed],
  ['Nothing', null],
])}</section>
<section class="card"><h2>Flow</h2><p>Deliveries</p>
${emptyState(typed, typed)}
<pre>{"type":"payment_link.created","text":"${typed}"}</pre></section></div>
${actionForm(view, {
  id: 'accept-1',
  action: '/v1/orders/a-1/resolve',
  summary: 'Accept the hold',
  preview: html`<p>The order becomes paid; the shop is told <code>order.paid</code>. ${typed}</p>`,
  button: 'Accept',
  reason: 'required',
  values: { decision: 'accept', about: typed },
})}
${actionForm(view, {
  id: 'reject-1',
  action: '/v1/orders/a-1/resolve',
  summary: 'Reject the hold',
  preview: 'The money is to be sent back.',
  button: 'Reject',
  isDanger: true,
  reason: 'optional',
  typed,
})}
<p>${actionButton(view, { action: '/v1/orders/a-1/check', button: `Check ${typed}` })}</p>
${problemPanel({
  title: typed,
  detail: typed,
  errors: [
    { path: 'limit', detail: typed },
    { path: typed, detail: 'x' },
  ],
  remedy: typed,
})}`;
  return page(view, { title: typed, here: '/orders', body, notice: { text: typed }, search: typed });
}

type Site = { url: string; stop(): void };

/** Serves routes, on a free port by default. */
export async function serve(app: express.Express, port = 0): Promise<Site> {
  const server = createServer(app);
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** A site with the sample at `/`, at a prefix, and with `?typed=` in every place. */
export function sampleSite(): () => Site {
  let site: Site | undefined;
  beforeAll(async () => {
    const app = express();
    const show = (prefix: string) => (request: Request, response: express.Response) => {
      const { typed = 'order' } = request.query as { typed?: string };
      const view = viewOf({ prefix, path: '/', locale: localeOf(request) });
      return sendConsolePage(request, response, samplePage(view, { typed }));
    };
    app.use(assetRoutes());
    app.use('/ops/pay', assetRoutes());
    app.get('/', show(''));
    app.get('/ops/pay/', show('/ops/pay'));
    site = await serve(app);
    return site.stop;
  });
  return () => {
    if (site === undefined) throw new Error('the site has not been started yet');
    return site;
  };
}
