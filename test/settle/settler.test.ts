import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { openLog } from '../../src/observe/log.ts';
import { type SettlerOptions, startSettler } from '../../src/settle/settler.ts';
import type { ClaimedEvent } from '../../src/store/contract_inbox.ts';

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
