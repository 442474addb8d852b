import { expect } from 'vitest';
import { listAttention } from '../../src/api/attention.ts';
import { listEvents } from '../../src/api/events.ts';
import type { eventFilters, noticeFilters, orderFilters } from '../../src/api/lists.ts';
import { listNotices } from '../../src/api/notices.ts';
import { listOrders } from '../../src/api/orders.ts';
import { listRejections } from '../../src/api/rejections.ts';
import type { TestApp } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { tamper } from '../support/rows.ts';
import { eventually } from '../support/timing.ts';
import { deliverAndSee, get, heldOrder, paidOrder, post } from './client.ts';

// biome-ignore lint/suspicious/noExplicitAny: documents of many shapes
export type Row = any;
export type Case = {
  value: string;
  keeps: (row: Row) => boolean;
  /** Filters of the API without which it says something else. */
  also?: Readonly<Record<string, string>>;
  /** As a person types it into the page, if that is not `value` and `also`. */
  typed?: string;
};
type Cases<Filters> = { [Name in keyof Required<Filters>]: Case | Case[] };

const START_MS = Date.UTC(2026, 0, 10, 12);
const HOUR_MS = 3_600_000;
const at = (hours: number) => new Date(START_MS + hours * HOUR_MS).toISOString();

/** Orders in every trouble, and what came of them. Called once, on a settled without an API. */
export async function fill(app: TestApp): Promise<void> {
  await app.reserve('open-1', '50.00');
  await paidOrder(app, 'paid-1');
  await heldOrder(app, 'held-1');
  const twice = await paidOrder(app, 'twice-1');
  await deliverAndSee(
    app,
    twice.link,
    paymentEvent({ linkId: 'pl_twice-1', amount: '100.00', paymentId: 'pay_b' }),
    'paid',
  );
  await eventually(async () => expect((await app.order('twice-1')).flags).toContain('duplicate_payment'));
  const back = await paidOrder(app, 'back-1');
  const refund = { linkId: 'pl_back-1', amount: '100.00', paymentId: 'pay_back-1', status: 'REFUNDED' };
  await deliverAndSee(app, back.link, paymentEvent(refund), 'refunded');
  await app.reserve('usd-1', '70.00', { currency: 'USD' });
  await paidOrder(app, 'paid-2');
  await payInManyCurrencies(app);
  const unread = await app.reserve('unread-1', '100.00');
  await deliverAndSee(
    app,
    unread,
    paymentEvent({ linkId: 'pl_unread-1', amount: '256.169', paymentId: 'pay_u' }),
    'held',
  );
  const part = await paidOrder(app, 'part-1');
  const named = { ...refund, linkId: 'pl_part-1', paymentId: 'pay_part-1', quote: '30.00' };
  await deliverAndSee(app, part.link, paymentEvent(named), 'refunded');
  expect((await app.deliver(back.link, 'not JSON')).status).toBe(202);
  await eventually(async () => expect((await get(app, '/v1/events?status=dead')).body.events).toHaveLength(1));
  const change = (sql: string, ...values: number[]) => tamper(app.storePath, sql, ...values);
  // What was created last was paid first, so that no time stands for another.
  change('UPDATE orders SET created_at_ms = ? + key * ?', START_MS, HOUR_MS);
  change('UPDATE settlement SET paid_at_ms = ? - order_key * ?', START_MS + 100 * HOUR_MS, HOUR_MS);
  change('UPDATE inbox SET received_at_ms = ? + key * ?', START_MS, HOUR_MS);
  change('UPDATE outbox SET created_at_ms = ? + key * ?', START_MS, HOUR_MS);
  change(`UPDATE inbox SET reading = 1, type = 'scheduled' WHERE key = (SELECT min(key) FROM inbox)`);
  change(
    `UPDATE outbox SET status = 'dead', due_at_ms = NULL, ended_at_ms = 1 WHERE key = (SELECT min(key) FROM outbox)`,
  );
}

