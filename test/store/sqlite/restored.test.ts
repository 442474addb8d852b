import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { readKeyIds } from '../../../src/secrets/key_files.ts';
import { sqliteAddress } from '../../../src/store/address.ts';
import type { OpenedEngine } from '../../../src/store/contract.ts';
import { migrateStore } from '../../../src/store/open.ts';
import { systemClock } from '../../../src/work/clock.ts';
import { testFolder } from '../../support/app.ts';
import { COPIED_AT_MS, restoreContract } from '../contract/asking-restore.ts';
import { said, worldOf } from '../contract/world.ts';
import { openTestStore } from './opening.ts';

const MINUTE_MS = 60_000;
const START_MS = 1_700_000_000_000;

function openAt(path: string, nowMs: number): Promise<OpenedEngine> {
  return openTestStore(path, { clock: { ...systemClock, nowMs: () => nowMs } });
}

describe('a copy in the place of the database', () => {
  let path: string;
  let original: OpenedEngine;

  beforeEach(async () => {
    path = join(testFolder(), 'settled.db');
    original = await open(path, START_MS);
    await original.store.heartbeat(START_MS);
  });

  async function open(at: string, nowMs: number): Promise<OpenedEngine> {
    const opened = await openAt(at, nowMs);
    onTestFinished(() => opened.store.close());
    return opened;
  }

  async function copyOf({ store }: OpenedEngine, name: string): Promise<string> {
    const copy = `${path}.${name}`;
    await store.backup({ path: copy });
    return copy;
  }

  const generationOf = async ({ store }: OpenedEngine) =>
    (await store.readFeed({ after: 0, limit: 1, bytesMax: 1_000_000 })).generation;

  it('has a generation of its own, and looks for links from the time of the copy on', async () => {
    const copy = await copyOf(original, 'copy');
    await original.store.heartbeat(START_MS + MINUTE_MS);
    const restored = await open(copy, START_MS + 5 * MINUTE_MS);
    expect(await generationOf(restored)).toBeGreaterThan(await generationOf(original));
    const fromMs = restored.opened.restoredFromMs as number;
    expect([fromMs - START_MS, original.opened.restoredFromMs]).toEqual([1, null]);
    const generation = await generationOf(restored);
    await restored.store.close();
    const again = await open(copy, START_MS + 6 * MINUTE_MS);
    expect([await generationOf(again), again.opened.restoredFromMs]).toEqual([generation, fromMs]);
    await again.store.endRestore({ nowMs: START_MS });
    await again.store.close();
    expect((await open(copy, START_MS)).opened.restoredFromMs).toBeNull();
  });

  it('gets another generation when the same copy is put to use again', async () => {
    const copies = [await copyOf(original, 'one'), await copyOf(original, 'two')];
    const [one, two] = await Promise.all(copies.map((copy, n) => open(copy, START_MS + n * MINUTE_MS)));
    expect(await generationOf(one as OpenedEngine)).not.toBe(await generationOf(two as OpenedEngine));
  });

  it('looks for links from the first copy on where it is a copy of one that was not through', async () => {
    const first = await open(await copyOf(original, 'first'), START_MS + MINUTE_MS);
    await first.store.heartbeat(START_MS + 60 * MINUTE_MS);
    const second = await open(await copyOf(first, 'second'), START_MS + 61 * MINUTE_MS);
    expect(second.opened.restoredFromMs).toBe(first.opened.restoredFromMs);
    expect(await generationOf(second)).toBeGreaterThan(await generationOf(first));
  });

  it('gives versions that are above all that were given before, to orders that it has and to new ones', async () => {
    const before = worldOf(original.store);
    const link = await before.newLink();
    const copy = await copyOf(original, 'copy');
    const restored = await open(copy, START_MS + MINUTE_MS);
    const after = worldOf(restored.store);
    const floor = await generationOf(restored);
    expect((await after.timeline(link)).order.version).toBe(floor);
    const { rows: listed } = await restored.store.listOrders({ limit: 1 });
    expect(listed[0]?.value.version).toBe(floor);
    await after.settle(link, [said('completed')]);
    expect((await after.timeline(link)).notices).toMatchObject([{ type: 'order.paid', version: floor + 1 }]);
    expect((await after.timeline(await after.newLink())).order.version).toBe(floor + 1);
    await after.settle(link, [said('refunded')]);
    const again = await open(await copyOf(restored, 'again'), START_MS + 2 * MINUTE_MS);
    expect((await worldOf(again.store).timeline(link)).order.version).toBe(floor + 60);
  });

  it('is known by what a person says where it was made otherwise', async () => {
    const before = await generationOf(original);
    await original.store.close();
    const source = { store: sqliteAddress(path), secretsKey: Buffer.alloc(32), secretsKeyPrevious: null };
    const clock = { ...systemClock, nowMs: () => START_MS + MINUTE_MS };
    const migrate = (isRestored: boolean) =>
      migrateStore({
        store: source.store,
        readKeys: (how) => readKeyIds(source, how),
        isRestored,
        keyIsLost: true,
        clock,
      });
    expect((await migrate(false)).restoredFromMs).toBeNull();
    const { restoredFromMs } = await migrate(true);
    expect(restoredFromMs).toBeGreaterThanOrEqual(START_MS);
    const opened = await openTestStore(path, { secretsKeyId: (await migrate(false)).newKey?.keyId ?? '' });
    onTestFinished(() => opened.store.close());
    expect(await generationOf(opened)).toBeGreaterThan(before);
    expect(opened.opened.restoredFromMs).toBe(restoredFromMs);
  });
});

restoreContract(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'settled-test-'));
  const path = join(folder, 'settled.db');
  // Opening the store says that it can be written, by a millisecond.
  const original = await openAt(path, COPIED_AT_MS - 1);
  await original.store.heartbeat(COPIED_AT_MS - 1);
  await original.store.backup({ path: `${path}.copy` });
  await original.store.close();
  const restored = await openAt(`${path}.copy`, COPIED_AT_MS);
  expect(restored.opened.restoredFromMs).toBe(COPIED_AT_MS);
  return {
    world: worldOf(restored.store),
    dispose: async () => {
      await restored.store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
});
