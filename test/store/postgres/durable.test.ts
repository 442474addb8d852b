import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { inTransaction } from '../../../src/store/move/target.ts';
import { inspect, type ServerConnection } from '../../../src/store/postgres/connection.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres.ts';
import { untilFinishedStandby } from '../../support/test_database.ts';
import { eventuallyAfter } from '../../support/timing.ts';
import { type World, worldOf } from '../contract/world.ts';
import { runIn } from './contract_store.ts';
import { connectTo, newDatabase, openTestPostgres, openUntilEnd, sharedServer } from './opening.ts';

const eventually = eventuallyAfter('servers of PostgreSQL start, stop and are asked again');

/** Notes at the commit of each transaction that writes a row what it waits for. */
const NOTE_COMMITS = `CREATE TABLE commit_note (verb text, waits_for text);
  CREATE FUNCTION note_commit() RETURNS trigger AS $$ BEGIN
    INSERT INTO commit_note VALUES (TG_TABLE_NAME, current_setting('synchronous_commit')); RETURN NULL; END $$
    LANGUAGE plpgsql;
  ${['inbox', 'hint', 'rejection', 'orders', 'instance', 'outbox'].map(
    (table) => `CREATE CONSTRAINT TRIGGER note_commit AFTER INSERT OR UPDATE ON ${table}
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_commit();`,
  )}`.replaceAll(';,', ';');

/** Everything that is acknowledged: registered, received in each way, settled, alive. */
async function acknowledgeAll(world: World): Promise<void> {
  const { store } = world;
  const link = await world.newLink();
  const delivery = world.delivery(link);
  await Promise.all([store.recordDelivery(delivery), world.deliver(link)]);
  await store.recordDelivery(delivery);
  await world.deliver(link, { readable: false });
  await store.recordHint(world.hint(link));
  await world.reject(link);
  await world.settle(link, []);
  await store.heartbeat(world.nowMs);
}

describe('what a commit waits for', () => {
  it.each([
    ['off', 'on'],
    ['local', 'on'],
    ['remote_write', 'on'],
    ['on', 'on'],
    ['remote_apply', 'remote_apply'],
  ])('with synchronous_commit = %s is raised and never lowered, in every transaction: %s', async (set, waitsFor) => {
    const url = await newDatabase();
    await runIn(url, `ALTER DATABASE "${new URL(url).pathname.slice(1)}" SET synchronous_commit = ${set}`);
    const { store } = await openUntilEnd(url);
    await runIn(url, NOTE_COMMITS);
    await acknowledgeAll(worldOf(store));
    const client = await connectTo(url);
    const { rows } = await client.query('SELECT DISTINCT verb, waits_for FROM commit_note ORDER BY verb');
    expect(rows).toEqual(
      ['hint', 'inbox', 'instance', 'orders', 'rejection'].map((verb) => ({ verb, waits_for: waitsFor })),
    );
    // Of the session, and of whoever has it next behind a pooler, nothing was changed.
    expect((await client.query('SHOW synchronous_commit')).rows).toEqual([{ synchronous_commit: set }]);
  });
});

