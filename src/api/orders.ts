import { z } from 'zod';
import { agreement } from '../domain/comparison.ts';
import type { Money } from '../domain/money.ts';
import { orderDocument } from '../domain/notice.ts';
import { isOpen, type Order } from '../domain/order.ts';
import { ENTRY_KINDS } from '../explain/chronicle.ts';
import { explain } from '../explain/explain.ts';
import { shellWord } from '../explain/glossary.ts';
import { isUnconfirmed } from '../explain/next_steps.ts';
import { parseBodyExactly } from '../json.ts';
import { logChange } from '../observe/log.ts';
import { readEvent } from '../paylink/events.ts';
import type { LinkSeen } from '../paylink/service.ts';
import type { CheckResult } from '../reconcile/reconciler.ts';
import type { Queries, Timeline } from '../store/contract_queries.ts';
import * as field from './fields.ts';
import { time } from './fields.ts';
import { listAnswer, listQuery, orderFilters, readList, readOrderFilter } from './lists.ts';
import { waitingFor } from './opening.ts';
import { link, listedOrder, OPEN, order, PAID } from './order.ts';
import { found, noSuch, type ProblemError, problem } from './problem.ts';
import { type ApiOptions, ok, operation, recordAction } from './route.ts';

export const listOrders = operation({
  summary: 'List and search orders, the newest first',
  query: z.strictObject({ ...listQuery, ...orderFilters }),
  answers: ok(
    'A page of orders.',
    { orders: z.array(listedOrder), ...listAnswer },
    { orders: [{ ...OPEN, attention: [] }], nextCursor: 'azEyMw', count: { n: 1000, isMore: true } },
  ),
  problems: { 422: ['invalid_request'] },
  example: { query: 'state=awaiting_payment&limit=20&count=true' },
  answer: async ({ store, currency }, { query }) => {
    const filter = readOrderFilter(query, currency);
    const { rows, more } = await readList(query, (at) => store.listOrders({ ...at, ...filter }));
    return { orders: rows.map(({ value, attention }) => ({ ...orderDocument(value), attention })), ...more };
  },
});

export const showOrder = operation({
  summary: 'One order',
  answers: ok('The order as it is now.', { order }, { order: PAID }),
  answer: async ({ store }, { reference }) => {
    return { order: orderDocument(found(await store.findOrder(reference), 'order', reference)) };
  },
});

const timelineEntry = field.component('TimelineEntry', 'One thing that happened to an order.', {
  at: time,
  kind: z.enum(ENTRY_KINDS),
  summary: z.string(),
  details: z.array(z.string()),
  about: z
    .strictObject({ what: z.enum(['event', 'notice', 'matter']), id: z.string(), status: field.rowStatus.nullable() })
    .nullable()
    .describe('The row that it shows, or by which it was decided; null if there is none that can be looked at.'),
});

const TIMELINE = {
  order: PAID,
  answer:
    `Order ${PAID.reference} (100.00 BRL) is paid. The service reported 100.00 BRL in an authentic webhook; settled marked it ` +
    'paid at 2030-01-31T12:00:00.000Z.',
  entries: [
    { at: '2030-01-31T11:58:20.131Z', kind: 'registration', summary: 'link pl_8001 opened', details: [], about: null },
    {
      at: '2030-01-31T11:59:59.992Z',
      kind: 'delivery',
      summary: 'authentic, payment_link.payment_status_changed: done, applied (rule paid)',
      details: ["event 17, the service's id evt_8001"],
      about: { what: 'event', id: '17', status: 'done' },
    },
    {
      at: '2030-01-31T12:00:00.000Z',
      kind: 'decision',
      summary: 'awaiting_payment → paid: the payment is completed and agrees with the order (rule paid)',
      details: [
        'by event 17',
        'ledger: captured 100.00 BRL, payment pay_8001',
        'became paid; this is written once, whatever follows',
        'notice order.paid',
      ],
      about: { what: 'event', id: '17', status: null },
    },
  ],
  next: [
    'settled asks the service at 2030-02-01T12:00:00.000Z, in 1 d, on schedule: refunds, disputes and second payments have no ' +
      'webhook.',
  ],
};

export const showTimeline = operation({
  summary: "Explain an order's state",
  description: 'The answer first, then everything that is known, then what follows. `settled why ORDER` prints it.',
  answers: ok(
    'The order and its story.',
    {
      order,
      answer: z.string().describe('A few sentences: whether the order is paid, and why or why not.'),
      entries: z
        .array(timelineEntry)
        .describe('Everything known of the order, in order of time: at most 500 of a kind, the newest.'),
      next: z.array(z.string()).describe('What settled does from here on, and what a person should do.'),
    },
    TIMELINE,
  ),
  answer: async ({ store, clock, asking, canTell, headerNames }, { reference }) => {
    const timeline = found(await store.timeline(reference), 'order', reference);
    const explained = explain(timeline, {
      nowMs: clock.nowMs(),
      canAsk: asking !== null,
      canTell,
      headerNames,
      moneyInDoubt: await readMoneyInDoubt(store, timeline),
      shopFailures: canTell ? (await store.shopState()).failures : null,
    });
    return { order: orderDocument(timeline.order), ...explained };
  },
});

