import { randomUUID } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import { postgresAddress } from '../../../src/store/address.ts';
import { probeStore } from '../../../src/store/open.ts';
import type { TrialOptions } from '../../../src/store/trial.ts';
import { systemClock } from '../../../src/work/clock.ts';
import { startMisreading, startTransactionPooler } from '../../support/pooler.ts';
import { runIn } from './contract_store.ts';
import { connectTo, emptyDatabase, newDatabase, openTestPostgres, openUntilEnd, sharedServer } from './opening.ts';

/** What is not ok, by its name. */
async function probe(url: string, over: Partial<TrialOptions> = {}): Promise<Record<string, string>> {
  const store = postgresAddress(url);
  const { promise: stopped } = Promise.withResolvers<never>();
  const tried = await probeStore({
    ...{ store, direct: null, trustsStorage: false, clock: systemClock, newId: randomUUID, stopped },
    ...over,
  });
  const bad = tried.filter(({ status }) => status !== 'ok');
  return Object.fromEntries(bad.map(({ name, status, detail }) => [name, `${status}: ${detail}`]));
}

const LEFT = `SELECT nspname AS name FROM pg_namespace WHERE nspname LIKE 'settled_probe%'
  UNION ALL SELECT relname FROM pg_class WHERE relname LIKE 'settled_probe%'`;

async function expectNothingLeft(url: string): Promise<void> {
  expect((await (await connectTo(url)).query(LEFT)).rows).toEqual([]);
}

const emptyDatabases = (count: number) => Promise.all(Array.from({ length: count }, emptyDatabase));
const nameOf = (url: string) => new URL(url).pathname.slice(1);

/** What settled would find there at its first start. */
async function expectEmpty(url: string): Promise<void> {
  const sql =
    "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')";
  expect((await (await connectTo(url)).query(sql)).rows).toEqual([]);
}

describe('the probe of a store on PostgreSQL', () => {
  it('finds all there in an empty database, and beside a replica that serves, and leaves nothing', async () => {
    const [empty, served] = await Promise.all([emptyDatabase(), newDatabase()]);
    const { store } = await openUntilEnd(served);
    const before = await store.listOrders({ limit: 10 });
    expect(await Promise.all([probe(empty), probe(served)])).toEqual([{}, {}]);
    await Promise.all([expectNothingLeft(empty), expectNothingLeft(served), expectEmpty(empty)]);
    expect(await store.listOrders({ limit: 10 })).toEqual(before);
  });

  it('removes what it made if it is stopped', async () => {
    const url = await emptyDatabase();
    const stop = Promise.withResolvers<never>();
    const client = await connectTo(url);
    // Its migrations wait, as behind a replica that migrates.
    const turn = "SELECT pg_advisory_lock(x'5e771ed'::int)";
    await client.query(turn);
    const probing = probe(url, { stopped: stop.promise });
    await expect.poll(async () => (await client.query(LEFT)).rows).toHaveLength(1);
    stop.reject(new Error('stopped'));
    await expect(probing).rejects.toThrow('stopped');
    await expectNothingLeft(url);
    await client.query("SELECT pg_advisory_unlock(x'5e771ed'::int)");
    // Given once the migrations, which have no schema any more, have had theirs.
    await client.query(turn);
    await expectEmpty(url);
  });

  it('removes what it was still making when it was stopped', async () => {
    const url = await emptyDatabase();
    const stop = Promise.withResolvers<never>();
    const client = await connectTo(url);
    await client.query('BEGIN; LOCK pg_namespace IN SHARE MODE');
    const probing = probe(url, { stopped: stop.promise });
    const waits = "SELECT FROM pg_locks WHERE NOT granted AND relation = 'pg_namespace'::regclass";
    await expect.poll(async () => (await client.query(waits)).rows).toHaveLength(1);
    stop.reject(new Error('stopped'));
    await client.query('ROLLBACK');
    await expect(probing).rejects.toThrow('stopped');
    await expectEmpty(url);
  });

  it('finds a role that may create nothing, one that may create tables alone, and one with all rights', async () => {
    const url = await emptyDatabase();
    const role = `role_${randomUUID().slice(0, 8)}`;
    await runIn(url, `CREATE ROLE ${role} LOGIN`);
    onTestFinished(() => runIn(sharedServer().url('postgres'), `DROP ROLE ${role}`));
    onTestFinished(() => runIn(url, `DROP OWNED BY ${role}`));
    const asRole = new URL(url);
    asRole.username = role;
    const rights = (said: string) => ({
      rights: expect.stringMatching(`^failing: permission denied for ${said}. .*let it own the database`),
    });
    expect(await probe(asRole.href)).toEqual(rights('schema public'));
    await runIn(url, `GRANT CREATE ON SCHEMA public TO ${role}`);
    expect(await probe(asRole.href)).toEqual(rights(`database ${nameOf(url)}`));
    await runIn(url, `GRANT CREATE ON DATABASE "${nameOf(url)}" TO ${role}`);
    expect(await probe(asRole.href)).toEqual({});
    await Promise.all([expectNothingLeft(url), expectEmpty(url)]);
  });

  it('finds a database that is read-only, wrongly encoded, another program’s, too old, or without a schema', async () => {
    const [readOnly = '', foreign = '', old = '', lost = ''] = await emptyDatabases(4);
    const latin = `test_${randomUUID()}`;
    await runIn(sharedServer().url('postgres'), `CREATE DATABASE "${latin}" ENCODING 'LATIN1' TEMPLATE template0`);
    onTestFinished(() => sharedServer().drop(latin));
    await runIn(readOnly, `ALTER DATABASE "${nameOf(readOnly)}" SET default_transaction_read_only = on`);
    await runIn(foreign, 'CREATE TABLE blog (n int)');
    await runIn(lost, `ALTER DATABASE "${nameOf(lost)}" SET search_path = nowhere`);
    const asOld = await startMisreading(old, { "current_setting('server_version_num')::int": '130012' });
    const all = [readOnly, sharedServer().url(latin), foreign, asOld, lost];
    expect(await Promise.all(all.map((url) => probe(url)))).toEqual([
      { rights: expect.stringMatching(/^failing: cannot execute CREATE TABLE in a read-only transaction\. /) },
      { server: expect.stringMatching(/^failing: .* is encoded as LATIN1\. /) },
      { server: expect.stringMatching(/^failing: .* holds tables of another program \(blog\)\. /) },
      { server: expect.stringMatching(/^failing: .* runs PostgreSQL 13; settled needs 14 or later\.$/) },
      { rights: expect.stringMatching(/^failing: no schema has been selected to create in\. /) },
    ]);
    await Promise.all([readOnly, old, lost].map(expectEmpty));
  });

  it('names the statement that failed, and what the database said', async () => {
    const [bare = '', unknown = '', absent = '', silent = ''] = await emptyDatabases(4);
    await runIn(bare, 'DROP EXTENSION plpgsql');
    const misread = (url: string, said: string, read: string) => startMisreading(url, { [said]: read });
    const found = await Promise.all([
      probe(bare),
      probe(await misread(unknown, 'SKIP LOCKED', 'SKIP LOCKS')),
      probe(await misread(absent, 'FROM order_word', 'FROM order_wird')),
      probe(await misread(silent, 'pg_control_system()', 'pg_control_sistem()')),
    ]);
    expect(found).toEqual([
      { store: expect.stringMatching(/^failing: language "plpgsql" does not exist/) },
      { store: expect.stringMatching(/^failing: syntax error at or near "LOCKS": .*SKIP LOCKED/) },
      { store: expect.stringMatching(/^failing: relation "order_wird" does not exist: .*FROM order_word/) },
      { server: 'failing: function pg_control_sistem() does not exist' },
    ]);
    await Promise.all([bare, unknown, absent, silent].flatMap((url) => [expectNothingLeft(url), expectEmpty(url)]));
  });

  it('finds that nothing answers', async () => {
    await expect(probe('postgres://settled@127.0.0.1:1/settled')).rejects.toMatchObject({ code: 'store_unreachable' });
  });
});

