import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { eventFilters, noticeFilters, orderFilters } from '../../src/api/lists.ts';
import { signIn } from '../support/access.ts';
import { OPERATOR_TOKEN, startTestApp, type TestApp } from '../support/app.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { tamper } from '../support/rows.ts';
import { eventually } from '../support/timing.ts';
import { deliverAndSee, get, heldOrder, paidOrder, post } from './client.ts';

/**
 * Each filter alone: the list, its count, its CSV, the page of the console with its link to a CSV and its form for all
 * rows, and bulk work name the same rows. Which ones is decided here from the rows' documents alone.
 */

// biome-ignore lint/suspicious/noExplicitAny: documents of many shapes
type Row = any;
type Case = { value: string; keeps: (row: Row) => boolean };
type Cases<Filters> = { [Name in keyof Required<Filters>]: Case };

const START_MS = Date.UTC(2026, 0, 10, 12);
const HOUR_MS = 3_600_000;
const at = (hours: number) => new Date(START_MS + hours * HOUR_MS).toISOString();

let app: TestApp;
const settled = () => app;
let cookie = '';

/** Without an API, so that nothing in doubt waits for one, and then with it, so that all work on many is offered. */
beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'settled-test-'));
  const storePath = join(folder, 'settled.db');
  const start = (environment: Record<string, string>) => startTestApp({ storePath, environment, atEnd: () => {} });
  app = await start({});
  await fill();
  await app.app.stop();
  app = await start({ SETTLED_API_URL: 'https://service.invalid', SETTLED_API_KEY: 'key' });
  ({ cookie } = await signIn(app));
  return async () => {
    await app.app.stop();
    rmSync(folder, { recursive: true, force: true });
  };
});

