import type { NextFunction, Request, Response } from 'express';
import { Refusal } from '../model.ts';
import type { Parts } from '../sandbox.ts';
import { UnknownName } from '../silences.ts';
import type { Attempt, Delivery } from '../store/deliveries.ts';
import type { StoredEvent } from '../store/events.ts';
import { BODY_BYTES_MAX } from './requests.ts';

export function eventView({ store }: Parts, { id, linkNumber, kind, body, createdAtMs }: StoredEvent) {
  return {
    id,
    kind,
    paymentStatus: paymentStatusOf(body),
    link: store.findLink({ number: linkNumber })?.id ?? null,
    createdAt: timeText(createdAtMs),
    body,
  };
}

export function deliveryView({ store }: Parts, delivery: Delivery) {
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
    /** How many requests were sent: more than attempts where copies were, fewer where some were dropped. */
    sent: log.filter(({ faults }) => !faults.includes('drop')).length,
    faults: [...new Set(log.flatMap(({ faults }) => faults))],
    dueAt: status === 'waiting' && dueAtMs !== null ? timeText(dueAtMs) : null,
    held: heldView(store, delivery),
    createdAt: timeText(createdAtMs),
    lastAttempt: last === undefined ? null : attemptView(last),
  };
}

/** The payment status that an event tells, in every envelope; null where it tells none. */
function paymentStatusOf(body: string): string | null {
  return /"paymentStatus":"(\w+)"/.exec(body)?.[1] ?? null;
}

/** The fault plan that holds the delivery back, and for how many later deliveries of its link more. */
function heldView(store: Parts['store'], delivery: Delivery) {
  const { held, linkNumber, number } = delivery;
  const reasons = held?.faults.filter(({ fault }) => fault === 'delay' || fault === 'reorder') ?? [];
  const reason = reasons[(held?.postponed ?? 0) - 1];
  if (held === null || reason === undefined || delivery.status !== 'waiting') return null;
  if (reason.fault === 'delay') return { fault: 'delay', left: null };
  const sent = store.sentAfter(linkNumber, number) - held.sentBefore;
  return { fault: 'reorder', left: Math.max(0, (reason.takes.by as number) - sent) };
}

/** A delivery with the body of its event and every attempt. */
export function deliveryWithLog(parts: Parts, delivery: Delivery) {
  const { body } = parts.store.findEvent({ number: delivery.eventNumber }) as StoredEvent;
  const log = parts.store.attemptsOf(delivery.number).map(attemptView);
  return { ...deliveryView(parts, delivery), body, log };
}

/** Every attempt of the deliveries, in the order in which they were made. */
export function attemptsInOrder(parts: Parts, deliveries: readonly Delivery[]) {
  const { store } = parts;
  const order = store.db.prepare('SELECT delivery_number FROM attempt ORDER BY at_ms, number').pluck().all();
  const logs = new Map(
    deliveries.map((delivery) => {
      const { id, event, kind } = deliveryView(parts, delivery);
      const log = store.attemptsOf(delivery.number);
      return [
        delivery.number,
        log.map((attempt) => ({ delivery: id, event, kind, ...attemptView(attempt) })),
      ];
    }),
  );
  return (order as number[]).flatMap((number) => logs.get(number)?.shift() ?? []);
}

function attemptView({ deliveryNumber: _number, ordinal, atMs, ...rest }: Attempt) {
  return { attempt: ordinal, at: timeText(atMs), ...rest };
}

export function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

/** A refusal with its status; what else is wrong with the request; or a fault of ours. */
export function answerFault(error: unknown, _request: Request, response: Response, next: NextFunction): void {
  if (response.headersSent) next(error);
  else if (error instanceof Refusal) {
    const { status, code, message, field } = error;
    response.status(status).json({ error: { code, message, field } });
  } else if (error instanceof UnknownName) {
    const { message } = error;
    response.status(400).json({ error: { code: 'unknown_name', message: `${message}.`, field: null } });
  } else {
    const { status = 500, message } = error as { status?: number; message: string };
    const code = status === 413 ? 'body_too_large' : status === 400 ? 'body_unreadable' : 'internal';
    const told = status === 413 ? `The body is longer than ${BODY_BYTES_MAX} bytes.` : message;
    response.status(status).json({ error: { code, message: told, field: status < 500 ? 'body' : null } });
  }
}
