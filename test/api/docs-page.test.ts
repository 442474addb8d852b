import { describe, expect, it } from 'vitest';
import { useBrowser, violationsIn } from '../support/browser.ts';
import { DOCUMENTED } from '../support/document.ts';
import { sharedApp } from '../support/shared.ts';

const settled = sharedApp();
const open = useBrowser();

type Seen = { overflow: number; cut: number; paper: string; ink: string };
const LOOK = `(() => {
  for (const one of document.querySelectorAll('details')) one.open = true;
  const { scrollWidth, clientWidth } = document.documentElement;
  const { backgroundColor, color } = getComputedStyle(document.body);
  const isCut = (one) => one.scrollWidth > one.clientWidth;
  const cut = [...document.querySelectorAll('pre')].filter(isCut).length;
  return { overflow: scrollWidth - clientWidth, cut, paper: backgroundColor, ink: color };
})()`;

async function page(): Promise<{ text: string; headers: Headers }> {
  const response = await fetch(`${settled().apiUrl}/docs`);
  expect(response.status).toBe(200);
  return { text: await response.text(), headers: response.headers };
}

describe('api: /docs', () => {
  it('has every route with who may use it, and its links lead somewhere', async () => {
    const { text } = await page();
    for (const { method, path, operation } of DOCUMENTED) {
      const [, section = ''] = text.split(`<section class="card" id="${operation.operationId}">`);
      const who = operation.security.flatMap((one) => Object.keys(one)).join(', ');
      const wanted = [`${method.toUpperCase()} ${path}`, `Role: ${who}`, 'curl -s'];
      const missing = wanted.filter((part) => !section.split('</section>')[0]?.includes(part));
      expect([path, missing]).toEqual([path, who === '' ? ['Role: '] : []]);
    }
    const links = [...text.matchAll(/href="([^"]*)"/g)].map(([, to]) => to);
    expect(links).toEqual(['openapi.json']);
  });

  it('runs nothing and loads nothing', async () => {
    const { text, headers } = await page();
    expect(text).not.toMatch(/<script|<link|<img|<iframe|\son\w+=|\sstyle=|javascript:/i);
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-[\w+/]{43}='; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
    );
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
  });

  it('is readable on a phone, on a desk and in the dark', async () => {
    const tab = await open();
    await tab.goto(`${settled().apiUrl}/docs`);
    expect(await violationsIn(tab)).toEqual([]);
    const papers = new Set<string>();
    for (const [width, colorScheme] of [
      [360, 'light'],
      [1_280, 'dark'],
    ] as const) {
      await tab.setViewportSize({ width, height: 800 });
      await tab.emulateMedia({ colorScheme });
      const seen = await tab.evaluate<Seen>(LOOK);
      expect([seen.overflow, seen.cut]).toEqual([0, 0]);
      expect(seen.paper).not.toBe(seen.ink);
      papers.add(seen.paper);
    }
    expect(papers.size).toBe(2);
    expect(tab.wrongs).toEqual([]);
  });
});
