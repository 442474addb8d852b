import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { environmentOf, say } from '../cli/settled.ts';
import { textOf } from '../console/reading.ts';
import { signIn } from '../support/access.ts';
import { OPERATOR_TOKEN, startTestApp, type TestApp } from '../support/app.ts';
import { get, post } from './client.ts';
import { type Case, fill, LISTS, type Row } from './filter_cases.ts';

/**
 * Each filter alone: the list, its count, its CSV, the page of the console with its link to a CSV and its form for all
 * rows, and bulk work name the same rows. Which ones is decided here from the rows' documents alone.
 */

let app: TestApp;
const settled = () => app;
let cookie = '';

/** Without an API, so that nothing in doubt waits for one, and then with it, so that all work on many is offered. */
beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'settled-test-'));
  const storePath = join(folder, 'settled.db');
  const start = (environment: Record<string, string>) => startTestApp({ storePath, environment, atEnd: () => {} });
  app = await start({});
  await fill(app);
  await app.app.stop();
  app = await start({ SETTLED_API_URL: 'https://service.invalid', SETTLED_API_KEY: 'key' });
  ({ cookie } = await signIn(app));
  return async () => {
    await app.app.stop();
    rmSync(folder, { recursive: true, force: true });
  };
});

const queryOf = (asked: object) => new URLSearchParams(asked as Record<string, string>).toString();

const ALL = Object.entries(LISTS).flatMap(([name, { cases }]) =>
  Object.entries(cases as Record<string, Case | Case[]>).flatMap(([filter, some]) =>
    [some].flat().map((one) => {
      const query = queryOf({ [filter]: one.value, ...one.also });
      return { name: name as keyof typeof LISTS, filter, query, ...one };
    }),
  ),
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
async function page(path: string) {
  const html = (await text(path, { cookie })).replaceAll('&amp;', '&');
  const rows = [...html.matchAll(/<tr id="row-([^"]*)"/g)].map(([, id]) => decodeURIComponent(id as string));
  const form = /<form[^>]*action="[^"]*\/v1\/bulk".*?<\/form>/s.exec(html)?.[0] ?? '';
  const values = [...form.matchAll(/name="([\w.]+)" value="([^"]*)"/g)].map(([, name, value]) => [name, value]);
  const fields = values.filter(([name]) => name?.startsWith('filter.'));
  const filter = Object.fromEntries(fields.map(([name, value]) => [name?.slice('filter.'.length), value]));
  const bulk = form === '' ? null : { action: Object.fromEntries(values).action as string, filter };
  return { rows, bulk, csv: /href="([^"]*\.csv[^"]*)"/.exec(html)?.[1] ?? null };
}

const preview = async (action: string, filter: object) =>
  (await post(settled(), '/v1/bulk', { action, filter, preview: true })).body.count?.n;
const sorted = (ids: readonly string[]) => ids.toSorted();

const without = (names: readonly string[], ...others: string[]) => sorted(names.filter((one) => !others.includes(one)));

const COMMAND = {
  orders: 'orders list',
  events: 'events list',
  notices: 'notices list',
  rejections: 'rejections',
  attention: 'attention',
};
/** Neither the command line nor the page of deliveries tells readings apart; no option is about the reason of a hold. */
const ONLY_IN_API: Partial<Record<keyof typeof LISTS, { options?: string[]; controls?: string[] }>> = {
  events: { options: ['kind'], controls: ['kind'] },
  attention: { options: ['reason'] },
};

