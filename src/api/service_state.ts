import { z } from 'zod';
import { CHECK_CLASSES, CHECK_REASONS } from '../domain/check_queue.ts';
import { OPENING_STATUSES } from '../domain/opening.ts';
import { faultNote } from '../domain/retry.ts';
import { words } from '../explain/glossary.ts';
import type { QueuedRequest } from '../store/verbs/service_lists.ts';
import * as field from './fields.ts';
import { readRows, referenceFilter } from './lists.ts';
import { ok, operation } from './route.ts';

/** What the service said otherwise than settled knew, what came stale, and what settled asks next. */

const drift = field.component('Drift', 'The service knew something else of an order than settled.', {
  id: field.rowId,
  reference: field.reference,
  at: field.time,
  reading: z.int().describe("The number of the service's answer that showed it."),
  learnedBy: z.string().describe('Why settled asked.'),
  ours: z.string().describe("The order's state and money before."),
  theirs: z.string().describe('The state after the decision; while it is undecided, what the service says.'),
  rule: z.string().describe('The rule of the decision.'),
  rightSide: z.enum(['service', 'undecided']),
});

export type DriftDocument = z.infer<typeof drift>;

const orderList = z.strictObject({ ...field.page, reference: referenceFilter });
const keyOf = ({ key }: { key: number }) => key;

export const listDrift = operation({
  summary: 'Differences that were found between the service and settled',
  description: 'Each was found by an answer of the API that said more, or less, than the webhooks had.',
  query: orderList,
  answers: ok('A page of differences.', { drift: z.array(drift), nextCursor: field.nextCursor }),
  answer: async ({ store }, { query: { reference = null, ...query } }) => {
    const { rows, nextCursor } = await readRows(query, (at) => store.listDrift({ ...at, reference }), keyOf);
    return { drift: rows.map(field.rowDocument), nextCursor };
  },
});

const hint = field.component('Hint', 'An authentic delivery whose timestamp was too old, or from the future.', {
  id: field.rowId,
  reference: field.reference,
  eventId: z.string().describe("The service's, or `sha256:` and the body's digest if it named none."),
  timestamp: z.string().describe("The timestamp header's characters: epoch milliseconds."),
  count: field.count.describe('How often it came.'),
  firstAt: field.time,
  lastAt: field.time,
});

export type HintDocument = z.infer<typeof hint>;

export const listHints = operation({
  summary: 'Authentic deliveries that were stale',
  description: 'They settle nothing: settled asks the service about the link instead.',
  query: orderList,
  answers: ok('A page, one row for each delivery that differs from the others of its link.', {
    hints: z.array(hint),
    nextCursor: field.nextCursor,
  }),
  answer: async ({ store }, { query: { reference = null, ...query } }) => {
    const { rows, nextCursor } = await readRows(query, (at) => store.listHints({ ...at, reference }), keyOf);
    return { hints: rows.map(field.rowDocument), nextCursor };
  },
});

const linkId = z.string().nullable();
const failures = field.count.describe('Attempts in a row to which the service gave no answer.');

const queued = z.strictObject({
  reference: field.reference,
  linkId,
  class: z.enum(CHECK_CLASSES.map((one) => one.class)).describe('Of the API budget.'),
  reason: field.names('CheckReason', CHECK_REASONS, words.asked),
  failures,
  requestedAt: field.time,
  dueAt: field.time.describe('When settled asks at the earliest.'),
});

const opening = z.strictObject({
  reference: field.reference,
  status: z.enum(OPENING_STATUSES).describe('`taken`: it waits for a person.'),
  attempt: field.count,
  fault: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
  dueAt: field.time,
});

const next = z.strictObject({
  queue: z.array(queued).describe('Links that settled will ask about, in this order.'),
  schedule: z
    .array(z.strictObject({ reference: field.reference, linkId, failures, dueAt: field.time }))
    .describe('Links that settled asks about on schedule, the next one first.'),
  openings: z.array(opening).describe('Links that settled is opening.'),
});

export type NextRequestsDocument = z.infer<typeof next>;

export const listChecks = operation({
  summary: 'What settled asks the service next, and when',
  description: 'The counts are in `/v1/stats`. Nothing is asked while no API is configured, or while it is paused.',
  query: z.strictObject({ limit: field.page.limit }),
  answers: ok('The first rows of each kind.', { next }),
  answer: async ({ store }, { query: { limit } }) => {
    const { queue, schedule, openings } = await store.nextRequests({ limit });
    return {
      next: {
        queue: queue.map(queuedDocument),
        schedule: schedule.map(field.withTimes),
        openings: openings.map(({ faultCode, faultMessage, ...row }) =>
          field.withTimes({ ...row, fault: faultNote(faultCode, faultMessage) }),
        ),
      },
    };
  },
});

function queuedDocument({ rank, ...row }: QueuedRequest): object {
  const { class: name } = CHECK_CLASSES.find(({ from, to }) => rank >= from && rank <= to) ?? CHECK_CLASSES[2];
  return { ...field.withTimes(row), class: name };
}
