import { describe, expect, it } from 'vitest';
import { PAGES as ALL_PAGES } from '../../src/console/pages.ts';
import { enter, namedToken, signIn } from '../support/access.ts';
import { OPERATOR_TOKEN } from '../support/app.ts';
import { expectToFit, LOOKS, useBrowser } from '../support/browser.ts';
import { type PlainBrowser, plainOperator } from '../support/plain_browser.ts';
import { sharedApp } from '../support/shared.ts';
import { itAtLength } from '../support/timing.ts';
import { see as seeAt } from './reading.ts';
import { HOSTILE, seededShop } from './seeded.ts';

const shop = seededShop();
const open = useBrowser();

const PAGES = Object.keys(ALL_PAGES).filter((path) => /^\/(deliveries|shop|service|audit|system|help)/.test(path));

/** What a page says of what was done, or refused. */
const NOTICE = '.notice';
const PROBLEM = '.problem';

const see = (path: string, token?: string) => seeAt(shop().settled, path, { token });

/** A page of an administrator, without script. */
async function pageAt(path: string): Promise<PlainBrowser> {
  const page = plainOperator(shop().settled);
  await page.open(path);
  return page;
}

describe('console: deliveries, shop, service, audit and system', () => {
  it('are 13 pages', () => expect(PAGES).toHaveLength(13));

  itAtLength.each(LOOKS)('fit at %i px (%s), and have no fault that axe finds on one page of %i', async (...look) => {
    const tab = await open({ width: look[0] });
    await enter(tab, shop().settled, '/system');
    const pages = PAGES.map((path) => `${shop().settled.apiUrl}${path}`);
    await expectToFit(tab, pages, look);
  });

  it.each(PAGES)('%s shows a viewer no form that changes something', async (path) => {
    viewer ??= await namedToken(shop().settled, 'viewer');
    const { status, markup } = await see(path, viewer);
    expect(status).toBe(200);
    const forms = markup.match(/<form [^>]*method="post"[^>]*>/g);
    expect(forms).toEqual([expect.stringContaining('action="/sign-out"')]);
    // Nor a hostile text as more than text.
    expect(markup.slice(markup.indexOf('<main'))).not.toMatch(/<(?:img|script)/);
  });

  it.each(PAGES)('%s says what is wrong with its address, and keeps what was typed', async (path) => {
    // These take no parameters at all.
    if (path.startsWith('/system') || ['/service', '/help'].includes(path)) return;
    const { status, text } = await see(`${path}?surprise=1`);
    expect([status, text]).toEqual([400, expect.stringContaining('surprise: there is no such field')]);
  });

  it('says beside each filter what is wrong with it', async () => {
    const page = await pageAt('/deliveries?status=lost&since=yesterday&reference=a');
    expect(['since', 'status', 'reference'].map((name) => page.field(`filter-${name}`))).toEqual([
      'yesterday',
      'lost',
      'a',
    ]);
    expect(page.text('#filter-since-problem')).toBe('Write a day like 2026-11-23 or 23/11/2026.');
    expect(page.text('#filter-status-problem')).toContain('must be one of pending');
    const { text: faulty } = await see('/shop?since=yesterday&surprise=1');
    expect(faulty.match(/ISO 8601|Write a day/g)).toEqual(['Write a day']);
    expect(faulty).toContain('surprise: there is no such field');
    for (const path of ['/deliveries', '/service/readings', '/shop']) {
      const [day, time] = ['2026-11-23', '2026-11-23T10:00:00Z'];
      const { status, markup } = await see(`${path}?since=${day}&until=${time}`);
      expect(status).toBe(200);
      expect(markup).toContain(`name="since" type="date" value="${day}"`);
      expect(markup).toContain(`name="until" type="text" value="${time}"`);
    }
    expect((await see('/audit?cursor=x')).text).toContain('cursor: give the nextCursor of the page before');
  });
});

let viewer: string | undefined;

