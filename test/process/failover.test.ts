import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { fatalLine, runSettled } from '../support/process.ts';
import { eventually } from '../support/timing.ts';
import { expectReady, reserveMany, startLoad } from './load.ts';
import { expectPaidOnce, lapseLeases, lookInto, sharedEnvironment, startReplicas, storedEventIds } from './sharing.ts';

const UNWRITABLE = 77;

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ standbys: 2, isSynchronous: true });
});
afterAll(() => cluster.dispose());

describe('a primary that fails under load', () => {
  it('is followed by its standby; all that was acknowledged is paid once, and the old one is used no more', async () => {
    const { primary: old } = cluster;
    await old.create('settled');
    const environment = sharedEnvironment(cluster.url('settled'));
    const replicas = await startReplicas(environment, 2);
    const links = await reserveMany(replicas[0], 24);
    const load = startLoad(replicas, links);
    await load.goesOn(60);
    await old.kill();
    load.statuses.delete(503);
    await eventually(() => expect(load.statuses.has(503)).toBe(true));
    const standby = await cluster.promote();
    await load.goesOn(load.acknowledged.length + 60);
    // Nobody has told it that it was replaced: it takes writes.
    await old.start();
    const database = lookInto(old.url('settled'));
    const told = "SELECT FROM pg_db_role_setting WHERE setconfig::text LIKE '%settled.superseded_by=2%'";
    await eventually(async () => expect((await database.query(told)).rows).toHaveLength(1));
    const before = await storedEventIds(database);
    await load.goesOn(load.acknowledged.length + 60);
    await load.end();
    expect(await storedEventIds(database)).toEqual(before);

    expect([...load.statuses.keys()].sort()).toEqual([200, 503]);
    const now = lookInto(standby.url('settled'));
    const stored = await storedEventIds(now);
    expect(load.acknowledged.filter((eventId) => !stored.has(eventId))).toEqual([]);
    await expectReady(replicas);
    await lapseLeases(now);
    await expectPaidOnce(now, links);
    expect(replicas.map(({ child }) => child.exitCode)).toEqual([null, null]);
    const places = new URL(cluster.url('settled')).searchParams.get('host')?.split(',') as string[];
    const placeOf = (member: typeof old) => expect.stringContaining(places[cluster.members.indexOf(member)] as string);
    for (const { line } of replicas) {
      const { from, to, timeline } = JSON.parse(await line(/"another server is the primary"/));
      expect([from, to, timeline]).toEqual([placeOf(old), placeOf(standby), 2]);
    }

    const checks: { name: string; status: string; detail: string }[] = (await replicas[0].api('/v1/admin/doctor')).body
      .checks;
    const detailOf = (name: string) => checks.find((check) => check.name === name)?.detail;
    expect(detailOf('servers')).toMatch(/ was replaced as the primary \(timeline 1\).* is the primary \(timeline 2\)/s);
    expect(detailOf('servers')).toMatch(/ is a standby, \d+ bytes? behind/);
    expect(detailOf('replication')).toMatch(/^commits wait for a standby \(synchronous_standby_names: ANY 1 \(\*\)\)/);

    // A process that sees only the old one, and has never seen the other.
    const end = await runSettled(['serve'], { ...environment, SETTLED_STORE: old.url('settled') });
    expect([end.code, fatalLine(end)]).toMatchObject([
      UNWRITABLE,
      {
        fault: {
          message: expect.stringMatching(/was replaced as the primary: it is on timeline 1, and .* timeline 2/),
        },
      },
    ]);
  });
});
