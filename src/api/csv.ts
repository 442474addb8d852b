import type { Response } from 'express';
import { z } from 'zod';
import { amountIn } from '../domain/money.ts';
import { type OrderDocument, orderDocument } from '../domain/notice.ts';
import { WAYS_TO_PAY } from '../domain/payment_details.ts';
import type { Listed, RowPage } from '../store/verbs/list_pages.ts';
import type { ListedOrder } from '../store/verbs/orders_list.ts';
import type { Clock } from '../work/clock.ts';
import { orderFilters, readOrderFilter } from './lists.ts';
import { operation } from './route.ts';

/** Orders as CSV (RFC 4180), for spreadsheets: page by page, however many they are. */

/** Text, a number, or a decimal that settled itself wrote; null is an empty cell. */
type Cell = string | number | null | { decimal: string };

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

type List = (page: RowPage) => Promise<Listed<ListedOrder>>;

/**
 * Sends a list as a file. What fails before its first page is answered as a problem; after that the connection is broken
 * off, so that a part is not taken for the whole.
 */
async function sendOrders(
  response: Response,
  { list, hasMark }: { list: List; hasMark: boolean },
  clock: Clock,
): Promise<undefined> {
  let page = await list({ limit: ROWS_OF_PAGE });
  response.setHeader('content-type', 'text/csv; charset=utf-8; header=present');
  response.setHeader('content-disposition', 'attachment; filename="orders.csv"');
  response.setHeader('cache-control', 'no-store');
  if (response.req.method === 'HEAD') return void response.end();
  const write = async (text: string) => {
    if (!response.write(text)) await taken(response, 'drain', clock);
  };
  try {
    await write((hasMark ? BYTE_ORDER_MARK : '') + line(Object.keys(COLUMNS)));
    for (;;) {
      await write(page.rows.map(orderLine).join(''));
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

function orderLine({ value, attention }: ListedOrder): string {
  const order = { ...orderDocument(value), attention };
  return line(Object.values(COLUMNS).map((of) => of(order)));
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

type OrderLine = OrderDocument & { attention: readonly string[] };

/** Columns of the same name as a field of the row. */
function fields(...names: (keyof OrderLine)[]): Record<string, (row: OrderLine) => Cell> {
  return Object.fromEntries(names.map((name) => [name, (row: OrderLine) => row[name] as Cell]));
}

const COLUMNS: Readonly<Record<string, (row: OrderLine) => Cell>> = {
  ...fields('reference', 'state'),
  flags: ({ flags }) => flags.join(' '),
  ...fields('amount', 'currency'),
  captured: ({ paymentsTotal: { sums }, currency }) => decimal(sums.find((sum) => sum.currency === currency)?.captured),
  balance: ({ paymentsTotal: { sums }, currency }) => decimal(sums.find((sum) => sum.currency === currency)?.balance),
  otherCurrencies: ({ paymentsTotal: { sums }, currency }) => {
    const others = sums.filter((sum) => sum.currency !== currency);
    return others.map(({ captured: amount, currency }) => amountIn({ amount, currency })).join(' ') || null;
  },
  ...fields('createdAt', 'paidAt', 'learnedBy'),
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
  ...fields('title'),
  stated: ({ payments }) =>
    payments.flatMap(({ stated }) => (stated === null ? [] : amountIn(stated))).join(' ') || null,
};

export const ordersCsv = operation({
  summary: 'Orders as CSV',
  description: WHOLE,
  query: z.strictObject({
    ...orderFilters,
    bom: z.enum(['true', 'false']).optional().describe('`true`: a byte order mark first, as Excel needs it for ã.'),
  }),
  answers: { 200: { when: 'The orders that match the filters of the list.', schema: z.string(), type: 'text/csv' } },
  problems: { 422: ['invalid_request'] },
  answer: async ({ store, currency, clock }, { query: { bom, ...query } }, response) => {
    const filter = readOrderFilter(query, currency);
    const list: List = (page) => store.listOrders({ ...page, ...filter });
    return await sendOrders(response, { list, hasMark: bom === 'true' }, clock);
  },
});
