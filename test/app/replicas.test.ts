import { connect, createServer, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Clock, systemClock } from '../../src/work/clock.ts';
import { runIn } from '../store/postgres/contract_store.ts';
import { newDatabase } from '../store/postgres/opening.ts';
import { startTestApp, type TestApp, testFolder } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { listen } from '../support/network.ts';
import { readableLog, samples } from '../support/observe.ts';
import { startServiceProxy } from '../support/proxies.ts';
import { startTestSandbox } from '../support/sandbox.ts';
import { shutDatabase } from '../support/test_database.ts';
import { eventuallyAfter } from '../support/timing.ts';

const eventually = eventuallyAfter('replicas notice each other by heartbeats and leases');

/** Polls of a second or more never come: a replica finds only what a hint announces. */
const deaf: Clock = {
  ...systemClock,
  after: (delayMs, work) => (delayMs >= 1_000 ? () => {} : systemClock.after(delayMs, work)),
};

/** Replicas of one store. */
async function startReplicas(...options: Parameters<typeof startTestApp>[0][]): Promise<TestApp[]> {
  const storePath = `${testFolder()}/settled.db`;
  const apps: TestApp[] = [];
  for (const each of options) apps.push(await startTestApp({ engine: 'postgres', storePath, ...each }));
  return apps;
}

/** Makes events due shortly after they were recorded: a replica that a hint wakes finds nothing yet. */
async function settleLater({ database }: TestApp): Promise<void> {
  await runIn(
    String(database?.url),
    `CREATE FUNCTION later() RETURNS trigger AS $$ BEGIN NEW.due_at_ms := NEW.due_at_ms + 300; RETURN NEW; END $$
       LANGUAGE plpgsql;
     CREATE TRIGGER later BEFORE INSERT ON inbox FOR EACH ROW EXECUTE FUNCTION later()`,
  );
}

