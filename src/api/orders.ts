import type { RequestHandler, Response } from 'express';
import { agreement } from '../domain/comparison.ts';
import type { Money } from '../domain/money.ts';
import { orderDocument } from '../domain/notice.ts';
import { sendProblem } from '../http/problem.ts';
import { parseBodyExactly } from '../json.ts';
import { logChange } from '../observe/log.ts';
import { readEvent } from '../paylink/events.ts';
import type { Queries, Timeline } from '../store/queries.ts';
import { explain } from './explain.ts';
import { ordersQuery } from './list_queries.ts';
import { isUnconfirmed } from './next.ts';
import type { ApiOptions } from './options.ts';
import { lister } from './pages.ts';
import { read, readReference, resolveRequest } from './requests.ts';
import { givenMs } from './times.ts';

export function listOrders({ store }: ApiOptions): RequestHandler {
  return lister({
    name: 'orders',
    query: ordersQuery,
    list: (page, { state = null, q: search = null, since, until }) =>
      store.listOrders({ ...page, state, search, sinceMs: givenMs(since), untilMs: givenMs(until) }),
    describe: ({ value, attention }) => ({ ...orderDocument(value), attention }),
  });
}

export function showOrder({ store }: ApiOptions): RequestHandler {
  return async (request, response) => {
    const reference = readReference(request, response);
    if (reference === null) return;
    const order = await store.findOrder(reference);
    if (order === null) return noSuchOrder(response, reference);
    response.json({ order: orderDocument(order) });
  };
}

/** Why the order stands where it stands: the answer, then everything known of it in order of time, then what follows. */
export function showTimeline({ store, clock, asking, canTell, headerNames }: ApiOptions): RequestHandler {
  return async (request, response) => {
    const reference = readReference(request, response);
    if (reference === null) return;
    const timeline = await store.timeline(reference);
    if (timeline === null) return noSuchOrder(response, reference);
    const moneyInDoubt = await readMoneyInDoubt(store, timeline);
    const shopFailures = canTell ? (await store.shopState()).failures : null;
    const explained = explain(timeline, {
      nowMs: clock.nowMs(),
      canAsk: asking !== null,
      canTell,
      shopFailures,
      headerNames,
      moneyInDoubt,
    });
    response.json({ order: orderDocument(timeline.order), ...explained });
  };
}

/** The money of the completed payment that the newest webhook names that the service has not confirmed. */
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

export function resolveOrder({ store, clock, log, metrics, onNotices }: ApiOptions): RequestHandler {
  return async (request, response) => {
    const reference = readReference(request, response);
    if (reference === null) return;
    const asked = read(resolveRequest, request.body, response);
    if (asked === null) return;
    const resolved = await store.resolveOrder({ reference, ...asked, atMs: clock.nowMs() });
    if (resolved === null) return noSuchOrder(response, reference);
    if (resolved.outcome === 'applied') {
      const { rule, order } = resolved;
      logChange(log, { order: reference, from: 'held', to: order.state, rule, by: 'person' });
    }
    if (resolved.outcome !== 'ignored') {
      if (resolved.learnedBy !== null) metrics.paid(resolved.learnedBy);
      onNotices();
      response.json({ order: orderDocument(resolved.order) });
      return;
    }
    if (resolved.rule === 'nothing_left_to_accept') {
      const detail = `What order ${reference} captured was refunded or disputed: nothing is left to accept. Reject it.`;
      sendProblem(response, { status: 409, code: 'nothing_left_to_accept', detail });
    } else {
      const detail = `Order ${reference} is ${resolved.order.state}: only a held order can be resolved.`;
      sendProblem(response, { status: 409, code: 'not_held', detail });
    }
  };
}

export function noSuchOrder(response: Response, reference: string): void {
  sendProblem(response, { status: 404, code: 'not_found', detail: `There is no order ${reference}.` });
}
