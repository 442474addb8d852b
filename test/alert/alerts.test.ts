import { Webhook } from 'standardwebhooks';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openClock, type TurnableClock } from '../../sandbox/clock.ts';
import { type ReservedLink, startTestApp, type TestApp } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { type MailServer, startMailServer } from '../support/mail.ts';
import { readableLog } from '../support/observe.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { tamper } from '../support/rows.ts';
import { doctorOf } from '../support/surfaces.ts';
import { eventually } from '../support/timing.ts';

const SECRET = `whsec_${Buffer.from('the secret of the alert hook').toString('base64')}`;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** 2030-01-01T00:00:00Z. */
const START_MS = 1_893_456_000_000;

type World = { settled: TestApp; clock: TurnableClock; hook: Receiver; mail: MailServer };

const hookEnvironment = ({ url }: Receiver) => ({
  SETTLED_ALERT_URL: url,
  SETTLED_ALERT_SECRET: SECRET,
  SETTLED_ALERT_ALLOW_PRIVATE: 'true',
});

/** settled with both channels, and a clock that only the test turns. */
async function start(environment: Record<string, string> = {}, more: object = {}): Promise<World> {
  const clock = openClock({ startMs: START_MS, scale: 1e-6 });
  onTestFinished(() => void clock.advance(10_000));
  const [hook, mail] = [await startReceiver(), await startMailServer()];
  const channels = { ...hookEnvironment(hook), ...mail.environment, SETTLED_CONSOLE_URL: 'https://shop.example/ops' };
  const settled = await startTestApp({ clock, environment: { ...channels, ...environment }, ...more });
  return { settled, clock, hook, mail };
}

async function deliver({ settled, clock }: Pick<World, 'settled' | 'clock'>, link: ReservedLink, amount: string) {
  const { reference, webhookSecret } = link;
  const body = paymentEvent({ id: `evt_${reference}`, linkId: `pl_${reference}`, amount });
  const headers = signedHeaders(webhookSecret, body, String(clock.nowMs()));
  expect((await settled.deliver(link, body, headers)).status).toBe(200);
}

/** An order that is held, as less than its amount was paid. */
async function hold({ settled, clock }: World, reference: string, fields = {}): Promise<void> {
  const link = await settled.reserve(reference, '48.00', fields);
  await deliver({ settled, clock }, link, '10.00');
  await eventually(async () => {
    await clock.advance(100);
    expect((await settled.order(reference)).state).toBe('held');
  });
}

/** Turns the clock by a second at a time until `look` does not throw. */
const inTime = (world: World, look: () => void | Promise<void>) =>
  eventually(async () => {
    await world.clock.advance(1_000);
    await look();
  });

/** Time passes, in steps that leave time for what is sent. */
async function pass({ clock, settled }: World, byMs: number, stepMs = MINUTE_MS): Promise<void> {
  for (let left = byMs; left > 0; left -= stepMs) {
    await clock.advance(Math.min(left, stepMs));
    await settled.api('/v1/stats');
  }
}

const titles = ({ hook }: World) => hook.received.map(({ event }) => event.text.split('\n')[0]);

