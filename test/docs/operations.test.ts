import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { nextCheckAtMs } from '../../src/domain/watch.ts';
import { anchorsOf, targetsOf } from '../support/markdown.ts';

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const page = read('docs/operations.md');

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

describe('docs/operations.md', () => {
  it('has a place for every link within it', () => {
    const anchors = anchorsOf(page, /#+/);
    const targets = targetsOf(page);
    expect(targets.filter((target) => !anchors.includes(target))).toEqual([]);
  });

  it('counts the requests of the schedule as it is', () => {
    const told = (row: string) => page.split('\n').find((line) => line.startsWith(`| ${row}`));
    const paidAfter = [1, 9, 59, 359, 1_439].map((minutes) => looks(minutes * MINUTE_MS, 3));
    const [soonest, ...later] = paidAfter;
    expect(told('then, an order paid within 2 minutes')).toContain(`| ${soonest}: `);
    expect(told('paid within 10 minutes, an hour, 6 hours, a day')).toContain(`| ${later.join(', ')} |`);
    expect(told('never paid, with a link of 3 days')).toContain(`| ${looks(null, 3)}: `);
    const others = [15 / (24 * 60), 1, 7, 30].map((days) => looks(null, days));
    expect(told('never paid, with a link of 15 minutes')).toContain(`| ${others.join(', ')} |`);
    // Half of them never paid, the others within ten minutes.
    expect(told('half')).toContain(`| ${((later[0] ?? 0) + looks(null, 3)) / 2} |`);
  });
});

describe('compose.yaml', () => {
  it('publishes the public listener alone, and names settings that there are', () => {
    const compose = read('compose.yaml');
    const published = compose.match(/^ {6}- \S+:\d+$/gm)?.map((line) => line.trim());
    expect(published).toEqual(['- 127.0.0.1:8787:8787']);
    const names = [...`${compose}${read('.env.example')}`.matchAll(/^ *(SETTLED_\w+)[:=]/gm)];
    expect(names.length).toBeGreaterThan(10);
    // A name that is not known is refused whatever its value.
    expect(() => readConfig(Object.fromEntries(names.map(([, name]) => [name, ''])))).not.toThrow();
  });

  it('gives every setting of .env to the container, which has the name by which the page speaks of it', () => {
    const compose = read('compose.yaml');
    expect(compose).toMatch(/^ {4}env_file: \.env$/m);
    const [, name] = /^ {4}container_name: (\w+)$/m.exec(compose) ?? [];
    const named = [...page.matchAll(/docker (?:exec|stop) (\w+)/g)].map(([, container]) => container);
    expect(named.length).toBeGreaterThan(1);
    expect(new Set(named)).toEqual(new Set([name]));
  });

  it('asks for the health of the container as the image does', () => {
    const [, asked = ''] = /"(fetch\(.*)"$/m.exec(read('compose.yaml')) ?? [];
    expect(asked).not.toBe('');
    expect(read('Dockerfile')).toContain(asked);
  });
});

/** How often a link is asked about by schedule. */
function looks(paidAfterMs: number | null, expiresAfterDays: number): number {
  const expiresAtMs = expiresAfterDays * DAY_MS;
  let count = 0;
  for (let atMs = 0; ; count += 1) {
    const open = { createdAtMs: 0, expiresAtMs, settledAtMs: null, mayBePaid: atMs < expiresAtMs };
    const isPaid = (ms: number) => paidAfterMs !== null && paidAfterMs <= ms;
    let nextMs = nextCheckAtMs(isPaid(atMs) ? { ...open, settledAtMs: paidAfterMs } : open, atMs);
    if (nextMs !== null && paidAfterMs !== null && !isPaid(atMs) && isPaid(nextMs)) {
      nextMs = nextCheckAtMs({ ...open, settledAtMs: paidAfterMs }, paidAfterMs);
    }
    if (nextMs === null) return count;
    atMs = nextMs;
  }
}
