import type { Router } from 'express';
import type { LoggedRequest } from '../api/request_log.ts';
import type { Context } from '../context.ts';
import { heldBackBy } from '../dispatch/delivery_faults.ts';
import { Refusal } from '../model.ts';
import { timeText } from '../resources.ts';
import type { Attempt, Delivery, StoredEvent } from '../store/deliveries.ts';
import { linkOf } from './requests.ts';

/** The longest list: of more items it shows the latest. */
const LISTED_MAX = 1_000;

/** Events, their deliveries with every attempt, resending, and the requests to the API. */
export function deliveryRoutes(router: Router, context: Context): void {
  const { store, service, requests } = context;
  router.get('/events', (request, response) => {
    const events = store.events(linkAsked(context, request.query.link));
    response.json({ events: latest(events).map((event) => eventView(context, event)), total: events.length });
  });
  router.get('/deliveries', (request, response) => {
    const found = store.deliveries(linkAsked(context, request.query.link));
    const deliveries = latest(found).map((delivery) => deliveryView(context, delivery));
    response.json({ deliveries, total: found.length });
  });
  router.get('/attempts', (request, response) => {
    const found = store.attempts(linkAsked(context, request.query.link));
    const attempts = latest(found).map((attempt) => attemptOfDelivery(context, attempt));
    response.json({ attempts, total: found.length });
  });
  router.get('/requests', (request, response) => {
    const found = requests.after(numberAsked(request.query.after));
    response.json({ requests: found.slice(0, LISTED_MAX).map(requestView), total: found.length });
  });
  router.get('/deliveries/:id', (request, response) => {
    response.json(deliveryWithLog(context, deliveryOf(context, request.params.id)));
  });
  router.post('/deliveries/:id/resend', (request, response) => {
    const { eventNumber } = deliveryOf(context, request.params.id);
    const event = store.findEvent({ number: eventNumber }) as StoredEvent;
    response.status(201).json(deliveryView(context, service.resend(event)));
  });
  router.post('/events/:id/resend', (request, response) => {
    const { id } = request.params;
    const event = store.findEvent({ id });
    if (event === null) throw new Refusal(404, 'event_not_found', `There is no event ${id}.`, 'id');
    response.status(201).json(deliveryView(context, service.resend(event)));
  });
}

function numberAsked(asked: unknown): number {
  if (asked === undefined) return 0;
  if (/^[0-9]{1,15}$/.test(String(asked))) return Number(asked);
  throw new Refusal(400, 'validation_error', 'after must be the number of a request.', 'after');
}

function latest<T>(all: readonly T[]): readonly T[] {
  return all.slice(-LISTED_MAX);
}

function linkAsked(context: Context, asked: unknown): number | null {
  return asked === undefined ? null : linkOf(context, String(asked)).number;
}

function deliveryOf({ store }: Context, id: string): Delivery {
  const delivery = store.findDelivery({ id });
  if (delivery === null) throw new Refusal(404, 'delivery_not_found', `There is no delivery ${id}.`, 'id');
  return delivery;
}

export function eventView({ store }: Context, { id, linkNumber, kind, body, createdAtMs }: StoredEvent) {
  return {
    id,
    kind,
    paymentStatus: paymentStatusOf(body),
    link: store.findLink({ number: linkNumber })?.id ?? null,
    createdAt: timeText(createdAtMs),
    body,
  };
}

export function deliveryView({ store }: Context, delivery: Delivery) {
  const event = store.findEvent({ number: delivery.eventNumber }) as StoredEvent;
  const link = store.findLink({ number: delivery.linkNumber });
  const log = store.attemptsOf(delivery.number);
  const last = log.at(-1);
  const { id, origin, status, dueAtMs, attempts, createdAtMs } = delivery;
  return {
    id,
    event: event.id,
    kind: event.kind,
    paymentStatus: paymentStatusOf(event.body),
    link: link?.id ?? null,
    webhookUrl: link?.webhookUrl ?? null,
    origin,
    status,
    attempts,
    /** Requests that were sent: copies make them more than the attempts, dropped ones fewer. */
    sent: log.filter(({ faults }) => !faults.includes('drop')).length,
    faults: [...new Set(log.flatMap(({ faults }) => faults))],
    dueAt: status === 'waiting' && dueAtMs !== null ? timeText(dueAtMs) : null,
    held: status === 'waiting' ? heldBackBy(delivery, store) : null,
    createdAt: timeText(createdAtMs),
    lastAttempt: last === undefined ? null : attemptView(last),
  };
}

/** The payment status in an event's body, in any envelope; null if it has none. */
function paymentStatusOf(body: string): string | null {
  return /"paymentStatus":"(\w+)"/.exec(body)?.[1] ?? null;
}

/** A delivery with the body of its event and every attempt. */
function deliveryWithLog(context: Context, delivery: Delivery) {
  const { body } = context.store.findEvent({ number: delivery.eventNumber }) as StoredEvent;
  const log = context.store.attemptsOf(delivery.number).map(attemptView);
  return { ...deliveryView(context, delivery), body, log };
}

/** An attempt with its delivery and event. */
function attemptOfDelivery({ store }: Context, attempt: Attempt) {
  const { id, eventNumber } = store.findDelivery({ number: attempt.deliveryNumber }) as Delivery;
  const event = store.findEvent({ number: eventNumber }) as StoredEvent;
  return { delivery: id, event: event.id, kind: event.kind, ...attemptView(attempt) };
}

function requestView({ atMs, ...rest }: LoggedRequest) {
  return { at: timeText(atMs), epochMs: atMs, ...rest };
}

function attemptView({ deliveryNumber: _number, ordinal, atMs, ...rest }: Attempt) {
  return { attempt: ordinal, at: timeText(atMs), ...rest };
}
