import { setTimeout as after } from 'node:timers/promises';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { deliver, eventOf, type Reserved } from '../../prove/harness/send.ts';
import type { Serving } from '../../prove/harness/settled.ts';
import { testFolder } from '../support/app.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { fatalLine, runSettled } from '../support/process.ts';
import { eventuallyAfter } from '../support/timing.ts';
import { expectReady, startLoad, toEach } from './load.ts';
import { get, reserveMany } from './serving.ts';
import { expectPaidOnce, lapseLeases, lookInto, sharedEnvironment, startReplicas, storedEventIds } from './sharing.ts';

const eventually = eventuallyAfter('processes start, end and take over');

const UNREACHABLE = 69;
/** How long the service waits for an answer. */
const GIVEN_UP_AFTER_MS = 20_000;
/** How often readers of the feed poll; a hint wakes them sooner. */
const LOOK_EVERY_MS = 1_000;
/** After this time a reader has looked, and waits. */
const WAITING_AFTER_MS = 200;

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.dispose());

describe('a database that fails while replicas run', () => {
  let url: string;
  let replicas: readonly Serving[];
  const kills: (() => void)[] = [];

  // They outlive each failure, and meet the next.
  beforeAll(async () => {
    url = await server.create('failing');
    replicas = await startReplicas(sharedEnvironment(url), 2, { atEnd: (kill) => kills.push(kill) });
  });
  afterAll(() => {
    const ended = replicas.map(({ child }) => child.exitCode);
    for (const kill of kills) kill();
    expect(ended).toEqual([null, null]);
  });

  it('answers deliveries with 503 in time while PostgreSQL is paused, and then recovers', async () => {
    const database = lookInto(url);
    const [serving] = replicas as [Serving];
    const links = await reserveMany(serving, 5, 'paused');
    const [first, ...others] = links as [Reserved, ...Reserved[]];
    expect((await deliver(serving, first, eventOf(first))).status).toBe(200);
    // What is in work when the database goes stays in work for half a minute.
    await expectPaidOnce(database, [first]);
    server.pause();
    try {
      const askedAt = Date.now();
      const deliveries = others.map(async (link) => {
        const { status, headers } = await deliver(serving, link, eventOf(link));
        return { status, retryAfter: headers['retry-after'], tookMs: Date.now() - askedAt };
      });
      await eventually(async () => expect((await get(serving, '/readyz')).status).toBe(503));
      expect((await get(serving, '/livez')).status).toBe(200);
      for (const { status, retryAfter, tookMs } of await Promise.all(deliveries)) {
        expect([status, retryAfter]).toEqual([503, expect.stringMatching(/^\d+$/)]);
        expect(tookMs).toBeLessThan(GIVEN_UP_AFTER_MS);
      }
    } finally {
      server.resume();
    }
    await expectReady(replicas);
    for (const link of others) expect((await deliver(serving, link, eventOf(link))).status).toBe(200);
    await expectPaidOnce(database, links);
  });

  it('says that commits wait for a standby and none answers, and takes deliveries when none is waited for any more', async () => {
    const database = lookInto(url);
    const [serving] = replicas as [Serving];
    const link = await serving.reserve('waiting');
    const check = async (wanted: string) => {
      const { checks } = (await serving.api('/v1/admin/doctor?probe=false')).body as { checks: { name: string }[] };
      return checks.find(({ name }) => name === wanted);
    };
    expect(await check('replication')).toMatchObject({ status: 'ok' });
    await database.query("ALTER SYSTEM SET synchronous_standby_names = 'absent'");
    try {
      await database.query('SELECT pg_reload_conf()');
      await eventually(async () =>
        expect((await database.query('SHOW synchronous_standby_names')).rows).toEqual([
          { synchronous_standby_names: 'absent' },
        ]),
      );
      const refused = deliver(serving, link, eventOf(link));
      await eventually(async () => {
        expect(await check('replication')).toEqual({
          name: 'replication',
          status: 'failing',
          detail: expect.stringMatching(
            /^no standby that commits wait for \(synchronous_standby_names: absent\) answers: \d+ commits? of settled waits?, /,
          ),
        });
      });
      expect((await refused).status).toBe(503);
      // The database can be read.
      expect(await check('settlement')).toMatchObject({ status: 'ok' });
      await serving.line(/that a standby answers if commits wait for one/);
    } finally {
      await database.query('ALTER SYSTEM RESET synchronous_standby_names');
      await database.query('SELECT pg_reload_conf()');
    }
    await eventually(async () => expect((await deliver(serving, link, eventOf(link))).status).toBe(200));
    await expectReady(replicas);
  });

  it('acknowledges the next delivery after every connection was ended, and replicas hear each other again', async () => {
    const database = lookInto(url);
    const [one, other] = replicas as [Serving, Serving];
    const links = await reserveMany(one, 8, 'ended');
    const [first, second, ...others] = links as [Reserved, Reserved, ...Reserved[]];
    expect((await deliver(one, first, eventOf(first))).status).toBe(200);
    await expectPaidOnce(database, [first]);
    expect(await endConnections(database)).toBeGreaterThan(3);

    expect((await deliver(one, second, eventOf(second))).status).toBe(200);
    expect((await get(other, '/readyz')).status).toBe(200);
    await expectPaidOnce(database, [second]);
    await expectListening(database, replicas.length);
    await expectHeard(one, other, others);
  });

  it('has stored and settled once what it acknowledged while PostgreSQL was killed and started again', async () => {
    const database = lookInto(url);
    const links = await reserveMany(replicas[0] as Serving, 24, 'killed');
    const load = startLoad(toEach(replicas), links);
    for (const enough of [30, 60]) {
      await load.goesOn(enough);
      await server.kill();
      try {
        load.statuses.delete(503);
        await eventually(() => expect(load.statuses.has(503)).toBe(true));
      } finally {
        await server.start();
      }
    }
    await load.goesOn(90);
    await load.end();
    expect([...load.statuses.keys()].sort()).toEqual([200, 503]);
    const stored = await storedEventIds(database);
    expect(load.acknowledged.filter((eventId) => !stored.has(eventId))).toEqual([]);
    await expectReady(replicas);
    // What a replica had in hand when the database went stays in its hands for half a minute.
    await lapseLeases(database);
    await expectPaidOnce(database, links);
  });
});

