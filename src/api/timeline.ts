import { z } from 'zod';
import type { SaidFact } from '../domain/fact.ts';
import { orderDocument } from '../domain/notice.ts';
import type { Order } from '../domain/order.ts';
import { cannotAsk } from '../explain/attention_summary.ts';
import { ENTRY_KINDS } from '../explain/chronicle.ts';
import { explain } from '../explain/explain.ts';
import { iso } from '../explain/glossary.ts';
import { differences, type LastWord, lastSaid, whatServiceSays } from '../explain/sides.ts';
import { Fault } from '../fault.ts';
import { parseBodyExactly } from '../json.ts';
import { readEvent } from '../paylink/events.ts';
import { readReading } from '../paylink/reading.ts';
import type { Store } from '../store/contract.ts';
import type { Timeline } from '../store/verbs/timeline.ts';
import * as field from './fields.ts';
import { order } from './order.ts';
import { found } from './problem.ts';
import { ok, operation } from './route.ts';

const timelineEntry = field.component('TimelineEntry', 'One thing that happened to an order.', {
  at: field.time,
  kind: z.enum(ENTRY_KINDS),
  summary: z.string(),
  details: z.array(z.string()),
  about: z
    .strictObject({ what: z.enum(['event', 'notice', 'matter']), id: z.string(), status: field.rowStatus.nullable() })
    .nullable()
    .describe('The row that it shows or that decided it; null if there is no such row.'),
});

export const showTimeline = operation({
  summary: "Explain an order's state",
  description: 'The answer first, then everything that is known, then what follows. `settled why ORDER` prints it.',
  answers: ok('The order and its story.', {
    order,
    answer: field.anyText('Whether the order is paid, and why or why not.', 'Order order-8001 (100.00 BRL) is paid.'),
    entries: z.array(timelineEntry).describe('In order of time: of each kind, at most the newest 500.'),
    next: z.array(z.string()).describe('What settled does from here on, and what a person should do.'),
    service: z
      .strictObject({
        at: field.time,
        event: field.rowId.describe("The event, or the row that keeps the API's answer."),
        isReading: z.boolean().describe('True if settled asked; false if a webhook came.'),
        says: z.array(z.string()).meta({ examples: [['the payment is completed (pay_8001): 100.00 BRL']] }),
      })
      .nullable()
      .describe("What the service last said about the order's payment; null if it has said nothing."),
    decided: z
      .strictObject({
        decision: z.enum(['accept', 'reject']),
        at: field.time,
        by: z.string().nullable().describe('The person or the named token; otherwise null.'),
        reason: z.string().nullable(),
      })
      .nullable()
      .describe('The last decision of a person about held money; null if there was none.'),
    differences: z.array(z.string()).describe('Where the service, settled and the shop differ; empty if they agree.'),
  }),
  answer: async ({ store, clock, asking, canTell, headerNames, unlisted }, { reference }) => {
    const timeline = found(await store.timeline(reference), 'order', reference);
    const last = await readLastWord(store, timeline);
    const differ = differences(timeline, last, { canTell });
    const explained = explain(timeline, {
      nowMs: clock.nowMs(),
      canAsk: asking !== null,
      notAnswered: asking === null ? null : cannotAsk(await store.openTroubles()),
      unlisted: unlisted(),
      canTell,
      headerNames,
      isDifferent: differ.length > 0,
      shopFailures: canTell ? (await store.shopState()).failures : null,
    });
    return {
      order: orderDocument(timeline.order),
      ...explained,
      service: last && serviceDocument(timeline.order, last),
      decided: decidedDocument(timeline),
      differences: differ,
    };
  },
});

function serviceDocument(order: Order, last: LastWord): object {
  const { key, reading, receivedAtMs } = last.event;
  const says = whatServiceSays(order, last);
  return { at: iso(receivedAtMs), event: String(key), isReading: reading !== null, says };
}

const DECISIONS = { hold_accepted: 'accept', hold_rejected: 'reject' } as const;

function decidedDocument({ history }: Pick<Timeline, 'history'>): object | null {
  const row = history.findLast(({ what }) => Object.hasOwn(DECISIONS, what));
  if (row === undefined) return null;
  const { what, atMs, by, cause } = row;
  return { decision: DECISIONS[what as keyof typeof DECISIONS], at: iso(atMs), by, reason: cause.id };
}

/** What the service said last, from its own bytes if they are still there. */
async function readLastWord(store: Pick<Store, 'findEvent'>, timeline: Timeline): Promise<LastWord | null> {
  const event = lastSaid(timeline);
  if (event === undefined) return null;
  const body = (await store.findEvent(event.key))?.body ?? null;
  return { event, facts: body === null ? null : factsOf(body, event.reading) };
}

/** Null if a later version settled what this one cannot read. */
function factsOf(body: Uint8Array, reading: number | null): readonly SaidFact[] | null {
  try {
    return reading === null ? readEvent(parseBodyExactly(body)).facts : readReading(body, reading).facts;
  } catch (fault) {
    if (fault instanceof Fault) return null;
    throw fault;
  }
}
