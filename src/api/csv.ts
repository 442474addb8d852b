import { once } from 'node:events';
import type { Response } from 'express';
import { z } from 'zod';
import { type OrderDocument, orderDocument } from '../domain/notice.ts';
import type { Listed, RowPage } from '../store/contract_lists.ts';
import type { NoticeSummary } from '../store/contract_notices.ts';
import type { EventSummary, ListedOrder } from '../store/contract_queries.ts';
import { type EventDocument, eventDocument } from './events.ts';
import {
  eventFilters,
  noticeFilters,
  orderFilters,
  readEventFilter,
  readNoticeFilter,
  readOrderFilter,
} from './lists.ts';
import { type NoticeDocument, noticeDocument } from './notices.ts';
import { operation } from './route.ts';

/** Lists as CSV (RFC 4180), for spreadsheets: page by page, however long they are. */

/** Text and numbers; null is an empty cell. */
type Cell = string | number | null;
type Columns<Row> = Readonly<Record<string, (row: Row) => Cell>>;

const ROWS_OF_PAGE = 200;

/** What a spreadsheet takes for a formula, or may: https://owasp.org/www-community/attacks/CSV_Injection */
const FORMULA = /^[=+\-@\t\r]/;

/** A cell. A text that a spreadsheet would carry out as a formula begins with an apostrophe. */
function cell(value: Cell): string {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  const text = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function line(cells: readonly Cell[]): string {
  return `${cells.map(cell).join(',')}\r\n`;
}

type Table<Row> = { name: string; columns: Columns<Row>; list: (page: RowPage) => Promise<Listed<Row>> };

/**
 * Sends a list as a file. What fails before its first page is answered as a problem; after that the connection is broken
 * off, so that nobody takes a part for the whole.
 */
async function sendTable<Row>(response: Response, { name, columns, list }: Table<Row>): Promise<undefined> {
  let page = await list({ limit: ROWS_OF_PAGE });
  response.setHeader('content-type', 'text/csv; charset=utf-8; header=present');
  response.setHeader('content-disposition', `attachment; filename="${name}.csv"`);
  response.setHeader('cache-control', 'no-store');
  if (response.req.method === 'HEAD') return void response.end();
  const write = async (text: string) => {
    // A reader that has left drains nothing any more.
    if (!response.write(text) && !response.closed)
      await Promise.race([once(response, 'drain'), once(response, 'close')]);
  };
  try {
    await write(line(Object.keys(columns)));
    for (;;) {
      await write(page.rows.map((row) => line(Object.values(columns).map((of) => of(row)))).join(''));
      if (page.next === null || response.closed) break;
      page = await list({ limit: ROWS_OF_PAGE, after: page.next });
    }
    response.end();
  } catch (error) {
    response.destroy();
    throw error;
  }
  return undefined;
}

const CSV = (when: string, sample: string) => ({ 200: { when, schema: z.string(), sample, type: 'text/csv' } });
const WHOLE =
  'A row for each, the newest first, without pages. A cell that a spreadsheet would take for a formula begins with an ' +
  'apostrophe. If settled fails meanwhile it breaks the connection off.';

type OrderLine = OrderDocument & { attention: readonly string[] };

const ORDER_COLUMNS: Columns<OrderLine> = {
  reference: ({ reference }) => reference,
  state: ({ state }) => state,
  flags: ({ flags }) => flags.join(' '),
  amount: ({ amount }) => amount,
  currency: ({ currency }) => currency,
  captured: ({ paymentsTotal: { sums }, currency }) => sums.find((sum) => sum.currency === currency)?.captured ?? null,
  balance: ({ paymentsTotal: { sums }, currency }) => sums.find((sum) => sum.currency === currency)?.balance ?? null,
  otherCurrencies: ({ paymentsTotal: { sums }, currency }) => {
    const others = sums.filter((sum) => sum.currency !== currency);
    return others.map((sum) => `${sum.captured} ${sum.currency}`).join(' ') || null;
  },
  createdAt: ({ createdAt }) => createdAt,
  paidAt: ({ paidAt }) => paidAt,
  learnedBy: ({ learnedBy }) => learnedBy,
  paymentId: ({ payment }) => payment?.id ?? null,
  paymentStatus: ({ payment }) => payment?.status ?? null,
  method: ({ payment }) => payment?.method ?? null,
  installments: ({ payment }) => payment?.installments ?? null,
  totalBRL: ({ payment }) => payment?.totalBRL ?? null,
  customerName: ({ payment }) => payment?.customer?.name ?? null,
  customerEmail: ({ payment }) => payment?.customer?.email ?? null,
  holds: ({ holds }) => holds.map(({ reason }) => reason).join(' '),
  attention: ({ attention }) => attention.join(' '),
  linkId: ({ link }) => link?.id ?? null,
  linkUrl: ({ link }) => link?.url ?? null,
  title: ({ title }) => title,
};

export const ordersCsv = operation({
  summary: 'Orders as CSV',
  description: WHOLE,
  query: z.strictObject(orderFilters),
  answers: CSV(
    'The orders that the filters of the list let through.',
    `${Object.keys(ORDER_COLUMNS).join(',')}\r\norder-8001,paid,,100.00,BRL,100.00,100.00,,2030-01-31T11:58:20.131Z,` +
      '2030-01-31T12:00:00.000Z,webhook,pay_8001,completed,PIX,,,,,,,pl_8001,,A chair\r\n',
  ),
  problems: { 422: ['invalid_request'] },
  example: { query: 'state=paid&paidSince=2030-01-01T00:00:00Z' },
  answer: async ({ store, currency }, { query }, response) => {
    const filter = readOrderFilter(query, currency);
    const list = (page: RowPage) =>
      mapped<ListedOrder, OrderLine>(store.listOrders({ ...page, ...filter }), ({ value, attention }) => {
        return { ...orderDocument(value), attention };
      });
    return await sendTable(response, { name: 'orders', columns: ORDER_COLUMNS, list });
  },
});

const EVENT_COLUMNS: Columns<EventDocument> = {
  id: ({ id }) => id,
  eventId: ({ eventId }) => eventId,
  type: ({ type }) => type,
  reference: ({ reference }) => reference,
  linkId: ({ linkId }) => linkId,
  status: ({ status }) => status,
  outcome: ({ outcome }) => outcome,
  rule: ({ rule }) => rule,
  attempt: ({ attempt }) => attempt,
  duplicates: ({ duplicates }) => duplicates,
  fault: ({ fault }) => fault?.code ?? null,
  receivedAt: ({ receivedAt }) => receivedAt,
  endedAt: ({ endedAt }) => endedAt,
};

export const eventsCsv = operation({
  summary: 'Events as CSV',
  description: WHOLE,
  query: z.strictObject(eventFilters),
  answers: CSV(
    'The events that the filters of the list let through.',
    `${Object.keys(EVENT_COLUMNS).join(',')}\r\n17,evt_8001,payment_link.payment_status_changed,order-8001,pl_8001,done,` +
      'applied,paid,1,0,,2030-01-31T11:59:59.992Z,2030-01-31T12:00:00.000Z\r\n',
  ),
  example: { query: 'status=dead' },
  answer: async ({ store }, { query }, response) => {
    const filter = readEventFilter(query);
    const list = (page: RowPage) =>
      mapped<EventSummary, EventDocument>(store.listEvents({ ...page, ...filter }), eventDocument);
    return await sendTable(response, { name: 'events', columns: EVENT_COLUMNS, list });
  },
});

const NOTICE_COLUMNS: Columns<NoticeDocument> = {
  id: ({ id }) => id,
  reference: ({ reference }) => reference,
  type: ({ type }) => type,
  version: ({ version }) => version,
  status: ({ status }) => status,
  attempt: ({ attempt }) => attempt,
  fault: ({ fault }) => fault?.code ?? null,
  answerStatus: ({ answer }) => answer?.status ?? null,
  createdAt: ({ createdAt }) => createdAt,
  endedAt: ({ endedAt }) => endedAt,
};

export const noticesCsv = operation({
  summary: 'Notices as CSV',
  description: WHOLE,
  query: z.strictObject(noticeFilters),
  answers: CSV(
    'The notices that the filters of the list let through.',
    `${Object.keys(NOTICE_COLUMNS).join(',')}\r\nmsg_17_8f14e45fceea167a,order-8001,order.paid,2,done,1,,204,` +
      '2030-01-31T12:00:00.000Z,2030-01-31T12:00:00.020Z\r\n',
  ),
  example: { query: 'status=dead' },
  answer: async ({ store, shopAddress }, { query }, response) => {
    const filter = readNoticeFilter(query);
    const list = (page: RowPage) =>
      mapped<NoticeSummary, NoticeDocument>(store.listNotices({ ...page, ...filter }), (row) =>
        noticeDocument(row, shopAddress),
      );
    return await sendTable(response, { name: 'notices', columns: NOTICE_COLUMNS, list });
  },
});

async function mapped<Row, Shown>(listing: Promise<Listed<Row>>, show: (row: Row) => object): Promise<Listed<Shown>> {
  const { rows, ...more } = await listing;
  return { rows: rows.map((row) => show(row) as Shown), ...more };
}