describe('a pooler in transaction mode that loses prepared statements', () => {
  it('is found, and a direct address that leads elsewhere or to a pooler too', async () => {
    const url = await emptyDatabase();
    const sessions = expect.stringMatching(/^warning: .* is a pooler in transaction mode, .* SETTLED_STORE_DIRECT: /);
    const store = expect.stringMatching(/^failing: A pooler before .* loses prepared statements .*already exists/);
    const twice = postgresAddress(await startTransactionPooler(url));
    const found = await Promise.all(
      [null, postgresAddress(url), twice].map(async (direct) => probe(await startTransactionPooler(url), { direct })),
    );
    expect(found).toEqual([{ sessions, store }, { store }, { sessions, store }]);
    const elsewhere = postgresAddress(await emptyDatabase());
    expect(await probe(url, { direct: elsewhere })).toEqual({
      store: expect.stringMatching(/^failing: SETTLED_STORE_DIRECT leads to another database/),
    });
    await expectNothingLeft(url);
  });

  it('is refused at the start, with a sentence that says why', async () => {
    await expect(openTestPostgres(await startTransactionPooler(await newDatabase()))).rejects.toMatchObject({
      code: 'configuration_invalid',
      message: expect.stringMatching(
        /^A pooler before .* lends a session for one transaction, and loses prepared statements \(.*\)\. Use pgbouncer 1\.21/,
      ),
    });
  });
});

describe('a direct address', () => {
  it('has migrations and wake-ups past the address of the store, and is refused if it leads elsewhere', async () => {
    const url = await emptyDatabase();
    const role = `role_${randomUUID().slice(0, 8)}`;
    await runIn(url, `CREATE ROLE ${role} LOGIN SUPERUSER`);
    const server = new URL(url);
    server.username = role;
    const opened = await openTestPostgres(url, { direct: postgresAddress(server.href) });
    onTestFinished(async () => {
      await opened.store.close();
      await runIn(url, `DROP OWNED BY ${role}; DROP ROLE ${role}`);
    });
    opened.wakeups.listen(() => {});
    const client = await connectTo(url);
    const { rows } = await client.query("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'");
    expect(rows).toEqual([{ tableowner: role }]);
    const listening = `SELECT usename AS name FROM pg_stat_activity
      WHERE datname = current_database() AND query LIKE 'LISTEN%'`;
    await expect.poll(async () => (await client.query(listening)).rows).toEqual([{ name: role }]);
    const elsewhere = postgresAddress(await emptyDatabase());
    await expect(openTestPostgres(url, { direct: elsewhere })).rejects.toMatchObject({
      code: 'configuration_invalid',
      message:
        `SETTLED_STORE_DIRECT leads to another database (${elsewhere.name}) than SETTLED_STORE (the database of the test). Name ` +
        'the server and the database that the pooler leads to.',
    });
  });
});
