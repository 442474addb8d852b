import { describe, expect, it } from 'vitest';
import { Health, startHeartbeat, watchIntake } from '../../src/app/health.ts';
import { Fault } from '../../src/fault.ts';
import type { Log } from '../../src/observe/log.ts';
import type { Store } from '../../src/store/contract.ts';
import type { Delivery } from '../../src/store/verbs/intake.ts';
import { systemClock } from '../../src/work/clock.ts';

const AWAY_MS = 600_000;

/** Signs of life that the test lets pass, each answered by how long no process was alive. */
function startTestHeartbeat(catchUp: () => Promise<unknown> | undefined, isRestored = false) {
  let answered = { gapMs: 0, aheadMs: 0 };
  const ahead: number[] = [];
  let caughtUp = 0;
  let told = 0;
  let beat = () => {};
  const later: { delayMs: number; work: () => void }[] = [];
  const clock = {
    ...systemClock,
    every: (_: number, work: () => void) => {
      beat = work;
      return () => {};
    },
    after: (delayMs: number, work: () => void) => {
      later.push({ delayMs, work });
      return () => {};
    },
  };
  startHeartbeat({
    store: { heartbeat: async () => answered },
    clock,
    health: new Health(systemClock),
    log: { info: () => told++, error: () => {} } as unknown as Log,
    catchUp: () => {
      caughtUp++;
      return catchUp();
    },
    isRestored,
    onWasAhead: (byMs) => ahead.push(byMs),
  });
  return {
    later,
    ahead,
    counts: () => ({ caughtUp, told }),
    answer: async (gapMs: number, aheadMs = 0) => {
      answered = { gapMs, aheadMs };
      beat();
      await new Promise((resume) => setImmediate(resume));
    },
  };
}

describe('a sign of life that tells of an outage', () => {
  it('makes open links due once, however often it is repeated while that is done', async () => {
    const caughtUp = Promise.withResolvers<void>();
    const { answer, counts } = startTestHeartbeat(() => caughtUp.promise);
    for (let n = 0; n < 3; n++) await answer(AWAY_MS);
    expect(counts()).toEqual({ caughtUp: 1, told: 1 });
    caughtUp.resolve();
    await answer(2_000);
    await answer(AWAY_MS);
    expect(counts()).toEqual({ caughtUp: 2, told: 2 });
  });

  it.each([
    ['an outage that it repeats', AWAY_MS, 0, AWAY_MS],
    ['an outage', AWAY_MS, 0, 0],
    ['a step back', 0, AWAY_MS, 0],
  ])('makes them due again half a minute later if that failed: after %s', async (_, gapMs, aheadMs, nextGapMs) => {
    const { answer, counts, later } = startTestHeartbeat(() => Promise.reject(new Error('refused')));
    await answer(gapMs, aheadMs);
    await answer(nextGapMs);
    expect(counts().caughtUp).toBe(1);
    expect(later.map(({ delayMs }) => delayMs)).toEqual([30_000]);
    later[0]?.work();
    await answer(nextGapMs);
    expect(counts().caughtUp).toBe(2);
  });

  it('makes them due at the start of a copy, however new the copy is', async () => {
    const { answer, counts } = startTestHeartbeat(async () => {}, true);
    for (let n = 0; n < 3; n++) await answer(2_000);
    expect(counts().caughtUp).toBe(1);
  });

  it('is logged once if no API is configured', async () => {
    const { answer, counts } = startTestHeartbeat(() => undefined);
    for (let n = 0; n < 3; n++) await answer(AWAY_MS);
    expect(counts().told).toBe(1);
  });
});

describe('a sign of life before the last one', () => {
  it('says how far ahead the clock was, and makes open links due after a step of minutes', async () => {
    const { ahead, answer, counts } = startTestHeartbeat(async () => {});
    for (const aheadMs of [60_000, 0, 25 * AWAY_MS, 0]) await answer(0, aheadMs);
    expect(ahead.slice(-4)).toEqual([60_000, 0, 25 * AWAY_MS, 0]);
    expect(counts()).toEqual({ caughtUp: 1, told: 0 });
  });
});

describe('readiness after a delivery that could not be recorded', () => {
  const full = new Fault('transient', 'store_full', 'No space is left.');
  const refused = { ready: false, reason: 'a delivery could not be recorded: No space is left.' };

  /** A health, and a store of which the test says how it takes the next delivery. */
  function startReceiving() {
    let passedMs = 0;
    let failure: unknown = null;
    const take = async () => {
      if (failure !== null) throw failure;
      return null as never;
    };
    const health = new Health({ ...systemClock, monotonicMs: () => passedMs });
    const store = watchIntake(
      { findCredentials: take, recordDelivery: take, recordHint: take } as unknown as Store,
      health,
    );
    return {
      health,
      pass: (ms: number) => {
        passedMs += ms;
      },
      receive: async (fault: unknown, verb: 'findCredentials' | 'recordDelivery' | 'recordHint') => {
        failure = fault;
        const received = store[verb]({} as Delivery & { token: string });
        if (fault === null) await received;
        else await expect(received).rejects.toBe(fault);
        return health.readiness();
      },
    };
  }

  it.each(['findCredentials', 'recordDelivery', 'recordHint'] as const)('%s makes it fail', async (verb) => {
    const { receive } = startReceiving();
    expect(await receive(full, verb)).toEqual(refused);
  });

  it('is given back by a delivery that is recorded, or with the store, and by no look-up', async () => {
    const { health, receive } = startReceiving();
    await receive(full, 'recordDelivery');
    expect(await receive(null, 'findCredentials')).toEqual(refused);
    health.beat(null);
    expect(health.readiness()).toEqual(refused);
    expect(await receive(null, 'recordHint')).toEqual({ ready: true });
    await receive(full, 'recordDelivery');
    expect(await receive(null, 'recordDelivery')).toEqual({ ready: true });
    // Signs of life had failed as well.
    await receive(full, 'recordDelivery');
    health.beat(full);
    health.beat(null);
    expect(health.readiness()).toEqual({ ready: true });
  });

  it('is given back after fifteen seconds in which none came: the next one tells', async () => {
    const { health, pass, receive } = startReceiving();
    await receive(full, 'recordDelivery');
    for (let n = 0; n < 3; n++) {
      pass(5_000);
      health.beat(null);
      expect(health.readiness()).toEqual(refused);
    }
    pass(1);
    expect(health.readiness()).toEqual({ ready: true });
  });

  it('stays if the delivery itself cannot be stored: no sender makes a replica not ready', async () => {
    const { receive } = startReceiving();
    expect(await receive(new Error('invalid byte sequence'), 'recordDelivery')).toEqual({ ready: true });
  });
});
