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
  store: Pick<Store, 'dropBodies' | 'dropCustomers' | 'eraseDropped'>;
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
  /** An earlier process may have ended between a drop and its erasure. */
  let isErased = false;

  /** From the oldest body on. */
  async function dropOld(nowMs: number, may: LoopTurn): Promise<void> {
    let bodies = 0;
    for (let after: number | null = 0; after !== null && !may.isStopping() && clockSteps.isTrusted(); ) {
      const page = await store.dropBodies({ untilMs: nowMs - keepBodiesMs, nowMs, after, limit: BATCH_ROWS });
      bodies += page.dropped;
      if (page.dropped > 0) isErased = false;
      after = page.next;
      if (after !== null) await may.rest(REST_MS);
    }
    if (bodies > 0) log.info({ bodies }, 'the bodies of old events were dropped');
  }

  /** The same for customers, oldest first. */
  async function dropOldCustomers(nowMs: number, may: LoopTurn): Promise<void> {
    let customers = 0;
    for (let isMore = true; isMore && !may.isStopping() && clockSteps.isTrusted(); ) {
      const drop = { untilMs: nowMs - keepBodiesMs, limit: BATCH_ROWS, sendsNotices: canTell };
      const page = await store.dropCustomers(drop);
      customers += page.dropped;
      // A call that counts none may have rewritten notices.
      isErased = false;
      isMore = page.isMore;
      if (isMore) await may.rest(REST_MS);
    }
    if (customers > 0) log.info({ customers }, 'the names and e-mail addresses of old customers were dropped');
  }

  async function erase(_nowMs: number, may: LoopTurn): Promise<void> {
    if (isErased || may.isStopping()) return;
    // If another connection reads what was there before, the next round tries again.
    ({ isErased } = await store.eraseDropped());
  }

  return startLoop({
    clock,
    turn: async (may) => {
      // Read once for the round: a name must not outlive, in a body, the hour in which it leaves its order.
      const nowMs = clock.nowMs();
      if (!clockSteps.isTrusted()) return ROUND_EVERY_MS;
      for (const drop of [dropOld, dropOldCustomers, erase]) {
        await drop(nowMs, may).catch((fault: unknown) => {
          if (!may.isStopping()) log.warn({ fault }, 'old bodies could not be dropped; the next round tries again');
        });
      }
      return ROUND_EVERY_MS;
    },
  });
}
