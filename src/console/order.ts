import type { Request } from 'express';
import { listNotices } from '../api/notices.ts';
import { showTimeline } from '../api/timeline.ts';
import { readSum, sumWords } from '../domain/ledger.ts';
import { type OrderDocument, unreadWords } from '../domain/notice.ts';
import { otherTotal, severalInstalments } from '../domain/payment_details.ts';
import { type Html, type HtmlValue, html } from '../http/app.ts';
import { type Column, definitions, table } from './components.ts';
import type { Shown } from './layout.ts';
import { endMatterForm } from './matters.ts';
import { linkUnknown, loadPreviews, nextSteps, orderActions } from './order_actions.ts';
import { badge, money, prose, stateBadge, statusBadge, time, timeAndAge } from './values.ts';
import { type ConsoleOptions, hrefOf, mayDo, type View } from './view.ts';

type TimelineDocument = Awaited<ReturnType<typeof showTimeline.load>>;
type Entry = TimelineDocument['entries'][number];
type Payment = OrderDocument['payments'][number];
type Notices = Awaited<ReturnType<typeof listNotices.load>>;

/** One order: why it is in its state, what a person can do, and everything that happened. */
export async function showOrderPage(options: ConsoleOptions, view: View, request: Request): Promise<Shown> {
  const reference = String(request.params.reference);
  const [timeline, told] = await Promise.all([
    showTimeline.load(options, { reference }),
    listNotices.load(options, { query: { reference } }),
  ]);
  const { order, answer, entries, next } = timeline;
  const previews = await loadPreviews(options, view, order);
  const steps = nextSteps(view, order, next);
  const body = html`<div class="order-head"><h1><bdi>${order.reference}</bdi></h1>${stateBadge(order.state)}${order.flags.map((flag) => badge(flag.replaceAll('_', ' '), 'wait'))}</div>
<p class="answer">${prose(view, answer, reference)}</p>
${steps.length === 0 ? null : html`<section id="next"><h2>What follows</h2><ul class="steps">${steps.map((step) => html`<li>${step}</li>`)}</ul></section>`}
${orderActions(view, order, { canAsk: options.asking !== null, previews })}
${sides(view, timeline, told)}
${payments(view, order)}
${aboutOrder(view, order)}
${story(view, entries, reference)}`;
  return { title: order.reference, here: '/orders', notice: linkUnknown(view, order), body };
}

/** What the service, settled and the shop know, side by side, and how they differ. */
function sides(view: View, { order, service, decided, differences }: TimelineDocument, told: Notices): Html {
  const who = told.shop === null ? 'The service and settled' : 'The service, settled and the shop';
  const wrong = wrongs(order);
  const same =
    wrong.length === 0 ? `${who} agree.` : `${who} say the same, but the order is not right: ${wrong.join(', ')}.`;
  const agree = service === null ? 'The service has said nothing about a payment so far.' : same;
  return html`<section id="sides" aria-label="The service, settled and the shop">
<div class="columns sides">
<div class="card"><h2>The service says</h2>${serviceSide(view, order, service)}</div>
<div class="card"><h2>settled counted</h2>${settledSide(view, order, decided)}</div>
<div class="card"><h2>The shop was told</h2>${shopSide(view, order, told)}</div></div>
${
  differences.length === 0
    ? html`<p class="difference soft">${agree}</p>`
    : html`<div class="notice difference"><strong>There is a difference.</strong><ul>${differences.map((line) => html`<li>${prose(view, line, order.reference)}</li>`)}</ul></div>`
}</section>`;
}

/** What is wrong with the order's money. To have paid late is no fault. */
function wrongs({ state, flags }: OrderDocument): string[] {
  const states = state === 'held' || state === 'disputed' ? [state] : [];
  return [...states, ...flags.filter((flag) => flag !== 'late').map((flag) => flag.replaceAll('_', ' '))];
}

