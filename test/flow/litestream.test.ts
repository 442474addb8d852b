import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { MAIN } from '../../prove/harness/settled.ts';
import { environmentOf, say } from '../cli/settled.ts';
import { testFolder } from '../support/app.ts';
import {
  configureLitestream,
  LITESTREAM,
  NO_LITESTREAM,
  type Replicated,
  restoreFromLitestream,
  startLitestream,
} from '../support/litestream.ts';
import { MINUTE_MS } from '../support/sandbox.ts';
import {
  expectPaid,
  openLink,
  passUntil,
  payLink,
  type Shop,
  startSettled,
  startShop,
  stopSettled,
} from '../support/shop.ts';

const OPERATIONS = fileURLToPath(new URL('../../docs/operations.md', import.meta.url));
const DOCUMENTED_FOLDER = '/var/lib/settled';

/** Litestream with the configuration of docs/operations.md, and a folder in place of the object store. */
function replicate(folder: string, db: string) {
  const replicated = configureLitestream(folder, { db, replica: join(folder, 'replica') });
  const { child, ended, output } = startLitestream(replicated);
  const kill = () => child.kill('SIGKILL');
  onTestFinished(() => void kill());
  const killed = async () => {
    kill();
    await ended;
  };
  return { replicated, killed, output };
}

/** Polls the replica until its restored orders with a link are these: an order is there before its link is opened. */
async function expectReplicated(replicated: Replicated, db: string, orders: Record<string, string>): Promise<void> {
  const to = join(testFolder(), 'look.db');
  const look = async () => {
    rmSync(to, { force: true });
    // There may be no snapshot yet.
    const isThere = await restoreFromLitestream(replicated, db, to).then(
      () => true,
      () => false,
    );
    if (!isThere) return null;
    const restored = new Database(to, { readonly: true });
    const rows = restored
      .prepare(
        'SELECT DISTINCT reference, state FROM orders o JOIN link l ON l.order_key = o.key WHERE link_id IS NOT NULL',
      )
      .raw()
      .all() as [string, string][];
    restored.close();
    return Object.fromEntries(rows);
  };
  await expect.poll(look, { interval: 100 }).toEqual(orders);
}

/** Runs the commands that docs/operations.md shows, on this store, with programs of these names. */
function restoreAsDocumented({ storePath }: Shop['settled'], { config }: Replicated): void {
  const folder = dirname(storePath);
  const programs = testFolder();
  const program = (name: string, command: string) => {
    writeFileSync(join(programs, name), `#!/bin/sh\nexec ${command} "$@"\n`);
    chmodSync(join(programs, name), 0o755);
  };
  program('litestream', `'${LITESTREAM}'`);
  program('settled', `'${process.execPath}' '${MAIN}'`);
  const [, shown = ''] =
    /### Restore from Litestream[\s\S]*?```sh\n([\s\S]*?)```/.exec(readFileSync(OPERATIONS, 'utf8')) ?? [];
  expect(shown.split(DOCUMENTED_FOLDER).length).toBeGreaterThan(3);
  const script = shown.replaceAll(DOCUMENTED_FOLDER, folder).replaceAll('/etc/litestream.yml', config);
  execFileSync('bash', ['-euc', script], { env: { PATH: `${programs}:${process.env.PATH}` }, stdio: 'pipe' });
}

async function unknownLinks({ settled }: Shop): Promise<string[]> {
  const { attention } = (await settled.api('/v1/attention?kind=link_not_known')).body;
  return attention.map(({ subject }: { subject: string }) => subject);
}

describe('Litestream', () => {
  it('replicates a settled that serves; what a restore lacks is asked for, or shown to a person', async ({ skip }) => {
    if (NO_LITESTREAM !== null) {
      console.log(`skipped: ${NO_LITESTREAM}`);
      skip(NO_LITESTREAM);
    }
    const folder = testFolder();
    const data = join(folder, 'data');
    mkdirSync(data, { mode: 0o700 });
    const shop = await startShop({ threads: true, storePath: join(data, 'settled.db') });
    const { settled, sandbox } = shop;
    const { storePath } = settled;
    const { replicated, killed } = replicate(folder, storePath);
    await payLink(shop, await openLink(shop, 'order-1'));
    await expectPaid(shop, 'order-1');
    const later = await openLink(shop, 'order-2');
    await expectReplicated(replicated, storePath, { 'order-1': 'paid', 'order-2': 'awaiting_payment' });
    await killed();

    // What only the lost machine knows.
    await payLink(shop, later);
    await expectPaid(shop, 'order-2');
    const lost = await openLink(shop, 'order-3');
    const { cursor } = (await settled.api('/v1/feed')).body;

    const copy = join(folder, 'drill.db');
    await restoreFromLitestream(replicated, storePath, copy);
    const drilled = await say(['drill', copy], environmentOf(settled));
    expect(drilled.data).toMatchObject({ fit: true, lost: { orders: 1, paid: 1 } });

    await stopSettled(shop);
    restoreAsDocumented(settled, replicated);
    expect(readdirSync(data).filter((name) => name.startsWith('.'))).toEqual([]);
    const environment = { SETTLED_API_URL: sandbox.url, SETTLED_API_KEY: sandbox.apiKey };
    const restored = { sandbox, settled: await startSettled(sandbox, environment, { storePath, threads: true }) };
    onTestFinished(() => stopSettled(restored));
    expect((await restored.settled.api(`/v1/feed?after=${cursor}`)).status).toBe(410);
    await expectPaid(restored, 'order-1');
    const isPaid = async () => (await restored.settled.order('order-2')).state === 'paid';
    await passUntil(restored, isPaid, { withinMs: MINUTE_MS });
    await expectPaid(restored, 'order-2', { learnedBy: 'reconciliation' });
    await passUntil(restored, async () => (await unknownLinks(restored)).length > 0, { withinMs: MINUTE_MS });
    expect(await unknownLinks(restored)).toEqual([lost.id]);
  });
});
