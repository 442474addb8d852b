import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { openMetrics } from '../../src/observe/metrics.ts';
import { DELIVERY_OUTCOMES } from '../../src/receive/record.ts';
import { startTestApp, testFolder } from '../support/app.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { freePort } from '../support/network.ts';
import { SHARED, SOURCES } from '../support/observe.ts';
import { spawnSandbox, spawnSettled } from '../support/process.ts';
import { deliverAndSee } from './client.ts';

const document = (name: string) => readFileSync(fileURLToPath(new URL(`../../docs/${name}`, import.meta.url)), 'utf8');

describe('docs/api.md', () => {
  const text = document('api.md');

  it('shows commands that do what it says when they are pasted one after the other', async ({ skip }) => {
    const missing = ['bash', 'curl'].filter((tool) => spawnSync(tool, ['version']).error !== undefined);
    skip(missing.length > 0, `not installed: ${missing.join(', ')}`);
    const store = `${testFolder()}/data/settled.db`;
    const sandbox = spawnSandbox(['--api-key', 'try-it', '--listen', '127.0.0.1:0', '--json']);
    const { url } = JSON.parse(await sandbox.line(/"url"/));
    const hooks = `127.0.0.1:${await freePort()}`;
    const served = spawnSettled(['serve'], {
      SETTLED_STORE: `sqlite:${store}`,
      SETTLED_HOOKS_LISTEN: hooks,
      SETTLED_PUBLIC_URL: `http://${hooks}`,
      SETTLED_OPERATOR_LISTEN: '127.0.0.1:0',
      SETTLED_API_URL: url,
      SETTLED_API_KEY: 'try-it',
    });
    const { operator } = JSON.parse(await served.line(/settled is serving/));
    // The first block starts what runs here already.
    const [, ...blocks] = [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block as string);
    const script = blocks
      .join("printf '\\n--\\n'\n")
      .replace('http://127.0.0.1:8788', `http://127.0.0.1:${operator.port}`)
      .replace('http://127.0.0.1:8790', url)
      .replace('npm run -s sandbox --', `'${process.execPath}' bin/settled.mjs sandbox`)
      .replace('data/settled.db', store)
      .replaceAll('curl -s ', "curl -s -w ' status=%{http_code}\\n' ");
    const output = execFileSync('bash', ['-euc', script], { encoding: 'utf8' });
    const statuses = output
      .split('\n--\n')
      .map((said) => said.match(/ status=\d{3}$/gm)?.map((status) => Number(status.slice(-3))));
    expect(statuses).toEqual([
      undefined,
      [201],
      [201],
      [200],
      [201],
      [200],
      ...Array(5).fill([200]),
      [200],
      [200],
      [409],
      [200],
      [201, 200, 200],
      [200],
      [200],
      [202],
      ...Array(3).fill([200]),
      [404],
      ...Array(6).fill([200]),
      [409],
      [200],
      [200],
      [201],
      [200],
      [200],
      [409],
      [200],
      [200],
      [200],
      [201],
      [200],
      [200],
      [404],
      [201],
      [200],
      [200],
      [200, 200, 200],
    ]);
    expect(output).toContain('"learnedBy":"person"');
    expect(output).toContain(String.raw`"bodyText":"{\"`);
  });
});

describe('docs/operations.md', () => {
  it('restores a backup by the commands that it shows', async ({ skip }) => {
    skip(spawnSync('bash', ['--version']).error !== undefined, 'bash is not installed');
    const folder = testFolder();
    const storePath = join(folder, 'data', 'settled.db');
    const before = await startTestApp({ storePath });
    const link = await before.reserve('order-1');
    expect((await before.api('/v1/admin/backup', { method: 'POST' })).status).toBe(201);
    await before.reserve('order-2');
    await before.app.stop();

    const block = /## Restore[\s\S]*?```sh\n([\s\S]*?)```/.exec(document('operations.md'))?.[1] as string;
    // The first backup may be none: done again, the steps keep the original, even within one second.
    const restoreAt = (time: string) =>
      spawnSync('bash', ['-euc', `date() { echo ${time}; }\n${block}`], { cwd: folder }).status;
    expect([restoreAt('1'), restoreAt('2'), restoreAt('2')]).toEqual([0, 0, 1]);

    const restored = await startTestApp({ storePath });
    expect((await restored.api('/v1/orders')).body.orders).toMatchObject([{ reference: 'order-1' }]);
    const moved = { ...link, webhookUrl: link.webhookUrl.replace(before.hooksUrl, restored.hooksUrl) };
    await deliverAndSee(restored, moved, paymentEvent({ linkId: 'pl_1', amount: '100.00' }), 'paid');
    const kept = (file: string) => readFileSync(join(folder, 'data', file));
    expect(kept('aside-1/settled.db').equals(kept('aside-2/settled.db'))).toBe(false);
  });

  it('speaks of metrics that there are', async () => {
    const shown = await shownMetrics();
    expect([...spokenIn('operations.md')].filter((name) => !shown.has(name))).toEqual([]);
  });
});

describe('docs/observability/metrics.md', () => {
  it('speaks of every metric, and of none that is not there', async () => {
    expect(spokenIn('observability/metrics.md')).toEqual(await shownMetrics());
  });
});

/** The metrics of a file and those of replicas, which no process shows together. */
async function shownMetrics(): Promise<Set<string>> {
  const metrics = openMetrics({ ...SOURCES, ...SHARED, deliveryOutcomes: DELIVERY_OUTCOMES });
  const { text } = await metrics.scrape();
  return new Set(text.match(/^# TYPE settled_\w+/gm)?.map((line) => line.slice('# TYPE '.length)));
}

function spokenIn(name: string): Set<string> {
  const names = document(name).match(/settled_[a-z_]+/g) ?? [];
  return new Set(names.map((metric) => metric.replace(/_(bucket|sum|count)$/, '')));
}