function serviceSide(view: View, { link, reference }: OrderDocument, service: TimelineDocument['service']): Html {
  const source = service === null ? null : hrefOf(view, `/events/${service.event}`);
  return definitions([
    [
      'Payment',
      service === null
        ? 'nothing so far'
        : html`<ul class="plain">${service.says.map((line) => html`<li>${prose(view, line, reference)}</li>`)}</ul>`,
    ],
    ['Said at', timeAndAge(view, service?.at)],
    [
      'By',
      service === null
        ? null
        : html`<a href="${source ?? ''}">${service.isReading ? 'an answer' : 'a webhook'}, event ${service.event}</a>`,
    ],
    [
      'Link',
      link === null
        ? 'none is known'
        : html`${link.id ?? 'not known yet'}${link.status === null ? null : ` (${link.status})`}`,
    ],
  ]);
}

const LEARNED = { webhook: 'by webhook', reconciliation: 'by asking', person: 'a person accepted it' } as const;

const DECIDED = { accept: 'accepted', reject: 'rejected' } as const;

function settledSide(view: View, order: OrderDocument, decided: TimelineDocument['decided']): Html {
  const { payments, paymentsTotal, state, hold, paidAt, learnedBy } = order;
  const each = (which: 'captured' | 'balance') =>
    [...paymentsTotal.sums.map((sum) => money(view, sum[which], sum.currency)), ...unreadWords(payments)].map(
      (one, at) => html`${at === 0 ? null : ' + '}${one}`,
    );
  const isBack = paymentsTotal.sums.some(({ captured, balance }) => captured !== balance);
  return definitions([
    ['State', html`${stateBadge(state)}${hold === null ? null : ` ${hold.reason.replaceAll('_', ' ')}`}`],
    ['Asked', money(view, order.amount, order.currency)],
    ['Captured', paymentsTotal.count === 0 ? 'nothing' : each('captured')],
    ['Balance', isBack ? each('balance') : null],
    [
      'Paid',
      paidAt === null
        ? null
        : html`${timeAndAge(view, paidAt)}${learnedBy === null ? null : `, ${LEARNED[learnedBy]}`}`,
    ],
    [
      'Decided',
      decided === null
        ? null
        : html`${DECIDED[decided.decision]}${decided.by === null ? null : html` by <bdi>${decided.by}</bdi>`}, ${timeAndAge(view, decided.at)}${
            decided.reason === null ? null : html`<br>Reason: <q>${decided.reason}</q>`
          }`,
    ],
  ]);
}

function shopSide(view: View, { version }: OrderDocument, { notices, shop }: Notices): Html {
  const latest = notices.find(({ status }) => status === 'done');
  const waiting = notices.filter(({ status }) => status !== 'done');
  const named = ({ id, type }: Notices['notices'][number]) =>
    html`<a href="${hrefOf(view, `/notices/${id}`)}">${type}</a>`;
  const how = shop === null ? 'no callback is set: the shop reads the feed' : shop.url;
  return definitions([
    [
      'Took last',
      latest === undefined
        ? 'nothing'
        : html`${named(latest)}, version ${latest.version}${waiting.length === 0 ? ', and nothing newer waits' : ` of ${version}`}`,
    ],
    ['At', timeAndAge(view, latest?.endedAt)],
    [
      shop === null ? 'In the feed' : 'Not taken',
      waiting.length === 0
        ? null
        : html`<ul class="plain">${waiting.map((notice) => html`<li>${named(notice)} ${shop === null ? null : statusBadge(notice.status)}</li>`)}</ul>`,
    ],
    ['How', how],
  ]);
}

/** The counted payments, without columns that would be empty. */
function payments(view: View, order: OrderDocument): Html | null {
  if (order.payments.length === 0) return null;
  const { count } = order.paymentsTotal;
  const hidden = count - order.payments.length;
  return html`<section id="payments"><h2>Payments</h2>${table<Payment>({
    caption: 'Payments',
    columns: paymentColumns(view).filter(({ cell }) => order.payments.some((payment) => cell(payment) !== null)),
    rows: order.payments,
    rowId: ({ id }) => id ?? 'without an id',
  })}${hidden <= 0 ? null : html`<p class="soft">${hidden} more were counted.</p>`}</section>`;
}

