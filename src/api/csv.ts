import type { Response } from 'express';
import { z } from 'zod';
import { amountIn } from '../domain/money.ts';
import { type OrderDocument, orderDocument } from '../domain/notice.ts';
import type { Listed, RowPage } from '../store/verbs/list_pages.ts';
import type { EventSummary } from '../store/verbs/lists.ts';
import type { NoticeSummary } from '../store/verbs/notice_lists.ts';
import type { ListedOrder } from '../store/verbs/orders_list.ts';
import type { Clock } from '../work/clock.ts';
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

/** Text, a number, or a decimal that settled itself wrote; null is an empty cell. */
type Cell = string | number | null | { decimal: string };
type Columns<Row> = Readonly<Record<string, (row: Row) => Cell>>;

const ROWS_OF_PAGE = 200;

/** A reader that does not take a page in this time is cut off: what waits for it takes memory. */
const TAKEN_WITHIN_MS = 60_000;

/**
 * What a spreadsheet takes for a formula, or may: https://owasp.org/www-community/attacks/CSV_Injection. Spreadsheets of many
 * countries separate cells at `;`, and others at tabs: for them, a cell of ours is several, each with a beginning of its own.
 * Quotation marks there may be taken away.
 */
const FORMULA = /(^|[;,\t\r\n])("*)(?=[=+\-@＝＋－＠])/g;
const LEADING = /^[\t\r]/;

/** A cell. What a spreadsheet would carry out as a formula begins with an apostrophe. */
function cell(value: Cell): string {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'object') return value.decimal;
  const text = value.replace(LEADING, "'$&").replace(FORMULA, "$1$2'");
  return /[";,\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const decimal = (written: string | undefined): Cell => (written === undefined ? null : { decimal: written });

function line(cells: readonly Cell[]): string {
  return `${cells.map(cell).join(',')}\r\n`;
}

/** Excel reads a file as UTF-8 only if it begins with this mark; other programs would take it for a part of a name. */
const BYTE_ORDER_MARK = '\ufeff';

const byteOrderMark = {
  bom: z
    .enum(['true', 'false'])
    .optional()
    .describe('`true`: the file begins with a byte order mark, as Excel needs it for letters like ã.'),
};

type Table<Row> = {
  name: string;
  columns: Columns<Row>;
  list: (page: RowPage) => Promise<Listed<Row>>;
  bom: 'true' | 'false' | undefined;
};

/**
 * Sends a list as a file. What fails before its first page is answered as a problem; after that the connection is broken
 * off, so that a part is not taken for the whole.
 */
async function sendTable<Row>(
  response: Response,
  { name, columns, list, bom }: Table<Row>,
  clock: Clock,
): Promise<undefined> {
  let page = await list({ limit: ROWS_OF_PAGE });
  response.setHeader('content-type', 'text/csv; charset=utf-8; header=present');
  response.setHeader('content-disposition', `attachment; filename="${name}.csv"`);
  response.setHeader('cache-control', 'no-store');
  if (response.req.method === 'HEAD') return void response.end();
  const write = async (text: string) => {
    if (!response.write(text)) await taken(response, 'drain', clock);
  };
  try {
    await write((bom === 'true' ? BYTE_ORDER_MARK : '') + line(Object.keys(columns)));
    for (;;) {
      await write(page.rows.map((row) => line(Object.values(columns).map((of) => of(row)))).join(''));
      if (page.next === null || response.closed) break;
      page = await list({ limit: ROWS_OF_PAGE, after: page.next });
    }
    response.end();
    await taken(response, 'finish', clock);
  } catch (error) {
    response.destroy();
    throw error;
  }
  return undefined;
}

/** Waits until the reader took what was written, or left. One that takes nothing for too long is cut off. */
function taken(response: Response, event: 'drain' | 'finish', clock: Clock): Promise<void> {
  if (response.closed || response.destroyed || response.writableFinished) return Promise.resolve();
  return new Promise((resolve) => {
    const cancel = clock.after(TAKEN_WITHIN_MS, () => response.destroy());
    const end = () => {
      cancel();
      response.off(event, end).off('close', end);
      resolve();
    };
    response.on(event, end).on('close', end);
  });
}

const CSV = (when: string, sample: string) => ({ 200: { when, schema: z.string(), sample, type: 'text/csv' } });
const WHOLE =
  'A row for each, the newest first, without pages. What a spreadsheet would take for a formula, at the beginning of a cell ' +
  'or after a separator in it, begins with an apostrophe. If settled fails while it writes, it breaks off the connection.';

type OrderLine = OrderDocument & { attention: readonly string[] };

const ORDER_COLUMNS: Columns<OrderLine> = {
  reference: ({ reference }) => reference,
  state: ({ state }) => state,
  flags: ({ flags }) => flags.join(' '),
  amount: ({ amount }) => amount,
  currency: ({ currency }) => currency,
  captured: ({ paymentsTotal: { sums }, currency }) => decimal(sums.find((sum) => sum.currency === currency)?.captured),
  balance: ({ paymentsTotal: { sums }, currency }) => decimal(sums.find((sum) => sum.currency === currency)?.balance),
  otherCurrencies: ({ paymentsTotal: { sums }, currency }) => {
    const others = sums.filter((sum) => sum.currency !== currency);
    return others.map(({ captured: amount, currency }) => amountIn({ amount, currency })).join(' ') || null;
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
  shopCustomerName: ({ customer }) => customer?.name ?? null,
  shopCustomerEmail: ({ customer }) => customer?.email ?? null,
  holds: ({ holds }) => holds.map(({ reason }) => reason).join(' '),
  attention: ({ attention }) => attention.join(' '),
  linkId: ({ link }) => link?.id ?? null,
  linkUrl: ({ link }) => link?.url ?? null,
  title: ({ title }) => title,
  stated: ({ payments }) =>
    payments.flatMap(({ stated }) => (stated === null ? [] : amountIn(stated))).join(' ') || null,
};

export const ordersCsv = operation({
  summary: 'Orders as CSV',
  description: WHOLE,
  query: z.strictObject({ ...orderFilters, ...byteOrderMark }),
  answers: CSV(
    'The orders that match the filters of the list.',
    `${Object.keys(ORDER_COLUMNS).join(',')}\r\norder-8001,paid,,100.00,BRL,100.00,100.00,,2030-01-31T11:58:20.131Z,` +
      '2030-01-31T12:00:00.000Z,webhook,pay_8001,completed,PIX,,,,,,,pl_8001,,A chair,\r\n',
  ),
  problems: { 422: ['invalid_request'] },
  example: { query: 'state=paid&paidSince=2030-01-01T00:00:00Z' },
  answer: async ({ store, currency, clock }, { query: { bom, ...query } }, response) => {
    const filter = readOrderFilter(query, currency);
    const list = (page: RowPage) =>
      mapped<ListedOrder, OrderLine>(store.listOrders({ ...page, ...filter }), ({ value, attention }) => {
        return { ...orderDocument(value), attention };
      });
    return await sendTable(response, { name: 'orders', columns: ORDER_COLUMNS, list, bom }, clock);
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
  query: z.strictObject({ ...eventFilters, ...byteOrderMark }),
  answers: CSV(
    'The events that match the filters of the list.',
    `${Object.keys(EVENT_COLUMNS).join(',')}\r\n17,evt_8001,payment_link.payment_status_changed,order-8001,pl_8001,done,` +
      'applied,paid,1,0,,2030-01-31T11:59:59.992Z,2030-01-31T12:00:00.000Z\r\n',
  ),
  example: { query: 'status=dead' },
  answer: async ({ store, clock }, { query: { bom, ...query } }, response) => {
    const filter = readEventFilter(query);
    const list = (page: RowPage) =>
      mapped<EventSummary, EventDocument>(store.listEvents({ ...page, ...filter }), eventDocument);
    return await sendTable(response, { name: 'events', columns: EVENT_COLUMNS, list, bom }, clock);
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
  query: z.strictObject({ ...noticeFilters, ...byteOrderMark }),
  answers: CSV(
    'The notices that match the filters of the list.',
    `${Object.keys(NOTICE_COLUMNS).join(',')}\r\nmsg_17_8f14e45fceea167a,order-8001,order.paid,2,done,1,,204,` +
      '2030-01-31T12:00:00.000Z,2030-01-31T12:00:00.020Z\r\n',
  ),
  example: { query: 'status=dead' },
  answer: async ({ store, shopAddress, clock }, { query: { bom, ...query } }, response) => {
    const filter = readNoticeFilter(query);
    const list = (page: RowPage) =>
      mapped<NoticeSummary, NoticeDocument>(store.listNotices({ ...page, ...filter }), (row) =>
        noticeDocument(row, shopAddress),
      );
    return await sendTable(response, { name: 'notices', columns: NOTICE_COLUMNS, list, bom }, clock);
  },
});

async function mapped<Row, Shown>(listing: Promise<Listed<Row>>, show: (row: Row) => object): Promise<Listed<Shown>> {
  const { rows, ...more } = await listing;
  return { rows: rows.map((row) => show(row) as Shown), ...more };
}
