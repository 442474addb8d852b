import type { Log } from './observe/log.ts';
import type { Store } from './store/store.ts';
import { type Clock, inWords } from './work/clock.ts';
import { Rest } from './work/rest.ts';

/** A jump of the store's clock against the monotonic one. A smaller one puts nothing off for longer than that. */
const STEP_MS_MIN = 30_000;
const LOOK_EVERY_MS = 1_000;
/** So long after a step, and after the start of the process, nothing is done for good because of how old it seems. */
const DOUBT_MS = 3_600_000;
/** What is due later than this after a step back is due at once; what is due sooner comes in time. */
const SOON_MS = 60_000;
/** Longer than anything waits for its next attempt: at a start nobody knows what the clock did before. */
const WAIT_MS_MAX = 2 * 3_600_000;
/** A few milliseconds of the store's time; between two such calls it is the deliveries'. */
const MEND_ROWS = 1_000;
const REST_MS = 20;
const RETRY_MS = 30_000;

export type ClockStepsOptions = {
  store: Pick<Store, 'hastenDue' | 'mendTimes'>;
  /** What the store goes by: this machine's clock, or the database's. */
  clock: Clock;
  log: Log;
  onStep: () => void;
};

export type ClockSteps = {
  /** Whether what seems old may be taken for old. Looks at the clock first: read the time before you ask. */
  isTrusted(): boolean;
  /** The clock was so far ahead when the last sign of life before this process was given. */
  wasAhead(byMs: number): void;
  /** The latest step that this process saw, and how long ago; null before the first. */
  latest(): { byMs: number; agoMs: number } | null;
  stop(): Promise<void>;
};

/**
 * Watches the clock for steps: set by a person or by NTP, or passed over by a machine that was suspended. Mends in the
 * store what a step put off or made old, also what one before the start of the process did.
 */
export function watchClock({ store, clock, log, onStep }: ClockStepsOptions): ClockSteps {
  const offsetMs = () => clock.nowMs() - clock.monotonicMs();
  const rest = new Rest(clock);
  const startedMs = clock.monotonicMs();
  let lastMs = offsetMs();
  let latest: { byMs: number; atMs: number } | null = null;
  let stopping = false;
  let mending = mend(() => hasten(WAIT_MS_MAX));

  function look(): void {
    const byMs = Math.round(offsetMs() - lastMs);
    lastMs += byMs;
    if (Math.abs(byMs) < STEP_MS_MIN) return;
    latest = { byMs, atMs: clock.monotonicMs() };
    const way = byMs > 0 ? 'ahead' : 'back';
    log.warn({ by: inWords(Math.abs(byMs)), way }, `the clock stepped ${way}; what it put off is due at once`);
    onStep();
    mendStep(byMs);
  }

  function mendStep(byMs: number): void {
    mending = mending.then(() =>
      mend(async () => {
        if (byMs < 0) await hasten(SOON_MS);
        await walk(byMs);
      }),
    );
  }

  /** Tries until it is through, or stopped. */
  async function mend(work: () => Promise<void>): Promise<void> {
    while (!stopping) {
      try {
        return await work();
      } catch (fault) {
        if (!stopping) log.warn({ fault }, 'what the clock put off could not be made due; trying again');
        await rest.sleep(RETRY_MS);
      }
    }
  }

  async function hasten(waitMsMax: number): Promise<void> {
    for (let hastened = 1; hastened > 0 && !stopping; ) {
      ({ hastened } = await store.hastenDue({ waitMsMax, nowMs: clock.nowMs(), limit: MEND_ROWS }));
    }
  }

  async function walk(stepMs: number): Promise<void> {
    for (let after: number | null = 0; after !== null && !stopping; ) {
      after = (await store.mendTimes({ stepMs, nowMs: clock.nowMs(), after, limit: MEND_ROWS })).next;
      if (after !== null) await rest.sleep(REST_MS);
    }
  }

  const cancel = clock.every(LOOK_EVERY_MS, look);
  return {
    isTrusted: () => {
      look();
      const sinceMs = Math.max(startedMs, latest?.atMs ?? startedMs);
      return clock.monotonicMs() - sinceMs >= DOUBT_MS;
    },
    wasAhead: (byMs) => {
      if (byMs < STEP_MS_MIN) return;
      log.warn({ by: inWords(byMs) }, 'the clock was ahead before; what it put off is due at once');
      mendStep(-byMs);
    },
    latest: () => {
      look();
      return latest === null ? null : { byMs: latest.byMs, agoMs: clock.monotonicMs() - latest.atMs };
    },
    stop: async () => {
      stopping = true;
      cancel();
      rest.end();
      await mending;
    },
  };
}
