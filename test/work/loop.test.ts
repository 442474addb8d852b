import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openClock } from '../../sandbox/clock.ts';
import { startPool } from '../../src/work/loop.ts';

const POLL_MS = 1_000;

type Job = { name: string; done: () => void };

/** A pool over a queue in memory. Jobs last until the test says that they are done; time passes when it is turned. */
function startTestPool({ places = 3, claim }: { places?: number; claim?: () => Promise<void> } = {}) {
  const clock = openClock({ startMs: 0, scale: 1e-6 });
  const waiting: string[] = [];
  const asked: number[] = [];
  const running = new Map<string, Job>();
  const faults: unknown[] = [];
  let changedAtMs = Number.POSITIVE_INFINITY;
  const pool = startPool<string>({
    // Turning moves all of it.
    clock: { ...clock, monotonicMs: clock.nowMs },
    places,
    pollMs: POLL_MS,
    quietMs: () => Math.max(0, clock.nowMs() - changedAtMs),
    claim: async (limit) => {
      asked.push(limit);
      const claimed = waiting.splice(0, limit);
      await claim?.();
      return claimed;
    },
    work: (name) => new Promise((done) => running.set(name, { name, done })),
    onClaimFailed: (fault) => faults.push(fault),
  });
  const finish = async (name: string) => {
    const job = running.get(name);
    if (job === undefined) throw new Error(`${name} is not worked on`);
    running.delete(name);
    job.done();
    await settle();
  };
  onTestFinished(() => {
    for (const { done } of running.values()) done();
    void pool.stop();
  });
  return {
    pool,
    asked,
    faults,
    add: (...names: string[]) => waiting.push(...names),
    /** Until it is called, something always changes. */
    change: () => {
      changedAtMs = clock.nowMs();
    },
    finish,
    /** The names of those that are worked on. */
    inHand: () => [...running.keys()],
    pass: async (byMs: number) => {
      await clock.advance(byMs);
      await settle();
    },
  };
}

/** Lets everything happen that waits for no time and no job. */
async function settle(): Promise<void> {
  for (let turns = 0; turns < 5; turns++) await turn();
}

describe('a pool', () => {
  it('works on the others while one job is slow', async () => {
    const test = startTestPool();
    test.add('slow', 'quick-1');
    test.pool.wake();
    await settle();
    expect(test.inHand()).toEqual(['slow', 'quick-1']);
    await test.finish('quick-1');
    for (const name of ['quick-2', 'quick-3']) {
      test.add(name);
      test.pool.wake();
      await settle();
      await test.finish(name);
    }
    expect(test.inHand()).toEqual(['slow']);
  });

  it('claims for its free places only, and for none while all are taken', async () => {
    const test = startTestPool({ places: 2 });
    test.add('one', 'two', 'three', 'four');
    test.pool.wake();
    await settle();
    expect(test.inHand()).toEqual(['one', 'two']);
    const claims = test.asked.length;
    test.pool.wake();
    await settle();
    await test.pass(3 * POLL_MS);
    expect(test.asked).toHaveLength(claims);
    expect(Math.max(...test.asked)).toBe(2);
  });

  it('takes the next job at once when the end of one frees a place', async () => {
    const test = startTestPool({ places: 2 });
    test.add('one', 'two', 'three');
    test.pool.wake();
    await settle();
    await test.finish('two');
    expect(test.inHand()).toEqual(['one', 'three']);
    expect(test.asked.at(-1)).toBe(1);
  });

  it('finds work by its poll if it is not woken', async () => {
    const test = startTestPool();
    await settle();
    test.add('unheard');
    await test.pass(POLL_MS - 1);
    expect(test.inHand()).toEqual([]);
    await test.pass(1);
    expect(test.inHand()).toEqual(['unheard']);
  });

  it('claims rarely after a quiet minute, and again each second once something changed', async () => {
    const test = startTestPool();
    await settle();
    test.change();
    const claimsIn = async (seconds: number) => {
      const before = test.asked.length;
      await test.pass(seconds * 1_000);
      return test.asked.length - before;
    };
    expect(await claimsIn(59)).toBe(59);
    expect(await claimsIn(60)).toBe(6);
    const before = test.asked.length;
    test.pool.wake();
    await settle();
    expect(test.asked.length - before).toBe(1);
    test.change();
    expect(await claimsIn(10)).toBe(10);
  });

  it('does not lose a wake that comes while it claims', async () => {
    const held: (() => void)[] = [];
    const test = startTestPool({ claim: () => new Promise((resolve) => held.push(resolve)) });
    await settle();
    // The claim has looked already, and found nothing.
    test.add('late');
    test.pool.wake();
    held.shift()?.();
    await settle();
    held.shift()?.();
    await settle();
    expect(test.inHand()).toEqual(['late']);
  });

  it('tries again with its poll after a claim that failed, and tells of it', async () => {
    let broken = true;
    const test = startTestPool({
      claim: async () => {
        if (broken) throw new Error('no store');
      },
    });
    await settle();
    expect(test.faults).toHaveLength(1);
    // Once a minute is enough.
    await test.pass(60_000 - 1);
    expect(test.asked.length).toBeGreaterThan(50);
    expect(test.faults).toHaveLength(1);
    await test.pass(POLL_MS);
    expect(test.faults).toHaveLength(2);
    broken = false;
    test.add('later');
    await test.pass(POLL_MS);
    expect(test.inHand()).toEqual(['later']);
    expect(test.faults).toHaveLength(2);
  });

  it('stops after the jobs in hand, and claims no more', async () => {
    const test = startTestPool();
    test.add('last');
    test.pool.wake();
    await settle();
    let stopped = false;
    const stopping = test.pool.stop().then(() => {
      stopped = true;
    });
    test.add('never');
    test.pool.wake();
    await settle();
    expect(stopped).toBe(false);
    await test.finish('last');
    await stopping;
    await test.pass(3 * POLL_MS);
    expect(test.inHand()).toEqual([]);
  });
});
