import { z } from 'zod';
import { OUTCOMES, PAST_RULES, RULES } from '../../../domain/decision.ts';
import { ROW_STATUSES, type RowStatus } from '../../../domain/retry.ts';
import { FAULT_CODES } from '../../../fault.ts';
import { REJECTIONS, UNREAD_REASONS, words } from '../../words.ts';
import { count, names, nextCursor, reference, time, timeOrNull } from './values.ts';

const STATUSES: Readonly<Record<RowStatus, string>> = {
  pending: 'waits for its turn',
  leased: 'is in work now',
  done: 'is done',
  dead: 'was given up, and waits for a person',
};

export const rowStatus = names('RowStatus', ROW_STATUSES, (name) => STATUSES[name]);

export const fault = z
  .strictObject({
    code: z.enum([...FAULT_CODES, 'bug']),
    message: z.string().describe('What happened, to what, and what to do next.'),
  })
  .meta({ id: 'Fault', description: 'Why the last attempt failed. `bug`: nobody foresaw this.' });

/** Of an event, a rejection or a matter. */
export const rowId = z.string().meta({ description: "settled's own id.", examples: ['17'] });

const summary = {
  id: rowId,
  eventId: z
    .string()
    .meta({
      description: "The service's, or `sha256:` and the body's digest where it named none.",
      examples: ['evt_8001'],
    }),
  type: z
    .string()
    .nullable()
    .meta({
      description: 'As the service names it. Of a reading: why the service was asked.',
      examples: ['payment_link.payment_status_changed'],
    }),
  reference,
  linkId: z
    .string()
    .nullable()
    .meta({ examples: ['pl_8001'] }),
  status: rowStatus,
  outcome: z.enum(OUTCOMES).nullable().describe('What became of what it says; null before, and where it says nothing.'),
  rule: names('Rule', [...RULES, ...PAST_RULES], words.rule)
    .nullable()
    .describe('By which rule that was decided.'),
  attempt: count.describe('How often it was begun to be settled.'),
  conflict: z.boolean().describe('Whether the same event id came before with other content.'),
  duplicates: count.describe('How often the same came again.'),
  fault: fault.nullable(),
  reading: z
    .int()
    .nullable()
    .describe("Null for an event. Else this is what the service's API answered, and its number."),
  receivedAt: time,
  dueAt: timeOrNull.describe('When it is tried next; null where it is not pending.'),
  endedAt: timeOrNull,
};

const event = z
  .strictObject(summary)
  .meta({ id: 'Event', description: 'A delivery that was recorded, or an answer of the API that was.' });

export const eventsPage = z.strictObject({ events: z.array(event), nextCursor });

export const eventAnswer = z.strictObject({
  event: z
    .strictObject({
      ...summary,
      timestamp: z
        .string()
        .meta({ description: "The timestamp header's characters: epoch milliseconds.", examples: ['1896087600000'] }),
      bodySha256: z.string().regex(/^[0-9a-f]{64}$/),
      bodyBase64: z
        .string()
        .nullable()
        .meta({ description: 'The bytes as they came; null where they were dropped.', contentEncoding: 'base64' }),
      bodyText: z.string().nullable().describe('The same as text; null where it is not UTF-8, or was dropped.'),
      bodyDropped: z
        .boolean()
        .describe('Whether the bytes were dropped, as the event is older than SETTLED_KEEP_BODIES.'),
    })
    .meta({ id: 'EventWithBody', description: 'An event with its body, byte for byte. Never its signature.' }),
});

export const replayAnswer = z.strictObject({ event: z.strictObject({ id: rowId, status: z.literal('pending') }) });

const KEPT_REASONS = Object.keys(REJECTIONS) as (keyof typeof REJECTIONS)[];
/** Of deliveries that could be verified. */
export const REJECTION_REASONS = KEPT_REASONS.filter(
  (reason) => reason !== 'secret_undecipherable' && !UNREAD_REASONS.has(reason),
);

const diagnosis = z
  .strictObject({
    code: z.string().describe('What it is: see "Verdicts" and "Diagnoses" in docs/errors.md.'),
    details: z.looseObject({}).describe('What belongs to the code. Nothing of it is secret.'),
    answer: z.string().describe('What is the matter, in a sentence or two.'),
    advice: z.array(z.string()).describe('What else was noticed, and what to do.'),
  })
  .meta({ id: 'Diagnosis', description: 'What a delivery turned out to be.' });

export const verdictAnswer = z.strictObject({
  verdict: z.strictObject({ ...diagnosis.shape, authentic: z.boolean() }),
});

export const rejectionsPage = z.strictObject({
  rejections: z.array(
    z
      .strictObject({
        id: rowId,
        reference,
        reason: names('RejectionReason', KEPT_REASONS, words.rejection),
        count: count.describe('So many deliveries.'),
        diagnosis: diagnosis
          .nullable()
          .describe('What the last of them that was looked at turned out to be; few are, if many come.'),
        firstAt: time,
        lastAt: time,
      })
      .meta({
        id: 'Rejection',
        description: "Deliveries to one order's link that were refused for one reason. Their bodies are not kept.",
      }),
  ),
  nextCursor,
});
