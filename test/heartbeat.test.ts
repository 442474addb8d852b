import { describe, expect, it } from 'vitest';
import { startHeartbeat } from '../src/heartbeat.ts';
import { Life } from '../src/life.ts';
import type { Log } from '../src/observe/log.ts';
import { systemClock } from '../src/work/clock.ts';

const AWAY_MS = 600_000;

/** Signs of life that the test lets pass, each answered by how long nobody was alive. */
function startTestHeartbeat(catchUp: () => Promise<unknown> | undefined) {
  let gapMs = 0;
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
    store: { heartbeat: async () => ({ gapMs }) },
    clock,
    life: new Life(systemClock),
    log: { info: () => told++, error: () => {} } as unknown as Log,
    catchUp: () => {
      caughtUp++;
      return catchUp();
    },
  });
  return {
    later,
    counts: () => ({ caughtUp, told }),
    answer: async (ms: number) => {
      gapMs = ms;
      beat();
      await new Promise((resume) => setImmediate(resume));
    },
  };
}

describe('a sign of life that tells of an outage', () => {
  it('has open links made due once, however often it is told of while that is done', async () => {
    const caughtUp = Promise.withResolvers<void>();
    const { answer, counts } = startTestHeartbeat(() => caughtUp.promise);
    for (let n = 0; n < 3; n++) await answer(AWAY_MS);
    expect(counts()).toEqual({ caughtUp: 1, told: 1 });
    caughtUp.resolve();
    await answer(2_000);
    await answer(AWAY_MS);
    expect(counts()).toEqual({ caughtUp: 2, told: 2 });
  });

  it('has it done again, half a minute later, where that failed', async () => {
    const { answer, counts, later } = startTestHeartbeat(() => Promise.reject(new Error('refused')));
    await answer(AWAY_MS);
    await answer(AWAY_MS);
    expect(counts().caughtUp).toBe(1);
    expect(later.map(({ delayMs }) => delayMs)).toEqual([30_000]);
    later[0]?.work();
    await answer(AWAY_MS);
    expect(counts().caughtUp).toBe(2);
  });

  it('says it once where nobody can be asked', async () => {
    const { answer, counts } = startTestHeartbeat(() => undefined);
    for (let n = 0; n < 3; n++) await answer(AWAY_MS);
    expect(counts().told).toBe(1);
  });
});
