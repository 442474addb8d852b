import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { httpDateMs, type RetrySteps, retryAfterMs, retryDelayMs, steppedDelayMs } from '../../src/domain/retry.ts';

const POLICY = { baseMs: 1000, maxMs: 60_000, attemptsMax: 10 };

describe('retry', () => {
  it('doubles the wait with each attempt, up to its bound', () => {
    const waits = [1, 2, 3, 6, 7, 9].map((attempt) => retryDelayMs(POLICY, attempt, 0.999999));
    expect(waits).toEqual([1000, 2000, 4000, 32_000, 60_000, 60_000]);
  });

  it('waits half as long at least', () => {
    expect([1, 2, 9].map((attempt) => retryDelayMs(POLICY, attempt, 0))).toEqual([500, 1000, 30_000]);
  });

  it('ends with the last attempt', () => {
    expect(retryDelayMs(POLICY, 10, 0)).toBeNull();
    expect(retryDelayMs(POLICY, 11, 0)).toBeNull();
  });

  it('allows exactly one attempt if that is the limit', () => {
    expect(retryDelayMs({ ...POLICY, attemptsMax: 1 }, 1, 0)).toBeNull();
  });

  it('stays a whole number of milliseconds within its bounds, for any attempt', () => {
    const attempt = fc.integer({ min: 1, max: 100_000 });
    const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(attempt, random, (number, chance) => {
        const waitMs = retryDelayMs({ ...POLICY, attemptsMax: 1_000_000 }, number, chance) ?? Number.NaN;
        expect(Number.isInteger(waitMs)).toBe(true);
        expect(waitMs).toBeGreaterThanOrEqual(500);
        expect(waitMs).toBeLessThanOrEqual(60_000);
      }),
    );
  });
});

describe('retry in steps', () => {
  const STEPS: RetrySteps = { stepsMs: [5_000, 30_000, 60_000], forMs: 600_000 };
  const wait = (attempt: number, triedForMs: number, random = 0.999_999) =>
    steppedDelayMs(STEPS, { attempt, triedForMs }, random);

  it('waits as its steps say, and then as the last of them', () => {
    expect([1, 2, 3, 4, 9].map((attempt) => wait(attempt, 0))).toEqual([5_000, 30_000, 60_000, 60_000, 60_000]);
  });

  it('waits a fifth less at least', () => {
    expect([1, 2, 3, 9].map((attempt) => wait(attempt, 0, 0))).toEqual([4_000, 24_000, 48_000, 48_000]);
  });

  it('tries for the last time when its time is over, and then no more', () => {
    expect(wait(12, 599_000)).toBe(1_000);
    expect(wait(13, 600_000)).toBeNull();
    expect(wait(13, 600_001)).toBeNull();
  });

  it('does not wait longer than a step if the clock was put back', () => {
    expect(wait(1, -3_600_000)).toBe(5_000);
  });
});

describe('Retry-After', () => {
  const NOW_MS = Date.UTC(1994, 10, 6, 8, 49, 37);

  it.each([
    ['0', 0],
    ['120', 120_000],
    ['Sun, 06 Nov 1994 08:51:37 GMT', 120_000],
    ['Sunday, 06-Nov-94 08:51:37 GMT', 120_000],
    ['Sun Nov  6 08:51:37 1994', 120_000],
    ['Sun, 06 Nov 1994 08:48:37 GMT', -60_000],
  ])('of %s is %s ms', (text, ms) => {
    expect(retryAfterMs(text, null, NOW_MS)).toBe(ms);
  });

  it.each(['', ' ', '-1', '1.5', '1e3', '0x10', 'soon', '1994-11-06T08:51:37Z', '9999999999999999'])(
    'of %o says nothing',
    (text) => {
      expect(retryAfterMs(text, null, NOW_MS)).toBeNull();
    },
  );

  it('as a time is meant by the clock that wrote it', () => {
    const [date, until] = ['Sun, 06 Nov 1994 09:00:00 GMT', 'Sun, 06 Nov 1994 09:00:10 GMT'];
    expect(retryAfterMs(until, date, NOW_MS)).toBe(10_000);
    expect(retryAfterMs(until, 'yesterday', NOW_MS)).toBe((httpDateMs(until) ?? 0) - NOW_MS);
    expect(retryAfterMs(null, date, NOW_MS)).toBeNull();
  });
});
