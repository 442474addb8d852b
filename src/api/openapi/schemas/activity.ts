import { z } from 'zod';
import { OUTCOMES, RULES } from '../../../domain/decision.ts';
import { ORDER_STATES } from '../../../domain/order.ts';
import type { Happened } from '../../../observe/activity.ts';
import { REJECTION_REASONS } from './event.ts';
import { count, reference, time } from './values.ts';

const common = { at: time, reference: reference.nullable() };
const event = z.string().meta({ description: "settled's own id of it.", examples: ['17'] });
const type = z.string().nullable();
const attempt = z.int().min(1);
const reading = z.int().nullable().describe('Null for an event.');
const end = (names: string) => z.string().describe(names);

const happened = z.discriminatedUnion('what', [
  z.strictObject({ ...common, what: z.enum(['accepted', 'duplicate', 'conflict', 'unreadable']), event, type }),
  z.strictObject({ ...common, what: z.literal('stale'), type }),
  z.strictObject({ ...common, what: z.literal('rejected'), reason: z.enum(REJECTION_REASONS) }),
  z.strictObject({ ...common, what: z.literal('refused'), reason: z.string() }),
  z.strictObject({
    ...common,
    what: z.literal('settled'),
    event,
    reading,
    outcome: z.enum(OUTCOMES),
    rule: z.enum(RULES).nullable(),
    state: z.enum(ORDER_STATES),
  }),
  z.strictObject({
    ...common,
    what: z.literal('not_settled'),
    event,
    reading,
    outcome: end('`retried`, `buried` or `link_mismatch`.'),
  }),
  z.strictObject({
    ...common,
    what: z.literal('notified'),
    notice: z.string(),
    type: z.string(),
    attempt,
    outcome: z.string(),
    status: z.int().nullable().describe('Of the answer; null where none came.'),
    fault: z.string().nullable().describe('Its code.'),
  }),
  z.strictObject({
    ...common,
    what: z.literal('opening'),
    attempt,
    outcome: end('`opened`, `retried`, `refused` or `taken`.'),
  }),
]) satisfies z.ZodType<Happened>;

/** One line of `GET /v1/tail`. */
export const activityLine = z
  .union([
    ...happened.options,
    z.strictObject({ ...common, what: z.enum(['alive', 'stopping']) }),
    z.strictObject({ ...common, what: z.literal('lost'), count }),
  ])
  .meta({
    id: 'Activity',
    description:
      'One thing that happened, or a word about the stream itself: `alive` while nothing happens, `lost` where the reader ' +
      'was too slow for so many, `stopping` at its end.',
  });
