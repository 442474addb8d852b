import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { searchSubject } from '../../../src/domain/advice.ts';
import { migrateStore } from '../../../src/store/open.ts';
import type { OpenedStore } from '../../../src/store/sqlite/store.ts';
import { systemClock } from '../../../src/work/clock.ts';
import { testFolder } from '../../support/app.ts';
import { said, type World } from '../contract/world.ts';
import { openTestStore, worldOf } from './opening.ts';

const MINUTE_MS = 60_000;
const START_MS = 1_700_000_000_000;
/** As the contract's World lets an order cost, and the service shows it. */
const money = { amount: '100.00', currency: 'BRL' };

function openAt(path: string, nowMs: number): Promise<OpenedStore> {
  return openTestStore(path, { clock: { ...systemClock, nowMs: () => nowMs } });
}

describe('a copy in the place of the database', () => {
  let path: string;
  let original: OpenedStore;

  beforeEach(async () => {
    path = join(testFolder(), 'settled.db');
    original = await open(path, START_MS);
    await original.store.heartbeat(START_MS);
  });

  async function open(at: string, nowMs: number): Promise<OpenedStore> {
    const opened = await openAt(at, nowMs);
    onTestFinished(() => opened.store.close());
    return opened;
  }

  async function copyOf({ store }: OpenedStore, name: string): Promise<string> {
    const copy = `${path}.${name}`;
    await store.backup({ path: copy });
    return copy;
  }

  const generationOf = async ({ store }: OpenedStore) =>
    (await store.readFeed({ after: 0, limit: 1 })).generation;

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
    expect(await generationOf(one as OpenedStore)).not.toBe(await generationOf(two as OpenedStore));
  });

  it('looks for links from the first copy on where it is a copy of one that was not through', async () => {
    const first = await open(await copyOf(original, 'first'), START_MS + MINUTE_MS);
    await first.store.heartbeat(START_MS + 60 * MINUTE_MS);
    const second = await open(await copyOf(first, 'second'), START_MS + 61 * MINUTE_MS);
    expect(second.opened.restoredFromMs).toBe(first.opened.restoredFromMs);
    expect(await generationOf(second)).toBeGreaterThan(await generationOf(first));
  });

  it('gives versions that are above all that were given before, to orders that it has and to new ones', async () => {
    const before = worldOf(original);
    const link = await before.newLink();
    const copy = await copyOf(original, 'copy');
    const restored = await open(copy, START_MS + MINUTE_MS);
    const after = worldOf(restored);
    const floor = await generationOf(restored);
    expect((await after.timeline(link)).order.version).toBe(floor);
    const listed = await restored.store.listOrders({ limit: 1, after: null, state: null, search: null });
    expect(listed[0]?.value.version).toBe(floor);
    await after.settle(link, [said('completed')]);
    expect((await after.timeline(link)).notices).toMatchObject([{ type: 'order.paid', version: floor + 1 }]);
    expect((await after.timeline(await after.newLink())).order.version).toBe(floor + 1);
    await after.settle(link, [said('refunded')]);
    const again = await open(await copyOf(restored, 'again'), START_MS + 2 * MINUTE_MS);
    expect((await worldOf(again).timeline(link)).order.version).toBe(floor + 60);
  });

  it('is known by what a person says where it was made otherwise', async () => {
    const before = await generationOf(original);
    await original.store.close();
    const source = { storePath: path, secretsKey: Buffer.alloc(32), secretsKeyPrevious: null };
    const migrate = (isRestored: boolean) =>
      migrateStore({ ...source, isRestored, keyIsLost: true, nowMs: START_MS + MINUTE_MS });
    expect(migrate(false).restoredFromMs).toBeNull();
    const { restoredFromMs } = migrate(true);
    expect(restoredFromMs).toBeGreaterThanOrEqual(START_MS);
    const opened = await openTestStore(path, { secretsKeyId: migrate(false).newKey?.keyId ?? '' });
    onTestFinished(() => opened.store.close());
    expect(await generationOf(opened)).toBeGreaterThan(before);
    expect(opened.opened.restoredFromMs).toBe(restoredFromMs);
  });
});

