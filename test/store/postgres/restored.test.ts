import { describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/contract.ts';
import { openInstance } from '../../../src/store/postgres/open.ts';
import { COPIED_AT_MS, restoreContract } from '../contract/asking-restore.ts';
import { said, worldOf } from '../contract/world.ts';
import { runIn } from './contract_store.ts';
import { newDatabase, openTestDatabase, openTestPostgres, openUntilEnd } from './opening.ts';

const MINUTE_MS = 60_000;
const START_MS = 1_700_000_000_000;

restoreContract(async () => {
  const url = await newDatabase();
  const { store } = await openTestPostgres(url);
  await runIn(url, `UPDATE instance SET restored_from_ms = ${COPIED_AT_MS}`);
  return { world: worldOf(store), dispose: () => store.close() };
});

describe('a database that took the place of another', () => {
  /** Takes it for a copy, as `settled migrate --restored` does; or opens it as ever. */
  async function open(url: string, nowMs: number, isRestored = true): Promise<number | null> {
    const db = openTestDatabase(url);
    const options = { name: 'the database of the test', secretsKeyId: 'key-1', newInstanceId: 'instance-1' };
    const opened = await db.write((tx) => openInstance(tx, { ...options, nowMs, isRestored }));
    await db.close();
    return opened.restoredFromMs;
  }

  async function serve(url: string): Promise<Store> {
    return (await openUntilEnd(url)).store;
  }

  const generationOf = async (store: Store) =>
    (await store.readFeed({ after: 0, limit: 1, bytesMax: 1_000 })).generation;

  it('has a generation of the time, above the one before however soon it is restored again', async () => {
    const url = await newDatabase();
    const store = await serve(url);
    expect(await generationOf(store)).toBe(1);
    await open(url, START_MS);
    expect(await generationOf(store)).toBe(START_MS / 1000);
    await open(url, START_MS + 999);
    expect(await generationOf(store)).toBe(START_MS / 1000 + 1);
    await open(url, START_MS + 5 * MINUTE_MS);
    expect(await generationOf(store)).toBe(START_MS / 1000 + 300);
    // By a clock that is behind.
    await open(url, START_MS - MINUTE_MS);
    expect(await generationOf(store)).toBe(START_MS / 1000 + 301);
    await open(url, START_MS + 9 * MINUTE_MS, false);
    expect(await generationOf(store)).toBe(START_MS / 1000 + 301);
  });

  it('looks for links from the last sign of life on, from the first copy’s if that search was not through', async () => {
    const url = await newDatabase();
    const store = await serve(url);
    await store.heartbeat(START_MS);
    expect(await open(url, START_MS + MINUTE_MS, false)).toBeNull();
    expect(await open(url, START_MS + MINUTE_MS)).toBe(START_MS);
    await store.heartbeat(START_MS + 60 * MINUTE_MS);
    expect(await open(url, START_MS + 61 * MINUTE_MS)).toBe(START_MS);
    expect(await open(url, START_MS + 61 * MINUTE_MS, false)).toBe(START_MS);
    await store.endRestore({ nowMs: START_MS });
    expect(await open(url, START_MS + 62 * MINUTE_MS, false)).toBeNull();
  });

  it('gives versions that are above all that were given before, to orders that it has and to new ones', async () => {
    const url = await newDatabase();
    const store = await serve(url);
    const world = worldOf(store);
    const link = await world.newLink();
    const before = (await world.timeline(link)).order.version;
    await open(url, START_MS);
    const floor = START_MS / 1000;
    expect([before, (await world.timeline(link)).order.version]).toEqual([1, floor]);
    const { rows: listed } = await store.listOrders({ limit: 1 });
    expect(listed[0]?.value.version).toBe(floor);
    await world.settle(link, [said('completed')]);
    expect((await world.timeline(link)).notices).toMatchObject([{ type: 'order.paid', version: floor + 1 }]);
    expect((await world.timeline(await world.newLink())).order.version).toBe(floor + 1);
    await world.settle(link, [said('refunded')]);
    await open(url, START_MS + MINUTE_MS);
    expect((await world.timeline(link)).order.version).toBe(floor + 60);
    expect((await world.timeline(await world.openNew())).order.version).toBeGreaterThan(floor + 60);
  });
});
