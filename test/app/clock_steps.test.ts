import { randomUUID } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openClock } from '../../sandbox/clock.ts';
import { watchClock } from '../../src/app/clock_steps.ts';
import type { Clock } from '../../src/work/clock.ts';
import { startTestApp, type TestApp, testFolder } from '../support/app.ts';
import { type CallbackShop, startCallback } from '../support/callback.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { readableLog, samples } from '../support/observe.ts';
import { look } from '../support/rows.ts';
import { startTestSandbox } from '../support/sandbox.ts';
import { eventually } from '../support/timing.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** A clock that can be stepped, which is not to let time pass: that can be done as well. */
function openSteppable() {
  const turned = openClock({ startMs: Date.now(), scale: 1 });
  let aheadMs = 0;
  const { after, every, advance } = turned;
  const clock: Clock = { nowMs: () => turned.nowMs() + aheadMs, monotonicMs: () => turned.nowMs(), after, every };
  // What waits for a time when the test ends.
  onTestFinished(() => advance(HOUR_MS));
  return {
    clock,
    pass: advance,
    /** Calls of the store take none of this time: they would count as unanswered. */
    waitFor: ({ underWay }: TestApp['calls']) =>
      turned.aroundTurns({ beforeMove: async () => void (await Promise.allSettled(underWay)), afterTurn: () => {} }),
    step: (byMs: number) => {
      aheadMs += byMs;
    },
  };
}

type Steppable = ReturnType<typeof openSteppable>;

/** Lets second after second pass until something is so. */
const passUntil = ({ pass }: Steppable, isSo: () => unknown) =>
  eventually(async () => {
    await pass(1_000);
    await isSo();
  });

/** Stops it in its own time. */
async function stop({ app }: TestApp, { pass }: Steppable): Promise<void> {
  let isStopped = false;
  const stopped = app.stop().then(() => {
    isStopped = true;
  });
  await eventually(async () => {
    await pass(1_000);
    expect(isStopped).toBe(true);
  });
  await stopped;
}

async function pay(app: TestApp, { clock }: Steppable, reference: string): Promise<void> {
  const link = await app.reserve(reference);
  const body = paymentEvent({ linkId: `pl_${reference}`, amount: '100.00' });
  const answer = await app.deliver(link, body, signedHeaders(link.webhookSecret, body, String(clock.nowMs())));
  expect(answer.status).toBe(200);
  await eventually(async () => expect((await app.order(reference)).state).toBe('paid'));
}

type NoticeShown = { status: string; attempt: number; dueAt: string | null };
const noticesOf = async (app: TestApp): Promise<NoticeShown[]> => (await app.api('/v1/notices')).body.notices;

/** When the service is asked next about the only link that settled opened, from now on. */
async function nextCheckInMs(app: TestApp, { clock }: Steppable): Promise<number> {
  const [row] = await look(app, 'SELECT next_check_at_ms AS at FROM link WHERE opened ORDER BY key');
  return Number(row?.at) - clock.nowMs();
}

async function clockFinding(app: TestApp) {
  const { checks } = (await app.api('/v1/admin/doctor')).body;
  return checks.find(({ name }: { name: string }) => name === 'clock steps');
}

/** An order of which a check was put off by a day while the clock was ahead, and another's notice that was not taken. */
async function putOff(app: TestApp, time: Steppable, shop: CallbackShop): Promise<void> {
  const order = { reference: 'order-1', amount: '100.00', title: 'A chair' };
  expect((await app.api('/v1/orders', { body: order })).status).toBe(201);
  shop.answerWith(503);
  time.step(25 * HOUR_MS);
  await passUntil(time, async () => expect(await nextCheckInMs(app, time)).toBeGreaterThan(HOUR_MS));
  await pay(app, time, 'order-2');
  await passUntil(time, async () => expect(await noticesOf(app)).toMatchObject([{ status: 'pending', attempt: 1 }]));
  shop.answerWith(204);
}

/** settled on this clock, stopped after the test. */
async function start(
  time: Steppable,
  over: { environment?: Record<string, string>; storePath?: string; engine?: 'sqlite' | 'postgres' } = {},
) {
  const { log, lines } = readableLog();
  const storePath = over.storePath ?? `${testFolder()}/settled.db`;
  const app = await startTestApp({ clock: time.clock, log, ...over, storePath, atEnd: () => {} });
  time.waitFor(app.calls);
  onTestFinished(() => void app.app.stop());
  return { app, lines, storePath };
}

