import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { environmentOf } from '../cli/settled.ts';
import { type TestApp, testFolder } from '../support/app.ts';
import { type CallbackShop, startCallback } from '../support/callback.ts';
import { runSettled } from '../support/process.ts';
import { peek } from '../support/rows.ts';
import { act, createLink, HOUR_MS, MINUTE_MS } from '../support/sandbox.ts';
import {
  check,
  expectPaid,
  openLink,
  pass,
  passUntil,
  payLink,
  requestsOf,
  type Shop,
  type ShopOptions,
  startSettled,
  startShop,
  stopSettled,
} from '../support/shop.ts';
import { eventually } from '../support/timing.ts';

const OPERATIONS = fileURLToPath(new URL('../../docs/operations.md', import.meta.url));

/** Of the service's list. */
const PAGE_SIZE = 20;

/** Runs the commands that docs/operations.md shows under Restore, where `data` is. */
function restoreAsDocumented(folder: string): void {
  const [, block = ''] = /## Restore[\s\S]*?```sh\n([\s\S]*?)```/.exec(readFileSync(OPERATIONS, 'utf8')) ?? [];
  execFileSync('bash', ['-euc', block], { cwd: folder });
}

/** Backs a shop up, lets `since` happen, and starts the backup in the place of the database that was lost. */
async function loseAndRestore(
  options: ShopOptions,
  { before, since }: { before: (shop: Shop) => Promise<void>; since: (shop: Shop) => Promise<void> },
): Promise<Shop> {
  const folder = testFolder();
  const storePath = join(folder, 'data', 'settled.db');
  const shop = await startShop({ storePath, ...options });
  await before(shop);
  expect((await shop.settled.api('/v1/admin/backup', { method: 'POST' })).status).toBe(201);
  await since(shop);
  await stopSettled(shop);
  for (const suffix of ['', '-wal', '-shm']) rmSync(storePath + suffix, { force: true });
  restoreAsDocumented(folder);
  const { sandbox } = shop;
  const known = { SETTLED_API_URL: sandbox.url, SETTLED_API_KEY: sandbox.apiKey };
  const environment = { ...(options.api === false ? {} : known), ...options.environment };
  const restored = { sandbox, settled: await startSettled(sandbox, environment, { storePath }) };
  onTestFinished(() => stopSettled(restored));
  return restored;
}

const nothing = async () => {};

type Matter = { id: string; kind: string; subject: string; detail: string };

async function mattersOf({ settled }: Shop): Promise<Matter[]> {
  const { attention } = (await settled.api('/v1/attention')).body;
  return (attention as Matter[]).filter(({ kind }) => kind === 'link_not_known');
}

/** The orders of a shop that takes a notice only if its version is above the one that it has. */
function keptOf({ notices }: CallbackShop): Record<string, string> {
  const kept = new Map<string, { state: string; version: number }>();
  for (const { body } of notices) {
    const { reference, state, version } = JSON.parse(body).data.order;
    if (version > (kept.get(reference)?.version ?? 0)) kept.set(reference, { state, version });
  }
  return Object.fromEntries([...kept].map(([reference, { state }]) => [reference, state]));
}

const restoredFrom = ({ settled }: Shop) =>
  peek(settled.storePath, 'SELECT restored_from_ms AS ms FROM instance')[0].ms;

/** Runs the commands of a matter's sentence, as a person pastes them. */
async function runAdvised(settled: TestApp, { detail }: Matter): Promise<void> {
  const [, commands = ''] = /: (settled links reserve .*? --id \S+)\. /.exec(detail) ?? [];
  for (const command of commands.split(' && ')) {
    const [, ...args] = command.split(' ');
    expect(await runSettled(args, environmentOf(settled))).toMatchObject({ code: 0, stderr: '' });
  }
}

