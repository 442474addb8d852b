import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { openLog } from '../../src/observe/log.ts';
import {
  BATCH_MAX,
  restAfterBatchMs,
  type SettledBatch,
  type SettlerOptions,
  startSettler,
} from '../../src/settle/settler.ts';
import type { ClaimedEvent } from '../../src/store/verbs/inbox.ts';

const YIELD_MS_MAX = 10_000;

/** A row that needs no credentials. */
function reading(receivedAtMs: number): ClaimedEvent {
  const body = Buffer.from('{"paymentLink":{"id":"pl_1","status":"ACTIVE","payments":[]}}');
  const mac = createHash('sha256').update(body).digest();
  return { eventKey: 1, attempt: 1, linkKey: 1, body, timestamp: '', mac, receivedAtMs, reading: 1 };
}

it.each([
  { workedMs: 10, ageMs: 100, restMs: 150 },
  { workedMs: 100, ageMs: 100, restMs: 400 },
  { workedMs: 5_000, ageMs: 4_000, restMs: 1_000 },
])(
  'settlement that took $workedMs ms yields to deliveries, but no event waits for more than 10 s by that',
  async (given) => {
    const { workedMs, ageMs, restMs } = given;
    let nowMs = 1_000_000;
    const rested = Promise.withResolvers<number>();
    const claims = [[reading(nowMs - ageMs)]];
    const settler = startSettler({
      clock: {
        nowMs: () => nowMs,
        monotonicMs: () => nowMs,
        after: (delayMs: number) => {
          rested.resolve(delayMs);
          return () => {};
        },
      },
      store: {
        claimEvents: async () => claims.shift() ?? [],
        settle: async () => {
          nowMs += workedMs;
          return { outcome: 'lost' };
        },
      },
      policy: { asks: 'never' },
      log: openLog('silent'),
      load: () => 1,
      isShared: false,
      onSettled: () => {},
    } as unknown as SettlerOptions);
    settler.wake();
    expect(await rested.promise).toBe(restMs);
    expect(ageMs + workedMs + restMs).toBeLessThanOrEqual(YIELD_MS_MAX);
    // The clock never ends this rest.
    await settler.stop();
  },
);

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
