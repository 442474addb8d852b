import { describe, expect, it } from 'vitest';
import { useBrowser, violationsIn } from '../support/browser.ts';
import { DOCUMENT, DOCUMENTED, problemsOf, samplesOf } from '../support/document.ts';
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

/** The part of the page that is about one route. */
function sectionOf(text: string, id: string): string {
  return text.split(/(?=<section id=)/).find((part) => part.startsWith(`<section id="${id}"`)) ?? '';
}

function written(sample: object | string): string {
  return escaped(typeof sample === 'string' ? sample.trimEnd() : JSON.stringify(sample, null, 2));
}

function escaped(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? '');
}

describe('api: /docs', () => {
  it('has every route with its parameters, fields, statuses and problems, a call of it and its answers', async () => {
    const { text } = await page();
    for (const { path, operation } of DOCUMENTED) {
      const section = sectionOf(text, operation.operationId);
      const body = operation.requestBody?.content['application/json']?.schema.properties ?? {};
      const names = [...operation.parameters.map(({ name }) => name), ...Object.keys(body)];
      const wanted = [
        path,
        escaped(operation.summary),
        ...names.map((name) => `<code>${name}</code>`),
        ...Object.keys(operation.responses),
        ...problemsOf(operation).map(({ code }) => `#problem-${code}`),
        'curl -s',
        ...samplesOf(operation).map(written),
      ];
      expect([path, wanted.filter((part) => !section.includes(part))]).toEqual([path, []]);
    }
    for (const name of Object.keys(DOCUMENT.components.schemas)) {
      expect(sectionOf(text, `schema-${name}`)).toContain(name);
    }
  });

  it('has links that lead somewhere, and every id once', async () => {
    const { text } = await page();
    const ids = [...text.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const links = [...text.matchAll(/href="([^"]*)"/g)].map(([, to]) => to as string);
    expect(links.filter((to) => !(to.startsWith('#') ? ids.includes(to.slice(1)) : to === 'openapi.json'))).toEqual([]);
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

  it('folds its menu on a phone, where every place has a way back to it, and unfolds it on a desk', async () => {
    const tab = await open();
    await tab.goto(`${settled().apiUrl}/docs`);
    const shown = async (width: number) => {
      await tab.setViewportSize({ width, height: 800 });
      return tab.evaluate<Record<string, boolean>>(`(() => {
        const isSeen = (one) => one.checkVisibility({ contentVisibilityAuto: true });
        const links = [...document.querySelectorAll('nav a[href="#objects"]')];
        return {
          links: links.filter(isSeen).length,
          fold: isSeen(document.querySelector('nav summary')),
          up: isSeen(document.querySelector('a[href="#top"]')),
        };
      })()`);
    };
    expect(await shown(360)).toEqual({ links: 0, fold: true, up: true });
    expect(await shown(1_400)).toEqual({ links: 1, fold: false, up: false });
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