/** More and less than is asked, in the order's own currency and in another, and orders that are held twice. */
async function payInManyCurrencies(app: TestApp): Promise<void> {
  await app.reserve('usd-2', '50.00', { currency: 'USD' });
  const pay = async (reference: string, ...amounts: [amount: string, currency: string][]) => {
    const link = await app.reserve(reference, '100.00');
    for (const [at, [amount, currency]] of amounts.entries()) {
      const paid = { linkId: `pl_${reference}`, amount, currency, paymentId: `pay_${reference}_${at}` };
      await deliverAndSee(app, link, paymentEvent(paid), 'held');
      await eventually(async () => expect((await app.order(reference)).holds).toHaveLength(at + 1));
    }
    return link;
  };
  await pay('mixed-1', ['60.00', 'BRL'], ['150.00', 'USD']);
  await pay('over-1', ['140.00', 'BRL'], ['10.00', 'USD']);
  for (const [reference, currency] of [
    ['under-1', 'BRL'],
    ['under-2', 'USD'],
  ] as const) {
    const link = await pay(reference, [currency === 'USD' ? '150.00' : '60.00', currency]);
    const decided = { decision: 'accept', reason: 'fine' };
    expect((await post(app, `/v1/orders/${reference}/resolve`, decided)).status).toBe(200);
    const refused = await app.deliver(link, '{}', signedHeaders('the-secret-of-somebody-else-entirely', '{}'));
    expect(refused.status).toBe(401);
  }
  const { link } = await paidOrder(app, 'late-1');
  expect((await app.deliver(link, '{}', {})).status).toBe(401);
  // Rejections are counted in memory first.
  await eventually(async () => expect((await get(app, '/v1/rejections')).body.rejections).toHaveLength(3));
}

const isBetween = (time: string | null, from: number | null, to: number | null): boolean =>
  time !== null && (from === null || time >= at(from)) && (to === null || time <= at(to));

const ORDERS: Cases<typeof orderFilters> = {
  q: { value: 'paid-', keeps: ({ reference }) => reference.startsWith('paid-') },
  state: { value: 'paid,held', keeps: ({ state }) => state === 'paid' || state === 'held' },
  flag: ['duplicate_payment', 'underpaid'].map((value) => ({ value, keeps: ({ flags }) => flags.includes(value) })),
  overpaid: {
    value: 'true',
    keeps: ({ paymentsTotal, amount, currency }) =>
      paymentsTotal.sums.some((sum: Row) => sum.currency === currency && Number(sum.balance) > Number(amount)),
  },
  attention: [
    { value: 'duplicate_payment', keeps: ({ attention }) => attention.includes('duplicate_payment') },
    { value: 'hold', keeps: ({ holds }) => holds.length > 0 },
  ],
  hold: ['amount_mismatch', 'further_payment'].map((value) => ({
    value,
    keeps: ({ holds }) => holds.some(({ reason }: Row) => reason === value),
  })),
  since: { value: at(3), keeps: ({ createdAt }) => isBetween(createdAt, 3, null) },
  until: { value: at(5), keeps: ({ createdAt }) => isBetween(createdAt, null, 5) },
  paidSince: { value: at(96), keeps: ({ paidAt }) => isBetween(paidAt, 96, null) },
  paidUntil: { value: at(96), keeps: ({ paidAt }) => isBetween(paidAt, null, 96) },
  amountFrom: [
    { value: '60.00', keeps: ({ amount, currency }) => currency === 'BRL' && Number(amount) >= 60 },
    {
      value: '60.00',
      also: { currency: 'USD' },
      typed: 'USD 60',
      keeps: ({ amount, currency }) => currency === 'USD' && Number(amount) >= 60,
    },
    ...[
      ['100.00', 'BRL'],
      ['70.00', 'USD'],
    ].map(([value = '', asked = '']) => ({
      value,
      also: { currency: asked },
      typed: `${asked} ${value}`,
      keeps: ({ amount, currency }: Row) => currency === asked && Number(amount) >= Number(value),
    })),
    ...['BRL', 'USD'].map((asked) => ({
      value: '50.00',
      also: { amountTo: '50.00', currency: asked },
      keeps: ({ amount, currency }: Row) => currency === asked && amount === '50.00',
    })),
    {
      value: '50.00',
      also: { amountTo: '50.00' },
      keeps: ({ amount, currency }) => currency === 'BRL' && amount === '50.00',
    },
  ],
  amountTo: [
    { value: '60.00', keeps: ({ amount, currency }) => currency === 'BRL' && Number(amount) <= 60 },
    {
      value: '60.00',
      also: { currency: 'USD' },
      typed: 'USD 60,00',
      keeps: ({ amount, currency }) => currency === 'USD' && Number(amount) <= 60,
    },
    ...['BRL', 'USD'].map((asked) => ({
      value: '50.00',
      also: { currency: asked },
      typed: `${asked} 50`,
      keeps: ({ amount, currency }: Row) => currency === asked && Number(amount) <= 50,
    })),
  ],
  currency: { value: 'USD', keeps: ({ currency }) => currency === 'USD' },
};