describe.each(['sqlite', 'postgres'] as const)('a step of the clock that the store goes by, on %s', (engine) => {
  it('makes due what it put off when it steps back, without a restart', async () => {
    const [time, shop, sandbox] = [openSteppable(), await startCallback(), await startTestSandbox()];
    const api = { SETTLED_API_URL: sandbox.url, SETTLED_API_KEY: sandbox.apiKey };
    const { app, lines } = await start(time, { engine, environment: { ...shop.environment, ...api } });
    expect(await clockFinding(app)).toMatchObject({ status: 'ok' });
    await putOff(app, time, shop);
    time.step(-25 * HOUR_MS);
    await passUntil(time, async () => expect(await noticesOf(app)).toMatchObject([{ status: 'done', attempt: 2 }]));
    await passUntil(time, async () => expect(await nextCheckInMs(app, time)).toBeLessThan(11 * MINUTE_MS));
    const told = lines.filter(({ msg }) => String(msg).startsWith('the clock stepped'));
    expect(told).toMatchObject([
      { level: 'warn', by: '1 d 1 h', way: 'ahead' },
      { level: 'warn', by: '1 d 1 h', way: 'back' },
    ]);
    expect(samples((await app.api('/metrics')).body)).toMatchObject({ settled_clock_steps_total: 2 });
    expect(await clockFinding(app)).toMatchObject({
      status: 'warning',
      detail: expect.stringMatching(/^the clock stepped 1 d 1 h back, \d+.* ago: for an hour, settled drops no bytes/),
    });
  });

  it('has what it put off made due by the next start, when it steps back in between', async () => {
    const [time, shop, sandbox] = [openSteppable(), await startCallback(), await startTestSandbox()];
    const api = { SETTLED_API_URL: sandbox.url, SETTLED_API_KEY: sandbox.apiKey };
    const environment = { ...shop.environment, ...api };
    const { app, storePath } = await start(time, { engine, environment });
    await putOff(app, time, shop);
    await stop(app, time);
    time.step(-25 * HOUR_MS);
    const { app: next } = await start(time, { engine, environment, storePath });
    await passUntil(time, async () => expect(await noticesOf(next)).toMatchObject([{ status: 'done' }]));
    await passUntil(time, async () => expect(await nextCheckInMs(next, time)).toBeLessThan(11 * MINUTE_MS));
  });
});

describe('a step of the clock', () => {
  it('drops no bytes in the first hour of a process, nor within an hour of the step', async () => {
    const time = openSteppable();
    const bodies = async (app: TestApp) => {
      // What the store was asked to drop before, it does before this.
      await app.reserve(randomUUID());
      return Number((await look(app, 'SELECT count(*) AS n FROM inbox_body'))[0].n);
    };
    const environment = { SETTLED_KEEP_BODIES: '1d' };
    const { app: first, storePath } = await start(time, { environment });
    await pay(first, time, 'order-1');
    await stop(first, time);
    time.step(200 * DAY_MS);
    const { app } = await start(time, { environment, storePath });
    await time.pass(59 * MINUTE_MS);
    expect(await bodies(app)).toBe(1);
    time.step(-200 * DAY_MS);
    await time.pass(3 * HOUR_MS);
    expect(await bodies(app)).toBe(1);
    // A moment before a round.
    await time.pass(59 * MINUTE_MS);
    time.step(200 * DAY_MS);
    await time.pass(2 * MINUTE_MS);
    expect(await bodies(app)).toBe(1);
    time.step(-200 * DAY_MS);
    await time.pass(DAY_MS);
    await eventually(async () => {
      await time.pass(HOUR_MS);
      expect(await bodies(app)).toBe(0);
    });
  });

  it('gives no notice up within an hour of it, and later by its age since the first try', async () => {
    const [time, shop] = [openSteppable(), await startCallback()];
    const { app: silent, storePath } = await start(time);
    await pay(silent, time, 'order-1');
    await stop(silent, time);
    await time.pass(8 * DAY_MS);
    shop.answerWith(503);
    const { app } = await start(time, { environment: shop.environment, storePath });
    const attempts = async (atLeast: number) => {
      const [notice] = await noticesOf(app);
      expect(notice).toMatchObject({ status: 'pending' });
      expect(notice?.attempt).toBeGreaterThan(atLeast);
    };
    // Past the first hour of the process: the age of the notice begins with its first try.
    await eventually(async () => {
      await time.pass(10 * MINUTE_MS);
      await attempts(7);
    });
    const [{ attempt }] = (await noticesOf(app)) as [NoticeShown];
    time.step(8 * DAY_MS);
    await passUntil(time, () => attempts(attempt));
    await eventually(async () => {
      await time.pass(20 * MINUTE_MS);
      expect(await noticesOf(app)).toMatchObject([{ status: 'dead' }]);
    });
    const { groups } = (await app.api('/v1/attention')).body;
    expect(groups.map(({ kind }: { kind: string }) => kind)).toContain('notices_dead');
  });
});

