import { performance } from 'node:perf_hooks';
import { describe, expect, it, onTestFinished } from 'vitest';
import { overflowOf, type Tab, useBrowser, violationsIn } from '../support/browser.ts';
import { eventually } from '../support/timing.ts';
import { type LiveSite, startLiveSite } from './live_site.ts';

const open = useBrowser();

async function site(options: Parameters<typeof startLiveSite>[0] = {}): Promise<LiveSite> {
  const started = await startLiveSite(options);
  onTestFinished(started.stop);
  return started;
}

const row = (tab: Tab, name: string) => tab.getByRole('row', { name });
const state = (tab: Tab) => tab.locator('#live-state');
const isLive = (tab: Tab) =>
  state(tab)
    .filter({ hasText: /^live$/ })
    .waitFor();

/** A tab that follows the site's page, and a second later in its own time: it may refresh the page at once. */
async function following({ url }: LiveSite, options: Parameters<typeof open>[0] = {}): Promise<Tab> {
  const tab = await open(options);
  await tab.clock.install();
  await tab.goto(`${url}/`);
  await isLive(tab);
  await tab.clock.fastForward(1_000);
  return tab;
}

describe.each(['', '/ops/pay'])('console: a page that is followed at %j', (prefix) => {
  it('shows a change, and says that it is live and as of when', async () => {
    const { url, change } = await site({ prefix });
    const tab = await open();
    await tab.goto(`${url}${prefix}/`);
    await isLive(tab);
    const asOf = await tab.locator('#as-of').textContent();
    change(['first', 'second', 'third']);
    await row(tab, 'third').waitFor();
    await expect.poll(() => tab.title()).toBe('3 orders · settled');
    await expect.poll(() => tab.locator('#as-of').textContent()).not.toBe(asOf);
    expect(tab.wrongs).toEqual([]);
  });
});

describe('console: a refresh', () => {
  it('keeps focus, what was typed, what was opened, what is selected and where one was', async () => {
    const started = await site();
    const { change, state: server } = started;
    const tab = await following(started, { height: 400 });
    await tab.getByText('Accept', { exact: true }).click();
    const reason = tab.getByLabel('Reason');
    await reason.fill('the customer wants it');
    await tab.evaluate('document.getElementById("accept-reason").setSelectionRange(4, 12)');
    await tab.evaluate('scrollBy(0, 120)');
    const before = await tab.evaluate('scrollY');
    server.preview = 'It becomes paid, and the shop is told.';
    change(['zeroth', 'first', 'second']);
    await row(tab, 'zeroth').waitFor();
    expect(await tab.locator('.preview').textContent()).toBe('It becomes paid, and the shop is told.');
    expect(await reason.inputValue()).toBe('the customer wants it');
    const field = 'document.activeElement';
    expect(await tab.evaluate(`[${field}.id, ${field}.selectionStart, ${field}.selectionEnd]`)).toEqual([
      'accept-reason',
      4,
      12,
    ]);
    expect(await tab.evaluate('document.getElementById("accept").open')).toBe(true);
    // The new row pushes the page down by its height at most.
    expect(Math.abs((await tab.evaluate<number>('scrollY')) - (before as number))).toBeLessThan(60);
    await tab.getByRole('button', { name: 'Pause' }).focus();
    change(['first']);
    await tab.clock.fastForward(1_000);
    await row(tab, 'zeroth').waitFor({ state: 'detached' });
    expect(await reason.inputValue()).toBe('the customer wants it');
  });

  it('keeps the focus on a row that moves', async () => {
    const started = await site();
    const { change } = started;
    const tab = await following(started);
    await tab.getByRole('link', { name: 'second' }).focus();
    change(['second', 'new', 'first']);
    await row(tab, 'new').waitFor();
    expect(await tab.evaluate('document.activeElement.textContent')).toBe('second');
  });

  it('comes at most once a second, however much happens', async () => {
    const { url, state: server } = await site();
    const tab = await open();
    await tab.goto(`${url}/`);
    await isLive(tab);
    const [reads, sinceMs] = [server.reads, performance.now()];
    await eventually(() => {
      server.changes++;
      expect(server.reads).toBeGreaterThanOrEqual(reads + 2);
    });
    expect(performance.now() - sinceMs).toBeGreaterThan(950);
  });

  it('waits while the page is paused, and comes when it is resumed', async () => {
    const started = await site();
    const { change, state: server } = started;
    const tab = await following(started);
    await tab.getByRole('button', { name: 'Pause' }).click();
    expect(await state(tab).textContent()).toBe('paused');
    const { looks, reads } = server;
    change(['paused']);
    await eventually(() => expect(server.looks).toBeGreaterThan(looks + 2));
    await tab.clock.fastForward(2_000);
    expect(server.reads).toBe(reads);
    await tab.getByRole('button', { name: 'Resume' }).click();
    await row(tab, 'paused').waitFor();
    await isLive(tab);
  });

  it.each([200, 401])('that is answered by the sign-in page says so, with a way back: %i', async (signInStatus) => {
    const started = await site({ signInStatus });
    const { change, state: server } = started;
    const tab = await following(started);
    await tab.getByText('Accept', { exact: true }).click();
    await tab.getByLabel('Reason').fill('typed');
    server.isSignedIn = false;
    change([]);
    await tab.getByRole('alert').getByRole('link', { name: 'Sign in again' }).waitFor();
    expect(await tab.getByRole('link', { name: 'Sign in again' }).getAttribute('href')).toBe(`${started.url}/`);
    expect(await state(tab).textContent()).toBe('signed out');
    expect(await tab.getByLabel('Reason').inputValue()).toBe('typed');
    expect(await violationsIn(tab)).toEqual([]);
  });
});

