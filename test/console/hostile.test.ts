import { describe, expect, it } from 'vitest';
import { foreignTo, PAYLOADS } from '../sandbox/page-payloads.ts';
import { enter } from '../support/access.ts';
import { type Tab, useBrowser } from '../support/browser.ts';
import { times } from '../support/timing.ts';
import { hostileShop, isPlain, textIn } from './hostile_shop.ts';

/**
 * Each hostile text in each field that a stranger can fill, on each page that shows the field: it is text, and nothing else.
 * The lists show all of them; of the pages of one thing, and of addresses, the test command looks at a few.
 */

const settled = hostileShop();
const open = useBrowser();

const ALL = [...PAYLOADS.keys()];
const SOME = ALL.slice(0, times(1, ALL.length));

/** What a list shows of every payload. */
const LISTS: Readonly<Record<string, readonly string[]>> = {
  '/attention?kind=hold': ['reference'],
  '/orders?limit=200': ['reference', 'title', 'customer'],
  '/deliveries?status=done&limit=200': ['reference', 'event', 'odd', 'type'],
  '/deliveries/rejections?limit=200': ['reference'],
  '/shop?limit=200': ['reference', 'answer'],
  '/audit?limit=200': ['reference', 'bulk', 'user', 'reason'],
};

/** The filters of each page, and one that it does not have. */
const FILTERS: Readonly<Record<string, readonly string[]>> = {
  '/orders': ['q', 'state', 'flag', 'attention', 'hold', 'amountFrom', 'amountTo', 'since', 'until', 'cursor', 'limit'],
  '/attention': ['kind', 'reason', 'state', 'cursor'],
  '/deliveries': ['status', 'outcome', 'type', 'reference', 'since', 'until', 'cursor'],
  '/deliveries/rejections': ['reason', 'reference', 'since'],
  '/deliveries/stale': ['reference', 'cursor'],
  '/shop': ['status', 'type', 'reference', 'since', 'until'],
  '/service/readings': ['status', 'reference', 'since'],
  '/service/drift': ['reference', 'cursor'],
  '/audit': ['actor', 'subject', 'since', 'until', 'action'],
  '/audit/verification': ['head'],
  '/bulk': ['cursor', 'surprise'],
  '/system': ['done', 'surprise'],
};

/** A header cannot have other characters, and of a customer settled keeps no name that turns the text around it. */
const isKept = (field: string, n: number) => !['customer', 'user', 'reason'].includes(field) || isPlain(n);

/** Parsers and fields change these. */
const bare = (text: string) => text.replace(/[\p{Cc}\p{Zl}\p{Zp}\s\ufffd]/gu, '');

/** The console's own. */
let script = '';

/** All that a page shows as text, and what its fields hold. */
const SHOWN = `[document.body.textContent, ...[...document.querySelectorAll('input, textarea, select')].map(({ value }) => value)].join('|')`;

/** Opens a page, expects nothing of a payload but text, and returns that. */
async function look(tab: Tab, path: string): Promise<string> {
  await tab.goto(settled().apiUrl + path);
  return lookAround(tab, path);
}

async function lookAround(tab: Tab, path: string): Promise<string> {
  expect(await tab.evaluate(foreignTo(script)), path).toEqual([]);
  expect(tab.wrongs, path).toEqual([]);
  return bare(await tab.evaluate<string>(SHOWN));
}

function expectTexts(shown: string, fields: readonly string[], numbers: readonly number[]): void {
  const missing = fields.flatMap((field) => {
    const kept = numbers.filter((n) => isKept(field, n)).map((n) => textIn(field, n));
    // Metadata and bodies are JSON.
    return kept.filter((text) => ![text, JSON.stringify(text).slice(1, -1)].some((one) => shown.includes(bare(one))));
  });
  expect(missing).toEqual([]);
}

async function signedIn(): Promise<Tab> {
  const tab = await open();
  await enter(tab, settled(), '/system');
  script = await tab.evaluate(`document.querySelector('script').getAttribute('src')`);
  return tab;
}

