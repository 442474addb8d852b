import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { postgresAddress } from '../../../src/store/address.ts';
import { Servers } from '../../../src/store/postgres/servers.ts';
import { statement } from '../../../src/store/transaction.ts';
import { systemClock } from '../../../src/work/clock.ts';
import { testFolder } from '../../support/app.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres.ts';
import { eventually } from '../../support/timing.ts';
import { runIn } from './contract_store.ts';
import { newDatabase, openTestDatabase, openTestPostgres, sharedServer } from './opening.ts';

const hostOf = (url: string) => new URL(url).searchParams.get('host') as string;

/** The address of a database with several servers, each by the folder of its socket. */
function addressOf(url: string, folders: readonly string[]) {
  const whole = new URL(url);
  whole.searchParams.set('host', folders.join(','));
  return postgresAddress(whole.href);
}

function serversAt(url: string, folders: readonly string[]): Servers {
  return new Servers({ ...addressOf(url, folders), clock: systemClock });
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
    const { store } = await openTestPostgres(url, { servers: address.servers });
    onTestFinished(() => store.close());
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
    await servers.look();
    await expect(servers.primary()).rejects.toMatchObject(fault);
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

  it('are refused with what each said if none takes writes', async () => {
    const url = sharedServer().url('there_is_none');
    const servers = serversAt(url, [hostOf(url), testFolder()]);
    await expect(servers.primary()).rejects.toMatchObject({
      code: 'configuration_invalid',
      message: expect.stringMatching(
        /^None of the servers takes writes .*"there_is_none" does not exist.*does not answer/,
      ),
    });
  });

  it('one that was marked as replaced is refused, until the mark is taken away', async () => {
    const url = await newDatabase();
    const client = new pg.Client(url);
    await client.connect();
    onTestFinished(() => client.end());
    const database = client.escapeIdentifier(new URL(url).pathname.slice(1));
    await client.query(`ALTER DATABASE ${database} SET settled.superseded_by = '7'`);
    await expect(openTestPostgres(url)).rejects.toMatchObject({
      code: 'store_unwritable',
      message: expect.stringMatching(
        /was replaced as the primary: it is on timeline 1, and another server is on timeline 7/,
      ),
    });
    await client.query(`ALTER DATABASE ${database} RESET settled.superseded_by`);
    const { store } = await openTestPostgres(url);
    await store.close();
  });

  it('a connection from before a doubt is inspected again before it is used', async () => {
    const url = await newDatabase();
    const servers = serversAt(url, [hostOf(url)]);
    const db = openTestDatabase(url, { connections: 2, servers });
    onTestFinished(() => db.close());
    const pid = statement('SELECT pg_backend_pid() AS pid');
    const ask = () => db.once((tx) => tx.one<{ pid: number }>(pid));
    const [one] = await Promise.all([ask(), ask()]);
    const client = new pg.Client(url);
    await client.connect();
    onTestFinished(() => client.end());
    const database = client.escapeIdentifier(new URL(url).pathname.slice(1));
    // Its open sessions do not have the mark, and answer; a new one is refused.
    await client.query(`ALTER DATABASE ${database} SET settled.superseded_by = '7'`);
    expect(await ask()).toMatchObject({ pid: expect.any(Number) });
    await client.query('SELECT pg_terminate_backend($1)', [one?.pid]);
    await eventually(async () => {
      await expect(ask()).rejects.toMatchObject({ code: 'store_unwritable' });
      await expect(ask()).rejects.toMatchObject({ code: 'store_unwritable' });
    });
  });
});