describe('console: a server that is gone', () => {
  it('is told within 10 s, and the page recovers without a reload', async () => {
    const first = await site();
    const tab = await following(first);
    await tab.evaluate('window.isSame = true');
    first.stop();
    await tab.clock.fastForward(6_000);
    expect(await state(tab).textContent()).toBe('live');
    await tab.clock.fastForward(3_500);
    await state(tab).filter({ hasText: 'stale' }).waitFor();
    // However far down one is.
    await tab.evaluate('scrollTo(0, document.body.scrollHeight)');
    const top = (await state(tab).boundingBox())?.y ?? -1;
    expect(top > 0 && top < 900).toBe(true);
    const again = await site({ port: Number(new URL(first.url).port) });
    again.change(['recovered']);
    await row(tab, 'recovered').waitFor();
    await isLive(tab);
    expect(await tab.evaluate('window.isSame')).toBe(true);
    expect(tab.wrongs).toEqual([]);
  });
});

describe('console: the tabs of one browser', () => {
  it('share one stream, and the next one takes it over', async () => {
    const started = await site();
    const { change, state: server } = started;
    const tabs = [await following(started), await following(started)];
    change(['both']);
    for (const tab of tabs) await row(tab, 'both').waitFor();
    expect(server.streams).toBe(1);
    await tabs.shift()?.close();
    await tabs[0]?.clock.fastForward(1_000);
    change(['taken over']);
    await row(tabs[0] as Tab, 'taken over').waitFor();
  });

  it('let go of it while they are hidden, and catch up when they are shown', async () => {
    const started = await site();
    const { change, state: server } = started;
    const tab = await following(started);
    const show = (isHidden: boolean) =>
      tab.evaluate(`Object.defineProperty(document, 'hidden', { configurable: true, value: ${isHidden} });
        document.dispatchEvent(new Event('visibilitychange'))`);
    await show(true);
    // Nobody follows any more, so the store is looked at no more.
    let { looks } = server;
    await eventually(async () => {
      const before = server.looks;
      await new Promise((resolve) => setTimeout(resolve, 250));
      expect(server.looks).toBe(before);
    });
    looks = server.looks;
    change(['meanwhile']);
    expect(server.looks).toBe(looks);
    await show(false);
    await row(tab, 'meanwhile').waitFor();
    await isLive(tab);
  });
});

describe('console: keys', () => {
  it('go to the search box, along the rows, into one, and tell what they do', async () => {
    const { url } = await site();
    const tab = await open();
    await tab.goto(`${url}/`);
    const focused = () => tab.evaluate('document.activeElement.id || document.activeElement.textContent');
    await tab.keyboard.press('j');
    expect(await focused()).toBe('first');
    await tab.keyboard.press('j');
    await tab.keyboard.press('j');
    expect(await focused()).toBe('second');
    await tab.keyboard.press('k');
    expect(await focused()).toBe('first');
    await tab.keyboard.press('?');
    await tab.getByRole('dialog').getByText('go to the search box').waitFor();
    expect(await overflowOf(tab)).toBe(0);
    expect(await violationsIn(tab)).toEqual([]);
    await tab.keyboard.press('Escape');
    await tab.keyboard.press('/');
    expect(await focused()).toBe('find');
    await tab.keyboard.type('j/?');
    expect(await tab.locator('#find').inputValue()).toBe('j/?');
    await tab.locator('#main').focus();
    await tab.keyboard.press('k');
    await tab.keyboard.press('Enter');
    await expect.poll(() => tab.title()).toBe('An order');
  });

  it('times have their local time, and ages tick', async () => {
    const tab = await open();
    await tab.clock.install();
    const { url, state: server } = await site();
    await tab.goto(`${url}/`);
    server.isBroken = true;
    const age = tab.locator('#age time');
    expect(await age.textContent()).toMatch(/^6\d s ago$/);
    await tab.clock.fastForward(70_000);
    await expect.poll(() => age.textContent()).toMatch(/^2 min( \d+ s)? ago$/);
    expect(await tab.locator('#as-of time').getAttribute('title')).toMatch(/20\d\d/);
  });
});
