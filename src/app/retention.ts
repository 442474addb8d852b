import type { Log } from '../observe/log.ts';
import type { Store } from '../store/contract.ts';
import type { Clock } from '../work/clock.ts';
import { type BackgroundWorker, type LoopTurn, startLoop } from '../work/loop.ts';
import type { ClockSteps } from './clock_steps.ts';

/** settled keeps bodies at most this much longer than configured. */
const ROUND_EVERY_MS = 3_600_000;
/** Each batch takes a few milliseconds of the store's time. The pause between two leaves time for deliveries. */
const BATCH_ROWS = 256;
const REST_MS = 250;

export type RetentionOptions = {
  store: Pick<Store, 'dropBodies' | 'dropCustomers'>;
  clock: Clock;
  log: Log;
  keepBodiesMs: number;
  /** Whether the shop has a callback. Only then is a notice that it has not accepted owed. */
  canTell: boolean;
  /** While ages may be wrong, settled drops nothing: dropped bytes do not come back. */
  clockSteps: Pick<ClockSteps, 'isTrusted'>;
};

/**
 * Drops old bodies of hints and settled events in hourly rounds, and erases equally old names and addresses of
 * customers.
 */
export function startRetention(options: RetentionOptions): BackgroundWorker {
  const { store, clock, log, keepBodiesMs, canTell, clockSteps } = options;

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

  /** The same for customers, oldest first. */
  async function dropOldCustomers(may: LoopTurn): Promise<void> {
    let customers = 0;
    for (let isMore = true; isMore && !may.isStopping() && clockSteps.isTrusted(); ) {
      const untilMs = clock.nowMs() - keepBodiesMs;
      const page = await store.dropCustomers({ untilMs, limit: BATCH_ROWS, sendsNotices: canTell });
      customers += page.dropped;
      isMore = page.isMore;
      if (isMore) await may.rest(REST_MS);
    }
    if (customers > 0) log.info({ customers }, 'the names and e-mail addresses of old customers were dropped');
  }

  return startLoop({
    clock,
    turn: async (may) => {
      for (const drop of [dropOld, dropOldCustomers]) {
        await drop(may).catch((fault: unknown) => {
          if (!may.isStopping()) log.warn({ fault }, 'old bodies could not be dropped; the next round tries again');
        });
      }
      return ROUND_EVERY_MS;
    },
  });
}
