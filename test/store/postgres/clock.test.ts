import { describe, expect, it } from 'vitest';
import { databaseClock } from '../../../src/store/postgres/database_clock.ts';
import { systemClock } from '../../../src/work/clock.ts';
import { newDatabase, openUntilEnd } from './opening.ts';

const HOUR_MS = 3_600_000;
/** An answer may take twice as long, and nobody knows at which moment of it the database told the time. */
const WITHIN_MS = 5_000;

describe('the clock of a shared store', () => {
  it('is the database’s, whatever this machine’s says', async () => {
    const url = await newDatabase();
    for (const wrongMs of [HOUR_MS, -HOUR_MS]) {
      const machine = { ...systemClock, nowMs: () => Date.now() + wrongMs };
      const { clock } = await openUntilEnd(url, { clock: machine });
      expect(Math.abs(clock.nowMs() - Date.now())).toBeLessThan(WITHIN_MS);
      expect(Math.abs(clock.skewMs - wrongMs)).toBeLessThan(WITHIN_MS);
    }
  });

  it('moves by nothing where the machine’s is set while it serves', async () => {
    let setByMs = 0;
    const machine = { ...systemClock, nowMs: () => Date.now() + setByMs };
    const { clock, store } = await openUntilEnd(await newDatabase(), { clock: machine });
    for (setByMs of [HOUR_MS, -HOUR_MS]) {
      expect(Math.abs(clock.nowMs() - Date.now())).toBeLessThan(WITHIN_MS);
      await store.heartbeat(clock.nowMs());
      expect(Math.abs(clock.nowMs() - Date.now())).toBeLessThan(WITHIN_MS);
      expect(Math.abs(clock.skewMs - setByMs)).toBeLessThan(WITHIN_MS);
    }
  });

  it('says whole milliseconds, as rows hold them', async () => {
    const { clock } = await openUntilEnd(await newDatabase());
    for (let n = 0; n < 5; n++) expect(Number.isInteger(clock.nowMs())).toBe(true);
    expect(Number.isInteger(clock.skewMs)).toBe(true);
  });

  it('follows where the machine’s is set right, with the next sign of life', async () => {
    let wrongMs = HOUR_MS;
    const machine = { ...systemClock, nowMs: () => Date.now() + wrongMs };
    const { clock, store } = await openUntilEnd(await newDatabase(), { clock: machine });
    wrongMs = 0;
    await store.heartbeat(clock.nowMs());
    expect(Math.abs(clock.nowMs() - Date.now())).toBeLessThan(WITHIN_MS);
    expect(Math.abs(clock.skewMs)).toBeLessThan(WITHIN_MS);
  });

  describe('measured by an answer that took its time', () => {
    /** The database says that it is `saidMs`, after so long on the way. */
    async function measured(...answers: { tookMs: number; saidMs: number }[]) {
      let nowMs = 1_000_000;
      const machine = { ...systemClock, nowMs: () => nowMs, monotonicMs: () => nowMs };
      const once = async () => {
        const { tookMs, saidMs } = answers.shift() as (typeof answers)[number];
        nowMs += tookMs;
        return { nowMs: saidMs };
      };
      const clock = await databaseClock({ once: once as never }, machine);
      while (answers.length > 0) await clock.measure();
      return clock.skewMs;
    }

    it('takes half of that for the way back', async () => {
      expect(await measured({ tookMs: 100, saidMs: 900_050 })).toBe(100_000);
    });

    it('changes nothing by what may be the way alone', async () => {
      expect(await measured({ tookMs: 8_000, saidMs: 1_000_100 })).toBe(0);
    });
  });
});
