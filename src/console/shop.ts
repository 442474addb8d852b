import type { Request } from 'express';
import { loadStatsDocument, type StatsDocument } from '../api/admin.ts';
import { listNotices, type NoticeDocument, type ShopDocument } from '../api/notices.ts';
import { NOTICE_TYPES } from '../domain/notice.ts';
import { words } from '../explain/glossary.ts';
import { type Html, type HtmlValue, html } from '../http/app.ts';
import { bulkForm } from './bulk_page.ts';
import { type Column, definitions } from './components.ts';
import type { Shown } from './layout.ts';
import { breakable, listPage, ORDER_FILTER, orderLink, rowStatus, SINCE, STATUS_FILTER, UNTIL } from './listing.ts';
import { resendForm } from './rows.ts';
import { age, count, duration, shortened, whole } from './values.ts';
import { type ConsoleOptions, hrefOf, mayDo, type View } from './view.ts';

/** What the shop was told of its orders, and what it was not. */

const PATH = '/shop';
const NOTICES = { one: 'notice', many: 'notices' };

export async function showShop(options: ConsoleOptions, view: View, request: Request): Promise<Shown> {
  const stats = await loadStatsDocument(options);
  const { list, document, status } = await listPage({
    ...{ view, request, path: PATH },
    label: 'Filter notices',
    noun: NOTICES,
    load: (query) => listNotices.load(options, { query: { ...query, count: 'true' } }),
    filters: [
      STATUS_FILTER,
      { name: 'type', label: 'Says', options: Object.fromEntries(NOTICE_TYPES.map((type) => [type, type])) },
      ORDER_FILTER,
      SINCE,
      UNTIL,
    ],
    above: (filter) => bulkForm(view, { action: 'resend_notices', filter }),
    caption: 'Notices',
    columns: noticeColumns(view),
    rows: ({ notices }) => notices,
    rowId: ({ id }) => id,
    nothing: (isFiltered) => (isFiltered ? 'No notice matches.' : 'There are no notices so far.'),
  });
  const body = html`<h1>Shop</h1><p class="lead">${summary(stats, options.shopAddress)}</p>
${notTaken(view, stats)}
${document === null ? null : facts(view, stats, document.shop)}
<section><h2>Notices</h2>${list}</section>`;
  return { title: 'Shop', here: '/shop', body, status };
}

/** What the shop does not know, in a sentence. */
function summary({ notices, noticesLagSeconds }: StatsDocument, address: string | null): string {
  const { pending = 0, leased = 0, dead = 0, done = 0 } = notices;
  const waiting = pending + leased;
  if (address === null) {
    return `The shop has no callback and reads the feed: ${count(waiting + dead + done, NOTICES)} so far.`;
  }
  if (waiting + dead === 0) {
    return done === 0 ? 'There has been nothing to tell the shop so far.' : 'The shop has been told everything.';
  }
  const late = noticesLagSeconds ?? 0;
  const parts = [
    ...(waiting > 0 ? [`${count(waiting, NOTICES)} ${waiting === 1 ? 'waits' : 'wait'}`] : []),
    ...(dead > 0 ? [`settled gave up ${count(dead, NOTICES)}`] : []),
  ];
  const said = parts.join(', and ');
  return `${said}${late >= 1 ? `; the oldest has been due for ${duration(late * 1000)}` : ''}.`;
}

function notTaken(view: View, { notices }: StatsDocument): Html | null {
  const { pending = 0, dead = 0 } = notices;
  const links = [
    ...(pending > 0 ? [html`<a href="${hrefOf(view, PATH, { status: 'pending' })}">See the waiting notices</a>`] : []),
    ...(dead > 0 ? [html`<a href="${hrefOf(view, PATH, { status: 'dead' })}">See the dead notices</a>`] : []),
  ];
  return links.length === 0 ? null : html`<p class="actions">${links}</p>`;
}

function facts(view: View, { feedPosition, notices }: StatsDocument, shop: ShopDocument): Html {
  const failures = shop?.failures ?? null;
  const address = shop === null ? 'none (SETTLED_SHOP_URL is not set)' : html`<code>${shop.url}</code>`;
  const known = definitions([
    ['Callback', address],
    [
      'Failures in a row',
      shop === null ? null : failures === null ? 'none since the shop took a notice' : failed(view, failures),
    ],
    ['Last answer', failures === null ? null : shopAnswer(failures)],
    ['Taken so far', shop === null ? null : count(notices.done ?? 0, NOTICES)],
    ['Feed', html`position ${whole(feedPosition)}`],
  ]);
  return html`<div class="card">${known}</div>`;
}

type Failures = NonNullable<NonNullable<ShopDocument>['failures']>;

function failed(view: View, { attempts, since: sinceTime, lastAt }: Failures): Html {
  return html`${count(attempts, { one: 'attempt', many: 'attempts' })}, the first ${age(view, sinceTime)}, the last ${age(view, lastAt)}`;
}

/** What the shop answered, and what settled made of it. */
function shopAnswer({ answer, fault }: Pick<NoticeDocument, 'answer' | 'fault'>): HtmlValue {
  if (answer === null && fault === null) return null;
  return html`${answer === null ? null : html`<p><strong>${answer.status}</strong> <bdi>${shortened(answer.body, ANSWER_SHOWN_MAX)}</bdi></p>`}${
    fault === null ? null : html`<p class="soft"><code>${fault.code}</code> ${fault.message}</p>`
  }`;
}

const ANSWER_SHOWN_MAX = 200;

function noticeColumns(view: View): Column<NoticeDocument>[] {
  return [
    { head: 'Notice', cell: (notice) => noticeName(view, notice) },
    { head: 'Order', cell: ({ reference }) => orderLink(view, reference) },
    { head: 'Made', cell: ({ createdAt }) => age(view, createdAt) },
    { head: 'Status', cell: (notice) => (notice.superseded ? 'superseded' : rowStatus(view, notice)) },
    { head: 'Attempts', isNumber: true, cell: ({ attempt }) => whole(attempt) },
    { head: 'What the shop answered', isText: true, cell: (notice) => shopAnswer(notice) },
    ...(mayDo(view, 'operator')
      ? [{ head: 'Action', cell: (notice: NoticeDocument) => resendButton(view, notice) }]
      : []),
  ];
}

function noticeName(view: View, { id, type }: NoticeDocument): Html {
  const href = hrefOf(view, `/notices/${encodeURIComponent(id)}`);
  return html`<a href="${href}">${breakable(type)}</a><br><span class="soft">${words.notice(type)}</span>`;
}

/** One that is on its way already needs no button. */
function resendButton(view: View, { id, status, dueAt, attempt }: NoticeDocument): HtmlValue {
  const isLater = status === 'pending' && attempt > 0 && dueAt !== null;
  if (status !== 'done' && status !== 'dead' && !isLater) return null;
  return resendForm(view, id, isLater ? 'Send now' : 'Resend');
}