describe.each(Object.keys(LISTS) as (keyof typeof LISTS)[])('filters of %s', (name) => {
  const { cases, operation, page: path } = LISTS[name];
  const filters = without(Object.keys(operation.query?.shape ?? {}), 'limit', 'cursor', 'count');

  it('all have a case', () => {
    expect(sorted(Object.keys(cases))).toEqual(filters);
  });

  it('are the same on the command line, on the page of the console and in docs/api.md', async () => {
    const named = COMMANDS.find((one) => one.name === COMMAND[name]);
    const given = without(Object.keys(named?.options ?? {}), 'limit', 'all', 'count', 'csv', 'exit-code');
    const options = given.map((one) =>
      one === 'order' ? 'reference' : one.replace(/-./g, ([, to]) => String(to).toUpperCase()),
    );
    const form = /<form class="filter".*?<\/form>/s.exec(await text(path, { cookie }))?.[0] ?? '';
    const controls = [...form.matchAll(/ name="(\w+)"/g)].map(([, control]) => String(control));
    const section = readFileSync('docs/api.md', 'utf8').split(`### GET /v1/${name}\n`)[1]?.split('\n### ')[0] ?? '';
    const [, parameters = ''] = /((?:^\| `.*\n)+|Parameters: [^.]*)/m.exec(section) ?? [];
    const described = parameters.split('\n').flatMap((row) => [...(row.split(' | ')[0] ?? '').matchAll(/`(\w+)`/g)]);
    expect(sorted([...options, ...(ONLY_IN_API[name]?.options ?? [])])).toEqual(filters);
    expect(sorted([...controls, ...(ONLY_IN_API[name]?.controls ?? [])])).toEqual(filters);
    expect(
      without(
        described.map(([, word]) => String(word)),
        'limit',
        'cursor',
        'count',
      ),
    ).toEqual(filters);
  });
});

it.each(ALL)(
  '$name by $query: list, count, CSV, bulk work and page agree',
  async ({ name, filter, query, value, also = {}, typed, keeps }) => {
    const { rowId, action, page: at } = LISTS[name];
    const asked = { [filter]: value, ...also };
    const all: Row[] = (await get(settled(), `/v1/${name}?limit=200`)).body[name];
    const kept = all.filter(keeps);
    const wanted = kept.map(rowId);
    expect([wanted.length > 0, wanted.length < all.length]).toEqual([true, true]);

    const isCounted = name !== 'attention';
    const listed = (await get(settled(), `/v1/${name}?${query}&limit=200${isCounted ? '&count=true' : ''}`)).body;
    expect(listed[name].map(rowId)).toEqual(wanted);
    if (isCounted) expect(listed.count).toEqual({ n: wanted.length, isMore: false });
    else expect(listed.summary.matters).toBe(wanted.length);
    if (name === 'orders') expect(await csv(`/v1/orders.csv?${query}`)).toEqual(wanted);
    if (action !== null) expect(await preview(action, asked)).toBe(wanted.length);

    // The page of deliveries has no readings, and no filter for them.
    if (name === 'events' && filter === 'kind') return;
    const shown = sorted(kept.filter((one) => name !== 'events' || one.reading === null).map(rowId));
    const seen = await page(`${at}?${typed === undefined ? query : queryOf({ [filter]: typed })}`);
    expect(sorted(seen.rows)).toEqual(shown);
    if (action !== null) expect(seen.bulk?.action).toBe(action);
    if (seen.bulk !== null) expect(await preview(seen.bulk.action, seen.bulk.filter)).toBe(shown.length);
    if (seen.csv !== null) expect(sorted(await csv(seen.csv))).toEqual(shown);
  },
);

it('the form that ends all matters ends those that are shown, and is there only if it can', async () => {
  const found: string[] = [];
  const values = Object.entries(LISTS.attention.cases).map(([name, cases]) => [
    '',
    ...[cases].flat().map(({ value }) => `${name}=${value}`),
  ]);
  const [kinds = [], reasons = [], states = []] = values;
  for (const query of kinds.flatMap((kind) =>
    reasons.flatMap((reason) => states.map((state) => [kind, reason, state])),
  )) {
    const asked = query.filter((part) => part !== '').join('&');
    const seen = await page(`/attention?${asked}`);
    if (seen.bulk === null) continue;
    expect([asked, seen.bulk.action]).toEqual([asked, 'end_attention']);
    expect([asked, await preview(seen.bulk.action, seen.bulk.filter)]).toEqual([asked, seen.rows.length]);
    found.push(asked);
  }
  expect(found).toEqual(['kind=duplicate_payment', 'kind=event_not_understood']);
});

/** What was captured of orders, and what is left: refunded, refunded by another sum, paid twice, and held. */
const MONEY = [
  { reference: 'back-1', captured: '100.00', balance: '0.00' },
  { reference: 'part-1', captured: '100.00', balance: '0.00' },
  { reference: 'twice-1', captured: '200.00', balance: '200.00' },
  { reference: 'held-1', captured: '60.00', balance: '60.00' },
];

it('every surface calls captured what the service has collected, and the balance what is left of it', async () => {
  const sums = (row: Row) => row.paymentsTotal.sums;
  const orders: Row[] = (await get(settled(), '/v1/orders?limit=200')).body.orders;
  const list = textOf(await text('/orders', { cookie }));
  const { text: cli } = await say(['orders', 'list'], environmentOf(settled()));
  for (const { reference, captured, balance } of MONEY) {
    const expected = [{ currency: 'BRL', captured, balance }];
    expect(sums(orders.find((row) => row.reference === reference))).toEqual(expected);
    expect(sums((await get(settled(), `/v1/orders/${reference}`)).body.order)).toEqual(expected);
    const isLeft = captured === balance;
    expect(textOf(await text(`/orders/${reference}`, { cookie }))).toMatch(
      new RegExp(`Captured\\s+R\\$${captured}${isLeft ? '(?!\\s+Balance)' : `\\s+Balance\\s+R\\$${balance}`}`),
    );
    expect(list).toMatch(
      new RegExp(`${reference}\\b.*R\\$100\\.00\\s+R\\$${captured}${isLeft ? '' : `\\s*R\\$${balance} left`}`),
    );
    const words = isLeft ? '' : ` \\(${balance} left\\)`;
    expect(cli).toMatch(new RegExp(`^${reference} .* 100\\.00 BRL +${captured} BRL${words} `, 'm'));
  }
  // Attention sums balances, and calls them so. One of the payments that are held is of more than its order asks.
  const { summary, groups } = (await get(settled(), '/v1/attention')).body;
  expect(summary.sentence).toMatch(/ with a balance of 320\.00 BRL and 160\.00 USD\. A held payment of more /);
  const balances = groups.map(({ kind, sums }: Row) => [kind, sums[0]?.balance]);
  expect(balances).toEqual(
    expect.arrayContaining([
      ['amount_mismatch', '0.00'],
      ['duplicate_payment', '200.00'],
    ]),
  );
  const { text: matters } = await say(['attention'], environmentOf(settled()));
  expect(matters).toMatch(/^kind .* asked +balance +meaning$/im);
  expect(textOf(await text('/', { cookie }))).toMatch(/Money\s+Balance\s+Count/);
});

it('no surface shows an amount that is not readable as a sum', async () => {
  const { order } = (await get(settled(), '/v1/orders/unread-1')).body;
  expect(order.payments).toMatchObject([{ id: 'pay_u', amount: null, currency: 'BRL' }]);
  expect([order.payment, order.paymentsTotal]).toEqual([order.payments[0], { count: 1, sums: [] }]);
  const accept = { decision: 'accept', dryRun: true };
  const { preview } = (await post(settled(), '/v1/orders/unread-1/resolve', accept)).body;
  expect(preview.warning).toMatch(/^settled has counted no money for order unread-1\./);
  const { notices } = (await get(settled(), '/v1/feed?limit=200')).body;
  const told = notices.filter(({ data }: Row) => data.order.reference === 'unread-1');
  expect(told.map(({ data }: Row) => data.order.payment.amount)).toEqual([null]);
  const answers = [
    textOf(await text('/orders/unread-1', { cookie })),
    textOf(await text('/orders?q=unread-1', { cookie })),
    (await say(['orders', 'list', '--q', 'unread-1'], environmentOf(settled()))).text,
    (await say(['orders', 'show', 'unread-1'], environmentOf(settled()))).text,
    (await say(['why', 'unread-1'], environmentOf(settled()))).text,
  ];
  for (const answer of answers) {
    expect(answer).toContain('not readable');
    expect(answer).not.toMatch(/(?<![0-9])0\.00/);
  }
});

it('the CSV says of each order what was captured, what is left of it and each reason why it is held', async () => {
  const head = (await text('/v1/orders.csv', { authorization: `Bearer ${OPERATOR_TOKEN}` })).split('\r\n').slice(0, -1);
  const [names = [], ...rows] = head.map((line) => line.split(','));
  const column = (row: string[], name: string) => row[names.indexOf(name)];
  const money = rows.map((row) =>
    ['reference', 'currency', 'captured', 'balance', 'holds'].map((name) => column(row, name)),
  );
  expect(money.toSorted()).toEqual([
    ['back-1', 'BRL', '100.00', '0.00', ''],
    ['held-1', 'BRL', '60.00', '60.00', 'amount_mismatch'],
    ['late-1', 'BRL', '100.00', '100.00', ''],
    ['mixed-1', 'BRL', '60.00', '60.00', 'amount_mismatch further_payment'],
    ['open-1', 'BRL', '', '', ''],
    ['over-1', 'BRL', '140.00', '140.00', 'amount_mismatch further_payment'],
    ['paid-1', 'BRL', '100.00', '100.00', ''],
    ['paid-2', 'BRL', '100.00', '100.00', ''],
    ['part-1', 'BRL', '100.00', '0.00', ''],
    ['twice-1', 'BRL', '200.00', '200.00', ''],
    ['under-1', 'BRL', '60.00', '60.00', ''],
    ['under-2', 'BRL', '', '', ''],
    ['unread-1', 'BRL', '', '', 'amount_mismatch'],
    ['usd-1', 'USD', '', '', ''],
    ['usd-2', 'USD', '', '', ''],
  ]);
});