describe('a server that is told otherwise while settled serves', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.dispose());

  const reload = (url: string, ...settings: string[]) =>
    settings
      .map((setting) => `ALTER SYSTEM SET ${setting}`)
      .concat('SELECT pg_reload_conf()')
      .reduce((before, sql) => before.then(() => runIn(url, sql)), Promise.resolve());

  /** A server takes the names of its standbys a moment after a reload: commits until one waits, and cancels that. */
  async function untilCommitsWait(committer: pg.Client, watcher: pg.Client, cancel: string): Promise<void> {
    for (let hasWaited = false; !hasWaited; ) {
      let hasEnded = false;
      const commit = committer.query("SELECT pg_logical_emit_message(true, 'test', '')").finally(() => {
        hasEnded = true;
      });
      while (!hasEnded && !hasWaited) hasWaited = (await watcher.query(cancel)).rows.length > 0;
      await commit;
    }
  }

  it('keeps what was acknowledged after a reload with synchronous_commit = off, when it is killed', async () => {
    const url = await server.create(`test_${randomUUID()}`);
    const world = worldOf((await openUntilEnd(url)).store);
    const link = await world.newLink();
    await reload(url, 'wal_writer_delay = 10000', 'synchronous_commit = off');
    const [shown] = [await connectTo(url)];
    shown.on('error', () => {});
    await eventually(async () =>
      expect((await shown.query('SHOW synchronous_commit')).rows).toEqual([{ synchronous_commit: 'off' }]),
    );
    const events = await Promise.all(Array.from({ length: 40 }, () => world.deliver(link)));
    await server.kill();
    await server.start();
    const client = await connectTo(url);
    const { rows } = await client.query('SELECT count(*)::int AS n FROM inbox');
    expect(rows).toEqual([{ n: events.length }]);
    await reload(url, 'synchronous_commit = on', 'wal_writer_delay = 200');
  });

  it('is refused, on connections that are open as on new ones, after a reload with fsync = off', async () => {
    const url = await server.create(`test_${randomUUID()}`);
    const world = worldOf((await openUntilEnd(url)).store);
    const link = await world.newLink();
    await reload(url, 'fsync = off');
    onTestFinished(() => reload(url, 'fsync = on'));
    const refused = {
      code: 'store_not_durable',
      kind: 'transient',
      message: expect.stringMatching(/would lose what it acknowledged .* fsync is off\. Set it on at the server\.$/),
    };
    await eventually(() => expect(world.deliver(link)).rejects.toMatchObject(refused));
    await expect(world.store.heartbeat(world.nowMs)).rejects.toMatchObject(refused);
    await expect(world.reject(link)).rejects.toMatchObject(refused);
    await expect(openTestPostgres(url)).rejects.toMatchObject(refused);
    await reload(url, 'fsync = on');
    await eventually(async () => expect((await world.deliver(link)).outcome).toBe('recorded'));
  });

  const CANCEL_WAITS = `SELECT pg_cancel_backend(pid) AS done FROM pg_stat_activity
    WHERE wait_event = 'SyncRep' AND datname = current_database() AND query !~ 'ALTER SYSTEM'`;
  const UNCONFIRMED = {
    code: 'store_unreachable',
    kind: 'transient',
    message: expect.stringContaining('does not count as stored'),
  };

  /** A server whose commits wait for a standby that there is none of, as for one that follows another primary now. */
  async function awaitNoStandby(url: string): Promise<pg.Client> {
    const watcher = await connectTo(url);
    await reload(url, "synchronous_standby_names = 'absent'");
    onTestFinished(() => reload(url, "synchronous_standby_names = ''"));
    await untilCommitsWait(await connectTo(url), watcher, CANCEL_WAITS);
    return watcher;
  }

  const untilCancelled = (watcher: pg.Client) =>
    eventually(async () => expect((await watcher.query(CANCEL_WAITS)).rows).toContainEqual({ done: true }));

  it('stores nothing of which the wait for a standby was cancelled, and the retry is a duplicate', async () => {
    const url = await server.create(`test_${randomUUID()}`);
    const world = worldOf((await openUntilEnd(url)).store);
    const link = await world.newLink();
    const delivery = world.delivery(link);
    const watcher = await awaitNoStandby(url);
    const refused = expect(world.store.recordDelivery(delivery)).rejects.toMatchObject(UNCONFIRMED);
    await untilCancelled(watcher);
    await refused;
    await reload(url, "synchronous_standby_names = ''");
    expect(await world.store.recordDelivery(delivery)).toMatchObject({ outcome: 'duplicate' });
  });

  it('moves nothing by a commit of which the wait for a standby was cancelled', async () => {
    const url = await server.create(`test_${randomUUID()}`);
    const [watcher, client] = [await awaitNoStandby(url), await connectTo(url)];
    const target = { client: client as ServerConnection, name: 'the target' };
    const refused = expect(inTransaction(target, () => client.query('CREATE TABLE t ()'))).rejects.toMatchObject(
      UNCONFIRMED,
    );
    await untilCancelled(watcher);
    await refused;
  });

  it('does not say that there is no such link while its standbys may follow another primary, which may know it', async () => {
    const url = await server.create(`test_${randomUUID()}`);
    const { store } = await openUntilEnd(url);
    const { token, reference } = await worldOf(store).newLink();
    expect(await store.findCredentials({ token: 'unknown' })).toBeNull();
    const watcher = await awaitNoStandby(url);
    let refused = 0;
    for (const by of [{ token: 'unknown' }, { linkId: 'unknown' }]) {
      void expect(store.findCredentials(by))
        .rejects.toMatchObject(UNCONFIRMED)
        .then(() => refused++);
    }
    expect(await store.findCredentials({ token })).toMatchObject({ reference });
    await eventually(async () => {
      await watcher.query(CANCEL_WAITS);
      expect(refused).toBe(2);
    });
  });

  it('is used with fsync = off if its storage is declared durable, and commits still wait for it', async () => {
    const url = await server.create(`test_${randomUUID()}`);
    await runIn(url, `ALTER DATABASE "${new URL(url).pathname.slice(1)}" SET synchronous_commit = off`);
    const client = await connectTo(url);
    const set = async (fsync: string) => {
      await reload(url, `fsync = ${fsync}`);
      await eventually(async () => expect((await client.query('SHOW fsync')).rows).toEqual([{ fsync }]));
    };
    await set('off');
    onTestFinished(() => set('on'));
    await expect(openTestPostgres(url)).rejects.toMatchObject({ code: 'store_not_durable' });
    const batches: number[] = [];
    const onBatch = (calls: number) => batches.push(calls);
    const { store } = await openUntilEnd(url, { trustsStorage: true, onBatch });
    await runIn(url, NOTE_COMMITS);
    const world = worldOf(store);
    await acknowledgeAll(world);
    // If the statement for many were refused, each delivery would be recorded alone.
    const link = await world.newLink();
    await Promise.all(Array.from({ length: 8 }, () => store.recordDelivery(world.delivery(link))));
    expect(Math.max(...batches)).toBeGreaterThan(1);
    await runIn(url, 'DROP INDEX ledger_by_payment');
    const built = { built: ['ledger_by_payment'], missing: [] };
    expect(await store.buildIndexes({ signal: new AbortController().signal })).toEqual(built);
    const { rows } = await client.query('SELECT DISTINCT waits_for FROM commit_note');
    expect(rows).toEqual([{ waits_for: 'on' }]);
  });

  it('is refused when it is a standby', async () => {
    const url = await server.create(`test_${randomUUID()}`);
    await untilFinishedStandby(server);
    await expect(openTestPostgres(url)).rejects.toMatchObject({
      code: 'store_unwritable',
      kind: 'transient',
      message: expect.stringMatching(
        /^the database of the test is a standby, which cannot be written\. Name the primary/,
      ),
    });
  });
});

