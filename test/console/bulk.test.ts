import { describe, expect, it } from 'vitest';
import { enter, namedToken, signIn } from '../support/access.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { useBrowser } from '../support/browser.ts';
import { seedEveryMatter } from '../support/matters.ts';
import { startEndlessRun } from '../support/rows.ts';
import { eventually } from '../support/timing.ts';
import { textOf } from './reading.ts';

const open = useBrowser();

async function withDeadEvents(count: number): Promise<TestApp> {
  const app = await startTestApp({ engine: 'sqlite' });
  const link = await app.reserve('order-broken');
  await Promise.all(Array.from({ length: count }, (_, n) => app.deliver(link, `not JSON ${n}`)));
  await eventually(async () => {
    expect((await app.api('/v1/stats')).body.stats.events.dead).toBe(count);
  });
  return app;
}

describe('console: work on all rows of a filter', () => {
  it('counts them first, then says what it will do, then how far it is', async () => {
    const app = await withDeadEvents(20);
    const tab = await open({ width: 360 });
    await enter(tab, app, '/deliveries?status=dead&reference=order-broken&since=2026-01-01');
    expect(await tab.locator('main').innerText()).toContain('20 deliveries');
    await tab.locator('#bulk-replay_events summary').click();
    await tab.getByRole('button', { name: 'Count them' }).click();
    expect(await tab.locator('h1').innerText()).toBe('Replay 20 events?');
    expect((await app.api('/v1/bulk')).body.runs).toEqual([]);
    await tab.fill('#bulk-start-reason', 'the secret was wrong');
    await tab.getByRole('button', { name: 'Replay 20 events' }).click();
    expect(new URL(tab.url()).pathname).toBe('/bulk/1');
    // The page follows what happens.
    await tab.locator('h1 .badge', { hasText: 'done' }).waitFor();
    expect(await tab.locator('main').innerText()).toContain('20 of 20 events processed.');
    expect(await tab.locator('main').innerText()).toContain('the secret was wrong');
    expect(await tab.locator('main .facts').innerText()).toMatch(/^Queued again\s+20\s/);
    // They die again at once, and the page follows that too.
    await tab.getByRole('link', { name: '20 events', exact: true }).waitFor();
    expect(await tab.locator('main').innerText()).toContain('Dead rows now: 20 events');
    expect(tab.wrongs).toEqual([]);
    await tab.getByRole('link', { name: 'See the events of this filter' }).click();
    expect(new URL(tab.url()).pathname).toBe('/deliveries');
    expect(await tab.inputValue('#filter-reference')).toBe('order-broken');
  });

  it('is cancelled by a person without script, and says so', async () => {
    const app = await startTestApp({ engine: 'sqlite' });
    startEndlessRun(app.storePath, 7);
    // Wakes the worker, which takes the oldest run first.
    await app.api('/v1/bulk', { body: { action: 'resend_notices', filter: { status: 'dead' } } });
    const tab = await open({ javaScriptEnabled: false });
    await enter(tab, app, '/bulk/7');
    await tab.getByRole('link', { name: 'See the progress' }).click();
    await tab.locator('#bulk-cancel summary').click();
    await tab.getByRole('button', { name: 'Cancel the rest' }).click();
    expect(await tab.locator('main > .notice').innerText()).toBe('The work was cancelled.');
    expect(await tab.locator('h1 .badge').innerText()).toBe('cancelled');
    expect(await tab.locator('#bulk-cancel').count()).toBe(0);
    await tab.getByRole('link', { name: 'All bulk work' }).click();
    expect(await tab.locator('tbody tr').count()).toBe(2);
  });

  it('ends all matters of one kind, by the reason of a person, without script', async () => {
    const app = await startTestApp({ engine: 'sqlite' });
    await seedEveryMatter(app, Date.now());
    const tab = await open({ javaScriptEnabled: false });
    await enter(tab, app, '/attention?kind=hold');
    expect(await tab.locator('#bulk-end_attention').count()).toBe(0);
    await tab.goto(`${app.apiUrl}/attention?kind=link_missing`);
    await tab.locator('#bulk-end_attention summary').click();
    await tab.getByRole('button', { name: 'Count them' }).click();
    expect(await tab.locator('h1').innerText()).toBe('End 1 matter?');
    await tab.fill('#bulk-start-reason', 'looked at it');
    await tab.getByRole('button', { name: 'End 1 matter' }).click();
    expect(new URL(tab.url()).pathname).toBe('/bulk/1');
    await eventually(async () => {
      expect((await app.api('/v1/attention?kind=link_missing')).body.attention).toEqual([]);
    });
  });

  it('asks the service about all orders of a filter', async () => {
    const environment = { SETTLED_API_URL: 'http://127.0.0.1:9', SETTLED_API_KEY: 'key-of-the-tests' };
    const app = await startTestApp({ engine: 'sqlite', environment });
    for (const reference of ['tea-1', 'tea-2']) await app.reserve(reference);
    const tab = await open({ javaScriptEnabled: false });
    await enter(tab, app, '/orders?state=awaiting_payment&since=23/11/2020');
    await tab.locator('#bulk-check_orders summary').click();
    await tab.getByRole('button', { name: 'Count them' }).click();
    expect(await tab.locator('h1').innerText()).toBe('Ask the service about 2 orders?');
    await tab.getByRole('button', { name: 'Ask the service about 2 orders' }).click();
    expect((await app.api('/v1/bulk')).body.runs).toMatchObject([{ action: 'check_orders', total: 2 }]);
  });

  it('is not offered without a filter, nor to a viewer; of nothing, it is not started', async () => {
    const app = await withDeadEvents(1);
    const see = async (path: string, token?: string) => {
      const { cookie } = await signIn(app, token);
      return (await fetch(`${app.apiUrl}${path}`, { headers: { cookie } })).text();
    };
    const form = 'id="bulk-replay_events"';
    expect(await see('/deliveries?status=dead&kind=reading')).toContain('"filter.kind" value="event"');
    expect(await see('/deliveries')).not.toContain(form);
    expect(await see('/deliveries?status=dead', await namedToken(app, 'viewer'))).not.toContain(form);
    const { own } = await signIn(app);
    const body = new URLSearchParams({
      action: 'resend_notices',
      'filter.status': 'dead',
      preview: 'true',
      back: '/shop',
    });
    const answer = await fetch(`${app.apiUrl}/v1/bulk`, { method: 'POST', headers: own, body });
    expect(textOf(await answer.text())).toContain('The filter lets no notice through.');
  });
});