async function fill(): Promise<void> {
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

const isBetween = (time: string | null, from: number | null, to: number | null): boolean =>
  time !== null && (from === null || time >= at(from)) && (to === null || time <= at(to));

const ORDERS: Cases<typeof orderFilters> = {
  q: { value: 'paid-', keeps: ({ reference }) => reference.startsWith('paid-') },
  state: { value: 'paid,held', keeps: ({ state }) => state === 'paid' || state === 'held' },
  flag: { value: 'duplicate_payment', keeps: ({ flags }) => flags.includes('duplicate_payment') },
  overpaid: {
    value: 'true',
    keeps: ({ paymentsTotal, amount, currency }) =>
      paymentsTotal.sums.some((sum: Row) => sum.currency === currency && Number(sum.balance) > Number(amount)),
  },
  attention: { value: 'duplicate_payment', keeps: ({ attention }) => attention.includes('duplicate_payment') },
  hold: { value: 'amount_mismatch', keeps: ({ hold }) => hold?.reason === 'amount_mismatch' },
  since: { value: at(3), keeps: ({ createdAt }) => isBetween(createdAt, 3, null) },
  until: { value: at(5), keeps: ({ createdAt }) => isBetween(createdAt, null, 5) },
  paidSince: { value: at(96), keeps: ({ paidAt }) => isBetween(paidAt, 96, null) },
  paidUntil: { value: at(96), keeps: ({ paidAt }) => isBetween(paidAt, null, 96) },
  amountFrom: { value: '60.00', keeps: ({ amount, currency }) => currency === 'BRL' && Number(amount) >= 60 },
  amountTo: { value: '60.00', keeps: ({ amount, currency }) => currency === 'BRL' && Number(amount) <= 60 },
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

const LISTS = {
  orders: {
    cases: ORDERS,
    filters: orderFilters,
    id: 'reference',
    action: 'check_orders',
    page: '/orders',
    row: 'orders',
  },
  events: {
    cases: EVENTS,
    filters: eventFilters,
    id: 'id',
    action: 'replay_events',
    page: '/deliveries',
    row: 'events',
  },
  notices: {
    cases: NOTICES,
    filters: noticeFilters,
    id: 'id',
    action: 'resend_notices',
    page: '/shop',
    row: 'notices',
  },
} as const;

const ALL = Object.entries(LISTS).flatMap(([name, { cases }]) =>
  Object.entries(cases as Record<string, Case>).map(([filter, one]) => ({
    name: name as keyof typeof LISTS,
    filter,
    ...one,
  })),
);

async function text(path: string, headers: Record<string, string>): Promise<string> {
  const response = await fetch(`${settled().apiUrl}${path}`, { headers });
  expect([path, response.status]).toEqual([path, 200]);
  return response.text();
}

/** The first column of a CSV, without its head. */
async function csv(path: string): Promise<string[]> {
  const lines = (await text(path, { authorization: `Bearer ${OPERATOR_TOKEN}` })).replace(/^\uFEFF/, '').split('\r\n');
  return lines.slice(1, -1).map((line) => line.split(',')[0] as string);
}

/** The rows of a page of the console, the CSV that it links and the filter that its form for all rows sends. */
async function page(path: string, kind: string) {
  const html = (await text(path, { cookie })).replaceAll('&amp;', '&');
  const rows = [...html.matchAll(new RegExp(`<tr[^>]*>.*?href="[^"]*/${kind}/([^"?#]+)"`, 'gs'))].map(([, id]) => id);
  const form = /<form[^>]*action="[^"]*\/v1\/bulk".*?<\/form>/s.exec(html)?.[0] ?? '';
  const fields = [...form.matchAll(/name="filter\.(\w+)" value="([^"]*)"/g)].map(([, name, value]) => [name, value]);
  return { rows, filter: Object.fromEntries(fields), csv: /href="([^"]*\.csv[^"]*)"/.exec(html)?.[1] ?? null };
}

const sorted = (ids: readonly unknown[]) => ids.map(String).toSorted();

describe.each(Object.keys(LISTS) as (keyof typeof LISTS)[])('filters of %s', (name) => {
  it('all have a case', () => {
    const { cases, filters } = LISTS[name];
    expect(Object.keys(cases).toSorted()).toEqual(Object.keys(filters).toSorted());
  });
});

it.each(ALL)('$name by $filter: list, count, CSV, bulk work and page agree', async ({ name, filter, value, keeps }) => {
  const { id, action, page: at, row } = LISTS[name];
  const query = `${filter}=${encodeURIComponent(value)}`;
  const all: Row[] = (await get(settled(), `/v1/${name}?limit=200`)).body[name];
  const kept = all.filter(keeps);
  const wanted = kept.map((one) => one[id]);
  expect([wanted.length > 0, wanted.length < all.length]).toEqual([true, true]);

  const listed = (await get(settled(), `/v1/${name}?${query}&count=true&limit=200`)).body;
  expect(listed[name].map((one: Row) => one[id])).toEqual(wanted);
  expect(listed.count).toEqual({ n: wanted.length, isMore: false });
  expect(await csv(`/v1/${name}.csv?${query}`)).toEqual(wanted);
  const preview = async (by: object) =>
    (await post(settled(), '/v1/bulk', { action, filter: by, preview: true })).body.count?.n;
  expect(await preview({ [filter]: value })).toBe(wanted.length);

  // The page of deliveries has no readings, and no filter for them.
  if (name === 'events' && filter === 'kind') return;
  const shown = sorted(kept.filter((one) => name !== 'events' || one.reading === null).map((one) => one[id]));
  const seen = await page(`${at}?${query}`, row);
  expect(sorted(seen.rows as string[])).toEqual(shown);
  expect(await preview(seen.filter)).toBe(shown.length);
  if (seen.csv !== null) expect(sorted(await csv(seen.csv))).toEqual(shown);
});

it('the CSV says of each order what was captured and what is left of it', async () => {
  const head = (await text('/v1/orders.csv', { authorization: `Bearer ${OPERATOR_TOKEN}` })).split('\r\n').slice(0, -1);
  const [names = [], ...rows] = head.map((line) => line.split(','));
  const column = (row: string[], name: string) => row[names.indexOf(name)];
  const money = rows.map((row) => ['reference', 'currency', 'captured', 'balance'].map((name) => column(row, name)));
  expect(money.toSorted()).toEqual([
    ['back-1', 'BRL', '100.00', '0.00'],
    ['held-1', 'BRL', '60.00', '60.00'],
    ['open-1', 'BRL', '', ''],
    ['paid-1', 'BRL', '100.00', '100.00'],
    ['paid-2', 'BRL', '100.00', '100.00'],
    ['twice-1', 'BRL', '200.00', '200.00'],
    ['usd-1', 'USD', '', ''],
  ]);
});