describe('a server that cannot be used', () => {
  it('is refused when its database is not encoded as UTF-8, and the sentence names both', async () => {
    const name = `test_${randomUUID()}`;
    const url = sharedServer().url(name);
    await runIn(sharedServer().url('postgres'), `CREATE DATABASE "${name}" ENCODING 'LATIN1' TEMPLATE template0`);
    onTestFinished(() => sharedServer().drop(name));
    await expect(openTestPostgres(url)).rejects.toMatchObject({
      code: 'configuration_invalid',
      kind: 'transient',
      message: 'the database of the test is encoded as LATIN1. Make a database with the encoding UTF8.',
    });
  });

  /** A server that says this of itself, where it differs from one that can be used. */
  const saying = (over: object) =>
    ({
      query: async () => ({ rows: [{ fsync: 'on', version: 140_000, encoding: 'UTF8', isStandby: false, ...over }] }),
    }) as unknown as pg.ClientBase;

  it('is refused when it is older than PostgreSQL 14, and no newer one is', async () => {
    await expect(inspect(saying({ version: 130_020 }), 'the store')).rejects.toMatchObject({
      code: 'configuration_invalid',
      kind: 'transient',
      message: 'the store runs PostgreSQL 13; settled needs 14 or later.',
    });
    await inspect(saying({}), 'the store');
    await inspect(saying({ version: 180_001 }), 'the store');
  });

  it('is refused when it does not wait for its disk, before anything is written', async () => {
    await expect(inspect(saying({ fsync: 'off' }), 'the store')).rejects.toMatchObject({
      code: 'store_not_durable',
      message: expect.stringContaining('the store would lose what it acknowledged'),
    });
  });

  it('is used when it does not know the setting fsync', async () => {
    await inspect(saying({ fsync: null }), 'the store');
  });
});
