import { z } from 'zod';
import { agreement } from '../domain/comparison.ts';
import type { Money } from '../domain/money.ts';
import { orderDocument } from '../domain/notice.ts';
import { ORDER_STATES } from '../domain/order.ts';
import { ENTRY_KINDS } from '../explain/chronicle.ts';
import { explain } from '../explain/explain.ts';
import { isUnconfirmed } from '../explain/next_steps.ts';
import { parseBodyExactly } from '../json.ts';
import { logChange } from '../observe/log.ts';
import { readEvent } from '../paylink/events.ts';
import type { Queries, Timeline } from '../store/contract_queries.ts';
import { givenMs, givenReason, givenTime, text, time } from './fields.ts';
import { ACCEPTED, listedOrder, noSuchOrder, OPEN, order, orderAnswer, PAID } from './order.ts';
import { nextCursor, page, readPage } from './paging.ts';
import { problem } from './problem.ts';
import { type ApiOptions, operation } from './route.ts';

export const listOrders = operation({
  id: 'listOrders',
  group: 'Orders',
  summary: 'List and search orders, the newest first',
  query: z.strictObject({
    ...page,
    state: z.enum(ORDER_STATES).optional().describe('Only those in this state.'),
    q: text(128).optional().describe('A part of the reference, or a whole link id or payment id.'),
    since: givenTime.optional().describe('Only those created since then.'),
    until: givenTime.optional().describe('Only those created until then.'),
  }),
  answers: {
    200: {
      when: 'A page of orders.',
      schema: z.strictObject({ orders: z.array(listedOrder), nextCursor }),
      sample: { orders: [{ ...OPEN, attention: [] }], nextCursor: 'azEyMw' },
    },
  },
  example: { query: 'state=awaiting_payment&limit=20' },
  answer: async ({ store }, { query }) => {
    const { state = null, q: search = null, since, until } = query;
    const created = { sinceMs: givenMs(since), untilMs: givenMs(until) };
    const { rows, ...more } = await readPage(query, (at) => store.listOrders({ ...at, state, search, ...created }));
    return { orders: rows.map(({ value, attention }) => ({ ...orderDocument(value), attention })), ...more };
  },
});

export const showOrder = operation({
  id: 'showOrder',
  group: 'Orders',
  summary: 'One order',
  answers: { 200: { when: 'The order as it is now.', schema: orderAnswer, sample: { order: PAID } } },
  answer: async ({ store }, { reference }) => {
    const found = await store.findOrder(reference);
    if (found === null) throw noSuchOrder(reference);
    return { order: orderDocument(found) };
  },
});

const TIMELINE = {
  order: PAID,
  answer:
    `Order ${PAID.reference} (100.00 BRL) is paid. The service reported 100.00 BRL in an authentic webhook; settled marked it ` +
    'paid at 2030-01-31T12:00:00.000Z.',
  entries: [
    { at: '2030-01-31T11:58:20.131Z', kind: 'registration', summary: 'link pl_8001 opened', details: [] },
    {
      at: '2030-01-31T11:59:59.992Z',
      kind: 'delivery',
      summary: 'authentic, payment_link.payment_status_changed: done, applied (rule paid)',
      details: ["event 17, the service's id evt_8001"],
    },
    {
      at: '2030-01-31T12:00:00.000Z',
      kind: 'decision',
      summary: 'awaiting_payment → paid: the payment is completed and agrees with the order (rule paid)',
      details: [
        'by event 17',
        'ledger: captured 100.00 BRL, payment pay_8001',
        'became paid; this is written once, whatever follows',
        'notice order.paid',
      ],
    },
  ],
  next: [
    'settled asks the service at 2030-02-01T12:00:00.000Z, in 1 d, on schedule: refunds, disputes and second payments have no ' +
      'webhook.',
  ],
};