const EVENTS: Cases<typeof eventFilters> = {
  kind: { value: 'reading', keeps: ({ reading }) => reading !== null },
  status: { value: 'dead', keeps: ({ status }) => status === 'dead' },
  type: { value: 'scheduled', keeps: ({ type }) => type === 'scheduled' },
  outcome: { value: 'applied', keeps: ({ outcome }) => outcome === 'applied' },
  reference: { value: 'twice-1', keeps: ({ reference }) => reference === 'twice-1' },
  since: { value: at(3), keeps: ({ receivedAt }) => isBetween(receivedAt, 3, null) },
  until: { value: at(3), keeps: ({ receivedAt }) => isBetween(receivedAt, null, 3) },
};

const NOTICES: Cases<typeof noticeFilters> = {
  status: { value: 'dead', keeps: ({ status }) => status === 'dead' },
  type: { value: 'order.paid', keeps: ({ type }) => type === 'order.paid' },
  reference: { value: 'twice-1', keeps: ({ reference }) => reference === 'twice-1' },
  since: { value: at(3), keeps: ({ createdAt }) => isBetween(createdAt, 3, null) },
  until: { value: at(3), keeps: ({ createdAt }) => isBetween(createdAt, null, 3) },
};

const REJECTIONS: Record<string, Case | Case[]> = {
  reason: ['signature_wrong', 'signature_missing'].map((value) => ({ value, keeps: ({ reason }) => reason === value })),
  reference: { value: 'under-1', keeps: ({ reference }) => reference === 'under-1' },
};

const ATTENTION: Record<string, Case | Case[]> = {
  kind: ['hold', 'duplicate_payment', 'event_not_understood'].map((value) => ({
    value,
    keeps: ({ kind }) => kind === value,
  })),
  reason: { value: 'amount_mismatch', keeps: ({ reason }) => reason === 'amount_mismatch' },
  state: ['held', 'paid', 'refunded'].map((value) => ({ value, keeps: ({ order }) => order?.state === value })),
};

const byReference = ({ reference }: Row): string => reference;
const byId = ({ id }: Row): string => id;
const byKind = ({ kind, id, subject }: Row): string => `${kind}-${id ?? subject}`;

/** `rowId`: what names a row, in its document and in its page. */
export const LISTS = {
  orders: { cases: ORDERS, operation: listOrders, rowId: byReference, action: 'check_orders', page: '/orders' },
  events: { cases: EVENTS, operation: listEvents, rowId: byId, action: 'replay_events', page: '/deliveries' },
  notices: { cases: NOTICES, operation: listNotices, rowId: byId, action: 'resend_notices', page: '/shop' },
  rejections: {
    cases: REJECTIONS,
    operation: listRejections,
    rowId: byId,
    action: null,
    page: '/deliveries/rejections',
  },
  attention: { cases: ATTENTION, operation: listAttention, rowId: byKind, action: null, page: '/attention' },
} as const;
