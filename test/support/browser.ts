import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, onTestFinished } from 'vitest';

const require = createRequire(import.meta.url);
const CACHE = fileURLToPath(new URL('../../node_modules/.cache', import.meta.url));

export type Tab = Page & {
  /** What the page must not do: dialogs, script errors, and violations of its policy. */
  readonly wrongs: string[];
};

type TabOptions = { width?: number; height?: number; javaScriptEnabled?: boolean };

/**
 * A real browser for the tests of one file. If there is none, it fails and says what to do.
 *
 * @returns a function that opens a tab; the tabs of one test share their storage, tests share nothing
 */
export function useBrowser(): (options?: TabOptions) => Promise<Tab> {
  let browser: Browser;
  let context: BrowserContext | null = null;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());
  return async ({ width = 1280, height = 900, javaScriptEnabled = true } = {}) => {
    const viewport = { width, height };
    if (context === null) {
      const opened = await browser.newContext({ javaScriptEnabled, viewport });
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

function watched(page: Page): Tab {
  const wrongs: string[] = [];
  page.on('dialog', (dialog) => {
    wrongs.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('pageerror', (error) => wrongs.push(`script error: ${error.message}`));
  page.on('console', (message) => {
    if (/content security policy/i.test(message.text())) wrongs.push(message.text());
  });
  return Object.assign(page, { wrongs });
}

async function launch(): Promise<Browser> {
  try {
    const executablePath = process.env.CHROMIUM ?? (await unpacked());
    return await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  } catch (cause) {
    const message =
      'No browser could be started, so the hosted page was not tested. Name a Chromium in CHROMIUM=, or see the cause.';
    throw new Error(message, { cause });
  }
}

/**
 * The Chromium of the development dependencies, unpacked once. Its package takes any existing file for a complete one,
 * so this unpacks it aside and moves it into place: two test processes may start at the same time.
 */
async function unpacked(): Promise<string> {
  // The package reads this when it is loaded. Without it, it leaves out the libraries that it needs.
  process.env.AWS_EXECUTION_ENV ??= 'AWS_Lambda_nodejs22.x';
  const { default: sparticuz } = await import('@sparticuz/chromium');
  const folder = join(CACHE, `chromium-${process.arch}`);
  if (!existsSync(folder)) {
    mkdirSync(CACHE, { recursive: true });
    const aside = mkdtempSync(`${folder}-`);
    await withTemporaryFolder(aside, () => sparticuz.executablePath());
    writeFileSync(join(aside, 'fonts.conf'), fontsOf(folder));
    try {
      renameSync(aside, folder);
    } catch {
      // Another process was first.
      rmSync(aside, { recursive: true, force: true });
    }
  }
  process.env.LD_LIBRARY_PATH = join(folder, 'al2023', 'lib');
  process.env.FONTCONFIG_FILE = join(folder, 'fonts.conf');
  return join(folder, 'chromium');
}

/** The package's own file names the temporary folder. A browser without fonts crashes. */
function fontsOf(folder: string): string {
  return `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>${join(folder, 'fonts')}</dir><cachedir>${join(folder, 'fonts-cache')}</cachedir></fontconfig>\n`;
}

async function withTemporaryFolder<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const before = process.env.TMPDIR;
  process.env.TMPDIR = folder;
  try {
    return await work();
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
}
