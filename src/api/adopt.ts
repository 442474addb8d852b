import type { RequestHandler, Response } from 'express';
import { formatAmount, parseAmount } from '../domain/money.ts';
import { orderDocument } from '../domain/notice.ts';
import { isOpen, type Order } from '../domain/order.ts';
import { sendProblem } from '../http/problem.ts';
import { carriesToken, type LinkSeen, type Service, ServiceFault } from '../paylink/service.ts';
import { sendNotConfigured, sendServiceFault } from './checks.ts';
import type { ApiOptions } from './options.ts';
import { noSuchOrder } from './orders.ts';
import { adoptRequest, read, readReference } from './requests.ts';

const NOTES = {
  own: 'settled asked for this link itself, and its answer was lost: its webhooks are taken as of any other.',
  other:
    'The signing secret of this link is not ours, so its webhooks are refused: settled asks the service about it instead.',
};

/**
 * `POST /v1/orders/:reference/adopt`: a person names the link of an order whose reference was taken at the service, or
 * that waits for a link which the service does not list. It is taken on where it asks for this order's money and nobody
 * paid it, unless it is our own. Nothing is believed but what the service says of it.
 */
export function adoptLink(options: ApiOptions): RequestHandler {
  return async (request, response) => {
    const reference = readReference(request, response);
    if (reference === null) return;
    const asked = read(adoptRequest, request.body, response);
    if (asked === null) return;
    const { store, asking, clock, log } = options;
    if (asking === null) return sendNotConfigured(response);
    const [order, watched] = await Promise.all([store.findOrder(reference), store.findLink(reference)]);
    if (order === null || watched === null) return noSuchOrder(response, reference);
    if (order.link !== null && order.link.id !== null) return refuse(response, hasLink(order));
    if (!isOpen(order.state)) return refuse(response, notOpen(order));
    const link = await seen(options, asking.service, asked.id, response);
    if (link === null) return;
    const own = carriesToken(link, watched.token);
    const flaw = flawOf(link, asked.id, order) ?? (own ? null : begunFlawOf(link));
    if (flaw !== null) return refuse(response, flaw);
    const adopted = await store.adoptLink({ reference, link, nowMs: clock.nowMs() });
    if (adopted === 'taken') return refuse(response, `Link ${link.id} belongs to another order here.`);
    const after = (await store.findOrder(reference)) ?? order;
    if (adopted === 'not_open') return refuse(response, notOpen(after));
    if (adopted === 'not_parked') return refuse(response, after.link?.id ? hasLink(after) : notParked(order));
    log.info({ order: reference, link: link.id, by: 'person' }, 'link is open');
    asking.reconciler.wake();
    response.json({ order: orderDocument(after), note: own ? NOTES.own : NOTES.other });
  };
}

/** The link as the service shows it; answers and returns null where it cannot be asked, or has none of that id. */
async function seen({ clock }: ApiOptions, service: Service, id: string, response: Response): Promise<LinkSeen | null> {
  try {
    return (await service.showLink(id, 'confirm')).value;
  } catch (error) {
    if (!(error instanceof ServiceFault)) throw error;
    if (error.code === 'service_not_found') refuse(response, `The service has no link ${id}.`);
    else sendServiceFault(response, error, clock.nowMs());
    return null;
  }
}

/** Why the link cannot be the order's; null where it can. */
function flawOf(link: LinkSeen, id: string, { reference, amount }: Order): string | null {
  const { money } = link;
  if (link.reference !== reference) {
    const other = link.reference === null ? 'no externalReference' : 'another externalReference';
    return `Link ${id} has ${other}: it is not the link of order ${reference}.`;
  }
  const parsed = money.amount === null ? null : parseAmount(money.amount, amount.currency);
  if (money.currency !== amount.currency || !parsed?.ok || parsed.amountMinor !== amount.amountMinor) {
    const theirs = [money.amount, money.currency].filter((part) => part !== null).join(' ') || 'no money at all';
    return `Link ${id} asks for ${theirs}, and order ${reference} for ${formatAmount(amount)} ${amount.currency}.`;
  }
  return null;
}

function begunFlawOf({ id, paymentStatus, payments }: LinkSeen): string | null {
  if (payments === 0 && (paymentStatus === null || paymentStatus === 'NOT_STARTED')) return null;
  return `Somebody began to pay link ${id} already: its payment cannot be told from one for something else.`;
}

function hasLink({ reference, link }: Order): string {
  return `Order ${reference} has its own link: ${link?.id}.`;
}

function notOpen({ reference, state }: Order): string {
  return `Order ${reference} is ${state}: only an order that waits for its money can be given a link.`;
}

function notParked({ reference }: Order): string {
  return (
    `Order ${reference} waits for no link that the service may have: only an order whose reference was taken there, or ` +
    'whose creation was not answered, can be given one.'
  );
}

function refuse(response: Response, detail: string): void {
  sendProblem(response, { status: 409, code: 'not_adoptable', detail });
}