describe('a restored backup', () => {
  it('refuses cursors from before, and finds the links that were opened after it', async () => {
    let cursor = '';
    let lost = { id: '' };
    let own = { id: '' };
    const shop = await loseAndRestore(
      {},
      {
        before: async (first) => {
          await createLink(first.sandbox, { externalReference: 'long before' });
          await pass(first, HOUR_MS, HOUR_MS);
          await payLink(first, await openLink(first, 'order-1'));
          await expectPaid(first, 'order-1');
          cursor = (await first.settled.api('/v1/feed')).body.cursor;
        },
        since: async (first) => {
          await pass(first, HOUR_MS, HOUR_MS);
          lost = await openLink(first, 'order-2');
          await payLink(first, lost);
          await expectPaid(first, 'order-2');
          own = await createLink(first.sandbox, { externalReference: "the shop's own" });
          for (let n = 0; n < PAGE_SIZE; n++) {
            await createLink(first.sandbox, { externalReference: `elsewhere-${n}` });
          }
        },
      },
    );
    const { settled } = shop;
    await expectPaid(shop, 'order-1');
    const gone = await settled.api(`/v1/feed?after=${cursor}`);
    expect([gone.status, gone.body.title]).toEqual([410, 'cursor_from_before_restore']);
    expect((await settled.api(`/v1/feed?after=${(await settled.api('/v1/feed')).body.cursor}`)).status).toBe(200);

    await passUntil(shop, async () => restoredFrom(shop) === null, { withinMs: MINUTE_MS });
    const matters = await mattersOf(shop);
    expect(matters).toHaveLength(2 + PAGE_SIZE);
    const [ofLost, ofOwn] = [lost, own].map(({ id }) => matters.find(({ subject }) => subject === id));
    expect(ofOwn?.detail).toContain(`settled links reserve 'the shop'\\''s own' --amount 100 `);
    await runAdvised(settled, ofLost as Matter);
    await passUntil(shop, async () => (await settled.order('order-2')).state === 'paid');
    await expectPaid(shop, 'order-2', { learnedBy: 'reconciliation' });
    expect(await mattersOf(shop)).toEqual(matters.filter((matter) => matter !== ofLost));
  });

  it('is right for a shop that keeps versions: what comes after the restore is newer than all that it knows', async () => {
    const callback = await startCallback();
    let links: { id: string }[] = [];
    const shop = await loseAndRestore(
      { environment: callback.environment },
      {
        before: async (first) => {
          await pass(first, HOUR_MS, HOUR_MS);
          links = [await openLink(first, 'order-1')];
        },
        since: async (first) => {
          links.push(await openLink(first, 'order-2'));
          for (const link of links) await payLink(first, link);
          await pass(first, MINUTE_MS);
        },
      },
    );
    await eventually(() => expect(keptOf(callback)).toEqual({ 'order-1': 'paid', 'order-2': 'paid' }));
    for (const link of links) await act(shop.sandbox, link, 'refund');
    await passUntil(shop, async () => (await mattersOf(shop)).length > 0, { withinMs: MINUTE_MS });
    await runAdvised(shop.settled, (await mattersOf(shop))[0] as Matter);
    for (const reference of ['order-1', 'order-2']) expect((await check(shop, reference)).status).toBe(200);
    await pass(shop, MINUTE_MS);
    await eventually(() => expect(keptOf(callback)).toEqual({ 'order-1': 'refunded', 'order-2': 'refunded' }));
  });

  it('tells a person once what to look for if the service has no list', async () => {
    const opensOne = async (shop: Shop) => void (await openLink(shop, 'order-1'));
    const shop = await loseAndRestore({ service: 'sandbox' }, { before: opensOne, since: nothing });
    await passUntil(shop, async () => (await mattersOf(shop)).length > 0, { withinMs: MINUTE_MS });
    const [matter] = await mattersOf(shop);
    expect(matter?.detail).toContain('settled links add');
    const { checks } = (await shop.settled.api('/v1/admin/doctor')).body;
    expect(checks).toContainEqual(expect.objectContaining({ name: 'restore', status: 'warning' }));
    const end = { body: { reason: 'there are none' } };
    expect((await shop.settled.api(`/v1/attention/${matter?.id}/end`, end)).status).toBe(200);
    const lists = async () => (await requestsOf(shop.sandbox)).filter(({ path }) => path.includes('?page='));
    const before = (await lists()).length;
    await shop.settled.api('/v1/admin/reconcile', { method: 'POST' });
    await passUntil(shop, async () => (await lists()).length > before);
    await pass(shop, MINUTE_MS);
    expect(await mattersOf(shop)).toEqual([]);
    expect(restoredFrom(shop)).toBeNull();
  });

  it('says the same if no API is configured', async () => {
    const shop = await loseAndRestore({ api: false }, { before: nothing, since: nothing });
    await expect.poll(() => mattersOf(shop)).toMatchObject([{ detail: expect.stringContaining('SETTLED_API_URL') }]);
  });
});
