import type { Response } from 'express';
import { z } from 'zod';
import { OUTCOMES, RULES } from '../domain/decision.ts';
import { ORDER_STATES } from '../domain/order.ts';
import { iso } from '../explain/glossary.ts';
import type { Follower, Happened } from '../observe/activity.ts';
import type { Clock } from '../work/clock.ts';
import { openSignal, type Signal } from '../work/signal.ts';
import { AT, count, described, givenReference, reference, time } from './fields.ts';
import { PAID } from './order.ts';
import { problem } from './problem.ts';
import { REJECTION_REASONS } from './rejections.ts';
import { type ApiOptions, operation } from './route.ts';

/** While nothing happens, settled sends a line this often to show that the connection is open. */
const ALIVE_EVERY_MS = 10_000;
/** What happens within this time is sent together. */
const GATHER_MS = 50;
/** settled disconnects a reader that takes nothing for this long. */
const STUCK_AFTER_MS = 60_000;

const common = { at: time, reference: reference.nullable() };
const event = described(z.string(), "settled's own id of it.", '17');
const type = z.string().nullable();
const attempt = z.int().min(1);
const reading = z.int().nullable().describe('Null for an event.');
const outcome = (list: string) => z.string().describe(list);

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
    outcome: outcome('`retried`, `buried` or `link_mismatch`.'),
  }),
  z.strictObject({
    ...common,
    what: z.literal('notified'),
    notice: z.string(),
    type: z.string(),
    attempt,
    outcome: z.string(),
    status: z.int().nullable().describe('Of the answer; null if none came.'),
    fault: z.string().nullable().describe('Its code.'),
  }),
  z.strictObject({
    ...common,
    what: z.literal('opening'),
    attempt,
    outcome: outcome('`opened`, `retried`, `refused` or `taken`.'),
  }),
]) satisfies z.ZodType<Happened>;

const activityLine = z
  .union([
    ...happened.options,
    z.strictObject({ ...common, what: z.enum(['alive', 'stopping']) }),
    z.strictObject({ ...common, what: z.literal('lost'), count }),
  ])
  .meta({
    id: 'Activity',
    description:
      'One thing that happened, or a word about the stream itself: `alive` while nothing happens, `lost` if the reader was ' +
      'too slow for so many, `stopping` at its end.',
  });

const SAMPLE = [
  { at: AT, reference: PAID.reference, what: 'accepted', event: '17', type: 'payment_link.payment_status_changed' },
  {
    at: AT,
    reference: PAID.reference,
    what: 'settled',
    event: '17',
    reading: null,
    outcome: 'applied',
    rule: 'paid',
    state: 'paid',
  },
];

export const tail = operation({
  id: 'tail',
  group: 'Operation',
  summary: 'What happens, as it happens',
  description:
    'A line of JSON for each (NDJSON), until the caller leaves or settled stops; `settled tail` prints it. It shows what ' +
    'happens in this process. A reader that is too slow loses lines, and a line says how many: the store has what happened ' +
    'for certain. Ten may follow at once.',
  query: z.strictObject({ reference: givenReference.optional() }),
  answers: {
    200: {
      when: 'A stream of lines.',
      schema: activityLine,
      sample: SAMPLE.map((line) => `${JSON.stringify(line)}\n`).join(''),
      type: 'application/x-ndjson',
    },
  },
  answer: (options, { query }, response) => follow(options, query.reference ?? null, response),
});

async function follow({ activity, clock }: ApiOptions, name: string | null, response: Response): Promise<undefined> {
  const over = new AbortController();
  const happening = openSignal(clock);
  const follower = activity.follow({ reference: name, onFirst: happening.raise, onEnd: () => over.abort() });
  if (follower === null) {
    const detail = 'As many readers follow as settled serves at once. End another `settled tail`.';
    throw problem(503, 'unavailable', detail);
  }
  response.on('close', () => over.abort());
  response.setHeader('content-type', 'application/x-ndjson');
  response.setHeader('cache-control', 'no-store');
  if (response.req.method !== 'HEAD') await send({ follower, happening, clock, over }, response);
  follower.leave();
  // A reader that does not read would hold up the stop.
  if (response.writableNeedDrain) response.destroy();
  else response.end();
}

/** `over`: aborted when the reader is gone or stuck, or settled stops. */
type Sending = { follower: Follower; happening: Signal; clock: Clock; over: AbortController };

async function send(sending: Sending, response: Response): Promise<void> {
  const { follower, clock, over } = sending;
  const drained = openSignal(clock);
  response.on('drain', drained.raise);
  let text = markLine(clock, 'alive');
  while (!over.signal.aborted) {
    if (!response.write(text)) await drained.next(STUCK_AFTER_MS, over.signal);
    if (response.writableNeedDrain) over.abort();
    text = await next(sending);
  }
  if (follower.ended && !response.writableNeedDrain) {
    response.write(text + lines(clock, follower.take()) + markLine(clock, 'stopping'));
  }
}

/** The next text to send; empty if the stream is over. */
async function next({ follower, happening, clock, over }: Sending): Promise<string> {
  const waiting = lines(clock, follower.take());
  if (waiting !== '') return waiting;
  await happening.next(ALIVE_EVERY_MS, over.signal);
  if (over.signal.aborted) return '';
  await new Promise<void>((resolve) => clock.after(GATHER_MS, resolve));
  return lines(clock, follower.take()) || markLine(clock, 'alive');
}

function lines(clock: Clock, { happened: all, lost }: { happened: Happened[]; lost: number }): string {
  const text = all.map((one) => `${JSON.stringify(one)}\n`).join('');
  return lost === 0 ? text : text + markLine(clock, 'lost', { count: lost });
}

/** A line about the stream itself. */
function markLine(clock: Clock, what: 'alive' | 'lost' | 'stopping', more: object = {}): string {
  return `${JSON.stringify({ at: iso(clock.nowMs()), reference: null, what, ...more })}\n`;
}