describe('the watch of the clock', () => {
  function watch(hasten: () => Promise<number> = async () => 0) {
    const pauses: (() => void)[] = [];
    const after = (_: number, resume: () => void) => {
      pauses.push(resume);
      return () => {};
    };
    let [nowMs, passedMs] = [1_700_000_000_000, 0];
    const hastened: { waitMsMax: number }[] = [];
    const { log, lines } = readableLog();
    const watched = watchClock({
      store: {
        hastenDue: async (asked) => {
          hastened.push(asked);
          return { hastened: await hasten() };
        },
      },
      // It looks only when the test asks it.
      clock: { nowMs: () => nowMs, monotonicMs: () => passedMs, after, every: () => () => {} },
      log,
      onStep: () => {},
    });
    onTestFinished(() => watched.stop());
    const pass = (ms: number, byClockMs = ms) => {
      passedMs += ms;
      nowMs += byClockMs;
    };
    return { watched, pass, hastened, pauses, lines };
  }

  it('makes due at a start what is later than anything waits', async () => {
    const { hastened } = watch();
    await eventually(() => expect(hastened).toMatchObject([{ waitMsMax: 2 * HOUR_MS }]));
  });

  it('makes due what waits for more than a minute once a heartbeat is in the future by half a minute', async () => {
    const { watched, hastened } = watch();
    await eventually(() => expect(hastened).toHaveLength(1));
    for (const byMs of [0, 29_999, 30_000]) watched.wasAhead(byMs);
    await eventually(() => expect(hastened).toMatchObject([{}, { waitMsMax: MINUTE_MS }]));
  });

  it('makes it due too if the clock was ahead for less than the time between two heartbeats', async () => {
    const { watched, pass, hastened } = watch();
    await eventually(() => expect(hastened).toHaveLength(1));
    for (const stepMs of [25 * HOUR_MS, -25 * HOUR_MS]) {
      pass(600, 600 + stepMs);
      watched.isTrusted();
    }
    await eventually(() => expect(hastened).toMatchObject([{}, { waitMsMax: MINUTE_MS }]));
  });

  it('tries again later, and goes on until nothing is left', async () => {
    const results = [() => Promise.reject(new Error('locked')), async () => 2, async () => 1, async () => 0];
    const { hastened, pauses } = watch(async () => (await results.shift()?.()) ?? 0);
    await eventually(() => expect(pauses).toHaveLength(1));
    pauses.shift()?.();
    await eventually(() => expect(hastened).toHaveLength(4));
    expect(hastened).toMatchObject(Array(4).fill({ waitMsMax: 2 * HOUR_MS }));
  });

  it('sees a step as it is asked, before anything is done for good', () => {
    const { watched, pass } = watch();
    pass(HOUR_MS - 1);
    expect(watched.isTrusted()).toBe(false);
    pass(1);
    expect(watched.isTrusted()).toBe(true);
    for (const byMs of [DAY_MS, -DAY_MS]) {
      pass(0, byMs);
      expect(watched.isTrusted()).toBe(false);
      expect(watched.latest()).toEqual({ byMs, agoMs: 0 });
      pass(HOUR_MS);
      expect(watched.isTrusted()).toBe(true);
    }
  });

  it("knows how far the service's clock is ahead after a step of ours, without another answer", () => {
    const { watched, pass } = watch();
    expect(watched.serviceAheadMs()).toBeNull();
    watched.serviceWasAhead(2_000);
    pass(HOUR_MS);
    expect(watched.serviceAheadMs()).toBe(2_000);
    pass(0, DAY_MS);
    expect(watched.serviceAheadMs()).toBe(2_000 - DAY_MS);
  });

  it('takes a clock that is set by less than half a minute, or drifts, for none', () => {
    const { watched, pass, lines } = watch();
    pass(HOUR_MS);
    for (const byMs of [29_999, -29_999]) {
      pass(1_000, 1_000 + byMs);
      expect([watched.isTrusted(), watched.latest()]).toEqual([true, null]);
    }
    for (let n = 0; n < 100; n++) {
      pass(60_000, 61_000);
      expect(watched.latest()).toBeNull();
    }
    pass(0, -30_000);
    expect(watched.latest()).toEqual({ byMs: -30_000, agoMs: 0 });
    expect(lines).toMatchObject([{ by: '30 s', way: 'back' }]);
  });
});
