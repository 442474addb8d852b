import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { isDeepStrictEqual } from 'node:util';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { beforeAll, expect, onTestFinished } from 'vitest';
import { launchChromium } from './chromium.ts';
import { times } from './timing.ts';

const require = createRequire(import.meta.url);

export type Tab = Page & {
  /** What the page must not do: dialogs, script errors, and errors in the console, such as violations of its policy. */
  readonly wrongs: string[];
};

type TabOptions = { width?: number; height?: number; javaScriptEnabled?: boolean; timezoneId?: string };

/** One for all files of a process, which ends it: starting one takes as long as several tests. */
let browser: Promise<Browser> | undefined;

/**
 * A real browser. If there is none, it fails and says what to do.
 *
 * @returns a function that opens a tab; the tabs of one test share their storage, tests share nothing
 */
export function useBrowser(): (options?: TabOptions) => Promise<Tab> {
  let context: BrowserContext | null = null;
  beforeAll(async () => {
    browser ??= launchChromium();
    await browser;
  });
  return async ({ width = 1280, height = 900, javaScriptEnabled = true, timezoneId = 'UTC' } = {}) => {
    const viewport = { width, height };
    if (context === null) {
      const started = await (browser as Promise<Browser>);
      const opened = await started.newContext({ javaScriptEnabled, viewport, timezoneId });
      opened.setDefaultTimeout(10_000);
      context = opened;
      onTestFinished(async () => {
        context = null;
        await opened.close();
      });
    }
    const page = await context.newPage();
    // A new tab already has the size of the first one: setting it again would lay the page out again.
    if (!isDeepStrictEqual(page.viewportSize(), viewport)) await page.setViewportSize(viewport);
    return watched(page);
  };
}

/** In the page's time, which runs until it is held. It must be held before it gets here. */
const HELD_AT_MS = 3_600_000;

/** Holds the timers of the tab's pages until `tab.clock.resume()`, so that a test can look at what soon passes. */
export async function holdTime(tab: Tab): Promise<void> {
  await tab.clock.install({ time: 0 });
  await tab.clock.pauseAt(HELD_AT_MS);
}

type Look = readonly [width: number, colorScheme: 'light' | 'dark', axeEvery: number];

/** How pages are looked at: on a phone, every third with axe; in a proof in every size, light and dark, each with axe. */
export const LOOKS: readonly Look[] =
  times(0, 1) === 0
    ? [[360, 'dark', 3]]
    : ([360, 768, 1_280, 1_920] as const).flatMap((width) =>
        (['light', 'dark'] as const).map((scheme) => [width, scheme, 1] as const),
      );

let axe: string | undefined;

/** What axe-core finds wrong for people who cannot see, point or tell colours apart: each rule with the element. */
export async function violationsIn(tab: Tab): Promise<string[]> {
  axe ??= readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
  await tab.evaluate(`{${axe}}`);
  return tab.evaluate<string[]>(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => id + ': ' + html + failureSummary)))`);
}

/** How far the page is wider than the screen, in pixels. */
export function overflowOf(tab: Tab): Promise<number> {
  return tab.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth');
}

/** How many cells of tables are higher than their place. */
const TALL = `[...document.querySelectorAll('td')].filter((td) => td.scrollHeight > td.clientHeight).length`;

/** Opens these pages: none is wider than the screen, none does a wrong, and axe finds no fault on every `axeEvery`th. */
export async function expectToFit(tab: Tab, pages: readonly string[], [, colorScheme, axeEvery]: Look): Promise<void> {
  await tab.emulateMedia({ colorScheme });
  for (const [at, page] of pages.entries()) {
    await tab.goto(page);
    expect([page, await overflowOf(tab), await tab.evaluate(TALL)]).toEqual([page, 0, 0]);
    if (at % axeEvery === 0) expect([page, await violationsIn(tab)]).toEqual([page, []]);
  }
  expect(tab.wrongs).toEqual([]);
}

function watched(page: Page): Tab {
  const wrongs: string[] = [];
  page.on('dialog', (dialog) => {
    wrongs.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('pageerror', (error) => wrongs.push(`script error: ${error.message}`));
  page.on('console', (message) => {
    const text = message.text();
    // The browser notes each answer that is an error: tests look at those themselves.
    const isWrong = message.type() === 'error' && !text.startsWith('Failed to load resource');
    if (isWrong || /content security policy/i.test(text)) wrongs.push(text);
  });
  return Object.assign(page, { wrongs });
}
