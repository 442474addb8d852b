import { describe, expect, it } from 'vitest';
import { overflowOf, useBrowser } from '../support/browser.ts';
import { sampleSite } from './sample.ts';

const site = sampleSite();
const open = useBrowser();

describe('console: the layout', () => {
  it('holds words without a gap on a phone', async () => {
    const tab = await open({ width: 360 });
    await tab.goto(`${site().url}/?typed=${'W'.repeat(400)}`);
    expect(await overflowOf(tab)).toBe(0);
  });

  it('shows where the keyboard is, first the way past the menu', async () => {
    const tab = await open();
    await tab.goto(`${site().url}/`);
    await tab.keyboard.press('Tab');
    const focused = 'document.activeElement.textContent + getComputedStyle(document.activeElement).outlineStyle';
    expect(await tab.evaluate(focused)).toBe('Skip to the contentsolid');
    await tab.keyboard.press('Enter');
    expect(await tab.evaluate('document.activeElement.id')).toBe('main');
  });

  it('works without JavaScript, and shows nothing that would need it', async () => {
    const tab = await open({ javaScriptEnabled: false });
    await tab.goto(`${site().url}/`);
    for (const part of ['#live-state', '#live-pause', '#keys']) expect(await tab.locator(part).isVisible()).toBe(false);
    await tab.getByText('Accept the hold').click();
    await tab.locator('#accept-1').getByRole('button', { name: 'Accept' }).waitFor();
    await tab.getByLabel('State').selectOption('paid');
    await tab.getByRole('button', { name: 'Filter' }).click();
    await tab.waitForURL(/\/orders\?q=order&state=paid&amount=order&flag=order&since=2026-11-23$/);
  });

  it('counts ages by the clock of the server, not by that of the machine that shows it', async () => {
    const tab = await open();
    await tab.clock.install({ time: '2027-05-05T12:00:00Z' });
    await tab.goto(`${site().url}/`);
    await tab.clock.fastForward(120_000);
    await expect.poll(() => tab.locator('.lead time').textContent()).toBe('2 h 12 min');
    expect(await tab.getByRole('row', { name: 'tea-4f1c2a' }).textContent()).toContain('2 min 42 s ago');
  });

  it('leaves times in the zone of the pages, whatever the zone of the browser, and as titles in UTC', async () => {
    const tab = await open({ timezoneId: 'America/Sao_Paulo' });
    await tab.goto(`${site().url}/`);
    const time = tab.getByRole('row', { name: 'tea-4f1c2a' }).locator('time[title$="08:03:13 UTC"]:not([data-age])');
    expect(await time.textContent()).toBe('2026-11-23 08:03:13 UTC');
    expect(await tab.locator('#as-of').innerText()).toBe('08:03:55 UTC');
    expect(tab.wrongs).toEqual([]);
  });

  it('leaves menu and forms out of print', async () => {
    const tab = await open();
    await tab.goto(`${site().url}/`);
    await tab.emulateMedia({ media: 'print' });
    for (const part of ['.menu', '.find', '.filter', '.action'])
      expect(await tab.locator(part).first().isVisible()).toBe(false);
    expect(await tab.locator('table').isVisible()).toBe(true);
  });
});
