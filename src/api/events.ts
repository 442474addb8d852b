import type { RequestHandler } from 'express';
import { sendProblem } from '../http/problem.ts';
import type { Diagnosis } from '../receive/diagnosis.ts';
import { explainDiagnosis } from '../receive/diagnosis_words.ts';
import type { EventSummary, RejectionSummary } from '../store/queries.ts';
import { eventsQuery, rejectionsQuery } from './list_queries.ts';
import type { ApiOptions } from './options.ts';
import { lister } from './pages.ts';
import { readEventKey } from './requests.ts';
import { givenMs, iso, isoOrNull } from './times.ts';
import { readDiagnosis } from './words.ts';

export function listEvents({ store }: ApiOptions): RequestHandler {
  return lister({
    name: 'events',
    query: eventsQuery,
    list: (page, { status = null, reference = null, since }) =>
      store.listEvents({ ...page, status, reference, sinceMs: givenMs(since) }),
    describe: eventDocument,
  });
}

/**
 * One event with its body, byte for byte: as base64, and as text where it is UTF-8; neither where it was dropped, as the
 * event is old. Never its signature.
 */
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
        bodyBase64: body === null ? null : Buffer.from(body).toString('base64'),
        bodyText: body === null ? null : asText(body),
        bodyDropped: body === null,
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
    } else if (outcome === 'body_dropped') {
      const detail =
        `The bytes of event ${key} were dropped, as it was settled longer ago than SETTLED_KEEP_BODIES says: there is ` +
        'nothing to settle again. Ask the service about its order instead: settled orders check.';
      sendProblem(response, { status: 409, code: 'event_body_dropped', detail });
    } else {
      onRequeued();
      response.status(202).json({ event: { id: String(key), status: 'pending' } });
    }
  };
}

export function listRejections({ store }: ApiOptions): RequestHandler {
  return lister({
    name: 'rejections',
    query: rejectionsQuery,
    list: (page, { reference = null }) => store.listRejections({ ...page, reference }),
    describe: rejectionDocument,
  });
}

function eventDocument({ key, receivedAtMs, dueAtMs, endedAtMs, ...event }: EventSummary): object {
  return {
    id: String(key),
    ...event,
    receivedAt: iso(receivedAtMs),
    dueAt: event.status === 'pending' ? iso(dueAtMs) : null,
    endedAt: isoOrNull(endedAtMs),
  };
}

function rejectionDocument({ key, firstAtMs, lastAtMs, diagnosis: text, ...rejection }: RejectionSummary): object {
  const diagnosis = diagnosisDocument(readDiagnosis(text));
  return { id: String(key), ...rejection, diagnosis, firstAt: iso(firstAtMs), lastAt: iso(lastAtMs) };
}

function diagnosisDocument(diagnosis: Diagnosis | null): object | null {
  if (diagnosis === null) return null;
  const { code, ...details } = diagnosis;
  return { code, details, ...explainDiagnosis(diagnosis) };
}

function asText(body: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    return null;
  }
}
