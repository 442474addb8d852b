import type { Response } from 'express';
import { z } from 'zod';
import { amountIn } from '../domain/money.ts';
import { type OrderDocument, orderDocument } from '../domain/notice.ts';
import { WAYS_TO_PAY } from '../domain/payment_details.ts';
import type { Listed, RowPage } from '../store/verbs/list_pages.ts';
import type { EventSummary } from '../store/verbs/lists.ts';
import type { NoticeSummary } from '../store/verbs/notice_lists.ts';
import type { ListedOrder } from '../store/verbs/orders_list.ts';
import type { Clock } from '../work/clock.ts';
import { type EventDocument, eventDocument } from './events.ts';
import { eventFilters, noticeFilters, orderFilters, readFilter, readOrderFilter } from './lists.ts';
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
  bom: z.enum(['true', 'false']).optional().describe('`true`: a byte order mark first, as Excel needs it for ã.'),
};

type Table<Row, Shown> = {
  name: string;
  columns: Columns<Shown>;
  list: (page: RowPage) => Promise<Listed<Row>>;
  show: (row: Row) => Shown;
  bom: 'true' | 'false' | undefined;
};

/**
 * Sends a list as a file. What fails before its first page is answered as a problem; after that the connection is broken
 * off, so that a part is not taken for the whole.
 */
async function sendTable<Row, Shown>(
  response: Response,
  { name, columns, list, show, bom }: Table<Row, Shown>,
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
      const shown = page.rows.map(show);
      await write(shown.map((row) => line(Object.values(columns).map((of) => of(row)))).join(''));
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

const WHOLE =
  'A row for each, the newest first, without pages. What a spreadsheet would take for a formula, at the beginning of a cell ' +
  'or after a separator in it, begins with an apostrophe. If settled fails while it writes, it breaks off the connection.';

const CSV = (when: string) => ({ 200: { when, schema: z.string(), type: 'text/csv' } });

/** Columns of the same name as a field of the row. */
function fields<Row>(...names: (keyof Row & string)[]): Columns<Row> {
  return Object.fromEntries(names.map((name) => [name, (row: Row) => row[name] as Cell]));
}

type OrderLine = OrderDocument & { attention: readonly string[] };

const ORDER_COLUMNS: Columns<OrderLine> = {
  ...fields<OrderLine>('reference', 'state'),
  flags: ({ flags }) => flags.join(' '),
  ...fields<OrderLine>('amount', 'currency'),
  captured: ({ paymentsTotal: { sums }, currency }) => decimal(sums.find((sum) => sum.currency === currency)?.captured),
  balance: ({ paymentsTotal: { sums }, currency }) => decimal(sums.find((sum) => sum.currency === currency)?.balance),
  otherCurrencies: ({ paymentsTotal: { sums }, currency }) => {
    const others = sums.filter((sum) => sum.currency !== currency);
    return others.map(({ captured: amount, currency }) => amountIn({ amount, currency })).join(' ') || null;
  },
  ...fields<OrderLine>('createdAt', 'paidAt', 'learnedBy'),
  paymentId: ({ payment }) => payment?.id ?? null,
  paymentStatus: ({ payment }) => payment?.status ?? null,
  ...Object.fromEntries(WAYS_TO_PAY.map((name) => [name, ({ payment }: OrderLine) => payment?.[name] ?? null])),
  customerName: ({ payment }) => payment?.customer?.name ?? null,
  customerEmail: ({ payment }) => payment?.customer?.email ?? null,
  shopCustomerName: ({ customer }) => customer?.name ?? null,
  shopCustomerEmail: ({ customer }) => customer?.email ?? null,
  holds: ({ holds }) => holds.map(({ reason }) => reason).join(' '),
  attention: ({ attention }) => attention.join(' '),
  linkId: ({ link }) => link?.id ?? null,
  linkUrl: ({ link }) => link?.url ?? null,
  ...fields<OrderLine>('title'),
  stated: ({ payments }) =>
    payments.flatMap(({ stated }) => (stated === null ? [] : amountIn(stated))).join(' ') || null,
};

export const ordersCsv = operation({
  summary: 'Orders as CSV',
  description: WHOLE,
  query: z.strictObject({ ...orderFilters, ...byteOrderMark }),
  answers: CSV('The orders that match the filters of the list.'),
  problems: { 422: ['invalid_request'] },
  answer: async ({ store, currency, clock }, { query: { bom, ...query } }, response) => {
    const filter = readOrderFilter(query, currency);
    const list = (page: RowPage) => store.listOrders({ ...page, ...filter });
    const show = ({ value, attention }: ListedOrder): OrderLine => ({ ...orderDocument(value), attention });
    return await sendTable(response, { name: 'orders', columns: ORDER_COLUMNS, list, show, bom }, clock);
  },
});

const EVENT_COLUMNS: Columns<EventDocument> = {
  ...fields<EventDocument>('id', 'eventId', 'type', 'reference', 'linkId', 'status', 'outcome', 'rule', 'attempt'),
  ...fields<EventDocument>('duplicates'),
  fault: ({ fault }) => fault?.code ?? null,
  ...fields<EventDocument>('receivedAt', 'endedAt'),
};

export const eventsCsv = operation({
  summary: 'Events as CSV',
  description: WHOLE,
  query: z.strictObject({ ...eventFilters, ...byteOrderMark }),
  answers: CSV('The events that match the filters of the list.'),
  answer: async ({ store, clock }, { query: { bom, ...query } }, response) => {
    const list = (page: RowPage) => store.listEvents({ ...page, ...readFilter(query) });
    const show = (row: EventSummary) => eventDocument(row) as EventDocument;
    return await sendTable(response, { name: 'events', columns: EVENT_COLUMNS, list, show, bom }, clock);
  },
});

const NOTICE_COLUMNS: Columns<NoticeDocument> = {
  ...fields<NoticeDocument>('id', 'reference', 'type', 'version', 'status', 'attempt'),
  fault: ({ fault }) => fault?.code ?? null,
  answerStatus: ({ answer }) => answer?.status ?? null,
  ...fields<NoticeDocument>('createdAt', 'endedAt'),
};

export const noticesCsv = operation({
  summary: 'Notices as CSV',
  description: WHOLE,
  query: z.strictObject({ ...noticeFilters, ...byteOrderMark }),
  answers: CSV('The notices that match the filters of the list.'),
  answer: async ({ store, shopAddress, clock }, { query: { bom, ...query } }, response) => {
    const list = (page: RowPage) => store.listNotices({ ...page, ...readFilter(query) });
    const show = (row: NoticeSummary) => noticeDocument(row, shopAddress) as NoticeDocument;
    return await sendTable(response, { name: 'notices', columns: NOTICE_COLUMNS, list, show, bom }, clock);
  },
});
