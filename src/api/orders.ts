import { z } from 'zod';
import { orderDocument } from '../domain/notice.ts';
import { isOpen, type Order } from '../domain/order.ts';
import { shellWord } from '../explain/glossary.ts';
import { logChange } from '../observe/log.ts';
import type { LinkSeen } from '../paylink/service.ts';
import type { CheckResult } from '../reconcile/reconciler.ts';
import * as field from './fields.ts';
import { listAnswer, listQuery, orderFilters, readList, readOrderFilter } from './lists.ts';
import { waitingFor } from './opening.ts';
import { link, listedOrder, order } from './order.ts';
import { found, noSuch, type ProblemError, problem } from './problem.ts';
import { type ApiOptions, ok, operation, recordAction } from './route.ts';

export const listOrders = operation({
  summary: 'List and search orders, the newest first',
  query: z.strictObject({ ...listQuery, ...orderFilters }),
  answers: ok('A page of orders.', { orders: z.array(listedOrder), ...listAnswer }),
  problems: { 422: ['invalid_request'] },
  answer: async ({ store, currency }, { query }) => {
    const filter = readOrderFilter(query, currency);
    const { rows, more } = await readList(query, (at) => store.listOrders({ ...at, ...filter }));
    return { orders: rows.map(({ value, attention }) => ({ ...orderDocument(value), attention })), ...more };
  },
});

export const showOrder = operation({
  summary: 'One order',
  answers: ok('The order as it is now.', { order }),
  answer: async ({ store }, { reference }) => {
    return { order: orderDocument(found(await store.findOrder(reference), 'order', reference)) };
  },
});

/** Problems of every route that asks the service about one link. */
const ASKING = {
  409: ['link_unknown'],
  503: ['link_unknown', 'service_unavailable', 'api_key_refused', 'api_not_configured'],
} as const;

export const checkOrder = operation({
  summary: 'Ask the service about an order now',
  description: 'Settles what the service says, and answers after that.',
  answers: ok('What the service said, and the order after it.', {
    order: order.describe('The order as it is after the service answered.'),
    service: z.strictObject({
      linkStatus: link.status.unwrap(),
      paymentStatus: field.textOrNull('`NOT_STARTED`, `PENDING` or `COMPLETED`; null if not named.', 'NOT_STARTED'),
    }),
  }),
  problems: ASKING,
  answer: async (options, { reference, by }) => {
    found(await options.store.findOrder(reference), 'order', reference);
    if (options.asking === null) throw apiNotConfigured();
    await recordAction(options, by, { action: 'check_order', subject: reference });
    const { status, paymentStatus } = await readLinkNow(options, reference);
    const after = found(await options.store.findOrder(reference), 'order', reference);
    return { order: orderDocument(after), service: { linkStatus: status, paymentStatus } };
  },
});

/**
 * A payment that comes between the service's answer and the cancellation is not lost: either it is settled first and the
 * order is not cancelled, or it finds a cancelled order and is held. While the service may have a link that settled is still
 * opening, payments on it are unknown, and the order is not cancelled. If settled has not asked for the link yet, it opens none.
 */
export const cancelOrder = operation({
  summary: 'Cancel an order whose payment has not begun',
  description: 'settled asks the service first. What is still paid on the link is held for a person.',
  answers: ok('The order is cancelled, or was.', { order }),
  problems: { ...ASKING, 409: ['not_cancellable', ...ASKING[409]] },
  answer: async (options, { reference, by }) => {
    const { store, clock, log, onNotices } = options;
    const known = found(await store.findOrder(reference), 'order', reference);
    if (isOpen(known.state)) await requireUntouched(options, known);
    const cancelled = found(await store.cancelOrder({ reference, by, atMs: clock.nowMs() }), 'order', reference);
    if (cancelled.outcome === 'opening') {
      const why = ', and the service may have it already: the order is not cancelled before that is known.';
      throw await noLink(options, reference, { outcome: 'opening' }, why);
    }
    const { rule, order: after, from } = cancelled;
    if (after.state !== from) logChange(log, { order: reference, from, to: after.state, rule, by: 'person' });
    if (rule !== 'cancelled' && rule !== 'already_cancelled') {
      throw notCancellable(`Order ${reference} is ${after.state}: only an unpaid order can be cancelled.`, after);
    }
    onNotices();
    return { order: orderDocument(after) };
  },
});

