import { z } from 'zod';
import { OUTCOMES, PAST_RULES, RULES } from '../domain/decision.ts';
import { words } from '../explain/glossary.ts';
import { Fault } from '../fault.ts';
import type { EventSummary } from '../store/verbs/lists.ts';
import * as field from './fields.ts';
import { eventFilters, listAnswer, listQuery, readFilter, readList } from './lists.ts';
import { found, noSuch, problem } from './problem.ts';
import { type ApiOptions, answer, ok, operation } from './route.ts';

const summary = {
  id: field.rowId,
  eventId: field.anyText("The service's, or `sha256:` and the body's digest if it named none.", 'evt_8001'),
  type: field.textOrNull('By the service; of a reading, why settled asked.', 'payment_link.payment_status_changed'),
  reference: field.reference,
  linkId: z.nullable(z.string()).meta({ examples: ['pl_8001'] }),
  status: field.rowStatus,
  outcome: z.enum(OUTCOMES).nullable().describe('The decision about it; null before, and if it says nothing.'),
  rule: z.nullable(field.names('Rule', [...RULES, ...PAST_RULES], words.rule)).describe('The rule of that decision.'),
  attempt: field.count.describe('How often settled has tried to settle it.'),
  conflict: z.boolean().describe('Whether the same event id came before with other content.'),
  duplicates: field.count.describe('How often the same event came again.'),
  fault: field.fault.nullable(),
  reading: z.int().nullable().describe("The number of an answer of the service's API; null for an event."),
  receivedAt: field.time,
  dueAt: field.timeOrNull.describe('When settled tries next; null if the event is not pending.'),
  endedAt: field.timeOrNull,
};

const event = field.component('Event', 'A recorded delivery, or a recorded answer of the API.', summary);

const eventWithBody = field.component('EventWithBody', 'An event with its body. Never its signature.', {
  ...summary,
  timestamp: field.anyText("The timestamp header's characters: epoch milliseconds.", '1896087600000'),
  bodySha256: field.described(z.string().regex(/^[0-9a-f]{64}$/), 'Of the bytes as they came.', '9f86d081'.repeat(8)),
  bodyBase64: z
    .nullable(z.string())
    .meta({
      description: 'The bytes as received, with `*` in place of each secret; null if they were dropped.',
      contentEncoding: 'base64',
    }),
  bodyText: z.string().nullable().describe('The same as text; null if it is not UTF-8, or was dropped.'),
  bodyDropped: z.boolean().describe('Whether settled dropped the bytes after SETTLED_KEEP_BODIES.'),
});

export type EventDocument = z.infer<typeof event>;
export type EventWithBody = z.infer<typeof eventWithBody>;

export const listEvents = operation({
  summary: 'List recorded events, the newest first',
  description: "Answers of the service's API are among them: `reading` tells them apart.",
  query: z.strictObject({ ...listQuery, ...eventFilters }),
  answers: ok('A page of events.', { events: z.array(event), ...listAnswer }),
  answer: async ({ store }, { query }) => {
    const { rows, more } = await readList(query, (at) => store.listEvents({ ...at, ...readFilter(query) }));
    return { events: rows.map(eventDocument), ...more };
  },
});

export const showEvent = operation({
  summary: 'One event with its body',
  pathId: field.rowId,
  answers: ok('The event.', { event: eventWithBody }),
  answer: async (options, { id }) => {
    const event = found(await options.store.findEvent(readEventKey(id)), 'event', id);
    const { body: asItCame, bodySha256, timestamp, ...rest } = event;
    const body = asItCame === null ? null : withoutSecrets(asItCame, await secretsOf(options, rest.reference));
    return {
      event: {
        ...eventDocument(rest),
        timestamp,
        bodySha256: Buffer.from(bodySha256).toString('hex'),
        bodyBase64: body?.toString('base64') ?? null,
        bodyText: body === null ? null : asText(body),
        bodyDropped: body === null,
      },
    };
  },
});

export const replayEvent = operation({
  summary: 'Settle an event again',
  description: 'Nothing is counted twice. If it no longer verifies, it stays as it was, and its `fault` says why.',
  pathId: field.rowId,
  answers: {
    202: answer('The event is pending again.', {
      event: z.strictObject({ id: field.rowId, status: z.literal('pending') }),
    }),
  },
  problems: { 409: ['event_in_work', 'event_body_dropped'] },
  answer: async ({ store, clock, onRequeued }, { id, by }, response) => {
    const outcome = await store.requeueEvent({ eventKey: readEventKey(id), by, nowMs: clock.nowMs() });
    if (outcome === 'unknown') throw noSuch('event', id);
    if (outcome === 'in_work') {
      const detail = `Event ${id} is not settled yet. It already waits to be settled, or is being settled.`;
      throw problem(409, 'event_in_work', detail);
    }
    if (outcome === 'body_dropped') {
      const detail =
        `settled dropped the bytes of event ${id}, as it was settled longer ago than SETTLED_KEEP_BODIES says: there is ` +
        'nothing to settle again. Ask the service about its order instead: settled orders check.';
      throw problem(409, 'event_body_dropped', detail);
    }
    onRequeued();
    response.status(202);
    return { event: { id, status: 'pending' } };
  },
});

function readEventKey(id: string): number {
  return found(field.readKey(id), 'event', id);
}

function eventDocument(event: EventSummary): object {
  return { ...field.rowDocument(event), ...(event.status === 'pending' ? {} : { dueAt: null }) };
}

/** What makes a delivery of an order's link authentic, and a body may repeat: its token, and its signing secrets if they can be opened. */
async function secretsOf({ store, credentials }: ApiOptions, reference: string): Promise<string[]> {
  try {
    const link = await credentials.find({ reference });
    return link === null
      ? []
      : [link.token, link.secret, link.serviceSecret?.() ?? ''].filter((secret) => secret !== '');
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'secret_undecipherable') throw error;
    const sealed = await store.findCredentials({ reference });
    return sealed === null ? [] : [sealed.token];
  }
}

/** Of other links, and of secrets that were replaced: the tokens in the addresses of webhooks, and signing secrets by their name. */
const NAMED = /(?<=\/hooks\\*\/)[\w-]+|(?<="webhook_?[Ss]ecret\\*"\s*:\s*\\*")(?:[^"\\]|\\[^"])*/g;

/** The bytes with `*` in place of each byte of a secret. */
function withoutSecrets(body: Uint8Array, secrets: readonly string[]): Buffer {
  const hide = (text: string, secret: RegExp) => text.replace(secret, (found) => '*'.repeat(found.length));
  return Buffer.from([NAMED, ...secrets.map(inJson)].reduce(hide, Buffer.from(body).toString('latin1')), 'latin1');
}

/** Finds a text as JSON may write it: with its slashes escaped, however often one text stands within another. */
function inJson(text: string): RegExp {
  const literal = text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  return new RegExp(literal.replaceAll('/', String.raw`(?:\\*/|\\+u002[fF]|%2[fF])`), 'g');
}

function asText(body: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    return null;
  }
}
