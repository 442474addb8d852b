import { randomUUID } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import { postgresAddress } from '../../../src/store/address.ts';
import { probeStore } from '../../../src/store/open.ts';
import type { ProbeOptions } from '../../../src/store/probed.ts';
import { systemClock } from '../../../src/work/clock.ts';
import { startMisreading, startTransactionPooler } from '../../support/pooler.ts';
import { runIn } from './contract_store.ts';
import { connectTo, newDatabase, openTestPostgres, sharedServer } from './opening.ts';

/** What is not ok, by its capability. */
async function probe(url: string, over: Partial<ProbeOptions> = {}): Promise<Record<string, string>> {
  const store = postgresAddress(url);
  const { signal } = new AbortController();
  const probed = await probeStore({ store, direct: null, clock: systemClock, newId: randomUUID, signal, ...over });
  const bad = probed.filter(({ verdict }) => verdict !== 'ok');
  return Object.fromEntries(bad.map(({ capability, verdict, found }) => [capability, `${verdict}: ${found}`]));
}

async function newEmpty(): Promise<string> {
  const name = `test_${randomUUID()}`;
  const url = await sharedServer().create(name);
  onTestFinished(() => sharedServer().drop(name));
  return url;
}

const LEFT = `SELECT nspname AS name FROM pg_namespace WHERE nspname LIKE 'settled_probe%'
  UNION ALL SELECT relname FROM pg_class WHERE relname LIKE 'settled_probe%'`;

async function expectNothingLeft(url: string): Promise<void> {
  expect((await (await connectTo(url)).query(LEFT)).rows).toEqual([]);
}

const nameOf = (url: string) => new URL(url).pathname.slice(1);

/** Every row that needs the table of the run. */
const WITHOUT_TABLE = Object.fromEntries(
  ['triggers', 'identity', 'partial_unique_index', 'writable_cte', 'reading_anew', 'one_moment', 'skip_locked']
    .concat('no_key_update', 'index_concurrently')
    .map((capability) => [capability, 'missing: no table']),
);

