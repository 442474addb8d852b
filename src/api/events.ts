import type { RequestHandler } from 'express';
import { sendProblem } from '../http/problem.ts';
import type { AttentionSummary, EventSummary, RejectionSummary } from '../store/queries.ts';
import type { ApiOptions } from './options.ts';
import {
  attentionQuery,
  eventsQuery,
  read,
  readCursor,
  readEventKey,
  readPage,
  rejectionsQuery,
} from './requests.ts';

export function listEvents({ store }: ApiOptions): RequestHandler {
  return async (request, response) => {
    const query = read(eventsQuery, request.query, response);
    if (query === null) return;
    const after = readCursor(query.cursor, response);
    if (after === false) return;
    const { rows, nextCursor } = await readPage({ limit: query.limit, after }, (page) =>
      store.listEvents({ ...page, status: query.status ?? null, reference: query.reference ?? null }),
    );
    response.json({ events: rows.map(eventDocument), nextCursor });
  };
}

/** One event with its body, byte for byte: as base64, and as text where it is UTF-8. Never its signature. */
export function showEvent({ store }: ApiOptions): RequestHandler {
  return async (request, response) => {
    const key = readEventKey(request, response);
    if (key === null) return;
    const event = await store.findEvent(key);
    if (event === null) {
      sendProblem(response, { status: 404, code: 'not_found', detail: `There is no event ${key}.` });
      return;
    }
    const { body, bodySha256, timestamp, ...summary } = event;
    response.json({
      event: {
        ...eventDocument(summary),
        timestamp,
        bodySha256: Buffer.from(bodySha256).toString('hex'),
        bodyBase64: Buffer.from(body).toString('base64'),
        bodyText: asText(body),
      },
    });
  };
}

export function replayEvent({ store, clock, onRequeued }: ApiOptions): RequestHandler {
  return async (request, response) => {
    const key = readEventKey(request, response);
    if (key === null) return;
    const outcome = await store.requeueEvent({ eventKey: key, nowMs: clock.nowMs() });
    if (outcome === 'unknown') {
      sendProblem(response, { status: 404, code: 'not_found', detail: `There is no event ${key}.` });
    } else if (outcome === 'in_work') {
      const detail = `Event ${key} is not settled yet: it is waiting or in work already.`;
      sendProblem(response, { status: 409, code: 'event_in_work', detail });
    } else {
      onRequeued();
      response.status(202).json({ event: { id: String(key), status: 'pending' } });
    }
  };
}

export function listRejections({ store }: ApiOptions): RequestHandler {
  return async (request, response) => {
    const query = read(rejectionsQuery, request.query, response);
    if (query === null) return;
    const after = readCursor(query.cursor, response);
    if (after === false) return;
    const { rows, nextCursor } = await readPage({ limit: query.limit, after }, (page) =>
      store.listRejections({ ...page, reference: query.reference ?? null }),
    );
    response.json({ rejections: rows.map(rejectionDocument), nextCursor });
  };
}

export function listAttention({ store }: ApiOptions): RequestHandler {
  return async (request, response) => {
    const query = read(attentionQuery, request.query, response);
    if (query === null) return;
    const after = readCursor(query.cursor, response);
    if (after === false) return;
    const { rows, nextCursor } = await readPage({ limit: query.limit, after }, store.listAttention);
    response.json({ attention: rows.map(attentionDocument), nextCursor });
  };
}

function eventDocument({ key, receivedAtMs, dueAtMs, endedAtMs, ...event }: EventSummary): object {
  return {
    id: String(key),
    ...event,
    receivedAt: iso(receivedAtMs),
    dueAt: event.status === 'pending' ? iso(dueAtMs) : null,
    endedAt: endedAtMs === null ? null : iso(endedAtMs),
  };
}

function rejectionDocument({ key, firstAtMs, lastAtMs, ...rejection }: RejectionSummary): object {
  return { id: String(key), ...rejection, firstAt: iso(firstAtMs), lastAt: iso(lastAtMs) };
}

function attentionDocument({ key, openedAtMs, lastAtMs, ...attention }: AttentionSummary): object {
  return { id: String(key), ...attention, openedAt: iso(openedAtMs), lastAt: iso(lastAtMs) };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

function asText(body: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    return null;
  }
}
