import type { Request } from 'express';
import { listNotices } from '../api/notices.ts';
import { showTimeline } from '../api/orders.ts';
import type { OrderDocument } from '../domain/notice.ts';
import { type Html, type HtmlValue, html } from '../http/app.ts';
import { definitions, table } from './components.ts';
import type { Shown } from './layout.ts';
import { endMatterForm } from './matters.ts';
import { nextStep, orderActions } from './order_actions.ts';
import { age, badge, money, stateBadge, time, timeAndAge } from './values.ts';
import { type ConsoleOptions, hrefOf, mayDo, type View } from './view.ts';

export type TimelineDocument = Awaited<ReturnType<typeof showTimeline.load>>;
type Entry = TimelineDocument['entries'][number];
type Payment = OrderDocument['payments'][number];
type Notices = Awaited<ReturnType<typeof listNotices.load>>;

/** One order: why it is as it is, what can be done about it, and all that happened. */
export async function showOrderPage(options: ConsoleOptions, view: View, request: Request): Promise<Shown> {
  const reference = String(request.params.reference);
  const [timeline, told] = await Promise.all([
    showTimeline.load(options, { reference }),
    listNotices.load(options, { query: { reference } }),
  ]);
  const { order, answer, entries, next } = timeline;
  const body = html`<div class="order-head"><h1><bdi>${order.reference}</bdi></h1>${stateBadge(order.state)}${order.flags.map((flag) => badge(flag.replaceAll('_', ' '), 'wait'))}</div>
<p class="answer">${answer}</p>
<section id="next"><h2>What follows</h2><ul class="steps">${next.map((line) => html`<li>${nextStep(view, order, line)}</li>`)}</ul></section>
${orderActions(view, order, { canAsk: options.asking !== null })}
${sides(view, order, told)}
${payments(view, order)}
${aboutOrder(view, order)}
${story(view, entries)}`;
  return { title: order.reference, here: '/orders', body };
}

/** What each of the three knows, side by side, and how they differ. */
function sides(view: View, order: OrderDocument, { notices, shop }: Notices): Html {
  const { link, payment, paymentsTotal, state, version } = order;
  const latest = notices.find(({ status }) => status === 'done');
  const waiting = notices.filter(({ status }) => status !== 'done');
  return html`<div class="columns sides">
<section class="card"><h2>The service says</h2>${definitions([
    ['Link', link === null ? 'none is known' : html`${link.id ?? 'not known'} ${link.status ?? ''}`],
    ['Payment', payment === null ? 'none that was counted' : html`${payment.id ?? 'without an id'}, ${payment.status}`],
    ['Completed', payment?.completedAt == null ? null : timeAndAge(view, Date.parse(payment.completedAt))],
  ])}</section>
<section class="card"><h2>settled counted</h2>${definitions([
    ['State', stateBadge(state)],
    ['Asked', money(view, order.amount, order.currency)],
    [
      'Captured',
      paymentsTotal.sums.length === 0
        ? 'nothing'
        : paymentsTotal.sums.map(({ captured, currency }) => html`${money(view, captured, currency)} `),
    ],
    [
      'Still there',
      paymentsTotal.sums.length === 0
        ? null
        : paymentsTotal.sums.map(({ balance, currency }) => html`${money(view, balance, currency)} `),
    ],
    ['Paid', order.paidAt === null ? null : timeAndAge(view, Date.parse(order.paidAt))],
  ])}</section>
<section class="card"><h2>The shop was told</h2>${definitions([
    ['Last taken', latest === undefined ? 'nothing' : html`${latest.type} (version ${latest.version} of ${version})`],
    ['At', latest?.endedAt == null ? null : timeAndAge(view, Date.parse(latest.endedAt))],
    [
      'Not taken',
      waiting.length === 0 ? null : waiting.map(({ type, status }) => html`${type} ${stateBadge(status)} `),
    ],
    ['How', shop === null ? 'it reads the feed' : shop.url],
  ])}</section></div>`;
}