export const showTimeline = operation({
  id: 'showTimeline',
  group: 'Orders',
  summary: "Explain an order's state",
  description: 'The answer first, then everything that is known, then what follows. `settled why ORDER` prints it.',
  answers: {
    200: {
      when: 'The order and its story.',
      schema: z.strictObject({
        order,
        answer: z.string().describe('A few sentences: whether the order is paid, and why or why not.'),
        entries: z
          .array(
            z
              .strictObject({ at: time, kind: z.enum(ENTRY_KINDS), summary: z.string(), details: z.array(z.string()) })
              .meta({ id: 'TimelineEntry', description: 'One thing that happened to an order.' }),
          )
          .describe('Everything known of the order, in order of time: at most 500 of a kind, the newest.'),
        next: z.array(z.string()).describe('What settled does from here on, and what a person should do.'),
      }),
      sample: TIMELINE,
    },
  },
  answer: explainOrder,
});

async function explainOrder(options: ApiOptions, { reference }: { reference: string }): Promise<object> {
  const { store, clock, asking, canTell, headerNames } = options;
  const timeline = await store.timeline(reference);
  if (timeline === null) throw noSuchOrder(reference);
  const moneyInDoubt = await readMoneyInDoubt(store, timeline);
  const shopFailures = canTell ? (await store.shopState()).failures : null;
  const explained = explain(timeline, {
    nowMs: clock.nowMs(),
    canAsk: asking !== null,
    canTell,
    shopFailures,
    headerNames,
    moneyInDoubt,
  });
  return { order: orderDocument(timeline.order), ...explained };
}

/** The money of the completed payment in the newest webhook that the service has not confirmed. */
async function readMoneyInDoubt(store: Pick<Queries, 'findEvent'>, timeline: Timeline): Promise<Money | null> {
  if (!isUnconfirmed(timeline)) return null;
  const asked = timeline.events.findLast(({ outcome }) => outcome === 'ask');
  const body = asked === undefined ? null : (await store.findEvent(asked.key))?.body;
  const parsed = body == null ? undefined : parseBodyExactly(Buffer.from(body));
  if (parsed === undefined) return null;
  const fact = readEvent(parsed).facts.find(({ kind }) => kind === 'completed');
  if (fact === undefined || (fact.quoteMoney ?? fact.linkMoney) === null) return null;
  return agreement(timeline.order, fact).captured;
}

const resolution = z.strictObject({
  decision: z
    .enum(['accept', 'reject'])
    .describe('`accept`: the order is paid by what came. `reject`: it is cancelled, and a refund is due.'),
  reason: givenReason,
});

export const resolveOrder = operation({
  id: 'resolveOrder',
  group: 'Orders',
  summary: 'End the holds of an order',
  description:
    'Accepted, the order is paid with the money as it was captured. Rejected, it is cancelled, and flagged `refund_due` ' +
    'until settled hears of the refund. Repeating the same decision changes nothing.',
  body: resolution,
  answers: { 200: { when: 'The order as it was decided.', schema: orderAnswer, sample: { order: ACCEPTED } } },
  problems: [
    [409, 'not_held'],
    [409, 'nothing_left_to_accept'],
  ],
  example: { body: { decision: 'accept', reason: 'the customer wants it after all' } },
  answer: resolve,
});

async function resolve(
  { store, clock, log, metrics, onNotices }: ApiOptions,
  { reference, body }: { reference: string; body: z.output<typeof resolution> },
): Promise<object> {
  const resolved = await store.resolveOrder({ reference, ...body, atMs: clock.nowMs() });
  if (resolved === null) throw noSuchOrder(reference);
  if (resolved.outcome === 'applied') {
    const { rule, order: after } = resolved;
    logChange(log, { order: reference, from: 'held', to: after.state, rule, by: 'person' });
  }
  if (resolved.outcome !== 'ignored') {
    if (resolved.learnedBy !== null) metrics.paid(resolved.learnedBy);
    onNotices();
    return { order: orderDocument(resolved.order) };
  }
  if (resolved.rule === 'nothing_left_to_accept') {
    const detail = `What order ${reference} captured was refunded or disputed: nothing is left to accept. Reject it.`;
    throw problem(409, 'nothing_left_to_accept', detail);
  }
  const detail = `Order ${reference} is ${resolved.order.state}: only a held order can be resolved.`;
  throw problem(409, 'not_held', detail);
}
