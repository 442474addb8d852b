import type { ListedOrderDocument } from '../api/order.ts';
import { sumWords } from '../domain/ledger.ts';
import { amountIn } from '../domain/money.ts';
import type { OrderDocument } from '../domain/notice.ts';
import { otherTotal, severalInstalments } from '../domain/payment_details.ts';
import { shellWord } from '../explain/glossary.ts';
import { parseJsonText } from '../json.ts';
import { type Report, readGivenFile } from '../terminal/command.ts';
import { UsageError } from '../terminal/failure.ts';
import { type Block, printable } from '../terminal/output.ts';
import { record } from '../terminal/table.ts';
import { defineCommand } from './command.ts';
import { EXIT } from './exit.ts';
import { capturedWords, LIST_OPTIONS, type ListTable, list, ORDER_OPTIONS, queryOf } from './lists.ts';

/** The commands about one order, and the list of orders. */

type OrderAnswer = { order: OrderDocument };
/** `opening`: what a link that is not there yet waits for. */
type OpenAnswer = OrderAnswer & { opening?: { detail: string } };

export const ordersOpen = defineCommand({
  usage: 'orders open REFERENCE',
  about: 'open a payment link for an order, and show its address',
  details: [
    'The same command again shows the link that it made, and makes no other.',
    'It ends with 75 if the link is not there after 10 s: settled continues to open it.',
    'It ends with 1 if the order was cancelled, the reference is in use, or the service refuses;',
    'with 78 if no API or public address is configured.',
    'For a link that you make at the service yourself: settled links reserve.',
  ],
  examples: ['settled orders open order-8001 --title "A chair" --amount 100.00'],
  options: {
    title: { value: 'TEXT', needed: true, about: 'what the customer reads' },
    amount: { value: 'AMOUNT', needed: true, about: 'what the order costs, like 100.50; more than 25' },
    currency: { value: 'CODE', about: 'ISO 4217, like BRL; the configured currency if left out' },
    description: { value: 'TEXT', about: 'more for the customer to read' },
    'expires-at': {
      value: 'TIME',
      about: 'when the link expires, like 2030-01-31T12:00:00Z; by default after SETTLED_LINK_LIFETIME',
    },
    'metadata-file': { value: 'FILE', about: 'a file with a JSON object for the service to keep' },
    'callback-url': { value: 'URL', about: 'where the customer is sent after paying' },
    'customer-name': { value: 'NAME', about: 'who buys: people find the order by it, and the service does not get it' },
    'customer-email': { value: 'ADDRESS', about: 'their e-mail address, for the same' },
  },
  async run({ first: reference, options, server }) {
    const { title, amount, currency, description } = options;
    const { 'expires-at': expiresAt, 'metadata-file': file, 'callback-url': callbackUrl } = options;
    const metadata = file === undefined ? undefined : readMetadata(file);
    const customer = { name: options['customer-name'], email: options['customer-email'] };
    const body = { reference, title, amount, currency, description, expiresAt, metadata, callbackUrl, customer };
    const answer = await server().post<OpenAnswer>('/v1/orders', body);
    if (answer.order.link !== null) return report(answer);
    const later = [
      `The link is not there yet. ${answer.opening?.detail ?? ''}`,
      `settled continues to open it: give the same command again, or see settled why ${shellWord(reference)}`,
    ];
    return { ...report(answer, later), exit: EXIT.tryAgain };
  },
});

function readMetadata(file: string): unknown {
  const text = readGivenFile('metadata-file', file).toString('utf8');
  try {
    return parseJsonText(text);
  } catch (error) {
    throw new UsageError(`--metadata-file ${file} holds no JSON: ${(error as Error).message}.`);
  }
}