function payments(view: View, order: OrderDocument): Html | null {
  if (order.payments.length === 0) return null;
  const when = (at: string | null): HtmlValue => (at === null ? null : time(Date.parse(at)));
  return html`<section id="payments"><h2>Payments</h2>${table<Payment>({
    caption: 'Payments',
    hidesCaption: true,
    columns: [
      { head: 'Payment', cell: ({ id }) => id ?? 'without an id' },
      { head: 'Status', cell: ({ status }) => badge(status, status === 'completed' ? 'good' : 'bad') },
      { head: 'Counts', isNumber: true, cell: ({ amount, currency }) => money(view, amount, currency) },
      {
        head: 'Customer paid',
        isNumber: true,
        cell: ({ customerPaid, totalBRL }) =>
          customerPaid !== null
            ? money(view, customerPaid.amount, customerPaid.currency)
            : totalBRL === null
              ? null
              : money(view, totalBRL, 'BRL'),
      },
      {
        head: 'Method',
        cell: ({ method, installments }) =>
          method === null
            ? null
            : html`${method.replaceAll('_', ' ')}${installments === null || installments === 1 ? null : ` × ${installments}`}`,
      },
      {
        head: 'Customer',
        cell: ({ customer }) =>
          customer === null
            ? null
            : html`<bdi>${customer.name ?? ''}</bdi>${customer.email === null ? null : html`<br><span class="soft">${customer.email}</span>`}`,
      },
      { head: 'Began', cell: ({ createdAt }) => when(createdAt) },
      { head: 'Completed', cell: ({ completedAt }) => when(completedAt) },
      { head: 'Available', cell: ({ availableAt }) => when(availableAt) },
    ],
    rows: order.payments,
    rowId: ({ id }) => id ?? 'none',
    empty: '',
  })}</section>`;
}

function aboutOrder(view: View, { link, title, metadata, createdAt, learnedBy, version }: OrderDocument): Html {
  return html`<section id="about"><h2>Order and link</h2>${definitions([
    ['Title', title],
    ['Created', timeAndAge(view, Date.parse(createdAt))],
    ['Learned by', learnedBy],
    ['Link', link?.url == null ? null : html`<a href="${link.url}" rel="noreferrer">${link.url}</a>`],
    ['Short link', link?.shortUrl ?? null],
    [
      'Link expires',
      link?.expiresAt == null
        ? null
        : html`${time(Date.parse(link.expiresAt))} <span class="soft">(${age(view, Date.parse(link.expiresAt))})</span>`,
    ],
    ['Metadata', metadata === null ? null : html`<code>${JSON.stringify(metadata)}</code>`],
    ['Version', version],
  ])}</section>`;
}

/** Everything that happened, the newest first; an entry unfolds its details. */
function story(view: View, entries: readonly Entry[]): Html {
  return html`<section id="story"><h2>What happened</h2><ol class="story">${entries
    .toReversed()
    .map((entry, at) => storyEntry(view, entry, entries.length - at))}</ol></section>`;
}

function storyEntry(view: View, { at, kind, summary, details, about }: Entry, number: number): Html {
  const more = [
    ...details.map((line) => html`<li>${line}</li>`),
    ...(about?.what === 'event'
      ? [html`<li><a href="${hrefOf(view, `/events/${about.id}`)}">Event ${about.id}: its bytes as they came</a></li>`]
      : []),
    ...(about?.what === 'notice'
      ? [html`<li><a href="${hrefOf(view, `/notices/${about.id}`)}">The notice as it was sent</a></li>`]
      : []),
  ];
  const head = html`<span class="entry">${time(Date.parse(at))} <span class="kind">${kind}</span> <span>${summary}</span></span>`;
  const end = about?.what === 'matter' && mayDo(view, 'operator') ? endMatterForm(view, about.id) : null;
  if (more.length === 0) return html`<li class="flat">${head}</li>`;
  return html`<li><details id="entry-${number}"><summary>${head}</summary><ul>${more}</ul></details>${end}</li>`;
}
