import type { OrderDocument } from '../domain/notice.ts';
import { ORDER_STATES } from '../domain/order.ts';
import { UsageError } from './arguments.ts';
import { defineCommand, type Report } from './command.ts';
import { record, table } from './layout.ts';
import { listRows, moreLine, PAGE_OPTIONS } from './pages.ts';
import { givenTime } from './since.ts';

export const ordersList = defineCommand({
  name: 'orders list',
  positionals: '',
  about: 'list orders, the newest first',
  details: [
    'A held order shows why it is held; an order with open matters shows their kinds: see settled attention.',
    'docs/states.md explains the states, the flags and the matters.',
  ],
  examples: ['settled orders list --state held', 'settled orders list --since 2d --limit 5'],
  options: {
    state: { value: 'STATE', choices: ORDER_STATES, about: 'only orders in this state' },
    q: { value: 'TEXT', about: 'only orders whose reference holds the text, or whose link or payment id it is' },
    since: { value: 'TIME', about: 'only orders created since then: 90m, 2h or 3d ago, or 2030-01-31T12:00:00Z' },
    until: { value: 'TIME', about: 'only orders created until then' },
    ...PAGE_OPTIONS,
  },
  async run({ options, server }) {
    const { state, q } = options;
    const query = { state, q, since: givenTime('since', options.since), until: givenTime('until', options.until) };
    const list = { path: '/v1/orders', field: 'orders', query };
    const { rows: orders, more } = await listRows<ListedOrder>(server(), list, options);
    const rows = orders.map((order) => [
      order.reference,
      order.hold === null ? order.state : `${order.state}: ${reasonsOf(order)}`,
      `${order.amount} ${order.currency}`,
      capturedWords(order),
      order.createdAt,
      order.paidAt,
      [...new Set([...order.flags, ...order.attention])].join(', '),
    ]);
    const headings = ['reference', 'state', 'asked', 'captured', 'created', 'paid', 'flags and matters'];
    return { data: { orders, more }, lines: [...table(headings, rows, 'No such orders.'), ...moreLine(more)] };
  },
});

type ListedOrder = OrderDocument & { attention: string[] };

function reasonsOf({ holds }: OrderDocument): string {
  return [...new Set(holds.map(({ reason }) => reason))].join(', ');
}

/** What was captured for an order, and what is left of it if some has gone back. */
export function capturedWords({ paymentsTotal }: Pick<OrderDocument, 'paymentsTotal'>): string {
  return paymentsTotal.sums
    .map(({ captured, balance, currency }) =>
      captured === balance ? `${captured} ${currency}` : `${captured} ${currency} (${balance} left)`,
    )
    .join(', ');
}

export const ordersShow = defineCommand({
  name: 'orders show',
  positionals: 'REFERENCE',
  about: 'show one order; `settled why` says how it came to stand there',
  options: {},
  async run({ first: reference, server }) {
    return report(await server().get<{ order: OrderDocument }>(orderPath(reference)));
  },
});

export const ordersResolve = defineCommand({
  name: 'orders resolve',
  positionals: 'REFERENCE',
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
    reason: { value: 'TEXT', about: "why; kept in the order's history; needed" },
  },
  async run({ first: reference, options: { accept, reject, reason }, server }) {
    if (accept === reject) {
      throw new UsageError('`settled orders resolve` needs either --accept or --reject.');
    }
    if (reason === undefined) throw new UsageError('`settled orders resolve` needs --reason TEXT.');
    const path = `${orderPath(reference)}/resolve`;
    const body = { decision: accept ? 'accept' : 'reject', reason };
    return report(await server().post<{ order: OrderDocument }>(path, body));
  },
});

export function orderPath(reference: string): string {
  return `/v1/orders/${encodeURIComponent(reference)}`;
}

function report(answer: { order: OrderDocument }): Report {
  return { data: answer, lines: orderLines(answer.order) };
}

/** An order for a person, a fact a line. */
export function orderLines(order: OrderDocument): string[] {
  const { link } = order;
  return record([
    ['reference', order.reference],
    ['state', order.state],
    ['amount', `${order.amount} ${order.currency}`],
    ['created', order.createdAt],
    ['paid', order.paidAt],
    ['learned by', order.learnedBy],
    ['flags', order.flags.join(', ')],
    ...order.holds.map(({ id, reason }) => ['hold', `${id}: ${reason}`] as const),
    ...order.payments.map(
      ({ id, status, amount, currency, customerPaid }) =>
        ['payment', `${id ?? 'without an id'}: ${status}, ${amount} ${currency}${besides(customerPaid)}`] as const,
    ),
    ...order.paymentsTotal.sums
      .filter(() => order.payments.length < order.paymentsTotal.count)
      .map(
        ({ captured, currency }) =>
          ['payments in all', `${order.paymentsTotal.count}, with ${captured} ${currency} captured`] as const,
      ),
    ['link', link?.id ?? null],
    ...(link?.status ? [['link status', link.status] as const] : []),
    ...(link?.url ? [['link address', link.url] as const] : []),
  ]);
}

/** What the customer paid, if that is not what counts. */
function besides(paid: OrderDocument['payments'][number]['customerPaid']): string {
  return paid === null ? '' : ` (the customer paid ${paid.amount} ${paid.currency})`;
}