export const ordersList = defineCommand({
  usage: 'orders list',
  about: 'list orders, the newest first',
  details: [
    'A held order shows why it is held; an order with open matters shows their kinds: see settled attention.',
    'docs/states.md explains the states, the flags and the matters.',
  ],
  examples: [
    'settled orders list --state held',
    'settled orders list --since 2d --limit 5',
    'settled orders list --q "R$ 150,00" --paid-since 1d --count',
    'settled orders list --paid-since 30d --csv',
  ],
  options: { ...ORDER_OPTIONS, ...LIST_OPTIONS, csv: { about: 'print all of them as CSV, for a spreadsheet' } },
  async run({ options: { csv, ...options }, server, json, screen, print }) {
    if (csv === undefined) return list(server(), ORDERS, options);
    if (json || options.limit !== undefined || options.all !== undefined || options.count !== undefined) {
      throw new UsageError(
        '--csv prints all orders as CSV: it goes with filters, and not with --json, --limit, --all or --count.',
      );
    }
    for await (const line of server().follow('/v1/orders.csv', queryOf(options), new AbortController().signal)) {
      // A file has what the server wrote.
      const shown = screen.columns === null ? line : printable(line.replace(/\r$/, ''));
      if (!(await print(`${shown}\n`))) break;
    }
    return EXIT.ok;
  },
});

/** The customer of the payment or, if the service named none, the shop's. */
function buyerOf({ payment, customer }: ListedOrderDocument): OrderDocument['customer'] {
  return payment?.customer ?? customer;
}

const ORDERS: ListTable<ListedOrderDocument> = {
  list: 'orders',
  nothing: 'No such orders.',
  columns: (orders) => ({
    reference: 'reference',
    state: ({ state, hold, holds }) =>
      hold === null ? state : `${state}: ${unique(holds.map(({ reason }) => reason))}`,
    asked: amountIn,
    captured: capturedWords,
    created: 'createdAt',
    paid: 'paidAt',
    'flags and matters': ({ flags, attention }) => unique([...flags, ...attention]),
    // Who paid is a column if it is known of any order.
    ...(orders.some((order) => buyerOf(order) !== null)
      ? { customer: (order) => buyerOf(order)?.email ?? buyerOf(order)?.name ?? null }
      : {}),
  }),
};

function unique(words: readonly string[]): string {
  return [...new Set(words)].join(', ');
}

export const ordersShow = defineCommand({
  usage: 'orders show REFERENCE',
  about: 'show one order; `settled why` explains how it got there',
  examples: ['settled orders show order-8001', 'settled orders show order-8001 --json'],
  run: async ({ first, server }) => report(await server().get<OrderAnswer>(orderPath(first))),
});

type CheckAnswer = OrderAnswer & { service: { linkStatus: string; paymentStatus: string | null } };

export const ordersCheck = defineCommand({
  usage: 'orders check REFERENCE',
  about: 'ask the service about the link of an order now, and settle its answer',
  details: [
    'It ends with 0 once the answer is settled, whatever it says; with 66 if there is no such order;',
    'with 75 if the service cannot be asked now, the link is still being opened, or the service has none;',
    'with 78 if no API is configured.',
  ],
  examples: ['settled orders check order-8001'],
  async run({ first, server }) {
    const answer = await server().post<CheckAnswer>(`${orderPath(first)}/check`);
    const { linkStatus, paymentStatus } = answer.service;
    return report(answer, [
      `The service says: the link is ${linkStatus}, its paymentStatus ${paymentStatus ?? 'not named'}.`,
    ]);
  },
});

export const ordersCancel = defineCommand({
  usage: 'orders cancel REFERENCE',
  about: 'cancel an unpaid order; settled asks the service first',
  details: [
    'Its link stays open at the service until it expires: money that is paid on it is held for a person.',
    'It ends with 0 once the order is cancelled, now or before;',
    'with 1 if it is paid, being paid, held, refunded or disputed; with 66 if there is no such order;',
    'with 75 if the service cannot be asked now, or may have a link that is still being opened;',
    'with 78 if no API is configured.',
  ],
  examples: ['settled orders cancel order-8001'],
  async run({ first, server }) {
    const answer = await server().post<OrderAnswer>(`${orderPath(first)}/cancel`);
    const { link } = answer.order;
    if (link === null || link.status === 'EXPIRED') return report(answer);
    return report(answer, [
      'The link stays payable at the service until it expires: money that is paid on it is held for a person.',
    ]);
  },
});