describe('the probe of a store on PostgreSQL', () => {
  it('finds all there in an empty database, and beside a replica that serves, and leaves nothing', async () => {
    const [empty, served] = await Promise.all([newEmpty(), newDatabase()]);
    const { store } = await openTestPostgres(served);
    onTestFinished(() => store.close());
    expect(await Promise.all([probe(empty), probe(served)])).toEqual([{}, {}]);
    await Promise.all([expectNothingLeft(empty), expectNothingLeft(served)]);
  });

  it('removes what it made if it is stopped, and what another run left an hour ago, and not what runs now', async () => {
    const url = await newEmpty();
    const nowMs = Date.now();
    const [old, recent] = [`settled_probe_${nowMs - 3_700_000}_a`, `settled_probe_${nowMs - 60_000}_b`];
    await runIn(url, `CREATE SCHEMA ${old} CREATE TABLE row (n int); CREATE SCHEMA ${recent}`);
    const stop = new AbortController();
    const client = await connectTo(url);
    const seen = async () => (await client.query(LEFT)).rows.map(({ name }) => name);
    const probing = probe(url, { signal: stop.signal });
    await expect.poll(seen).toContainEqual(expect.stringMatching(`^settled_probe_(?!${nowMs - 60_000})`));
    stop.abort();
    await expect(probing).rejects.toMatchObject({ code: 'store_stopped' });
    await expect.poll(seen).toEqual([recent]);
  });

  it('finds a role that may create nothing, and one that may create tables and no schema', async () => {
    const url = await newEmpty();
    const role = `role_${randomUUID().slice(0, 8)}`;
    await runIn(url, `CREATE ROLE ${role} LOGIN CONNECTION LIMIT 20`);
    onTestFinished(() => runIn(sharedServer().url('postgres'), `DROP ROLE ${role}`));
    onTestFinished(() => runIn(url, `DROP OWNED BY ${role}`));
    const asRole = new URL(url);
    asRole.username = role;
    const denied = 'missing: permission denied for schema public';
    const limited = { connections: expect.stringMatching(/^degraded: 20, \d+ in use$/) };
    expect(await probe(asRole.href)).toEqual({ ...limited, schema_changes: denied, tables: denied, ...WITHOUT_TABLE });
    await runIn(url, `GRANT CREATE ON SCHEMA public TO ${role}`);
    expect(await probe(asRole.href)).toEqual(limited);
    await expectNothingLeft(url);
  });

  it('finds a database that is read-only, wrongly encoded, without plpgsql, or strict in another way', async () => {
    const [readOnly, other] = await Promise.all([newEmpty(), newEmpty()]);
    const latin = `test_${randomUUID()}`;
    await runIn(sharedServer().url('postgres'), `CREATE DATABASE "${latin}" ENCODING 'LATIN1' TEMPLATE template0`);
    onTestFinished(() => sharedServer().drop(latin));
    await runIn(readOnly, `ALTER DATABASE "${nameOf(readOnly)}" SET default_transaction_read_only = on`);
    await runIn(
      other,
      `ALTER DATABASE "${nameOf(other)}" SET default_transaction_isolation = 'serializable';
       ALTER DATABASE "${nameOf(other)}" CONNECTION LIMIT 13; DROP EXTENSION plpgsql`,
    );
    const refused = (what: string) => `missing: cannot execute ${what} in a read-only transaction`;
    const found = await Promise.all([readOnly, sharedServer().url(latin), other].map((url) => probe(url)));
    expect(found).toEqual([
      {
        primary: 'missing: read-only',
        schema_changes: refused('CREATE TABLE'),
        tables: refused('CREATE SCHEMA'),
        ...WITHOUT_TABLE,
      },
      { encoding: 'missing: LATIN1' },
      {
        isolation: 'degraded: serializable',
        connections: expect.stringMatching(/^missing: 13, /),
        triggers: 'missing: language "plpgsql" does not exist',
      },
    ]);
  });

  it('finds functions that do nothing, as locks that lock nothing, and a clock that is wrong', async () => {
    const [url, late] = await Promise.all([newEmpty(), newEmpty()]);
    const fake = (name: string, takes: string) =>
      `CREATE FUNCTION fake.${name}(${takes}) RETURNS void AS $$ SELECT $$ LANGUAGE sql`;
    await runIn(
      url,
      `CREATE SCHEMA fake; ${fake('pg_advisory_xact_lock', 'bigint')}; ${fake('pg_notify', 'text, text')};
       ${fake('pg_sleep', 'double precision')};
       ALTER DATABASE "${nameOf(url)}" SET search_path = fake, pg_catalog, public`,
    );
    const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + 10_000 };
    expect(await Promise.all([probe(url), probe(late, { clock })])).toEqual([
      {
        advisory_locks: 'missing: two at once',
        listen: 'degraded: nothing was heard',
        timeouts: 'degraded: not in force: lock, statement',
      },
      { clock: expect.stringMatching(/^degraded: (9|10)\d{3} ms apart$/) },
    ]);
  });

  it('finds a server that takes statements for others, and removes what it made there', async () => {
    const [url, committing] = await Promise.all([newEmpty(), newEmpty()]);
    const misread = {
      'FOR UPDATE SKIP LOCKED': 'FOR UPDATE NOWAIT',
      'FOR NO KEY UPDATE': 'FOR KEY SHARE',
      'ISOLATION LEVEL READ COMMITTED': 'ISOLATION LEVEL SERIALIZABLE',
      'REPEATABLE READ READ ONLY': 'READ COMMITTED READ ONLY',
      'UNIQUE INDEX': 'INDEX',
      "'on' END": "'off'END",
      'GENERATED ALWAYS AS IDENTITY PRIMARY KEY': 'DEFAULT -extract(epoch FROM now())*1e6',
      'CREATE INDEX CONCURRENTLY': 'CREATE INDEX-',
      'WITH made AS': 'WITH mado AS',
    };
    const found = await Promise.all([
      probe(await startMisreading(url, misread)),
      probe(await startMisreading(committing, { ROLLBACK: 'COMMIT' })),
    ]);
    expect(found[0]).toEqual({
      skip_locked: expect.stringMatching(/^missing: could not obtain lock on row/),
      no_key_update: 'missing: two at once',
      reading_anew: 'missing: could not serialize access due to concurrent update',
      one_moment: expect.stringMatching(/^missing: (\d+) rows, then (?!\1)/),
      partial_unique_index: expect.stringMatching(/^missing: there is no unique/),
      synchronous_commit: 'missing: off becomes off',
      identity: expect.stringMatching(/^missing: -\d+, -\d+/),
      index_concurrently: expect.stringMatching(/^degraded: syntax/),
      writable_cte: 'missing: relation "made" does not exist',
    });
    expect(found[1]).toMatchObject({ schema_changes: 'missing: kept' });
    await Promise.all([url, committing].map(expectNothingLeft));
  });

  it('finds that nothing answers', async () => {
    await expect(probe('postgres://settled@127.0.0.1:1/settled')).rejects.toMatchObject({ code: 'store_unreachable' });
  });
});

describe('a pooler in transaction mode that loses prepared statements', () => {
  const TIMEOUTS = 'idle_in_transaction_session_timeout, lock_timeout, statement_timeout';

  it('is found, and what a direct address gives beside it', async () => {
    const url = await newEmpty();
    const lost = {
      sessions: 'degraded: lent for one transaction',
      session_settings: `degraded: no ${TIMEOUTS}`,
      prepared_statements: expect.stringMatching(/^missing: prepared statement "\w+" already exists$/),
    };
    const session = 'degraded: no session is kept';
    const alone = { direct: 'degraded: not given', listen: session, index_concurrently: session };
    const elsewhere = postgresAddress(await newEmpty());
    const twice = postgresAddress(await startTransactionPooler(url));
    const found = await Promise.all(
      [null, postgresAddress(url), elsewhere, twice].map(async (direct) =>
        probe(await startTransactionPooler(url), { direct }),
      ),
    );
    expect(found).toEqual([
      { ...lost, ...alone },
      lost,
      expect.objectContaining({ ...lost, direct: 'missing: another database' }),
      { ...lost, ...alone, direct: 'degraded: a pooler too' },
    ]);
    for (const timeout of TIMEOUTS.split(', ')) {
      await runIn(url, `ALTER DATABASE "${nameOf(url)}" SET ${timeout} = '4s'`);
    }
    expect(await probe(await startTransactionPooler(url))).not.toHaveProperty('session_settings');
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
    const url = await newEmpty();
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
    const elsewhere = postgresAddress(await newEmpty());
    await expect(openTestPostgres(url, { direct: elsewhere })).rejects.toMatchObject({
      code: 'configuration_invalid',
      message:
        `SETTLED_STORE_DIRECT leads to another database (${elsewhere.name}) than SETTLED_STORE (the database of the test). Name ` +
        'the server and the database that the pooler leads to.',
    });
  });
});
