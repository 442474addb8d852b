import { beforeAll, describe, expect, it } from 'vitest';
import type { GroupDocument } from '../../src/api/attention.ts';
import { enter, namedToken } from '../support/access.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { useBrowser } from '../support/browser.ts';
import { seedEveryMatter } from '../support/matters.ts';
import { samples } from '../support/observe.ts';
import { look } from '../support/rows.ts';
import { sharedApp } from '../support/shared.ts';
import { see } from './reading.ts';

const settled = sharedApp();
const open = useBrowser();
let seeded: { matters: number };
beforeAll(async () => {
  seeded = await seedEveryMatter(settled(), Date.now());
});

/** The rows of the queue as a person reads them. */
const ROWS = `[...document.querySelectorAll('#queue tbody tr')].map((row) => {
  const box = row.getBoundingClientRect();
  return { id: row.id, cells: [...row.children].map((cell) => cell.innerText), href: row.querySelector('a').getAttribute('href'), bottom: box.bottom, right: box.right };
})`;
type Row = { id: string; cells: string[]; href: string; bottom: number; right: number };

const groupsOf = async ({ api }: TestApp): Promise<GroupDocument[]> => (await api('/v1/attention')).body.groups;

describe('console: the overview', () => {
  it('names every kind and every hold on the first screen, with its sum, its count and its age', async () => {
    const tab = await open({ width: 1280, height: 800 });
    await enter(tab, settled(), '/');
    const rows = await tab.evaluate<Row[]>(ROWS);
    const groups = await groupsOf(settled());
    expect(rows).toHaveLength(seeded.matters);
    expect(rows.map(({ id }) => id).toSorted()).toEqual(
      groups.map(({ kind, reason }) => `row-${kind}-${reason ?? 'any'}`).toSorted(),
    );
    const meanings = await tab.locator('#meanings').textContent();
    for (const { meaning } of groups) expect(meanings).toContain(meaning);
    for (const { bottom, right } of rows) {
      expect(bottom).toBeLessThan(800);
      expect(right).toBeLessThanOrEqual(1280);
    }
    await tab.setViewportSize({ width: 360, height: 800 });
    const flow = `[...document.querySelectorAll('#flow td')].map((cell) => [cell.dataset.head, cell.getBoundingClientRect().right])`;
    const cells = await tab.evaluate<[string, number][]>(flow);
    expect(cells.map(([head]) => head)).toContain('Dead');
    for (const [, right] of cells) expect(right).toBeLessThanOrEqual(360);
    for (const { kind, reason, sums, count } of groups) {
      const row = rows.find(({ id }) => id === `row-${kind}-${reason ?? 'any'}`);
      const [name, ...cells] = row?.cells ?? [];
      const [sum] = sums;
      expect(name).toBe(`${kind}${reason === null ? '' : `: ${reason}`}`.replaceAll('_', ' '));
      if (sum !== undefined) expect(cells).toContain(`R$${sum.balance}`);
      expect(cells).toContain(String(count));
      expect(cells.at(-1)).toMatch(/^\d+ (min|s)( \d+ s)?$/);
    }
  });

  it('leads from each row to a list that has as many', async () => {
    for (const { kind, reason, count } of await groupsOf(settled())) {
      const of = reason === null ? `kind=${kind}` : `kind=${kind}&reason=${reason}`;
      const { markup, text } = await see(settled(), `/attention?${of}`);
      expect(markup.match(/<tr id="row-/g)).toHaveLength(count);
      expect(text).toContain(`${count} matter needs attention`);
    }
  });

  it('says what attention, doctor, metrics and the store say', async () => {
    const { summary, groups } = (await settled().api('/v1/attention')).body;
    const { text } = await see(settled(), '/');
    const amount = summary.money.sums[0].balance;
    expect(withoutTimes(text)).toContain(withoutTimes(summary.sentence.replace(`${amount} BRL`, `R$${amount}`)));
    const { checks } = (await settled().api('/v1/admin/doctor?probe=false')).body;
    const needs = checks.find(({ name }: { name: string }) => name === 'needs a person');
    expect(withoutTimes(needs.detail)).toContain(withoutTimes(summary.sentence));
    const [stored] = await look(
      settled(),
      `SELECT sum(amount_minor) AS minor FROM ledger WHERE order_key IN (SELECT order_key FROM hold WHERE ended_at_ms IS NULL
       UNION SELECT order_key FROM attention WHERE ended_at_ms IS NULL AND kind IN ('refund_due', 'duplicate_payment',
       'service_disagrees', 'amount_mismatch', 'status_unclear', 'money_unnamed'))`,
    );
    expect((Number(stored.minor) / 100).toFixed(2)).toBe(amount);
    const metrics = samples((await settled().api('/metrics')).body);
    const counted = Object.entries(metrics).filter(([name]) => name.startsWith('settled_needs_person{'));
    const total = (groups as GroupDocument[]).reduce((sum, { count }) => sum + count, 0);
    expect(counted.reduce((sum, [, value]) => sum + value, 0)).toBe(total);
  });

  it('is for a viewer too, in the money of the reader', async () => {
    const token = await namedToken(settled(), 'viewer');
    const { text } = await see(settled(), '/', { token, language: 'pt-BR' });
    expect(text).toMatch(/Money: \d+ orders with a balance of R\$\s\d+,\d\d\./);
  });

  it('says that nothing waits only if nothing does, and what cannot be known', async () => {
    const app = await startTestApp({ engine: 'sqlite' });
    const { text } = await see(app, '/');
    expect(text).toContain('Nothing needs attention.');
    expect(text).toContain('service: no API is configured');
    expect(text).not.toMatch(/Orders(?! paid)/);
    expect((await see(settled(), '/')).text).not.toContain('Nothing needs attention');
  });
});

function withoutTimes(text: string): string {
  return text.replace(/the oldest has waited [^.]+?\./, 'WAITED');
}