describe('a restored store that is compared with the list', () => {
  let world: World;
  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'settled-test-'));
    const path = join(folder, 'settled.db');
    const original = await openAt(path, START_MS);
    await original.store.heartbeat(START_MS);
    await original.store.backup({ path: `${path}.copy` });
    await original.store.close();
    const restored = await openAt(`${path}.copy`, START_MS);
    world = worldOf(restored);
    world.nowMs = START_MS + 60 * MINUTE_MS;
    return async () => {
      await restored.store.close();
      rmSync(folder, { recursive: true, force: true });
    };
  });

  function listed(over: { id?: string; reference?: string | null; createdAtMs?: number | null } = {}) {
    const names = { id: world.name('plink'), reference: world.name('elsewhere'), status: 'ACTIVE', money };
    return { ...names, createdAtMs: START_MS + MINUTE_MS, ...over };
  }

  function compare(...items: ReturnType<typeof listed>[]) {
    return world.store.compareListed({ items, toleranceMs: 10 * MINUTE_MS, nowMs: world.nowMs });
  }

  /** The open matter of a link. */
  async function matterOf({ id }: { id: string }) {
    const open = await world.store.listAttention({ limit: 100, after: null });
    return open.find(({ kind, subject }) => kind === 'link_not_known' && subject === id);
  }

  it('tells of each link that is not known, once, even if a person has ended it', async () => {
    const lost = listed({ reference: 'order of ours' });
    expect(await compare(lost, listed({ createdAtMs: null }))).toMatchObject({ notKnown: 2 });
    expect(await compare(lost)).toMatchObject({ notKnown: 0 });
    const found = await matterOf(lost);
    expect(found).toMatchObject({ reference: null, count: 1 });
    expect(found?.detail).toContain(
      `settled links reserve 'order of ours' --amount 100.00 --currency BRL && settled links add 'order of ours' ` +
        `--amount 100.00 --currency BRL --id ${lost.id}.`,
    );
    expect(found?.detail).toContain(`reference_taken: settled orders adopt 'order of ours' --id ${lost.id}.`);
    await world.store.endAttention({ key: found?.key ?? 0, reason: 'not ours', atMs: world.nowMs });
    expect(await compare(lost)).toMatchObject({ notKnown: 0 });
    expect(await matterOf(lost)).toBeUndefined();
  });

  it('leaves alone what was made before the copy, and what is known by its id or its reference', async () => {
    const known = await world.newLink({ linkId: world.name('plink') });
    const reserved = await world.newLink();
    const answer = await compare(
      listed({ createdAtMs: START_MS - 11 * MINUTE_MS }),
      listed({ id: (await world.timeline(known)).order.link?.id ?? '', reference: null }),
      listed({ reference: reserved.reference }),
    );
    expect(answer).toMatchObject({ notKnown: 0, differing: 1, restoredFromMs: START_MS + 1 });
    expect(await compare(listed({ createdAtMs: START_MS - 9 * MINUTE_MS }))).toMatchObject({ notKnown: 1 });
  });

  it('has a person look where the order has another link', async () => {
    const { reference, linkId } = await world.openNew();
    const other = listed({ reference });
    expect(await compare(other)).toMatchObject({ notKnown: 1 });
    const detail = (await matterOf(other))?.detail;
    expect(detail).toContain(`Order ${reference} has link ${linkId} here`);
    expect(detail).not.toContain('settled links add');
  });

  const WAYS: Record<string, (id: string) => Promise<unknown>> = {
    'it is registered': (linkId) => world.register({ linkId }),
    'it is bound to its order by a person': async (linkId) => {
      const { reference } = await world.newLink();
      await world.register({ reference, linkId });
    },
    'the id of its order’s link is corrected': async (linkId) => {
      const { reference } = await world.newLink({ linkId: world.name('plink') });
      await world.register({ reference, linkId });
    },
    'an event names it': async (linkId) =>
      world.settle(await world.newLink(), [said('pending')], { linkIds: [linkId] }),
    'its opening ends': async (id) => {
      const { linkKey } = await world.intend();
      const [opening] = await world.store.claimOpenings({ limit: 1, nowMs: world.nowMs, leaseMs: 1000 });
      const { attempt = 0 } = opening ?? {};
      const finish = { linkKey, attempt, link: world.made({ id }), withheld: null, nowMs: world.nowMs };
      await world.store.finishOpening(finish);
    },
  };

  it.each(Object.keys(WAYS))('is done with a link when %s', async (way) => {
    const [lost, another] = [listed(), listed()];
    expect(await compare(lost, another)).toMatchObject({ notKnown: 2 });
    await WAYS[way]?.(lost.id);
    expect(await matterOf(lost)).toBeUndefined();
    expect(await matterOf(another)).toBeDefined();
  });

  it('tells of none once the list was read back to the copy, which ends the matter of the search itself', async () => {
    const search = { id: searchSubject(START_MS + 1) };
    await world.store.noteNoList({ why: 'of a trouble', nowMs: world.nowMs });
    expect((await matterOf(search))?.detail).toContain('cannot read that list: of a trouble');
    await world.store.endRestore({ nowMs: world.nowMs });
    expect(await matterOf(search)).toBeUndefined();
    expect(await compare(listed())).toMatchObject({ notKnown: 0, restoredFromMs: null });
  });
});
