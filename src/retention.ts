import type { ClockSteps } from './clock_steps.ts';
import type { Log } from './observe/log.ts';
import type { Store } from './store/store.ts';
import type { Clock } from './work/clock.ts';
import { Rest } from './work/rest.ts';

/** What has become old since the round before is at most so much older than it should be. */
const ROUND_EVERY_MS = 3_600_000;
/** A few milliseconds of the store's time each; between them it is the deliveries'. */
const BATCH_ROWS = 256;
const REST_MS = 250;

export type RetentionOptions = {
  store: Pick<Store, 'dropBodies'>;
  clock: Clock;
  log: Log;
  keepBodiesMs: number;
  /** Bytes do not come back: nothing is dropped while the clock may be wrong about what is old. */
  clockSteps: Pick<ClockSteps, 'isTrusted'>;
};

export type Retention = {
  /** Ends after the batch in hand. */
  stop(): Promise<void>;
};

/** Drops the bytes of events that were settled long ago, and of old hints: in rounds, each from the beginning. */
export function startRetention(options: RetentionOptions): Retention {
  const { store, clock, log, keepBodiesMs, clockSteps } = options;
  const rest = new Rest(clock);
  let stopping = false;

  async function run(): Promise<void> {
    while (!stopping) {
      await dropOld().catch((fault: unknown) => {
        if (!stopping) log.warn({ fault }, 'old bodies could not be dropped; the next round tries again');
      });
      await rest.sleep(ROUND_EVERY_MS);
    }
  }

  async function dropOld(): Promise<void> {
    let all = 0;
    let after: number | null = 0;
    while (after !== null && !stopping) {
      const nowMs = clock.nowMs();
      if (!clockSteps.isTrusted()) break;
      const drop = { untilMs: nowMs - keepBodiesMs, nowMs, after, limit: BATCH_ROWS };
      const { dropped, next } = await store.dropBodies(drop);
      all += dropped;
      after = next;
      if (after !== null) await rest.sleep(REST_MS);
    }
    if (all > 0) log.info({ bodies: all }, 'the bodies of old events were dropped');
  }

  const running = run();
  return {
    stop: async () => {
      stopping = true;
      rest.end();
      await running;
    },
  };
}
