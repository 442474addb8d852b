import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { namedToken, signIn } from '../support/access.ts';
import { OPERATOR_TOKEN } from '../support/app.ts';
import { overflowOf, type Tab, useBrowser, violationsIn } from '../support/browser.ts';
import { freshReference } from '../support/shared.ts';
import { seededShop } from './seeded.ts';

const shop = seededShop();
const open = useBrowser();
/** A folder for pictures of what is tested; without it none are taken. */
const SHOTS = process.env.SETTLED_SHOTS;

const PAGES = [
  '/deliveries',
  '/deliveries/rejections',
  '/deliveries/stale',
  '/shop',
  '/service',
  '/service/readings',
  '/service/drift',
  '/audit',
  '/audit/verification',
  '/system',
  '/system/doctor',
  '/system/people',
];

async function signedIn(token: string, options: Parameters<typeof open>[0] = {}): Promise<Tab> {
  const tab = await open(options);
  const { apiUrl } = shop().settled;
  const { cookie } = await signIn({ apiUrl }, token);
  const [name = '', value = ''] = cookie.split('=', 2);
  await tab.context().addCookies([{ name, value, url: apiUrl }]);
  return tab;
}

describe.each([360, 768, 1280])('console: deliveries, shop, service, audit and system at %i px', (width) => {
  it.each(PAGES)('%s fits, has no fault that axe finds, and shows hostile texts as texts', async (path) => {
    const tab = await signedIn(OPERATOR_TOKEN, { width });
    await tab.goto(`${shop().settled.apiUrl}${path}`);
    for (const colorScheme of ['light', 'dark'] as const) {
      await tab.emulateMedia({ colorScheme });
      if (SHOTS !== undefined) {
        mkdirSync(SHOTS, { recursive: true });
        const name = path.slice(1).replaceAll('/', '-');
        await tab.screenshot({ path: join(SHOTS, `${name}-${width}-${colorScheme}.png`), fullPage: true });
      }
      expect(await overflowOf(tab)).toBe(0);
      expect(await violationsIn(tab)).toEqual([]);
    }
    expect(tab.wrongs).toEqual([]);
    expect(await tab.locator('main img, main script').count()).toBe(0);
  });
});
void [freshReference, namedToken];