describe('replicas of one store', () => {
  it('each take deliveries of a link that one of them made', async () => {
    const [one, other] = (await startReplicas({}, {})) as [TestApp, TestApp];
    const link = await one.reserve('order-1');
    const there = { ...link, webhookUrl: link.webhookUrl.replace(one.hooksUrl, other.hooksUrl) };
    const body = paymentEvent({ linkId: 'pl_1', amount: '100.00' });
    expect((await other.deliver(there, body)).status).toBe(200);
    await eventually(async () => expect((await one.order('order-1')).state).toBe('paid'));
    expect(await (await one.deliver(link, body)).json()).toEqual({ received: true, duplicate: true });
  });

  it('go by a secret that another one corrected two seconds ago', async () => {
    let passedMs = 0;
    const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + passedMs };
    const [one, other] = (await startReplicas({ clock }, { clock })) as [TestApp, TestApp];
    const link = await one.reserve('order-1');
    const webhookUrl = link.webhookUrl.replace(one.hooksUrl, other.hooksUrl);
    const body = paymentEvent({ linkId: 'pl_1', status: 'PENDING' });
    // It remembers the secret of now.
    expect((await other.deliver({ ...link, webhookUrl }, body)).status).toBe(200);
    const webhookSecret = 'the-right-secret-of-the-link';
    const correction = { reference: 'order-1', amount: '100.00', webhookSecret };
    expect((await one.api('/v1/links', { body: correction })).status).toBe(200);
    passedMs = 2_000;
    const paid = paymentEvent({ id: 'evt_2', linkId: 'pl_1', amount: '100.00' });
    const send = (headers: Record<string, string>) => other.deliver({ ...link, webhookUrl }, paid, headers);
    expect((await send(signedHeaders(link.webhookSecret, paid))).status).toBe(401);
    expect((await send(signedHeaders(webhookSecret, paid))).status).toBe(200);
    await eventually(async () => expect((await other.order('order-1')).state).toBe('paid'));
  });

  it('go at once by a secret that the service named to another one', async () => {
    const proxy = await startServiceProxy(() => sandbox.url);
    const sandbox = await startTestSandbox({ switches: ['creation-secret=own'] });
    const environment = {
      SETTLED_API_URL: proxy.url,
      SETTLED_API_KEY: sandbox.apiKey,
      SETTLED_PUBLIC_URL: 'http://127.0.0.1:9',
    };
    const [one, other] = (await startReplicas({ environment }, { environment, clock: deaf })) as [TestApp, TestApp];
    const asked = Promise.withResolvers<{ webhookUrl: string; webhookSecret: string }>();
    const answer = Promise.withResolvers<void>();
    let named = '';
    proxy.answerWith(async ({ method }, pass, _response, body) => {
      const passed = await pass();
      if (method !== 'POST') return passed;
      named = JSON.parse(passed.text).paymentLink.webhookSecret;
      asked.resolve(JSON.parse(body));
      await answer.promise;
      return passed;
    });
    const order = { reference: 'order-1', title: 'A chair', amount: '100.00' };
    const opening = one.api('/v1/orders', { body: order });
    const { webhookUrl, webhookSecret } = await asked.promise;
    const to = (app: TestApp, secret: string) => ({
      reference: 'order-1',
      webhookUrl: webhookUrl.replace('http://127.0.0.1:9', app.hooksUrl),
      webhookSecret: secret,
    });
    const events = (name: string) => paymentEvent({ id: name, status: 'PENDING' });
    // Both cache the credentials while the secret is unknown.
    for (const app of [one, other]) {
      expect((await app.deliver(to(app, webhookSecret), events('evt_1'))).status).toBe(200);
      expect((await app.deliver(to(app, named), events('evt_2'))).status).toBe(401);
    }
    answer.resolve();
    expect((await opening).status).toBe(201);
    // The one that takes it does not look again: the other one settles it, with what it remembers.
    await settleLater(one);
    const { id } = (await opening).body.order.link;
    const paid = paymentEvent({ id: 'evt_3', linkId: id, amount: '100.00' });
    expect((await other.deliver(to(other, named), paid)).status).toBe(200);
    await eventually(async () => expect((await one.order('order-1')).state).toBe('paid'));
    expect((await one.deliver(to(one, named), paid)).status).toBe(200);
    await eventually(async () => {
      const { events: all } = (await one.api('/v1/events')).body;
      expect(all.map(({ status }: { status: string }) => status)).toEqual(['done', 'done', 'done']);
    });
  });

  it('wake the reader of the feed of another one when they write a notice', async () => {
    const [one, other] = (await startReplicas({}, { clock: deaf })) as [TestApp, TestApp];
    const link = await one.reserve('order-1');
    const reading = other.api('/v1/feed?wait=20');
    await one.deliver(link, paymentEvent({ linkId: 'pl_1', amount: '100.00' }));
    expect((await reading).body.notices).toMatchObject([{ type: 'order.paid' }]);
  });

  it('settle what another one leaves when it stops', async () => {
    let isStopping = false;
    const after: Clock['after'] = (...given) => (isStopping ? systemClock : deaf).after(...given);
    const [one, other] = (await startReplicas({ clock: { ...deaf, after } }, { clock: deaf })) as [TestApp, TestApp];
    const link = await one.reserve('order-1');
    // Due after the last poll.
    await settleLater(one);
    expect((await one.deliver(link, paymentEvent({ linkId: 'pl_1', amount: '100.00' }))).status).toBe(200);
    isStopping = true;
    await one.app.stop();
    await eventually(async () => expect((await other.order('order-1')).state).toBe('paid'));
  });

  it('say that they are not ready while the database takes no connections, and then recover', async () => {
    const quick: Clock = { ...systemClock, every: (ms, work) => systemClock.every(Math.min(ms, 100), work) };
    const app = await startTestApp({ engine: 'postgres', clock: quick });
    const link = await app.reserve('order-1');
    const ready = async () => (await app.api('/readyz')).status;
    await eventually(async () => expect(await ready()).toBe(200));
    const admit = await shutDatabase(String(app.database?.url));
    await eventually(async () => expect(await ready()).toBe(503));
    const body = paymentEvent({ linkId: 'pl_1', amount: '100.00' });
    const refused = await app.deliver(link, body);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
    const answer = await app.api('/v1/stats');
    expect(answer.body).toMatchObject({ status: 503, title: 'unavailable' });
    await admit();
    await eventually(async () => expect(await ready()).toBe(200));
    expect((await app.deliver(link, body)).status).toBe(200);
    await eventually(async () => expect((await app.order('order-1')).state).toBe('paid'));
  });
});

