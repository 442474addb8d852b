import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { retryDelayMs } from '../../src/domain/retry.ts';

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

  it('allows one attempt and no more where the bound says so', () => {
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
