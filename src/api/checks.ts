import type { RequestHandler, Response } from 'express';
import { shellWord } from '../domain/advice.ts';
import { orderDocument } from '../domain/notice.ts';
import { isOpen, type Order } from '../domain/order.ts';
import { sendProblem } from '../http/problem.ts';
import { logChange } from '../observe/log.ts';
import { isMissing, type LinkSeen, ServiceFault } from '../paylink/service.ts';
import type { CheckResult } from '../reconcile/reconciler.ts';
import type { ApiOptions } from './options.ts';
import { noSuchOrder } from './orders.ts';
import { readReference } from './requests.ts';
import { waitingFor } from './waiting.ts';

/** `POST /v1/orders/:reference/check`: asks the service now, and answers with the order as it stands then. */
export function checkOrder(options: ApiOptions): RequestHandler {
  return async (request, response) => {
    const reference = readReference(request, response);
    if (reference === null) return;
    const checked = await askNow(options, reference, response);
    if (checked === null) return;
    if (checked.outcome !== 'read') return noLink(options, response, reference, checked);
    const order = await options.store.findOrder(reference);
    if (order === null) return noSuchOrder(response, reference);
    const { status, paymentStatus } = checked.link;
    response.json({ order: orderDocument(order), service: { linkStatus: status, paymentStatus } });
  };
}

/**
 * `POST /v1/orders/:reference/cancel`. The service is asked first: what it calls paid or pending is not cancelled. A
 * payment that comes between its answer and ours is not lost: either it is settled first, and the order not cancelled,
 * or it finds a cancelled order and is held. The service's page stays open until the link expires, so the link stays
 * watched. While a link is being opened that the service may have, nothing can be said of payments on it, and nothing is
 * cancelled; where it was asked for none so far, none is opened.
 */
export function cancelOrder(options: ApiOptions): RequestHandler {
  return async (request, response) => {
    const reference = readReference(request, response);
    if (reference === null) return;
    const { store, clock } = options;
    const known = await store.findOrder(reference);
    if (known === null) return noSuchOrder(response, reference);
    if (isOpen(known.state)) {
      const checked = await askNow(options, reference, response);
      if (checked === null) return;
      const payable = checked.outcome === 'read' || checked.outcome === 'foreign' ? checked.link : null;
      if (payable !== null && !isUntouched(payable)) {
        const said = `The service says ${payable.paymentStatus ?? 'nothing'} of link ${payable.id}'s payment`;
        const now = (await store.findOrder(reference)) ?? known;
        return notCancellable(response, `${said}: order ${reference} was not cancelled. ${instead(now)}`);
      }
    }
    const cancelled = await store.cancelOrder({ reference, atMs: clock.nowMs() });
    if (cancelled === null) return noSuchOrder(response, reference);
    if (cancelled.outcome === 'opening') {
      const why = ', and the service may have it already: the order is not cancelled before that is known.';
      return noLink(options, response, reference, { outcome: 'opening' }, why);
    }
    const { rule, order, from } = cancelled;
    if (order.state !== from) logChange(options.log, { order: reference, from, to: order.state, rule, by: 'person' });
    if (rule === 'cancelled' || rule === 'already_cancelled') {
      options.onNotices();
      response.json({ order: orderDocument(order) });
      return;
    }
    const why = `Order ${reference} is ${order.state}: only an order that nobody pays can be cancelled.`;
    notCancellable(response, `${why} ${instead(order)}`);
  };
}

/** What can be done with an order that is not cancelled. */
function instead({ reference, state }: Order): string {
  const word = shellWord(reference);
  if (state === 'held')
    return `A person decides about its money: settled orders resolve ${word} --reject --reason TEXT`;
  if (state === 'paid') return "To give the money back, refund the payment in the service's panel.";
  if (!isOpen(state)) return 'Its money has gone back: nothing is left to cancel.';
  return (
    "A payment that was begun can only be ended at the service: look at it in the service's panel. It may never be " +
    'completed: some hours after the end of the link the shop may release what it keeps, and sell under a new reference. ' +
    `Money that comes all the same arrives as order.paid. Ask again: settled orders check ${word}`
  );
}

/** Whether the service says that nobody began to pay. */
function isUntouched({ paymentStatus, payments }: LinkSeen): boolean {
  return paymentStatus === 'NOT_STARTED' && payments === 0;
}

function notCancellable(response: Response, detail: string): void {
  sendProblem(response, { status: 409, code: 'not_cancellable', detail });
}

/** Asks about the order's link; answers and returns null where there is no such order or it cannot be asked. */
export async function askNow(
  { asking, clock }: ApiOptions,
  reference: string,
  response: Response,
): Promise<Exclude<CheckResult, { outcome: 'no_order' }> | null> {
  if (asking === null) {
    sendNotConfigured(response);
    return null;
  }
  try {
    const checked = await asking.reconciler.check(reference);
    if (checked.outcome !== 'no_order') return checked;
    noSuchOrder(response, reference);
  } catch (error) {
    if (!(error instanceof ServiceFault)) throw error;
    sendServiceFault(response, error, clock.nowMs());
  }
  return null;
}

export function sendNotConfigured(response: Response): void {
  const detail = 'The service cannot be asked: set SETTLED_API_URL and SETTLED_API_KEY, and restart settled.';
  sendProblem(response, { status: 503, code: 'api_not_configured', detail });
}

export function sendServiceFault(response: Response, fault: ServiceFault, nowMs: number): void {
  const { code, message, retryAtMs } = fault;
  if (isMissing(fault)) {
    sendProblem(response, { status: 409, code: 'link_unknown', detail: message });
    return;
  }
  sendProblem(response, {
    status: 503,
    code: code === 'service_key_refused' ? 'api_key_refused' : 'service_unavailable',
    detail: message,
    ...(retryAtMs === null ? {} : { retryAfterSeconds: Math.max(1, Math.ceil((retryAtMs - nowMs) / 1000)) }),
  });
}

/** Answers that the order has no link that could be asked about. `why`: what the opening has to do with what was wanted. */
export async function noLink(
  options: ApiOptions,
  response: Response,
  reference: string,
  checked: Extract<CheckResult, { outcome: 'opening' | 'no_link' | 'foreign' }>,
  why = '. Ask again when it is there.',
): Promise<void> {
  if (checked.outcome === 'opening') {
    const { detail: waits, retryAfterSeconds } = await waitingFor(options, reference);
    const detail = `The link of order ${reference} is being opened${why} ${waits}`;
    sendProblem(response, { status: 503, code: 'link_unknown', detail, retryAfterSeconds });
    return;
  }
  const detail =
    checked.outcome === 'no_link'
      ? `The service has no link with the externalReference ${reference}.`
      : `The service's link ${checked.link.id} has the externalReference ${reference}, but another webhookUrl than the one ` +
        'that settled gave out: it is not taken for the link of this order.';
  sendProblem(response, { status: 409, code: 'link_unknown', detail });
}
