import type { Router } from 'express';
import { Refusal } from '../model.ts';
import type { Parts } from '../sandbox.ts';
import type { Delivery, StoredEvent } from '../store/deliveries.ts';
import { attemptOfDelivery, deliveryView, deliveryWithLog, eventView, requestView } from './answers.ts';
import { linkOf } from './requests.ts';

/** A list tells of so many at most, the latest. */
const LISTED_MAX = 1_000;

/** Events, their deliveries with every attempt, sending again, and what was asked of the API. */
export function deliveryRoutes(router: Router, parts: Parts): void {
  const { store, service, requests } = parts;
  router.get('/events', (request, response) => {
    const events = store.events(linkAsked(parts, request.query.link));
    response.json({ events: latest(events).map((event) => eventView(parts, event)), total: events.length });
  });
  router.get('/deliveries', (request, response) => {
    const found = store.deliveries(linkAsked(parts, request.query.link));
    const deliveries = latest(found).map((delivery) => deliveryView(parts, delivery));
    response.json({ deliveries, total: found.length });
  });
  router.get('/attempts', (request, response) => {
    const found = store.attempts(linkAsked(parts, request.query.link));
    const attempts = latest(found).map((attempt) => attemptOfDelivery(parts, attempt));
    response.json({ attempts, total: found.length });
  });
  router.get('/requests', (request, response) => {
    const found = requests.after(numberAsked(request.query.after));
    response.json({ requests: found.slice(0, LISTED_MAX).map(requestView), total: found.length });
  });
  router.get('/deliveries/:id', (request, response) => {
    response.json(deliveryWithLog(parts, deliveryOf(parts, request.params.id)));
  });
  router.post('/deliveries/:id/resend', (request, response) => {
    const { eventNumber } = deliveryOf(parts, request.params.id);
    const event = store.findEvent({ number: eventNumber }) as StoredEvent;
    response.status(201).json(deliveryView(parts, service.resend(event)));
  });
  router.post('/events/:id/resend', (request, response) => {
    const { id } = request.params;
    const event = store.findEvent({ id });
    if (event === null) throw new Refusal(404, 'event_not_found', `There is no event ${id}.`, 'id');
    response.status(201).json(deliveryView(parts, service.resend(event)));
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

function linkAsked(parts: Parts, asked: unknown): number | null {
  return asked === undefined ? null : linkOf(parts, String(asked)).number;
}

function deliveryOf({ store }: Parts, id: string): Delivery {
  const delivery = store.findDelivery({ id });
  if (delivery === null) throw new Refusal(404, 'delivery_not_found', `There is no delivery ${id}.`, 'id');
  return delivery;
}
