import { describe, expect, it } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { OPERATOR_TOKEN } from '../support/app.ts';
import { useBrowser } from '../support/browser.ts';
import { DOCUMENT } from '../support/document.ts';
import { sharedApp } from '../support/shared.ts';
import { heldOrder } from './client.ts';

const settled = sharedApp();
const open = useBrowser();

async function page(): Promise<{ text: string; headers: Headers }> {
  const response = await fetch(`${settled().apiUrl}/`);
  expect(response.status).toBe(200);
  return { text: await response.text(), headers: response.headers };
}

describe('api: the page of /', () => {
  it('names the version and what is there, with links that a program could follow', async () => {
    const { text } = await page();
    expect(text).toContain(`Version ${DOCUMENT.info.version}.`);
    const links = [...text.matchAll(/href="([^"]*)"/g)].map(([, to]) => to as string);
    expect(links).toEqual(['docs', 'openapi.json', 'livez', 'readyz', 'metrics']);
    const authorization = `Bearer ${OPERATOR_TOKEN}`;
    for (const to of links) {
      const answer = await fetch(new URL(to, `${settled().apiUrl}/`), { headers: { authorization } });
      expect([to, answer.status]).toEqual([to, 200]);
    }
  });

  it('names commands that there are', async () => {
    const { text } = await page();
    const known = COMMANDS.map(({ name }) => name);
    const named = [...text.matchAll(/<dt><code>settled ([^<]*)<\/code>/g)].map(([, words]) => words as string);
    expect(named).toContain('attention');
    expect(named.filter((words) => !known.some((name) => `${words} `.startsWith(`${name} `)))).toEqual([]);
  });

  it('says nothing of the orders and the settings of this settled', async () => {
    const { text: before } = await page();
    await heldOrder(settled());
    const { text: after } = await page();
    expect(after).toBe(before);
    for (const secret of [settled().storePath, settled().hooksUrl, OPERATOR_TOKEN]) {
      expect(after).not.toContain(secret);
    }
  });

  it('runs nothing and loads nothing', async () => {
    const { text, headers } = await page();
    expect(text).not.toMatch(/<script|<link|<img|<iframe|\son\w+=|\sstyle=|javascript:/i);
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  });

  it.each([
    [360, 'light'],
    [1_280, 'dark'],
  ] as const)('fits %i px, %s', async (width, colorScheme) => {
    const tab = await open({ width });
    await tab.emulateMedia({ colorScheme });
    await tab.goto(`${settled().apiUrl}/`);
    const overflow = `document.documentElement.scrollWidth - document.documentElement.clientWidth`;
    expect(await tab.evaluate(overflow)).toBe(0);
    expect(tab.wrongs).toEqual([]);
  });
});