describe('alerts', () => {
  it('tell by both channels of a held order when it opens and when a person has decided, in the words of the console', async () => {
    const world = await start();
    const { settled, hook, mail } = world;
    await hold(world, 'order-1');
    await inTime(world, () => expect([hook.received.length, mail.mails.length]).toEqual([1, 1]));

    const [posted] = hook.received;
    const { headers = {}, body = Buffer.from(''), event } = posted ?? {};
    const signed = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    const sentAt = new Date(Number(signed['webhook-timestamp']) * 1000);
    const signature = new Webhook(SECRET).sign(signed['webhook-id'] ?? '', sentAt, body.toString());
    expect(signed['webhook-signature']).toBe(signature);
    expect(event.text).toBe(event.content);
    const meaning = 'the order is held: a person must decide';
    expect(event.text.split('\n')).toEqual([
      'settled: 1 matter opened (1 about money)',
      expect.stringMatching(
        RegExp(
          `^- Order order-1, balance 10\\.00 BRL, asked 48\\.00 BRL: ${meaning} \\(.+\\)\\. https://shop\\.example/ops/orders/order-1$`,
        ),
      ),
      expect.stringMatching(/^1 matter needs attention; .* 10\.00 BRL\. https:\/\/shop\.example\/ops\/attention$/),
    ]);
    const sums = [{ currency: 'BRL', asked: '48.00', balance: '10.00' }];
    const about = { kind: 'hold', what: 'opened', reference: 'order-1', sums };
    expect(event).toMatchObject({ type: 'matters', data: { waiting: 1, matters: [about] } });

    const [sent] = mail.mails;
    expect(sent).toMatchObject({ from: 'settled@shop.example', to: ['ana@shop.example', 'bo@shop.example'] });
    expect(sent?.headers).toMatchObject({ subject: 'settled: 1 matter opened (1 about money)' });
    expect(sent?.text.split('\n').filter((line) => line.length > 60 && !line.includes('https://'))).toEqual([]);
    expect(sent?.text).toContain('- Order order-1, balance 10.00 BRL');

    await settled.api('/v1/orders/order-1/resolve', { body: { decision: 'accept', reason: 'seen' } });
    await inTime(world, () => expect([hook.received.length, mail.mails.length]).toEqual([2, 2]));
    expect(titles(world)[1]).toBe('settled: 1 over');
    expect(hook.received[1]?.event.text).toMatch(
      /\n- Over after .*: order order-1, .*\. It was: the order is held.*\nNothing needs attention\./,
    );
    await pass(world, 10 * MINUTE_MS);
    expect([hook.received.length, mail.mails.length]).toEqual([2, 2]);
  });

  it.each([
    ['off', false],
    ['on', true],
  ])('name a customer only if they should: %s', async (customers, isNamed) => {
    const world = await start({ SETTLED_ALERT_CUSTOMERS: customers });
    await hold(world, 'order-1', { customer: { name: 'Ana Souza', email: 'ana@buyer.example' } });
    await inTime(world, () => expect([world.hook.received.length, world.mail.mails.length]).toEqual([1, 1]));
    for (const said of [String(world.hook.received[0]?.body), world.mail.mails[0]?.text ?? '']) {
      expect(/Souza|buyer/.test(said)).toBe(isNamed);
    }
  });

  it('go out at most once a minute, with all that opened or ended since; what did both is named once', async () => {
    const world = await start();
    const times: number[] = [];
    world.hook.answerWith(() => {
      times.push(world.clock.nowMs());
      return 204;
    });
    for (const name of ['order-1', 'order-2']) await hold(world, name);
    await inTime(world, () => expect(world.hook.received).toHaveLength(1));
    for (const name of ['order-3', 'order-4', 'order-5']) await hold(world, name);
    for (const name of ['order-1', 'order-3']) {
      await world.settled.api(`/v1/orders/${name}/resolve`, { body: { decision: 'accept', reason: 'seen' } });
    }
    await inTime(world, () => expect(world.hook.received).toHaveLength(2));
    expect(times[1] as number).toBeGreaterThanOrEqual((times[0] as number) + MINUTE_MS);
    const told = world.hook.received.map(({ event }) =>
      event.data.matters.map((one: Record<string, unknown>) => `${one.reference} ${one.what}`),
    );
    expect(told).toEqual([
      ['order-1 opened', 'order-2 opened'],
      ['order-4 opened', 'order-5 opened', 'order-3 opened_and_over', 'order-1 over'],
    ]);
    expect(titles(world)[1]).toBe('settled: 3 matters opened (3 about money), 1 of them over already, 1 over');
  });

  it('wait for a channel that fails, under the same id, while the other goes on; and every surface says so', async () => {
    const { log, lines } = readableLog();
    const world = await start({}, { log });
    const { settled, hook, mail } = world;
    hook.answerWith(403);
    await hold(world, 'order-1');
    await inTime(world, () => expect([hook.received.length >= 3, mail.mails.length]).toEqual([true, 1]));
    await hold(world, 'order-2');
    await inTime(world, () => expect(mail.mails).toHaveLength(2));
    expect(new Set(hook.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);

    const trouble = /People are not told what needs them: the hook of SETTLED_ALERT_URL has taken no alert since 2030/;
    await inTime(world, async () => expect((await settled.api('/readyz')).body.troubles.join(' ')).toMatch(trouble));
    expect((await settled.api('/v1/attention')).body.summary.sentence).toMatch(trouble);
    expect(await doctorOf(settled.apiUrl, ['alerts: url'])).toMatch(
      /failing alerts: url: no attempt.*answered 403.*Waiting: a message and 1 entry for the next one/,
    );
    const { checks } = (await settled.api('/v1/admin/doctor?probe=false')).body;
    expect(checks.find(({ name }: { name: string }) => name === 'alerts: mail')).toMatchObject({
      status: 'ok',
      detail: expect.stringMatching(/^it took its last message at 2030.*, and answered last: 250 .*queued as 2/),
    });
    const metrics = (await settled.api('/metrics')).body;
    expect(metrics).toContain('settled_alerts_failing{channel="url"} 1');
    expect(metrics).toContain('settled_alerts_failing{channel="mail"} 0');
    expect(metrics).toContain('settled_alerts_waiting{channel="url"} 2');
    expect(lines).toContainEqual(expect.objectContaining({ level: 'warn', kind: 'alert_failing' }));

    hook.answerWith(204);
    const before = hook.received.length;
    await inTime(world, () => expect(hook.received).toHaveLength(before + 2));
    expect(hook.received.at(-2)?.headers['webhook-id']).toBe(hook.received[0]?.headers['webhook-id']);
    expect(hook.received.at(-1)?.event.data.matters).toMatchObject([{ reference: 'order-2', what: 'opened' }]);
    await inTime(world, async () => expect((await settled.api('/readyz')).body.troubles ?? []).toEqual([]));
  });

  it('remind once a day of what waits, also of what waited before a channel was configured', async () => {
    const clock = openClock({ startMs: START_MS, scale: 1e-6 });
    onTestFinished(() => void clock.advance(10_000));
    const hook = await startReceiver();
    const before = await startTestApp({ clock });
    await hold({ settled: before, clock } as World, 'order-1');
    const stopped = before.app.stop();
    await clock.advance(10_000);
    await stopped;
    const settled = await startTestApp({ clock, storePath: before.storePath, environment: hookEnvironment(hook) });
    const world = { settled, clock, hook } as World;
    await inTime(world, () => expect(hook.received).toHaveLength(1));
    expect(titles(world)).toEqual(['settled: still waiting: 1 matter']);
    expect(hook.received[0]?.event.text).toMatch(
      /\n- 1 matter, balance 10\.00 BRL, asked 48\.00 BRL, the oldest for \d+ s: the order is held/,
    );
    await pass(world, DAY_MS - HOUR_MS, HOUR_MS);
    expect(hook.received).toHaveLength(1);
    await inTime(world, async () => {
      await pass(world, HOUR_MS, 10 * MINUTE_MS);
      expect(hook.received).toHaveLength(2);
    });
    expect(hook.received[1]?.event.text).toMatch(/the oldest for 1 d/);
    await settled.api('/v1/orders/order-1/resolve', { body: { decision: 'accept', reason: 'seen' } });
    await inTime(world, () => expect(hook.received).toHaveLength(3));
    await pass(world, 3 * DAY_MS, HOUR_MS);
    expect(hook.received).toHaveLength(3);
  });

  it('send the figures of a day before what has opened meanwhile, which may be something every minute', async () => {
    const world = await start({ SETTLED_ALERT_DIGEST: '00:05' });
    const { clock, hook } = world;
    await clock.advance(4 * MINUTE_MS + 57_000);
    await hold(world, 'order-1');
    await inTime(world, () => expect(hook.received).toHaveLength(1));
    await inTime(world, async () => {
      await pass(world, MINUTE_MS, 10_000);
      expect(hook.received).toHaveLength(2);
    });
    expect(hook.received.map(({ event }) => event.type)).toEqual(['digest', 'matters']);
  });

  it('leave a channel out that a replica of other settings has removed', async () => {
    const world = await start();
    const { settled, clock } = world;
    await clock.advance(1_000);
    const channels = async () => {
      const { body } = await settled.api('/v1/admin/doctor?probe=false');
      return body.checks.flatMap(({ name }: { name: string }) => name.match(/(?<=^alerts: )\w+/) ?? []);
    };
    await inTime(world, async () => expect(await channels()).toEqual(['url', 'mail']));
    tamper(settled.storePath, "DELETE FROM alert_channel WHERE name = 'mail'");
    await pass(world, 3 * MINUTE_MS, 5_000);
    expect(await doctorOf(settled.apiUrl, ['alerts: mail'])).toMatch(/failing alerts: mail: .*other channels/);
  });

  it('are told once if the end of an attempt could not be written at first', async () => {
    const { log, lines } = readableLog();
    const world = await start({}, { log });
    const { settled, hook, mail } = world;
    const refusal = `CREATE TRIGGER refuse BEFORE UPDATE OF taken_at_ms ON alert_channel WHEN new.name = 'url'
      BEGIN SELECT RAISE(ABORT, 'no'); END`;
    hook.answerWith(() => {
      if (hook.received.length === 1) tamper(settled.storePath, refusal);
      return 204;
    });
    await hold(world, 'order-1');
    await inTime(world, () => expect(lines).toContainEqual(expect.objectContaining({ channel: 'url', level: 'warn' })));
    tamper(settled.storePath, 'DROP TRIGGER refuse');
    await hold(world, 'order-2');
    await inTime(world, () => expect([hook.received.length, mail.mails.length]).toEqual([2, 2]));
    expect(hook.received[1]?.event.data.matters).toMatchObject([{ reference: 'order-2' }]);
  });

  it('send the figures of a day at its time in the zone of the people, once, over a restart', async () => {
    const digest = { SETTLED_ALERT_DIGEST: '08:00', SETTLED_TIMEZONE: 'America/Sao_Paulo' };
    const world = await start(digest);
    const { settled, clock, hook } = world;
    await clock.advance(1_000);
    for (const name of ['order-1', 'order-2']) {
      const link = await settled.reserve(name, '48.00');
      await deliver(world, link, '48.00');
    }
    await hold(world, 'order-3');
    // 08:00 in São Paulo is 11:00 UTC.
    await pass(world, 10 * HOUR_MS + 55 * MINUTE_MS, 5 * MINUTE_MS);
    const isDigest = ({ event }: { event: { type: string } }) => event.type === 'digest';
    expect(hook.received.filter(isDigest)).toEqual([]);
    await inTime(world, async () => {
      await pass(world, MINUTE_MS, 10_000);
      expect(hook.received.filter(isDigest)).toHaveLength(1);
    });
    const { event } = hook.received.find(isDigest) ?? {};
    expect(event.text.split('\n').slice(0, 6)).toEqual([
      expect.stringMatching(/^settled: figures from 2029-12-31 21:00 to 2030-01-01 08:0[01], America\/Sao_Paulo$/),
      '- Paid: 2 orders, asking for 96.00 BRL',
      '- Told: the shop reads the feed',
      '- Held: 1 order, balance 10.00 BRL, asked 48.00 BRL',
      '- Owed back: nothing',
      '- Paid more than once: nothing',
    ]);
    const stopped = settled.app.stop();
    await clock.advance(10_000);
    await stopped;
    const environment = { ...hookEnvironment(hook), ...world.mail.environment, ...digest };
    const again = { ...world, settled: await startTestApp({ clock, storePath: settled.storePath, environment }) };
    await pass(again, 20 * HOUR_MS, 10 * MINUTE_MS);
    expect(hook.received.filter(isDigest)).toHaveLength(1);
    await inTime(again, async () => {
      await pass(again, HOUR_MS, 10 * MINUTE_MS);
      expect(hook.received.filter(isDigest)).toHaveLength(2);
    });
    expect(hook.received.filter(isDigest)[1]?.event.text).toContain('- Paid: no order');
  });

  it('send the figures once on a day of 25 hours', async () => {
    const clock = openClock({ startMs: Date.parse('2026-10-25T20:00:00Z'), scale: 1e-6 });
    onTestFinished(() => void clock.advance(10_000));
    const hook = await startReceiver();
    const digest = { SETTLED_ALERT_DIGEST: '23:30', SETTLED_TIMEZONE: 'Europe/Berlin' };
    const settled = await startTestApp({ clock, environment: { ...hookEnvironment(hook), ...digest } });
    const world = { settled, clock, hook } as World;
    await clock.advance(1_000);
    await pass(world, 4 * HOUR_MS, 5 * MINUTE_MS);
    expect(titles(world)).toEqual([expect.stringMatching(/ to 2026-10-25 23:3\d, Europe\/Berlin$/)]);
  });

  it('send no figures of the time before they were wanted, and those of a day after the clock was ahead', async () => {
    const world = await start();
    const { settled, clock, hook } = world;
    await pass(world, 30.5 * DAY_MS, DAY_MS);
    const stopped = settled.app.stop();
    await clock.advance(10_000);
    await stopped;
    const environment = { ...hookEnvironment(hook), SETTLED_ALERT_DIGEST: '00:05', SETTLED_TIMEZONE: 'UTC' };
    const again = { ...world, settled: await startTestApp({ clock, storePath: settled.storePath, environment }) };
    await pass(again, DAY_MS, 10 * MINUTE_MS);
    await inTime(again, () =>
      expect(titles(world)).toEqual([expect.stringMatching(/01-31 12:.* to 2030-02-01 00:.*, UTC$/)]),
    );
    tamper(settled.storePath, 'UPDATE alert_channel SET digested_at_ms = digested_at_ms + 3600000 + 43200000');
    await pass(again, 10 * MINUTE_MS);
    expect(titles(world)).toHaveLength(1);
    tamper(settled.storePath, 'UPDATE alert_channel SET digested_at_ms = digested_at_ms + 864000000');
    await inTime(again, () => expect(titles(world)[1]).toMatch(/from 2030-01-31 00:05 to 2030-02-01 12:/));
  });
});
