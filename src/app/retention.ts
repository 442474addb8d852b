import type { Log } from '../observe/log.ts';
import type { Store } from '../store/contract.ts';
import type { Clock } from '../work/clock.ts';
import { type BackgroundWorker, type LoopTurn, startLoop } from '../work/loop.ts';
import type { ClockSteps } from './clock_steps.ts';

/** settled keeps bodies for at most this much longer than configured. */
const ROUND_EVERY_MS = 3_600_000;
/** Each batch takes a few milliseconds of the store's time; the pause between two is for deliveries. */
const BATCH_ROWS = 256;
const REST_MS = 250;

export type RetentionOptions = {
  store: Pick<Store, 'dropBodies'>;
  clock: Clock;
  log: Log;
  keepBodiesMs: number;
  /** While the clock may be wrong about ages, settled drops nothing: bytes do not come back. */
  clockSteps: Pick<ClockSteps, 'isTrusted'>;
};

/** Drops the bodies of old hints, and of events that were settled long ago, in hourly rounds. */
export function startRetention({ store, clock, log, keepBodiesMs, clockSteps }: RetentionOptions): BackgroundWorker {
  /** One round, from the oldest row on. */
  async function dropOld(may: LoopTurn): Promise<void> {
    let bodies = 0;
    for (let after: number | null = 0; after !== null && !may.isStopping(); ) {
      const nowMs = clock.nowMs();
      if (!clockSteps.isTrusted()) break;
      const page = await store.dropBodies({ untilMs: nowMs - keepBodiesMs, nowMs, after, limit: BATCH_ROWS });
      bodies += page.dropped;
      after = page.next;
      if (after !== null) await may.rest(REST_MS);
    }
    if (bodies > 0) log.info({ bodies }, 'the bodies of old events were dropped');
  }

  return startLoop({
    clock,
    turn: async (may) => {
      await dropOld(may).catch((fault: unknown) => {
        if (!may.isStopping()) log.warn({ fault }, 'old bodies could not be dropped; the next round tries again');
      });
      return ROUND_EVERY_MS;
    },
  });
}