/** The money of the completed payment in the newest webhook that the service has not confirmed. */
async function readMoneyInDoubt(store: Pick<Queries, 'findEvent'>, timeline: Timeline): Promise<Money | null> {
  if (!isUnconfirmed(timeline)) return null;
  const asked = timeline.events.findLast(({ outcome }) => outcome === 'ask');
  const body = asked === undefined ? null : (await store.findEvent(asked.key))?.body;
  const parsed = body == null ? undefined : parseBodyExactly(Buffer.from(body));
  if (parsed === undefined) return null;
  const fact = readEvent(parsed).facts.find(({ kind }) => kind === 'completed');
  if (fact === undefined || (fact.quoteMoney ?? fact.linkMoney) === null) return null;
  return agreement(timeline.order, fact).captured;
}

/** Problems of every route that asks the service about one link. */
export const ASKING = {
  409: ['link_unknown'],
  503: ['link_unknown', 'service_unavailable', 'api_key_refused', 'api_not_configured'],
} as const;

export const checkOrder = operation({
  summary: 'Ask the service about an order now',
  description: 'Settles what the service says, and answers after that.',
  answers: ok(
    'What the service said, and the order after it.',
    {
      order: order.describe('The order as it is after the service answered.'),
      service: z.strictObject({
        linkStatus: link.status.unwrap(),
        paymentStatus: field.textOrNull(
          '`NOT_STARTED`, `PENDING` or `COMPLETED`; null if the service named none.',
          'NOT_STARTED',
        ),
      }),
    },
    { order: OPEN, service: { linkStatus: 'ACTIVE', paymentStatus: 'NOT_STARTED' } },
  ),
  problems: ASKING,
  answer: async (options, { reference, by }) => {
    found(await options.store.findOrder(reference), 'order', reference);
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
  description:
    'settled asks the service first, so that no paid order is cancelled. The link cannot be taken back: settled watches it ' +
    'until it expires, and holds what is still paid on it for a person.',
  answers: ok('The order is cancelled, or was.', { order }, { order: { ...OPEN, state: 'cancelled', version: 2 } }),
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
  if (payable === null || isUntouched(payable)) return;
  const said = `The service says ${payable.paymentStatus ?? 'nothing'} of link ${payable.id}'s payment`;
  const now = (await options.store.findOrder(known.reference)) ?? known;
  throw notCancellable(`${said}: order ${known.reference} was not cancelled.`, now);
}

function isUntouched({ paymentStatus, payments }: LinkSeen): boolean {
  return paymentStatus === 'NOT_STARTED' && payments === 0;
}

function notCancellable(why: string, now: Order): ProblemError {
  return problem(409, 'not_cancellable', `${why} ${instead(now)}`);
}

/** What can be done with an order that is not cancelled. */
function instead({ reference: name, state }: Order): string {
  const word = shellWord(name);
  if (state === 'held')
    return `A person decides about its money: settled orders resolve ${word} --reject --reason TEXT`;
  if (state === 'paid') return "To give the money back, refund the payment in the service's panel.";
  if (!isOpen(state)) return 'Its money has gone back: nothing is left to cancel.';
  return (
    "Only the service can end a payment that has begun: look at it in the service's panel. It may never be completed: some " +
    'hours after the end of the link the shop may release what it keeps, and sell under a new reference. A payment that ' +
    `still comes arrives as order.paid. Ask again: settled orders check ${word}`
  );
}

/** What the service says of the order's link now. Throws if it cannot be asked, or has no such link. */
export async function readLinkNow(options: ApiOptions, reference: string): Promise<LinkSeen> {
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
  const detail = 'settled cannot ask the service: set SETTLED_API_URL and SETTLED_API_KEY, and restart settled.';
  return problem(503, 'api_not_configured', detail);
}

/** The order has no link to ask about. `why` says what follows for a link that is being opened. */
async function noLink(
  options: ApiOptions,
  name: string,
  checked: Extract<CheckResult, { outcome: 'opening' | 'no_link' | 'foreign' }>,
  why = '. Ask again when it is there.',
): Promise<ProblemError> {
  if (checked.outcome === 'opening') {
    const { detail: waits, retryAfterSeconds } = await waitingFor(options, name);
    const detail = `The link of order ${name} is being opened${why} ${waits}`;
    return problem(503, 'link_unknown', detail, { retryAfterSeconds });
  }
  const detail =
    checked.outcome === 'no_link'
      ? `The service has no link with the externalReference ${name}.`
      : `The service's link ${checked.link.id} has the externalReference ${name}, but another webhookUrl than the one that ` +
        'settled gave out: settled does not take it for the link of this order.';
  return problem(409, 'link_unknown', detail);
}
