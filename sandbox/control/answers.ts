import type { NextFunction, Request, Response } from 'express';
import type { LoggedRequest } from '../api/request_log.ts';
import { heldBackBy } from '../dispatch/delivery_faults.ts';
import { Refusal } from '../model.ts';
import { UnknownName } from '../options.ts';
import { timeText } from '../resources.ts';
import type { Parts } from '../sandbox.ts';
import type { Attempt, Delivery, StoredEvent } from '../store/deliveries.ts';
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
    held: status === 'waiting' ? heldBackBy(delivery, store) : null,
    createdAt: timeText(createdAtMs),
    lastAttempt: last === undefined ? null : attemptView(last),
  };
}

/** The payment status that an event tells, in every envelope; null where it tells none. */
function paymentStatusOf(body: string): string | null {
  return /"paymentStatus":"(\w+)"/.exec(body)?.[1] ?? null;
}

/** A delivery with the body of its event and every attempt. */
export function deliveryWithLog(parts: Parts, delivery: Delivery) {
  const { body } = parts.store.findEvent({ number: delivery.eventNumber }) as StoredEvent;
  const log = parts.store.attemptsOf(delivery.number).map(attemptView);
  return { ...deliveryView(parts, delivery), body, log };
}

/** Of which delivery and event an attempt was. */
export function attemptOfDelivery({ store }: Parts, attempt: Attempt) {
  const { id, eventNumber } = store.findDelivery({ number: attempt.deliveryNumber }) as Delivery;
  const event = store.findEvent({ number: eventNumber }) as StoredEvent;
  return { delivery: id, event: event.id, kind: event.kind, ...attemptView(attempt) };
}

export function requestView({ atMs, ...rest }: LoggedRequest) {
  return { at: timeText(atMs), epochMs: atMs, ...rest };
}

function attemptView({ deliveryNumber: _number, ordinal, atMs, ...rest }: Attempt) {
  return { attempt: ordinal, at: timeText(atMs), ...rest };
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