describe('a database that refuses deliveries and no sign of life', () => {
  it('makes the replica not ready until the next delivery is recorded, and all say so', async () => {
    const app = await startTestApp({ engine: 'postgres' });
    const url = String(app.database?.url);
    const link = await app.reserve('order-1');
    const ready = async () => {
      const { checks } = (await app.api('/v1/admin/doctor')).body;
      const [listed] = samples((await app.api('/metrics')).body).settled_ready === 1 ? [200] : [503];
      return [
        (await fetch(`${app.hooksUrl}/readyz`)).status,
        (await app.api('/readyz')).status,
        checks[0].status === 'ok' ? 200 : 503,
        listed,
      ];
    };
    await runIn(
      url,
      `CREATE FUNCTION refuse() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'disk full' USING ERRCODE = '53100'; END $$
         LANGUAGE plpgsql;
       CREATE TRIGGER refuse BEFORE INSERT ON inbox_body FOR EACH ROW EXECUTE FUNCTION refuse()`,
    );
    await eventually(async () => expect(await ready()).toEqual([200, 200, 200, 200]));
    const body = paymentEvent({ linkId: 'pl_1', amount: '100.00' });
    expect((await app.deliver(link, body)).status).toBe(503);
    expect(await ready()).toEqual([503, 503, 503, 503]);
    await runIn(url, 'DROP TRIGGER refuse ON inbox_body');
    // A refused signature says nothing of the store; a delivery that is recorded does.
    expect((await app.deliver(link, body, signedHeaders('another-secret-of-the-test', body))).status).toBe(401);
    expect(await ready()).toEqual([503, 503, 503, 503]);
    expect((await app.deliver(link, body)).status).toBe(200);
    expect(await ready()).toEqual([200, 200, 200, 200]);
  });
});

describe('a database that is away', () => {
  it('is logged once by each stage that claims, and not at each try', async () => {
    const { log, lines } = readableLog();
    const clock: Clock = { ...systemClock, after: (ms, work) => systemClock.after(ms === 1_000 ? 10 : ms, work) };
    const app = await startTestApp({ engine: 'postgres', clock, log });
    const { url } = app.database as NonNullable<TestApp['database']>;
    const { calls } = app;
    await shutDatabase(url);
    const claims = () => lines.filter(({ msg }) => String(msg).includes('cannot be claimed'));
    await eventually(() => expect(claims()).toHaveLength(1));
    const { made } = calls;
    await eventually(() => expect(calls.made).toBeGreaterThan(made + 10));
    expect(claims()).toHaveLength(1);
  });
});

describe('a database that no longer answers', () => {
  it('holds up no stop for more than five seconds', async () => {
    const url = await newDatabase();
    const way = await startWay(new URL(url).searchParams.get('host') ?? '');
    const app = await startTestApp({
      engine: 'postgres',
      environment: { SETTLED_STORE: `postgres://settled@127.0.0.1:${way.port}${new URL(url).pathname}` },
      atEnd: () => {},
    });
    await app.reserve('order-1');
    way.stall();
    // By what this process lived through: a machine that holds it up is not what a stop waits for.
    let livedMs = 0;
    const living = setInterval(() => {
      livedMs += 100;
    }, 100);
    await app.app.stop();
    clearInterval(living);
    expect(livedMs).toBeLessThan(4_800);
  });
});