const submitUnlimited = (text: string) => `(area => {
  area.removeAttribute('maxlength');
  area.value = ${JSON.stringify(text)};
  area.form.querySelector('button').click();
})(document.querySelector('#reject textarea'))`;

describe('console: what a stranger wrote', () => {
  it('is text in every list', async () => {
    const tab = await signedIn();
    for (const [path, fields] of Object.entries(LISTS)) {
      let shown = '';
      for (let next: string | null = path; next !== null; ) {
        shown += await look(tab, next);
        next = await tab.evaluate(`document.querySelector('a[rel=next]')?.getAttribute('href') ?? null`);
      }
      expectTexts(shown, fields, ALL);
    }
    for (const path of ['/', '/attention', '/service', '/bulk', '/bulk/1', '/system/people']) await look(tab, path);
  });

  it('is text on the pages of an order, of its events and of its notices', async () => {
    const tab = await signedIn();
    for (const n of SOME) {
      const reference = encodeURIComponent(textIn('reference', n));
      const fields = ['reference', 'event', 'payment', 'customer', 'odd', 'type', 'title', 'metadata', 'answer'];
      expectTexts(await look(tab, `/orders/${reference}`), fields, [n]);
      const { events } = (await settled().api(`/v1/events?reference=${reference}`)).body;
      for (const { id } of events) expectTexts(await look(tab, `/events/${id}`), ['reference'], [n]);
      const { notices } = (await settled().api(`/v1/notices?reference=${reference}`)).body;
      for (const { id } of notices) expectTexts(await look(tab, `/notices/${id}`), ['reference', 'answer'], [n]);
    }
  });

  it('is text in every filter, and where nothing is found', async () => {
    const tab = await signedIn();
    const typed = (from: number, at: number) => PAYLOADS[(from + at) % PAYLOADS.length] as string;
    for (const [page, [path, names]] of Object.entries(FILTERS).entries()) {
      for (const n of SOME) {
        const from = n + page * 7;
        const query = new URLSearchParams(Object.fromEntries(names.map((name, at) => [name, typed(from, at)])));
        await look(tab, `${path}?${query}`);
        for (const [at, name] of names.entries()) {
          const field = tab.locator(`main [name="${name}"]`).first();
          if ((await field.count()) === 0 || (await field.getAttribute('type')) === 'hidden') continue;
          expect(bare(await field.inputValue()), `${path} ${name}`).toBe(bare(typed(from, at)));
        }
      }
    }
    for (const n of SOME) {
      const said = encodeURIComponent(PAYLOADS[n] as string);
      const shown = await look(tab, `/orders/${said}`);
      // A reference with a control character is refused unread.
      if (!/\p{Cc}/u.test(PAYLOADS[n] as string)) expect(shown).toContain(bare(PAYLOADS[n] as string));
      await look(tab, `/events/${said}`);
      await look(tab, `/nowhere/${said}`);
    }
  });

  it('is text in a form that is shown again', async () => {
    const tab = await signedIn();
    for (const n of SOME) {
      const payload = PAYLOADS[n] as string;
      await look(tab, '/system/people');
      await tab.locator('#new-token summary').click();
      await tab.fill('#token-name', payload);
      await tab.getByRole('button', { name: 'Create the token' }).click();
      await tab.locator('main > .problem').waitFor();
      await lookAround(tab, 'a token');
      expect(bare(await tab.inputValue('#token-name'))).toBe(bare(payload));
      await look(tab, `/orders/${encodeURIComponent(textIn('reference', n))}`);
      await tab.locator('#reject summary').click();
      // In one go: a refresh of the page between them would limit the text again, and the order would be rejected.
      await tab.evaluate(submitUnlimited(payload.padEnd(501, '.')));
      await tab.locator('main > .problem').waitFor();
      expect(await lookAround(tab, 'a reason')).toContain(bare(payload));
    }
  });
});