describe('a database that cannot be reached', () => {
  it('is waited for, and then told in a sentence, with the code for what is unreachable', async () => {
    const nowhere = `postgres://settled@localhost/settled?host=${encodeURIComponent(testFolder())}`;
    const end = await runSettled(['serve'], {
      ...sharedEnvironment(nowhere),
      NODE_OPTIONS: `--import=${fastClock(20)}`,
    });
    expect(end.stdout).toContain('the database cannot be reached; trying for 30 s');
    expect([end.code, fatalLine(end)]).toMatchObject([
      UNREACHABLE,
      { exit: UNREACHABLE, fault: { message: expect.stringContaining('does not answer') } },
    ]);
  });

  it('is found by a process that was started before it', async () => {
    const url = await server.create('late');
    await server.kill();
    const starting = startReplicas(sharedEnvironment(url), 1);
    await after(700);
    await server.start();
    const [serving] = await starting;
    expect((await get(serving, '/readyz')).status).toBe(200);
  });
});

/** Ends every connection of replicas, as a restart of a pooler or a firewall does. Returns how many those were. */
async function endConnections(database: pg.Pool): Promise<number> {
  const { rows } = await database.query(
    `SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'settled'`,
  );
  const pids = rows.map(({ pid }) => pid);
  await eventually(async () => {
    const left = await database.query('SELECT FROM pg_stat_activity WHERE pid = ANY($1)', [pids]);
    expect(left.rows).toHaveLength(0);
  });
  return pids.length;
}

async function expectListening(database: pg.Pool, replicas: number): Promise<void> {
  await eventually(async () => {
    const listening = await database.query(
      "SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'",
    );
    expect(listening.rows).toHaveLength(replicas);
  });
}

/** A reader at one replica is answered before its next poll, because another replica announced a notice. */
async function expectHeard(one: Serving, other: Serving, links: Reserved[]): Promise<void> {
  await vi.waitFor(
    async () => {
      const link = links.pop() as Reserved;
      const { cursor } = (await other.api('/v1/feed?limit=100')).body;
      const askedAt = Date.now();
      const reading = other.api(`/v1/feed?after=${cursor}&wait=5`);
      await after(WAITING_AFTER_MS);
      expect((await deliver(one, link, eventOf(link))).status).toBe(200);
      expect((await reading).body.notices).toHaveLength(1);
      expect(Date.now() - askedAt).toBeLessThan(LOOK_EVERY_MS);
    },
    { timeout: 120_000, interval: 100 },
  );
}

/** What is loaded before settled, so that its time passes so many times as fast. */
function fastClock(times: number): string {
  const code = `const now = performance.now.bind(performance);
    performance.now = () => now() * ${times};
    const { setTimeout } = globalThis;
    globalThis.setTimeout = (work, ms, ...rest) => setTimeout(work, ms / ${times}, ...rest);`;
  return `data:text/javascript,${encodeURIComponent(code)}`;
}
