import { z } from 'zod';
import { orderDocument } from '../domain/notice.ts';
import { isOpen, type Order } from '../domain/order.ts';
import { shellWord } from '../explain/glossary.ts';
import { logChange } from '../observe/log.ts';
import type { LinkSeen } from '../paylink/service.ts';
import type { CheckResult } from '../reconcile/reconciler.ts';
import { count, described, givenReference } from './fields.ts';
import { waitingFor } from './opening.ts';
import { link, noSuchOrder, OPEN, order, orderAnswer } from './order.ts';
import { type ProblemError, problem } from './problem.ts';
import { type ApiOptions, operation, type Stated } from './route.ts';

/** Problems of every route that asks the service about one link. */
const ASKING: readonly Stated[] = [
  [409, 'link_unknown'],
  [503, 'link_unknown'],
  [503, 'service_unavailable'],
  [503, 'api_key_refused'],
  [503, 'api_not_configured'],
];

export const checkOrder = operation({
  id: 'checkOrder',
  group: 'Orders',
  summary: 'Ask the service about an order now',
  description: 'Settles what the service says, and answers after that.',
  answers: {
    200: {
      when: 'What the service said, and the order after it.',
      schema: z.strictObject({
        order: order.describe('The order as it is after the service answered.'),
        service: z.strictObject({
          linkStatus: link.status.unwrap(),
          paymentStatus: described(
            z.string().nullable(),
            '`NOT_STARTED`, `PENDING` or `COMPLETED`; null if the service named none.',
            'NOT_STARTED',
          ),
        }),
      }),
      sample: { order: OPEN, service: { linkStatus: 'ACTIVE', paymentStatus: 'NOT_STARTED' } },
    },
  },
  problems: ASKING,
  answer: async (options, { reference: name }) => {
    const checked = await askNow(options, name);
    if (checked.outcome !== 'read') throw await noLink(options, name, checked);
    const found = await options.store.findOrder(name);
    if (found === null) throw noSuchOrder(name);
    const { status, paymentStatus } = checked.link;
    return { order: orderDocument(found), service: { linkStatus: status, paymentStatus } };
  },
});

export const cancelOrder = operation({
  id: 'cancelOrder',
  group: 'Orders',
  summary: 'Cancel an order whose payment has not begun',
  description:
    'settled asks the service first, so that no paid order is cancelled. The link cannot be taken back: settled watches it ' +
    'until it expires, and holds what is still paid on it for a person.',
  answers: {
    200: {
      when: 'The order is cancelled, or was.',
      schema: orderAnswer,
      sample: { order: { ...OPEN, state: 'cancelled', version: 2 } },
    },
  },
  problems: [[409, 'not_cancellable'], ...ASKING],
  answer: cancel,
});

/**
 * A payment that comes between the service's answer and the cancellation is not lost: either it is settled first and the
 * order is not cancelled, or it finds a cancelled order and is held. While the service may have a link that settled is still
 * opening, payments on it are unknown, and the order is not cancelled. If settled has not asked for the link yet, it opens none.
 */
async function cancel(options: ApiOptions, { reference: name }: { reference: string }): Promise<object> {
  const { store, clock, log, onNotices } = options;
  const known = await store.findOrder(name);
  if (known === null) throw noSuchOrder(name);
  if (isOpen(known.state)) await requireUntouched(options, known);
  const cancelled = await store.cancelOrder({ reference: name, atMs: clock.nowMs() });
  if (cancelled === null) throw noSuchOrder(name);
  if (cancelled.outcome === 'opening') {
    const why = ', and the service may have it already: the order is not cancelled before that is known.';
    throw await noLink(options, name, { outcome: 'opening' }, why);
  }
  const { rule, order: after, from } = cancelled;
  if (after.state !== from) logChange(log, { order: name, from, to: after.state, rule, by: 'person' });
  if (rule !== 'cancelled' && rule !== 'already_cancelled') {
    throw notCancellable(`Order ${name} is ${after.state}: only an unpaid order can be cancelled.`, after);
  }
  onNotices();
  return { order: orderDocument(after) };
}

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

export const reconcile = operation({
  id: 'reconcile',
  group: 'Operation',
  summary: 'Ask the service about every link that can still be paid',
  description:
    'Makes all of them due now; settled asks as the API budget allows. With `reference` it asks about the link of that ' +
    'order, and answers when the answer is settled.',
  body: z.strictObject({
    reference: givenReference.optional().describe('Only the link of this order, and now.'),
    dryRun: z.boolean().optional().describe('Only count.'),
  }),
  answers: {
    200: {
      when: 'What it costs.',
      schema: z.strictObject({
        dryRun: z.boolean().describe('As the request had it: if true, nothing was done.'),
        links: count.describe('Links that can still be paid.'),
        requests: count.describe("What asking about them costs of the API's limit."),
        etaSeconds: z.number().min(0).describe('How long it takes at the most; 0 for one order.'),
      }),
      sample: { dryRun: true, links: 4, requests: 4, etaSeconds: 60 },
    },
  },
  problems: [[404, 'not_found'], ...ASKING],
  example: { body: { dryRun: true } },
  answer: async (options, { body: { reference: name, dryRun = false } }) => {
    const { asking } = options;
    if (asking === null) throw apiNotConfigured();
    if (name !== undefined && !dryRun) {
      const checked = await askNow(options, name);
      if (checked.outcome !== 'read') throw await noLink(options, name, checked);
    }
    const plan = await (name === undefined ? asking.reconciler.catchUp({ dryRun }) : asking.reconciler.cost(name));
    if (plan === null) throw noSuchOrder(name ?? '');
    const { links, requests, etaMs } = plan;
    return { dryRun, links, requests, etaSeconds: etaMs / 1000 };
  },
});

/** Asks the service about the order's link. Throws if there is no such order, or if settled cannot ask. */
async function askNow({ asking }: ApiOptions, name: string): Promise<Exclude<CheckResult, { outcome: 'no_order' }>> {
  if (asking === null) throw apiNotConfigured();
  const checked = await asking.reconciler.check(name);
  if (checked.outcome === 'no_order') throw noSuchOrder(name);
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