/** Throws unless the service says that no payment has begun, or that it has no link of the order. */
async function requireUntouched(options: ApiOptions, known: Order): Promise<void> {
  const checked = await askNow(options, known.reference);
  const payable = checked.outcome === 'read' || checked.outcome === 'foreign' ? checked.link : null;
  if (payable === null || isUntouched(payable) || isLeft(payable)) return;
  const said = `The service says ${payable.paymentStatus ?? 'nothing'} of link ${payable.id}'s payment`;
  const now = (await options.store.findOrder(known.reference)) ?? known;
  throw notCancellable(`${said}: order ${known.reference} was not cancelled.`, now);
}

function isUntouched({ paymentStatus, payments }: LinkSeen): boolean {
  return paymentStatus === 'NOT_STARTED' && payments === 0;
}

/** A payment that was begun, and left until the link expired. If it is completed after all, settled holds its money. */
function isLeft({ status, paymentStatus, payments }: LinkSeen): boolean {
  return status === 'EXPIRED' && paymentStatus === 'PENDING' && payments > 0;
}

function notCancellable(why: string, now: Order): ProblemError {
  return problem(409, 'not_cancellable', `${why} ${instead(now)}`);
}

/** What can be done with an order that is not cancelled. */
function instead({ reference: name, state }: Order): string {
  const word = shellWord(name);
  if (state === 'held')
    return `A person must decide about its money: settled orders resolve ${word} --reject --reason TEXT`;
  if (state === 'paid') return "To give the money back, refund the payment in the service's panel.";
  if (!isOpen(state)) return 'Its money has gone back to the customer, so nothing is left to cancel.';
  return (
    "Only the service can end a payment that has begun. Look at it in the service's panel. When the link has expired, " +
    'the order expires and can be cancelled, and the shop may sell under a new reference. If the ' +
    `payment still arrives, settled sends order.paid. To ask again: settled orders check ${word}`
  );
}

/** What the service says of the order's link now. Throws if it cannot be asked, or has no such link. */
async function readLinkNow(options: ApiOptions, reference: string): Promise<LinkSeen> {
  const checked = await askNow(options, reference);
  if (checked.outcome !== 'read') throw await noLink(options, reference, checked);
  return checked.link;
}

/** Asks the service about the order's link. Throws if there is no such order, or if settled cannot ask. */
async function askNow({ asking }: ApiOptions, name: string): Promise<Exclude<CheckResult, { outcome: 'no_order' }>> {
  if (asking === null) throw apiNotConfigured();
  const checked = await asking.reconciler.check(name);
  if (checked.outcome === 'no_order') throw noSuch('order', name);
  return checked;
}

export function apiNotConfigured(): ProblemError {
  const detail = 'settled cannot ask the service. Set SETTLED_API_URL and SETTLED_API_KEY, and restart settled.';
  return problem(503, 'api_not_configured', detail);
}

/** The order has no link to ask about. `why` says what follows for a link that is being opened. */
async function noLink(
  options: ApiOptions,
  name: string,
  checked: Extract<CheckResult, { outcome: 'opening' | 'no_link' | 'foreign' }>,
  why = '. Ask again when the link is open.',
): Promise<ProblemError> {
  if (checked.outcome === 'opening') {
    const { detail: waits, retryAfterSeconds } = await waitingFor(options, name);
    const detail = `settled is opening the link of order ${name}${why} ${waits}`;
    return problem(503, 'link_unknown', detail, { retryAfterSeconds });
  }
  const detail =
    checked.outcome === 'no_link'
      ? `The service has no link with the externalReference ${name}.`
      : `The service's link ${checked.link.id} has the externalReference ${name}, but another webhookUrl than the one that ` +
        'settled gave out: settled does not take it for the link of this order.';
  return problem(409, 'link_unknown', detail);
}