/** A way to the server on which, once it is stalled, nothing passes and no error comes. */
async function startWay(folder: string): Promise<{ port: number; stall(): void }> {
  let isStalled = false;
  const sockets: Socket[] = [];
  const server = createServer((near) => {
    const far = connect(`${folder}/.s.PGSQL.5432`);
    sockets.push(near, far);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('data', (data) => isStalled || to.write(data));
      from.on('close', () => isStalled || to.destroy());
      from.on('error', () => {});
    }
  });
  const { port, close } = await listen(server);
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    return close();
  });
  return {
    port,
    stall: () => {
      isStalled = true;
    },
  };
}

describe('the doctor of replicas', () => {
  type Check = { name: string; status: string; detail: string };
  const checksOf = async (app: TestApp): Promise<Record<string, Check>> =>
    Object.fromEntries((await app.api('/v1/admin/doctor')).body.checks.map((one: Check) => [one.name, one]));

  /** A row of a replica that is not there. */
  const another = (name: string, { agoMs = 0, skewMs = 0, keyId = 'its key' } = {}) =>
    `INSERT INTO replica SELECT '${name}', '0.0.9', ${keyId === '' ? 'secrets_key_id' : `'${keyId}'`}, ${skewMs},
       ${Date.now() - 3_600_000}, ${Date.now() - agoMs} FROM instance`;

  it('lists them, and is content if all is well', async () => {
    const [one] = (await startReplicas({}, {})) as [TestApp, TestApp];
    const url = String(one.database?.url);
    await runIn(url, another('killed', { agoMs: 90_000 }));
    const checks = await checksOf(one);
    const { hostname, pathname } = new URL(url);
    expect(checks.database?.detail).toMatch(
      new RegExp(`^PostgreSQL \\d+\\.\\d+: postgres://${hostname}:5432${pathname}\\?host=/`),
    );
    expect(checks.replicas).toMatchObject({ status: 'ok' });
    expect(checks.replicas?.detail).toMatch(
      /^alive: \S+-[0-9a-f]{12} \(this one, \d+\.\d+\.\d+, since 20\S+Z, holds nothing\); \S+ \(.*\)\. silent: killed since 20\S+Z$/,
    );
    expect(checks['database clock']).toMatchObject({ status: 'ok' });
    expect(checks.leases).toEqual({ name: 'leases', status: 'ok', detail: 'no lapsed lease waits to be taken over' });
    expect(checks.disk).toBeUndefined();
    const shown = samples((await one.api('/metrics')).body);
    expect(shown).toMatchObject({ settled_replicas: 2, 'settled_leases_lapsed{what="events"}': 0 });
    expect(Math.abs(shown.settled_store_clock_ahead_seconds ?? Number.NaN)).toBeLessThan(1);
    expect(shown).not.toHaveProperty('settled_disk_free_bytes');
  });

  it('names the settings that another replica has otherwise, and no value of them', async () => {
    const own = { SETTLED_API_URL: 'http://127.0.0.1:9', SETTLED_API_KEY: 'its-own-key' };
    const [one, other] = (await startReplicas(
      {},
      { environment: { ...own, SETTLED_CURRENCY: 'EUR', SETTLED_LOG_LEVEL: 'fatal' } },
    )) as [TestApp, TestApp];
    await startTestApp({ engine: 'postgres', storePath: one.storePath });
    const { settings, replicas } = await checksOf(one);
    expect(settings?.status).toBe('warning');
    const [, differing = ''] = /values than this one: (.*)\. Give/.exec(settings?.detail ?? '') ?? [];
    const [name = ''] = /[^\s(]+-[0-9a-f]{12}/.exec(differing) ?? [];
    expect(differing).toBe(
      ['SETTLED_API_URL', 'SETTLED_API_KEY', 'SETTLED_CURRENCY'].map((each) => `${each} (${name})`).join('; '),
    );
    expect(replicas?.detail).toContain(name);
    expect(replicas?.detail).not.toContain(`${name} (this one, `);
    expect((await checksOf(other)).replicas?.detail).toContain(`${name} (this one, `);
    const said = JSON.stringify(await checksOf(other));
    expect(said).not.toContain(own.SETTLED_API_KEY);
  });

  it('says of a replica with another key what it breaks, and rotate-key says who holds the change up', async () => {
    // It gives one sign of life.
    const [one] = (await startReplicas({ clock: { ...systemClock, every: () => () => {} } })) as [TestApp];
    const { environment, url } = one.database as NonNullable<TestApp['database']>;
    const other = await startTestApp({
      engine: 'postgres',
      storePath: one.storePath,
      environment: {
        SETTLED_PUBLIC_URL: one.hooksUrl,
        SETTLED_SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
        SETTLED_SECRETS_KEY_PREVIOUS: String(environment.SETTLED_SECRETS_KEY),
      },
    });
    const checks = await checksOf(other);
    expect(checks['public address']).toMatchObject({
      status: 'failing',
      detail: expect.stringMatching(/401: .* or a replica with another SETTLED_SECRETS_KEY \(see replicas\)$/),
    });
    // Digests of two keys cannot be compared.
    expect(checks.settings).toMatchObject({ status: 'ok' });
    const rotate = () => other.api('/v1/admin/rotate-key', { method: 'POST' });
    const { status, body } = await rotate();
    expect([status, body.title]).toEqual([503, 'unavailable']);
    const [, name] = /alive: (\S+)/.exec(checks.replicas?.detail ?? '') ?? [];
    expect(body.detail).toMatch(
      new RegExp(`continues in the background\\. .* the replica ${name} seals under the key`),
    );
    await runIn(url, `DELETE FROM replica WHERE name = '${name}'`);
    expect((await rotate()).status).toBe(200);
  });

  it('finds clocks that differ, another key, and leases that no replica ends', async () => {
    const [app] = (await startReplicas({ clock: deaf })) as [TestApp];
    const url = String(app.database?.url);
    const link = await app.reserve('order-1');
    await app.deliver(link, paymentEvent({ linkId: 'pl_1', amount: '100.00' }));
    await eventually(async () => expect((await app.order('order-1')).state).toBe('paid'));
    await runIn(url, another('fast', { skewMs: 5_000, keyId: '' }));
    await runIn(url, another('slow', { skewMs: -125_000 }));
    await runIn(url, another('gone', { agoMs: 61_000, skewMs: 9_000 }));
    await runIn(url, "UPDATE inbox SET status = 'leased', holder = 'fast', due_at_ms = 99999999999999");
    await runIn(url, "UPDATE outbox SET status = 'leased', holder = 'gone', due_at_ms = 1");
    const checks = await checksOf(app);
    expect(checks['database clock']).toMatchObject({
      status: 'warning',
      detail: expect.stringMatching(/: fast is 5 s ahead, slow is 2 min 5 s behind\. .* set the clocks of both/),
    });
    expect(checks.replicas).toMatchObject({
      status: 'warning',
      detail: expect.stringMatching(
        /fast \(0\.0\.9, .*, holds 1 event\).*silent: gone since .*with another SETTLED_SECRETS_KEY than this one: slow\. /,
      ),
    });
    expect(checks.leases).toMatchObject({
      status: 'warning',
      detail: expect.stringMatching(/^begun, not ended in time, and not taken over so far: 1 notice\. /),
    });
    expect(samples((await app.api('/metrics')).body)).toMatchObject({
      settled_replicas: 3,
      'settled_leases_lapsed{what="notices"}': 1,
    });
  });
});