export const ordersResolve = defineCommand({
  usage: 'orders resolve REFERENCE',
  about: 'end the holds of an order: a person accepts or rejects its money',
  details: [
    '--accept makes the order paid, with the money as it was captured.',
    "--reject cancels it; captured money is then to be refunded in the service's panel.",
    '`settled why REFERENCE` says what is held, and why.',
  ],
  examples: ['settled orders resolve order-8001 --accept --reason "the rest was paid in the shop"'],
  options: {
    accept: { about: 'the money is fine; this or --reject is needed' },
    reject: { about: 'the money is not' },
    reason: { value: 'TEXT', needed: true, about: "why; kept in the order's history" },
  },
  async run({ first, options: { accept, reject, reason }, server }) {
    if (accept === reject) throw new UsageError('`settled orders resolve` needs either --accept or --reject.');
    const body = { decision: accept ? 'accept' : 'reject', reason };
    return report(await server().post<OrderAnswer>(`${orderPath(first)}/resolve`, body));
  },
});

export const ordersAdopt = defineCommand({
  usage: 'orders adopt REFERENCE',
  about: 'give an order a link that exists at the service: one that settled did not make, or cannot find',
  details: [
    'The link must ask for the money of the order.',
    'If settled did not request the link, no customer may have begun to pay it.',
    "settled then does not have its signing secret: it refuses the link's webhooks, and asks the service instead.",
    'It ends with 0 once the order has the link, with 1 if it cannot have it, with 66 if there is no such order,',
    'with 75 if the service cannot be asked now, and with 78 if no API is configured.',
  ],
  examples: ['settled orders adopt order-8001 --id pl_8001'],
  options: { id: { value: 'ID', needed: true, about: "the link's id at the service" } },
  async run({ first, options: { id }, server }) {
    const answer = await server().post<OrderAnswer & { note: string }>(`${orderPath(first)}/adopt`, { id });
    return report(answer, [answer.note]);
  },
});

export function orderPath(reference: string): string {
  return `/v1/orders/${encodeURIComponent(reference)}`;
}

/** An order for a person, a fact a line, below what is said first. */
function report(answer: OrderAnswer, before: readonly string[] = []): Report {
  const lines = orderLines(answer.order);
  return { data: answer, lines: before.length === 0 ? lines : [...before, '', ...lines] };
}

function orderLines({ link, payments, paymentsTotal, ...order }: OrderDocument): Block[] {
  const { count, sums } = paymentsTotal;
  const all = sums.map(
    ({ captured, currency }) => `${count}, with ${amountIn({ amount: captured, currency })} captured`,
  );
  return record({
    reference: order.reference,
    state: order.state,
    amount: amountIn(order),
    title: order.title ?? undefined,
    'customer (the shop)': customerText(order.customer) || undefined,
    metadata: order.metadata === null ? undefined : JSON.stringify(order.metadata),
    created: order.createdAt,
    paid: order.paidAt,
    'learned by': order.learnedBy,
    flags: order.flags.join(', '),
    hold: order.holds.map(({ id, reason }) => `${id}: ${reason}`),
    payment: payments.flatMap(paymentLines),
    'payments in all': payments.length < count ? all : undefined,
    link: link?.id ?? null,
    'link status': link?.status || undefined,
    'link address': link?.url || undefined,
    'link expires': link?.expiresAt || undefined,
  });
}

function customerText(customer: OrderDocument['customer']): string {
  return [customer?.name, customer?.email].filter((one) => one != null).join(', ');
}

type Payment = OrderDocument['payments'][number];

/** Names what the customer paid if that is not the amount that counts; and below it what else the service says. */
function paymentLines({ id, status, amount, currency, customerPaid, stated, ...said }: Payment): string[] {
  const besides = customerPaid === null ? '' : ` (the customer paid ${amountIn(customerPaid)})`;
  const { method } = said;
  const who = customerText(said.customer);
  const several = severalInstalments(said);
  const total = otherTotal({ ...said, amount, currency });
  const words = [
    ...(who === '' ? [] : [`by ${who}`]),
    ...(method === null ? [] : [method]),
    ...(several === null ? [] : [`${several} instalments`]),
    ...(total === null ? [] : [`${amountIn(total)} with any interest`]),
    ...(said.createdAt === null ? [] : [`begun ${said.createdAt}`]),
    ...(said.completedAt === null ? [] : [`completed ${said.completedAt}`]),
    ...(said.availableAt === null ? [] : [`available ${said.availableAt}`]),
  ];
  const money = sumWords(amount === null ? null : amountIn({ amount, currency }), stated);
  const line = `${id ?? 'without an id'}: ${status}, ${money}${besides}`;
  return words.length === 0 ? [line] : [`${line}; ${words.join('; ')}`];
}
