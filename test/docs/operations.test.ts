import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { nextCheckAtMs } from '../../src/domain/check_schedule.ts';

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const page = read('docs/operations.md');

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

describe('docs/operations.md', () => {
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

describe('docs/postgres.md', () => {
  const postgres = read('docs/postgres.md');

  it('says the limits and times of the source', () => {
    const store = read('src/store/postgres/store.ts');
    const [, intake, work] = /CONNECTIONS = \{ intake: (\d+), work: (\d+) \}/.exec(store) ?? [];
    expect(postgres).toContain(`${Number(intake) + Number(work)}: ${intake} for deliveries`);
    const [, times = ''] = /TIMEOUTS = \{(.*)\}/.exec(read('src/store/postgres/connection.ts')) ?? [];
    const seconds = [...times.matchAll(/: ([\d_]+)/g)].map(([, ms = '']) => Number(ms.replace('_', '')) / 1000);
    const told = [...sectionOf(postgres, 'Timeouts').matchAll(/^\| .* \| (\d+) s \| .* \|$/gm)];
    expect(told.map(([, second]) => Number(second))).toEqual([...seconds, 10]);
    const forRole = [...postgres.matchAll(/^ALTER ROLE settled SET (\w+) = '(\d+)s';$/gm)];
    expect(Object.fromEntries(forRole.map(([, name, second]) => [name, Number(second)]))).toEqual({
      lock_timeout: seconds[1],
      statement_timeout: seconds[2],
      idle_in_transaction_session_timeout: seconds[4],
    });
  });

  it('gives no command an address, which may hold the password', () => {
    const commands = [...postgres.matchAll(/\bpg_(?:dump|restore)\b(?:[^\n]*\\\n)*[^\n]*/g)].map(([line]) => line);
    expect(commands.length).toBeGreaterThan(3);
    expect(commands.filter((command) => /\$\(cat|:\/\//.test(command))).toEqual([]);
  });

  it('gives the service of systemd what a replica needs, and takes back the file that it names', () => {
    const [block = ''] = /```sh\nSETTLED_STORE=\n[\s\S]*?```/.exec(postgres) ?? [];
    const given = [...block.matchAll(/^(SETTLED_\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]);
    const credential = '/run/credentials/settled.service/secret_';
    expect(given.slice(0, 4)).toEqual([
      ['SETTLED_STORE', ''],
      ['SETTLED_STORE_FILE', `${credential}store`],
      ['SETTLED_SECRETS_KEY_FILE', `${credential}secrets-key`],
      ['SETTLED_OPERATOR_TOKEN_FILE', `${credential}operator-token`],
    ]);
    expect(given.slice(4).map(([name]) => name)).toEqual(['SETTLED_HOOKS_LISTEN', 'SETTLED_OPERATOR_LISTEN']);
    expect(read('deploy/settled.service')).toMatch(/^Environment=SETTLED_STORE=sqlite:/m);
  });

  it('names settings that there are', () => {
    const names = [...postgres.matchAll(/SETTLED_\w+/g)].map(([name]) => name);
    expect(() => readConfig(Object.fromEntries(names.map((name) => [name, ''])))).not.toThrow();
  });
});

function sectionOf(text: string, title: string): string {
  return text.split(/^## /m).find((section) => section.startsWith(`${title}\n`)) ?? '';
}

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
