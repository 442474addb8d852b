import { describe, expect, it } from 'vitest';
import { enter, namedToken } from '../support/access.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { useBrowser } from '../support/browser.ts';
import { seedEveryMatter } from '../support/matters.ts';
import { plainOperator } from '../support/plain_browser.ts';
import { startEndlessRun } from '../support/rows.ts';
import { eventually } from '../support/timing.ts';
import { see as seeAt } from './reading.ts';

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
    const page = plainOperator(app);
    await page.open('/bulk/7');
    await page.follow('See the progress');
    await page.press('Cancel the rest');
    expect(page.text('.notice')).toBe('The work was cancelled.');
    expect(page.text('h1')).toMatch(/ cancelled$/);
    expect(page.markup('#bulk-cancel')).toBe('');
    await page.follow('All bulk work');
    expect(page.markup('tbody').match(/<tr/g)).toHaveLength(2);
  });

  it('ends all matters of one kind, by the reason of a person, without script', async () => {
    const app = await startTestApp({ engine: 'sqlite' });
    await seedEveryMatter(app, Date.now());
    const page = plainOperator(app);
    await page.open('/attention?kind=hold');
    expect(page.markup('#bulk-end_attention')).toBe('');
    await page.open('/attention?kind=link_missing');
    await page.press('Count them', {}, '#bulk-end_attention');
    expect(page.text('h1')).toBe('End 1 matter?');
    await page.press('End 1 matter', { reason: 'looked at it' });
    expect(page.url().pathname).toBe('/bulk/1');
    await eventually(async () => {
      expect((await app.api('/v1/attention?kind=link_missing')).body.attention).toEqual([]);
    });
  });

  it('asks the service about all orders of a filter', async () => {
    const environment = { SETTLED_API_URL: 'http://127.0.0.1:9', SETTLED_API_KEY: 'key-of-the-tests' };
    const app = await startTestApp({ engine: 'sqlite', environment });
    for (const reference of ['tea-1', 'tea-2']) await app.reserve(reference);
    const page = plainOperator(app);
    await page.open('/orders?state=awaiting_payment&since=23/11/2020');
    await page.press('Count them', {}, '#bulk-check_orders');
    expect(page.text('h1')).toBe('Ask the service about 2 orders?');
    await page.press('Ask the service about 2 orders');
    expect((await app.api('/v1/bulk')).body.runs).toMatchObject([{ action: 'check_orders', total: 2 }]);
  });

  it('is not offered without a filter, nor to a viewer; of nothing, it is not started', async () => {
    const app = await withDeadEvents(1);
    const see = async (path: string, token?: string) => (await seeAt(app, path, { token })).markup;
    const form = 'id="bulk-replay_events"';
    expect(await see('/deliveries?status=dead&kind=reading')).toContain('"filter.kind" value="event"');
    expect(await see('/deliveries')).not.toContain(form);
    expect(await see('/deliveries?status=dead', await namedToken(app, 'viewer'))).not.toContain(form);
    const fields = { action: 'resend_notices', 'filter.status': 'dead', preview: 'true', back: '/shop' };
    expect((await seeAt(app, '/v1/bulk', { fields })).text).toContain('The filter lets no notice through.');
  });
});
