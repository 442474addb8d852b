import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { call } from '../demo/clients.ts';
import { type Demo, startDemo } from '../demo/demo.ts';
import { openFolder } from '../demo/folder.ts';
import { openProcesses } from '../demo/processes.ts';
import { playStory } from '../demo/story.ts';
import { launchChromium } from '../test/support/chromium.ts';
import { readOptions, say, some, text } from './harness/proof.ts';
import { ROOT } from './harness/settled.ts';
import { until } from './harness/wait.ts';

/**
 * `npm run screenshots`: plays the demo's story, then takes a picture of each of these pages into docs/screenshots.
 */

const HELD_WITHIN_MS = 10_000;
const SIZE = { width: 1_160, height: 760 };

type Shot = {
  name: string;
  at: 'operator' | 'shop';
  path: string;
  /** A link to follow from there. */
  follow?: string;
  colorScheme?: 'dark';
  /** Of the screen, for a phone. */
  width?: number;
  /** Whether it is taken of somebody who has not signed in. */
  isSignedOut?: true;
};

const SHOTS: readonly Shot[] = [
  { name: 'sign-in', at: 'operator', path: '/sign-in', isSignedOut: true },
  { name: 'overview', at: 'operator', path: '/' },
  { name: 'overview-dark', at: 'operator', path: '/', colorScheme: 'dark' },
  { name: 'overview-phone', at: 'operator', path: '/', width: 390 },
  { name: 'orders', at: 'operator', path: '/orders' },
  { name: 'order', at: 'operator', path: '/orders/order-1042' },
  { name: 'attention', at: 'operator', path: '/attention' },
  { name: 'deliveries', at: 'operator', path: '/deliveries' },
  { name: 'shop', at: 'operator', path: '/shop' },
  { name: 'service', at: 'operator', path: '/service' },
  { name: 'audit', at: 'operator', path: '/audit' },
  { name: 'system', at: 'operator', path: '/system' },
  { name: 'demo-shop', at: 'shop', path: '/' },
];

const { only, into } = readOptions('screenshots', {
  only: some(
    'NAME',
    'take only this picture (may be repeated)',
    SHOTS.map(({ name }) => name),
  ),
  into: text('FOLDER', 'another folder than docs/screenshots', join(ROOT, 'docs/screenshots')),
});
process.exitCode = (await takeAll(SHOTS.filter(({ name }) => only.includes(name)))) ? 0 : 1;
// The demo's processes have ended; what is left of their pipes need not be waited for.
process.exit();

/** Returns whether every page was there. */
async function takeAll(shots: readonly Shot[]): Promise<boolean> {
  const folder = openFolder(null);
  const processes = openProcesses(folder);
  const browser = await launchChromium();
  let demo: Demo | null = null;
  try {
    demo = await startDemo(folder, processes);
    await playStory(demo, () => {});
    await holdMoney(demo);
    mkdirSync(into, { recursive: true });
    const context = await browser.newContext({ viewport: SIZE, reducedMotion: 'reduce' });
    const token = readFileSync(`${demo.storePath}.operator-token`, 'utf8').trim();
    await signIn(await context.newPage(), demo.addresses.operator, token);
    const stranger = await browser.newContext({ viewport: SIZE });
    let missing = 0;
    for (const shot of shots) {
      const page = await (shot.isSignedOut === true ? stranger : context).newPage();
      if (!(await take(page, demo, shot))) missing++;
      await page.close();
    }
    return missing === 0;
  } finally {
    demo?.close();
    await browser.close();
    await processes.stop();
    folder.close();
  }
}

/** What a person has to look at: customers who paid less than their orders ask. */
async function holdMoney({ addresses, settled, sandbox }: Demo): Promise<void> {
  const customers = [
    { reference: 'order-1042', title: 'A desk', amount: '150.00', name: 'Ana Souza', email: 'ana@example.com' },
    { reference: 'order-1043', title: 'Two chairs', amount: '320.00', name: 'Rui Lima', email: 'rui@example.com' },
  ];
  for (const { reference, title, amount, ...customer } of customers) {
    const { link } = await settled.asShop.openOrder({ reference, title, amount });
    const pay = `${addresses.sandbox}/_control/links/${link?.id}/pay`;
    const { status } = await call(pay, { body: { money: 'less', customer } });
    if (status >= 300) throw new Error(`the sandbox answered ${status} to ${pay}`);
    await sandbox.idle();
    const isHeld = async () => (await settled.asShop.findOrder(reference))?.state === 'held';
    await until(`holding ${reference}`, HELD_WITHIN_MS, isHeld, 100);
  }
}

async function signIn(page: Page, url: string, token: string): Promise<void> {
  await page.goto(`${url}/sign-in`);
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
  await page.close();
}

async function take(page: Page, { addresses }: Demo, shot: Shot): Promise<boolean> {
  const { name, at, path, follow, colorScheme = 'light', width = SIZE.width } = shot;
  await page.setViewportSize({ ...SIZE, width });
  await page.emulateMedia({ colorScheme });
  const answer = await page.goto(`${addresses[at]}${path}`);
  const isThere = answer?.ok() === true && (follow === undefined || (await page.locator(follow).count()) > 0);
  if (isThere && follow !== undefined) {
    await page.locator(follow).first().click();
    await page.waitForLoadState();
  }
  // What the script adds is in the picture: the page is live.
  if (isThere && at === 'operator' && shot.isSignedOut !== true) {
    await page.locator('#live-state').filter({ hasText: 'live' }).waitFor();
  }
  if (isThere) await page.screenshot({ path: join(into, `${name}.png`) });
  say(`${isThere ? 'taken' : 'not there'}: ${name} (${path})`);
  return isThere;
}
