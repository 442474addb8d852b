import { randomUUID } from 'node:crypto';
import dns from 'node:dns';
import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { postgresAddress } from '../../../src/store/address.ts';
import { markReplaced } from '../../../src/store/postgres/connection.ts';
import { migratePostgres } from '../../../src/store/postgres/migrating.ts';
import { Servers } from '../../../src/store/postgres/servers.ts';
import { statement } from '../../../src/store/transaction.ts';
import { systemClock } from '../../../src/work/clock.ts';
import { testFolder } from '../../support/app.ts';
import { urlOfServers } from '../../support/cluster.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres.ts';
import { eventuallyAfter } from '../../support/timing.ts';
import { runIn } from './contract_store.ts';
import {
  connectTo,
  newDatabase,
  openTestDatabase,
  openTestPostgres,
  openUntilEnd,
  serverOf,
  sharedServer,
} from './opening.ts';

const eventually = eventuallyAfter('servers of PostgreSQL start, stop and are asked again');

const hostOf = (url: string) => new URL(url).searchParams.get('host') as string;

/** The address of a database with several servers, each by the folder of its socket. */
function addressOf(url: string, folders: readonly string[]) {
  return postgresAddress(urlOfServers(url, folders));
}

function serversAt(url: string, folders: readonly string[]): Servers {
  return new Servers({ ...addressOf(url, folders), clock: systemClock });
}

/** The mark of a replaced primary, which leaves open sessions as they are. */
const MARK = `DO $$ BEGIN EXECUTE format('COMMENT ON TABLE instance IS %L', 'settled: replaced by timeline 7 of cluster ' ||
  (SELECT system_identifier FROM pg_control_system())); END $$`;

/** An empty database and its owner, as docs/postgres.md has them made. */
async function databaseOfPlainRole(): Promise<string> {
  const name = `plain_${randomUUID().replaceAll('-', '')}`;
  const superuser = await connectTo(await sharedServer().create(name));
  await superuser.query(`CREATE ROLE ${name} LOGIN; ALTER DATABASE ${name} OWNER TO ${name}`);
  const url = new URL(sharedServer().url(name));
  url.username = name;
  return url.href;
}

const TIMELINE = 'substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)';

/** Listens in `folder` as a server of the same cluster as the one in `host`, but on another timeline. */
function pretendPromoted(host: string, { folder, timeline }: { folder: string; timeline: number }): void {
  const said = `'${String(timeline).padStart(8, '0')}'`.padEnd(TIMELINE.length);
  const server = createServer((client) => {
    const primary = connect(join(host, '.s.PGSQL.5432'));
    for (const socket of [client, primary]) socket.on('error', () => {});
    primary.pipe(client);
    client.on('end', () => primary.end());
    client.on('data', (data) => primary.write(data.toString('latin1').replace(TIMELINE, said), 'latin1'));
  });
  server.listen(join(folder, '.s.PGSQL.5432'));
  onTestFinished(() => void server.close());
}

