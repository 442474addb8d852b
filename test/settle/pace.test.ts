import { describe, expect, it } from 'vitest';
import { BATCH_MAX, restAfterBatchMs, type SettledBatch } from '../../src/settle/pace.ts';

const YIELD_MS_MAX = 10_000;

/** After a batch that was not full, of an idle process that has its store for itself, unless a test says otherwise. */
function restMs(over: Partial<SettledBatch>): number {
  return restAfterBatchMs({ events: 1, arrivals: 1, workedMs: 10, waitedMs: 100, load: 0, isShared: false, ...over });
}

describe('the rest after a batch of settlements', () => {
  it('is none while no delivery arrives, however busy the event loop is', () => {
    expect(restMs({ arrivals: 0, load: 1 })).toBe(0);
    expect(restMs({ arrivals: 0, load: 1, events: BATCH_MAX, isShared: true })).toBe(0);
  });

  it('is none while the event loop has time for both', () => {
    expect(restMs({ load: 0.4 })).toBe(0);
  });

  it.each([
    { workedMs: 10, waitedMs: 110, expected: 150 },
    { workedMs: 20, waitedMs: 120, expected: 200 },
    { workedMs: 100, waitedMs: 200, expected: 400 },
  ])('is long while deliveries fill the event loop: $expected ms after $workedMs ms of work', (given) => {
    const { workedMs, waitedMs, expected } = given;
    expect(restMs({ load: 0.9, workedMs, waitedMs })).toBe(expected);
  });

  it('ends before the oldest event has waited ten seconds', () => {
    for (const waitedMs of [5_000, 9_000, 9_999]) {
      const rest = restMs({ load: 1, workedMs: 5_000, waitedMs });
      expect(waitedMs + rest).toBe(YIELD_MS_MAX);
    }
  });

  it('is none for events that wait longer, but for the moment in which more come together', () => {
    expect(restMs({ load: 1, waitedMs: YIELD_MS_MAX, events: BATCH_MAX })).toBe(0);
    expect(restMs({ load: 1, waitedMs: YIELD_MS_MAX, events: BATCH_MAX - 1 })).toBe(40);
  });

  it('is short while the event loop is busy, so that more events share a commit', () => {
    expect(restMs({ load: 0.41 })).toBe(40);
    expect(restMs({ load: 0.41, events: BATCH_MAX })).toBe(0);
  });

  it('is long in a burst on a shared store, which the event loop does not show', () => {
    const burst = { events: BATCH_MAX, arrivals: BATCH_MAX + 1 };
    expect(restMs({ ...burst, isShared: true })).toBe(150);
    expect(restMs({ ...burst, isShared: false })).toBe(0);
    expect(restMs({ ...burst, isShared: true, arrivals: BATCH_MAX })).toBe(0);
    expect(restMs({ ...burst, isShared: true, events: BATCH_MAX - 1 })).toBe(0);
  });
});