/** A cell is null if its column has nothing for the payment. */
function paymentColumns(view: View): Column<Payment>[] {
  const column = (head: string, cell: Column<Payment>['cell']): Column<Payment> => ({ head, cell });
  const number = (head: string, cell: Column<Payment>['cell']): Column<Payment> => ({ head, cell, isNumber: true });
  const timed = (head: string, of: (payment: Payment) => string | null) =>
    column(head, (payment) => time(view, of(payment)));
  return [
    column('Payment', ({ id }) => id ?? 'without an id'),
    column('Status', ({ status }) => badge(status, status === 'completed' ? 'good' : 'bad')),
    number('Captured', ({ amount, currency, stated }) =>
      amount === null ? sumWords(null, stated) : money(view, amount, currency),
    ),
    number('Service names', ({ amount, stated }) => moneyOf(view, amount === null ? null : stated)),
    number('Customer paid', ({ customerPaid }) => moneyOf(view, customerPaid)),
    number('Total with interest', (payment) => moneyOf(view, otherTotal(payment))),
    column('Method', methodOf),
    column('Customer', ({ customer }) => customerCell(customer)),
    timed('Began', ({ createdAt }) => createdAt),
    timed('Completed', ({ completedAt }) => completedAt),
    timed('Available', ({ availableAt }) => availableAt),
  ];
}

function customerCell(customer: OrderDocument['customer']): Html | null {
  if (customer === null) return null;
  return html`<bdi>${customer.name ?? ''}</bdi>${customer.email === null ? null : html`<br><span class="soft">${customer.email}</span>`}`;
}

function moneyOf(view: View, said: Payment['customerPaid']): HtmlValue {
  if (said !== null && readSum(said) === null) return sumWords(null, said);
  return said === null ? null : money(view, said.amount, said.currency);
}

function methodOf(payment: Payment): string | null {
  if (payment.method === null) return null;
  const words = payment.method.replaceAll('_', ' ');
  const several = severalInstalments(payment);
  return several === null ? words : `${words} × ${several}`;
}

function aboutOrder(
  view: View,
  { link, title, customer, metadata, createdAt, learnedBy, version }: OrderDocument,
): Html {
  return html`<section id="about"><h2>Order and link</h2>${definitions([
    ['Title', title],
    ['Customer, said by the shop', customerCell(customer)],
    ['Created', timeAndAge(view, createdAt)],
    ['Learned by', learnedBy],
    ['Link', link?.url == null ? null : html`<a href="${link.url}" rel="noreferrer">${link.url}</a>`],
    ['Short link', link?.shortUrl ?? null],
    ['Link expires', timeAndAge(view, link?.expiresAt)],
    ['Metadata', metadata === null ? null : html`<code>${JSON.stringify(metadata)}</code>`],
    ['Version', version],
  ])}</section>`;
}

/** Everything that happened, the newest first; an entry unfolds its details. */
function story(view: View, entries: readonly Entry[], reference: string): Html {
  return html`<section id="story"><h2>What happened</h2><ol class="story">${entries
    .toReversed()
    .map((entry, at) => storyEntry(view, entry, { number: entries.length - at, reference }))}</ol></section>`;
}

function storyEntry(
  view: View,
  { at, kind, summary, details, about }: Entry,
  { number, reference }: { number: number; reference: string },
): Html {
  const more = [
    ...details.map((line) => html`<li>${prose(view, line, reference)}</li>`),
    ...(about?.what === 'event'
      ? [html`<li><a href="${hrefOf(view, `/events/${about.id}`)}">Event ${about.id}: its bytes as they came</a></li>`]
      : []),
    ...(about?.what === 'notice'
      ? [html`<li><a href="${hrefOf(view, `/notices/${about.id}`)}">The notice as it was sent</a></li>`]
      : []),
  ];
  const head = html`<span class="entry">${time(view, at)} <span class="kind">${kind}</span> <span>${prose(view, summary, reference)}</span></span>`;
  const end = about?.what === 'matter' && mayDo(view, 'operator') ? endMatterForm(view, about.id) : null;
  if (more.length === 0) return html`<li class="flat">${head}</li>`;
  return html`<li><details id="entry-${number}"><summary>${head}</summary><ul>${more}</ul></details>${end}</li>`;
}