describe('servers of one database', () => {
  let other: PostgresServer;
  beforeAll(async () => {
    other = await startPostgres();
  });
  afterAll(() => other.dispose());

  it('the one that takes writes is used, wherever it stands in the address', async () => {
    const url = await newDatabase();
    const address = addressOf(url, [testFolder(), hostOf(url)]);
    const { store } = await openUntilEnd(url, { servers: address.servers });
    const { servers } = await store.storeState(Date.now());
    expect(servers).toMatchObject([
      { role: 'unreachable', why: expect.stringContaining('does not answer') },
      { role: 'primary', why: null, timeline: 1, waitsFor: null },
    ]);
  });

  it('none is used if two take writes and neither replaced the other; both are named', async () => {
    const url = await newDatabase();
    await other.create(new URL(url).pathname.slice(1));
    const servers = serversAt(url, [hostOf(url), other.folder]);
    const fault = {
      code: 'store_unwritable',
      message: expect.stringMatching(/test_.* and .*test_.* both take writes/),
    };
    await expect(servers.primary()).rejects.toMatchObject(fault);
    // One of them is stopped.
    await other.kill();
    await expect(servers.primary()).resolves.toMatchObject({ name: expect.stringContaining(hostOf(url)) });
    await other.start();
    // It may be slower to answer than others are waited for.
    await eventually(async () => {
      await servers.look();
      await expect(servers.primary()).rejects.toMatchObject(fault);
    });
  });

  it('a connection from before a second one takes writes is used no more, until only one of them does', async () => {
    const url = await newDatabase();
    await other.create(new URL(url).pathname.slice(1));
    await other.kill();
    const servers = serversAt(url, [hostOf(url), other.folder]);
    const db = openTestDatabase(url, { connections: 2, servers });
    onTestFinished(() => db.close());
    const one = statement('SELECT 1 AS one');
    const ask = () => db.once((tx) => tx.one<{ one: number }>(one));
    expect(await ask()).toEqual({ one: 1 });
    for (const _ of ['first', 'second time']) {
      await other.start();
      await eventually(async () => {
        await servers.look();
        await expect(ask()).rejects.toMatchObject({ code: 'store_unwritable' });
      });
      await other.kill();
      await eventually(async () => expect(await ask()).toEqual({ one: 1 }));
    }
    await other.start();
  });

  it('one of them may be named twice, as by a name that follows the primary', async () => {
    const url = await newDatabase();
    const alias = join(testFolder(), 'alias');
    symlinkSync(hostOf(url), alias);
    const { servers, name } = addressOf(url, [alias, hostOf(url)]);
    const { store } = await openUntilEnd(url, { servers, name });
    const state = await store.storeState(Date.now());
    expect(state.servers).toMatchObject([{ role: 'primary' }, { role: 'primary' }]);
    expect(await store.serverStates()).toEqual(state.servers);
  });

  it('a standby that is promoted while another server is silent is found, though it said that it is one', async () => {
    const url = await newDatabase();
    await other.create(new URL(url).pathname.slice(1));
    await other.kill();
    writeFileSync(join(other.folder, 'data', 'standby.signal'), '');
    await other.start();
    const silent = testFolder();
    const connected = Promise.withResolvers<void>();
    const server = createServer((socket) => {
      socket.on('error', () => {});
      connected.resolve();
    });
    server.listen(join(silent, '.s.PGSQL.5432'));
    onTestFinished(() => void server.close());
    const found = serversAt(url, [silent, other.folder]).primary();
    await connected.promise;
    await runIn(other.url('postgres'), 'SELECT pg_promote()');
    expect(await found).toMatchObject({ name: expect.stringContaining(other.folder) });
  });

  it('names for which no resolver answers keep one thread of those that look names up', async () => {
    const underWay = new Map<string, (() => void)[]>();
    const lookup = dns.lookup;
    vi.spyOn(dns, 'lookup').mockImplementation(((
      name: string,
      options: object,
      answered: (error: Error | null) => void,
    ) => {
      if (!name.startsWith('silent-')) return lookup(name, options, answered);
      const give = () => answered(Object.assign(new Error('no answer'), { code: 'EAI_AGAIN' }));
      underWay.set(name, [...(underWay.get(name) ?? []), give]);
    }) as typeof lookup);
    onTestFinished(() => void vi.restoreAllMocks());
    const counts = () => [...underWay.values()].map((gives) => gives.length);
    const url = await newDatabase();
    const servers = serversAt(url, ['silent-1', 'silent-2', hostOf(url)]);
    for (let looks = 0; looks < 3; looks++) await servers.look();
    expect(await servers.primary()).toMatchObject({ name: expect.stringContaining(hostOf(url)) });
    expect(counts()).toEqual([1, 1]);
    const giveAll = () => {
      const gives = [...underWay.values()].flat();
      underWay.clear();
      for (const give of gives) give();
    };
    giveAll();
    const seen = new Set<string>();
    for (let rounds = 0; rounds < 4; rounds++) {
      await servers.look();
      expect(counts()).toEqual([1]);
      for (const name of underWay.keys()) seen.add(name);
      giveAll();
    }
    expect([...seen].sort()).toEqual(['silent-1', 'silent-2']);
  });

  it('are refused with what each said if none takes writes', async () => {
    const url = sharedServer().url('there_is_none');
    const servers = serversAt(url, [hostOf(url), testFolder()]);
    await expect(servers.primary()).rejects.toMatchObject({
      code: 'configuration_invalid',
      message: expect.stringMatching(
        /^No server takes writes\. .*"there_is_none" does not exist.*\. .*does not answer.*between\.$/,
      ),
    });
  });

  it('one that was replaced is marked by a role that owns nothing but its database; until `--restored` keeps it, it is refused', async () => {
    const url = await databaseOfPlainRole();
    const open = () => openTestPostgres(url);
    await (await open()).store.close();
    await markReplaced(serverOf(url), 7);
    const fault = {
      code: 'store_unwritable',
      message: expect.stringMatching(
        /was replaced as the primary: it is on timeline 1, and another server is on timeline 7/,
      ),
    };
    await expect(open()).rejects.toMatchObject(fault);
    const migrateWith = (keyId: string, { isRestored }: { isRestored: boolean }) => {
      const store = postgresAddress(url);
      const readKeys = () => ({ keyIds: [keyId], keyPlace: 'a file' });
      return migratePostgres({ ...store, store, readKeys, isRestored, keyIsLost: false, clock: systemClock });
    };
    await expect(migrateWith('key-1', { isRestored: false })).rejects.toMatchObject(fault);
    await expect(migrateWith('another', { isRestored: true })).rejects.toMatchObject({ code: 'secrets_key_wrong' });
    // A call that fails decides nothing.
    await expect(open()).rejects.toMatchObject(fault);
    await migrateWith('key-1', { isRestored: true });
    await (await open()).store.close();
  });

  // Each on a database of its own: who marks one ends the connections of settled to it, and perhaps late.
  it.each([
    ['never marked', null],
    ['marked before', 7],
  ])('one that was %s is marked when a later one replaces it', async (_what, before) => {
    const url = await newDatabase();
    const promoted = testFolder();
    await (await openTestPostgres(url)).store.close();
    const mark = `SELECT obj_description('instance'::regclass) AS mark`;
    const client = await connectTo(url);
    pretendPromoted(hostOf(url), { folder: promoted, timeline: 9 });
    if (before !== null) await markReplaced(serverOf(url), before);
    await serversAt(url, [hostOf(url), promoted]).look();
    await eventually(async () => expect((await client.query(mark)).rows[0].mark).toContain('replaced by timeline 9 '));
  });

  it('one that was replaced and is named twice is kept by `--restored` all the same', async () => {
    const url = await newDatabase();
    const alias = join(testFolder(), 'alias');
    symlinkSync(hostOf(url), alias);
    await (await openTestPostgres(url)).store.close();
    await markReplaced(serverOf(url), 7);
    const store = addressOf(url, [alias, hostOf(url)]);
    const readKeys = () => ({ keyIds: ['key-1'], keyPlace: 'a file' });
    await migratePostgres({ ...store, store, readKeys, isRestored: true, keyIsLost: false, clock: systemClock });
    await (await openTestPostgres(url)).store.close();
  });

  it('a connection from before a promotion is used no more when a newer one shows it, by the same name', async () => {
    const url = await newDatabase();
    const [alias, promoted] = [join(testFolder(), 'alias'), testFolder()];
    symlinkSync(hostOf(url), alias);
    const servers = serversAt(url, [alias]);
    const db = openTestDatabase(url, { connections: 2, servers });
    onTestFinished(() => db.close());
    const pid = statement('SELECT pg_backend_pid() AS pid');
    const ask = async () => (await db.once((tx) => tx.one<{ pid: number }>(pid)))?.pid;
    const before = await ask();
    expect(await ask()).toBe(before);
    pretendPromoted(hostOf(url), { folder: promoted, timeline: 2 });
    rmSync(alias);
    symlinkSync(promoted, alias);
    expect(await ask()).toBe(before);
    await (await servers.connect()).end();
    const after = await ask();
    expect(after).not.toBe(before);
    expect(await ask()).toBe(after);
  });

  it('a connection from before a doubt is inspected again before it is used', async () => {
    const url = await newDatabase();
    const servers = serversAt(url, [hostOf(url)]);
    const db = openTestDatabase(url, { connections: 2, servers });
    onTestFinished(() => db.close());
    const pid = statement('SELECT pg_backend_pid() AS pid');
    const ask = () => db.once((tx) => tx.one<{ pid: number }>(pid));
    const [one] = await Promise.all([ask(), ask()]);
    const client = await connectTo(url);
    // Its open sessions have not seen the mark, and answer; a new one is refused.
    await client.query(MARK);
    expect(await ask()).toMatchObject({ pid: expect.any(Number) });
    await client.query('SELECT pg_terminate_backend($1)', [one?.pid]);
    await eventually(async () => {
      await expect(ask()).rejects.toMatchObject({ code: 'store_unwritable' });
      await expect(ask()).rejects.toMatchObject({ code: 'store_unwritable' });
    });
  });
});