describe('console: under a path', () => {
  const app = sharedApp({ environment: { SETTLED_CONSOLE_URL: 'https://shop.example.com/ops/pay' } });

  it.each([...PAGES, '/bulk', '/deliveries?status=dead'])('%s leads nowhere else', async (path) => {
    const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` };
    const response = await fetch(`${app().apiUrl}/ops/pay${path}`, { headers });
    expect(response.status).toBe(200);
    const addresses = [...(await response.text()).matchAll(/ (?:href|action|src)="([^"]*)"/g)].map(([, to = '']) => to);
    expect(addresses.length).toBeGreaterThan(10);
    expect(addresses.filter((to) => !/^(\/ops\/pay\/|#)/.test(to))).toEqual([]);
  });
});

describe('console: the addresses that forms are sent to', () => {
  it('lead a browser that opens them again to the page of the form, and answer programs as before', async () => {
    const { apiUrl, api } = shop().settled;
    const { reference } = (await api('/v1/orders?limit=1')).body.orders[0];
    const order = `/orders/${encodeURIComponent(reference)}`;
    const { cookie } = await signIn(shop().settled);
    const markups = await Promise.all([...PAGES, '/attention', order].map(async (path) => (await see(path)).markup));
    const sent = markups.flatMap((markup) => [...markup.matchAll(/action="(\/v1[^"]*)"/g)].map(([, to = '']) => to));
    const actions = new Set([...sent, '/v1/bulk', '/v1/bulk/1/cancel', `/v1${order}/resolve`]);
    const accept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
    const get = (path: string, headers: Record<string, string>) =>
      fetch(apiUrl + path, { headers: { cookie, ...headers }, redirect: 'manual' });
    const pages = new Map<string, string | null>();
    for (const action of actions) {
      const opened = await get(action, { accept });
      expect([action, opened.status]).toEqual([action, 303]);
      pages.set(action, opened.headers.get('location'));
    }
    for (const to of new Set(pages.values()))
      expect([to, [200, 404]]).toEqual([to, expect.arrayContaining([(await see(String(to))).status])]);
    expect(pages.get(`/v1${order}/resolve`)).toBe(order);
    expect(pages.get('/v1/bulk')).toBe('/bulk');
    expect(pages.get('/v1/tokens')).toBe('/system/people');
    for (const [path, status] of [
      ['/v1/bulk', 200],
      [`/v1${order}/resolve`, 405],
    ] as const) {
      expect((await get(path, {})).status).toBe(status);
      expect((await get(path, { accept, authorization: `Bearer ${OPERATOR_TOKEN}` })).status).toBe(status);
    }
  });
});

describe('console: lists', () => {
  it.each([
    ['/deliveries', '/v1/events?kind=event&limit=200', 'events', /(\d+) deliver/],
    ['/deliveries/rejections', '/v1/rejections', 'rejections', /(\d+) orders? and reasons?/],
    ['/service/readings', '/v1/events?kind=reading', 'events', /(\d+) reading/],
    ['/shop', '/v1/notices', 'notices', /(\d+) notices? Notices Notice/],
  ] as const)('%s shows as many rows as it counts, and as the API has', async (path, route, name, counted) => {
    const rows = (await shop().settled.api(route)).body[name];
    const { markup, text } = await see(path);
    expect(rows.length).toBeGreaterThan(0);
    expect(markup.match(/<tr id="row-/g)).toHaveLength(rows.length);
    expect(counted.exec(text)?.[1]).toBe(String(rows.length));
  });

  it('tell what came: what was expected, how often, and what became of it', async () => {
    const { text } = await see('/deliveries');
    expect(text).toContain('This id came before with other content.');
    expect(text).toContain('came 1 more time');
    expect(text).toContain('unreadable_event');
    expect((await see('/deliveries/rejections')).text).toContain('a signature that does not match');
    expect((await see('/deliveries/stale')).text).toMatch(/sha256:|evt_/);
    expect((await see('/service/drift')).text).toContain('order-unheard');
    expect((await see('/deliveries?status=dead')).text).toContain('1 delivery');
    const [{ id }] = (await shop().settled.api('/v1/events?status=dead')).body.events;
    expect((await see(`/events/${id}`)).text).toMatch(/ Given up 20/);
  });

  it('tell what the shop was not told, and what it answered', async () => {
    const { notices } = (await shop().settled.api('/v1/stats')).body.stats;
    const { text } = await see('/shop');
    expect(text).toContain('order.payment_pending');
    expect(text).toMatch(
      new RegExp(`${notices.pending} notices? waits?, and settled gave up ${notices.dead} notices?`),
    );
    expect(text).toContain(`500 ${HOSTILE}`);
    expect((await see('/shop?status=dead')).text).toMatch(new RegExp(`${notices.dead} notices? Resend all`));
  });

  it('tell what settled asks next, and how much it may', async () => {
    const { api, checks } = (await shop().settled.api('/v1/stats')).body.stats;
    const { next } = (await shop().settled.api('/v1/checks')).body;
    const { markup, text } = await see('/service');
    expect(text).toContain(`of ${api.slots} requests a minute`);
    expect(markup.match(/<tr id="row-check-/g) ?? []).toHaveLength(next.queue.length);
    expect(next.queue).toHaveLength(checks);
    expect(markup.match(/<tr id="row-scheduled-/g)).toHaveLength(next.schedule.length);
  });
});

describe('console: actions, without script', () => {
  it('settles an event again, and sends a notice again', async () => {
    const page = await pageAt('/deliveries?status=dead');
    expect(page.text('#replay-*')).toContain('What was counted before is not counted twice');
    await page.press('Settle ', {}, '#replay-*');
    expect(page.text(NOTICE)).toContain('settles the event again');
    await page.open('/shop?status=dead');
    expect(page.text('#resend-*')).toContain('the same notice again');
    await page.press('Send', {}, '#resend-*');
    expect(page.text(NOTICE)).toContain('sends the notice again');
    expect(page.url().search).toBe('?status=dead&done=resendNotice');
  });

  it('makes a token and shows it once; one that is refused keeps what was typed; one that is revoked ends', async () => {
    const page = await pageAt('/system/people');
    await page.press('Create the token', { name: 'dora', role: 'operator' });
    const secret = page.text('.secret');
    expect((await shop().settled.api('/v1/orders', { token: secret })).status).toBe(200);
    expect(page.url().href).not.toContain(secret);
    await page.follow('Back to the tokens');
    expect(page.markup()).not.toContain(secret);
    await page.press('Create the token', { name: 'dora', expires: '7d' });
    expect(page.text(PROBLEM)).toContain('There already is a token named dora');
    expect([page.field('token-name'), page.field('token-expires')]).toEqual(['dora', '7d']);
    await page.press('Revoke the token', {}, '#revoke-dora');
    expect((await shop().settled.api('/v1/orders', { token: secret })).status).toBe(401);
  });

  it('signs a browser out', async () => {
    const { cookie } = await signIn(shop().settled, await namedToken(shop().settled, 'viewer', 'eva'));
    const page = await pageAt('/system/people');
    expect(page.markup().match(/>this browser</g)).toHaveLength(1);
    const [, id = ''] =
      /<bdi>eva<\/bdi><\/th>(?:(?!<\/tr>).)*<details class="action" id="(end-[^"]*)"/s.exec(page.markup()) ?? [];
    await page.press('End the session', {}, `#${id}`);
    expect(page.text(NOTICE)).toBe('The session has ended.');
    expect((await fetch(`${shop().settled.apiUrl}/v1/orders`, { headers: { cookie } })).status).toBe(401);
  });

  it('says what catching up costs before it asks, and asks then', async () => {
    const page = await pageAt('/system');
    await page.press('See what it costs');
    expect(page.text('main')).toMatch(/settled would ask about \d+ links?, with one request each\. Nothing was asked/);
    await page.press('Check all of them');
    expect(page.text(NOTICE)).toContain('settled asks the service now');
  });

  it('writes a backup, and changes the secrets key', async () => {
    const page = await pageAt('/system');
    await page.press('Write a copy');
    expect(page.text('main')).toContain('The secrets key is not in the backup');
    await page.open('/system');
    await page.press('Change the key');
    expect(page.text('main')).toContain('keep a copy of it');
  });

  it('verifies the chain, with a head that was kept', async () => {
    const page = await pageAt('/audit');
    await page.press('Verify the chain');
    expect(page.text('main')).toContain('Every row is as settled wrote it.');
    const [head = ''] = /(?<=<code>)\d+:[0-9a-f]{64}/.exec(page.markup('.facts')) ?? [];
    await page.press('Verify the chain', { head });
    expect(page.text('main')).toContain('whole');
    await page.press('Verify the chain', { head: `1:${'0'.repeat(64)}` });
    expect(page.text('main')).toContain('rows were removed from its end');
    await page.press('Verify the chain', { head: 'nonsense' });
    expect(page.text('.wrong')).toContain('must be NUMBER:MAC');
    expect(page.field('head')).toBe('nonsense');
  });

  it('shows in the audit who did what, and by its names what was done to one thing', async () => {
    await shop().settled.api('/v1/tokens', { body: { name: 'erna', role: 'operator', expires: '7d' } });
    const { text } = await see('/audit?subject=carla');
    expect(text).toMatch(/revoke token carla/);
    expect((await see('/audit?actor=nobody')).text).toContain('No change of that kind.');
    const { text: all } = await see('/audit?limit=200');
    expect(all).toMatch(/sign in session \d+ /);
    expect(all).toContain(HOSTILE);
    expect(all).toMatch(/add token erna role operator expiresAt 20\d\d-/);
  });

  it('says that the service does not know a link, if it was asked about one', async () => {
    const { orders } = (await shop().settled.api(`/v1/orders?q=pl_held`)).body;
    const page = await pageAt(`/orders/${encodeURIComponent(orders[0].reference)}`);
    await page.press('Ask the service now');
    expect(page.text(PROBLEM)).toBe('settled asked: the service does not know the link pl_held.');
  });
});
