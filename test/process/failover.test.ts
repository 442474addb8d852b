import { basename } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { deliver, eventOf } from '../../prove/harness/send.ts';
import type { Serving } from '../../prove/harness/settled.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { startPostgres } from '../support/postgres.ts';
import { refusedStart, runSettled } from '../support/process.ts';
import { saying, surfacesOf } from '../support/surfaces.ts';
import { eventuallyAfter } from '../support/timing.ts';
import { expectReady, startLoad, toEach } from './load.ts';
import { get, listenersOf, reserveMany } from './serving.ts';
import { expectPaidOnce, lapseLeases, lookInto, sharedEnvironment, startReplicas, storedEventIds } from './sharing.ts';

const eventually = eventuallyAfter('processes start, end and take over');

const UNWRITABLE = 77;

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ standbys: 2, isSynchronous: true });
});
afterAll(() => cluster.dispose());

const containing = (text: string) => expect.stringContaining(text);

/** All surfaces but that for strangers, and each until the standby is back. */
async function expectSaidToBeAway(serving: Serving, place: string): Promise<void> {
  const words = new RegExp(`${basename(place)}[^;.]* (cannot|does not|refused|gave)`);
  const said = () => surfacesOf(listenersOf(serving), 'order-1', ['servers']);
  const operator = { hooksPort: serving.operatorPort };
  await eventually(async () => expect((await get(operator, '/readyz')).text).toMatch(words));
  expect((await said()).page).toMatch(/warning servers: /);
  expect(await said()).toEqual(saying(words, 'settled_store_servers{role="unreachable"} 1'));
  await serving.line(/"server_away".*"this needs a person"/);
}

describe('a primary that fails under load', () => {
  it('is followed by its standby; all that was acknowledged is paid once, and the old one is used no more', async () => {
    const { primary: old } = cluster;
    await old.create('settled');
    const environment = sharedEnvironment(cluster.url('settled'));
    const replicas = await startReplicas(environment, 2);
    const links = await reserveMany(replicas[0], 24);
    const places = new URL(cluster.url('settled')).host.split(',').map(decodeURIComponent);
    const placeOf = (member: typeof old) => places[cluster.members.indexOf(member)] as string;
    const [, gone] = cluster.members as [typeof old, typeof old];
    await gone.kill();
    await expectSaidToBeAway(replicas[0] as Serving, placeOf(gone));
    await gone.start();
    const load = startLoad(toEach(replicas), links);
    await load.goesOn(30);
    await old.kill();
    load.statuses.delete(503);
    await eventually(() => expect(load.statuses.has(503)).toBe(true));
    const standby = await cluster.promote();
    await load.goesOn(load.acknowledged.length + 30);
    // Nobody has told it that it was replaced: it takes writes.
    await old.start();
    const database = lookInto(old.url('settled'));
    const told = "SELECT WHERE obj_description('instance'::regclass) LIKE '%replaced by timeline 2 of cluster%'";
    await eventually(async () => expect((await database.query(told)).rows).toHaveLength(1));
    const before = await storedEventIds(database);
    await load.goesOn(load.acknowledged.length + 30);
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
    for (const { line } of replicas) {
      const { from, to, timeline } = JSON.parse(await line(/"another server is the primary"/));
      expect([from, to, timeline]).toEqual([...[old, standby].map(placeOf).map(containing), 2]);
      const replaced = JSON.parse(await line(/"a server takes writes that was replaced as the primary"/));
      expect(replaced).toMatchObject({ server: containing(placeOf(old)), timeline: 1 });
    }

    type Checks = { name: string; detail: string }[];
    // A replica may have asked the old one last when that was starting.
    await eventually(async () => {
      const checks: Checks = (await replicas[0].api('/v1/admin/doctor')).body.checks;
      const detailOf = (name: string) => checks.find((check) => check.name === name)?.detail;
      expect(detailOf('servers')).toMatch(
        / was replaced as the primary \(timeline 1\).* is the primary \(timeline 2\)/s,
      );
      expect(detailOf('servers')).toMatch(/ is a standby, \d+ bytes? behind/);
      expect(detailOf('replication')).toMatch(
        /^commits wait for a standby \(synchronous_standby_names: ANY 1 \(\*\)\)/,
      );
    });

    // A process that sees only the old one, and has never seen the other.
    expect(await refusedStart({ ...environment, SETTLED_STORE: old.url('settled') })).toMatchObject({
      exit: UNWRITABLE,
      message: expect.stringMatching(/was replaced as the primary: it is on timeline 1, and .* timeline 2/),
    });
  });
});

describe('two servers that take writes, of which neither replaced the other', () => {
  it('are used no more, as every surface says by their names, until one of them is stopped', async () => {
    const other = await startPostgres();
    onTestFinished(() => other.dispose());
    await Promise.all([cluster.primary, other].map((server) => server.create('split')));
    await other.kill();
    const url = cluster.url('split').replace('/split', `,${encodeURIComponent(other.folder)}/split`);
    const environment = sharedEnvironment(url);
    const [serving] = await startReplicas(environment, 1);
    const link = await serving.reserve('order-1');
    expect((await deliver(serving, link, eventOf(link, 'evt_1'))).status).toBe(200);

    await other.start();
    const event = eventOf(link, 'evt_2');
    await eventually(async () => expect((await deliver(serving, link, event)).status).toBe(503));
    const both = expect.stringMatching(
      new RegExp(`settled-network-.* and .*${basename(other.folder)}.* both take writes`),
    );
    for (const path of ['/v1/attention', '/v1/orders/order-1']) {
      expect(await serving.api(path)).toMatchObject({ status: 503, body: { detail: both } });
    }
    expect((await get(serving, '/readyz')).status).toBe(503);
    const asked = { ...environment, SETTLED_OPERATOR_LISTEN: `127.0.0.1:${serving.operatorPort}` };
    for (const command of ['attention', 'doctor']) {
      const { code, stdout, stderr } = await runSettled([command], asked);
      expect([command, code === 0, stdout + stderr]).toEqual([command, false, both]);
    }
    await serving.line(/both take writes/);

    await other.kill();
    await eventually(async () => expect((await deliver(serving, link, event)).status).toBe(200));
    expect((await serving.api('/v1/attention')).status).toBe(200);
  });
});
