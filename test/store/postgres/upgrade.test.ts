import { describe, expect, it } from 'vitest';
import { readSearch } from '../../../src/domain/search.ts';
import { readMigrations } from '../../../src/store/migrate.ts';
import { said, type World, worldOf } from '../contract/world.ts';
import { runIn } from './contract_store.ts';
import { emptyDatabase, newDatabase, openTestPostgres, openUntilEnd } from './opening.ts';

/** What a newer program says that it has done to the database. */
function migratedByNewer(url: string, { expands }: { expands: boolean }): Promise<void> {
  return runIn(url, `INSERT INTO migration VALUES (9999, '9999_later.sql', 'x', ${expands})`);
}

const ADD_TO_EVERY_TABLE = `DO $$ DECLARE t text; BEGIN
  FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename <> 'migration' LOOP
    EXECUTE format('ALTER TABLE %I ADD COLUMN added_later INTEGER NOT NULL DEFAULT 7', t);
  END LOOP; END $$`;

describe('replicas of two versions', () => {
  it('go on side by side when the newer one has added to every table', async () => {
    const url = await newDatabase();
    const { store } = await openUntilEnd(url);
    const world = worldOf(store);
    const before = await workAsEver(world);
    await runIn(url, ADD_TO_EVERY_TABLE);
    expect(await workAsEver(world)).toEqual(before);
  });

  it('start on a database that the newer one has expanded', async () => {
    const url = await newDatabase();
    await migratedByNewer(url, { expands: true });
    expect((await openUntilEnd(url)).opened.instanceId).toBe('instance-1');
  });

  it('do not start where the newer one took something away', async () => {
    const url = await newDatabase();
    await migratedByNewer(url, { expands: false });
    await expect(openTestPostgres(url)).rejects.toMatchObject({ code: 'store_newer' });
  });

  it('migrate an empty database once, however many start at once', async () => {
    const url = await emptyDatabase();
    const opened = await Promise.all([openUntilEnd(url), openUntilEnd(url), openUntilEnd(url)]);
    expect(opened.filter(({ opened: { created } }) => created)).toHaveLength(1);
    const { length } = readMigrations('postgres');
    await runIn(url, `DO $$ BEGIN ASSERT (SELECT count(*) FROM migration) = ${length}; END $$`);
  });
});

/** What orders, events, links, checks, notices and the feed come to: all the statements that most of a day's work needs. */
async function workAsEver(world: World): Promise<unknown[]> {
  const { store } = world;
  const link = await world.openNew();
  await world.answer(link, [said('completed')]);
  await world.settle(link, [said('refunded')]);
  await world.reject(link);
  await store.recordHint(world.hint(link));
  const order = await store.findOrder(link.reference);
  const { rows: listed } = await store.listOrders({ limit: 10, search: readSearch(link.reference) });
  const feed = await store.readFeed({ after: 0, limit: 1000, bytesMax: 1_000_000 });
  const { history, events } = await world.timeline(link);
  await tellShop(world);
  await store.stats(world.nowMs);
  await store.storeState(world.nowMs);
  return [
    order?.state,
    listed.length,
    feed.notices.filter(({ body }) => body.includes(`"${link.reference}"`)).length,
    history.length,
    events.length,
  ];
}

/** Claims what is due of the notices and has it taken, until nothing is owed. */
async function tellShop(world: World): Promise<void> {
  for (let isOwed = true; isOwed; ) {
    world.tick();
    const notices = await world.claimNotices(false, 10);
    const answer = { status: 204, body: '' };
    for (const notice of notices) await world.store.finishNotice({ ...notice, answer, nowMs: world.nowMs });
    isOwed = notices.length > 0;
  }
}
