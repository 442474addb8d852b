import type { Log } from '../observe/log.ts';
import type { Store } from '../store/contract.ts';
import { type Clock, inWords } from '../work/clock.ts';
import { type LoopTurn, NOT_BEFORE_WAKE, startLoop } from '../work/loop.ts';

/** The smallest step of the store's clock, against the monotonic one, that counts. Smaller ones delay little. */
const STEP_MS_MIN = 30_000;
const LOOK_EVERY_MS = 1_000;
/** For this long after a step or the start of the process, settled gives up and drops nothing because of its age. */
const DOUBT_MS = 3_600_000;
/** After a step back, settled makes everything due that is due later than this. The rest becomes due in time. */
const SOON_MS = 60_000;
/** Longer than any wait for a next attempt. Used at the start, when earlier steps of the clock are unknown. */
const WAIT_MS_MAX = 2 * 3_600_000;
/** Each call takes a few milliseconds of the store's time. The pause between two leaves time for deliveries. */
const MEND_ROWS = 1_000;
const REST_MS = 20;
const RETRY_MS = 30_000;

export type ClockStepsOptions = {
  store: Pick<Store, 'hastenDue' | 'mendTimes'>;
  /** The store's clock: this machine's, or the database's. */
  clock: Clock;
  log: Log;
  onStep: () => void;
};

export type ClockSteps = ReturnType<typeof watchClock>;

/**
 * Watches for steps of the clock: set by a person or NTP, or slept through by a suspended machine. Repairs the rows
 * that a step delayed or aged, including a step before the start of the process.
 */
export function watchClock({ store, clock, log, onStep }: ClockStepsOptions) {
  const offsetMs = () => clock.nowMs() - clock.monotonicMs();
  const startedMs = clock.monotonicMs();
  let lastMs = offsetMs();
  let latest: { byMs: number; atMs: number } | null = null;
  /** The service's clock, less the monotonic one, at its last answer. */
  let serviceOffsetMs: number | null = null;
  /** Steps to be repaired, oldest first, in milliseconds; null for those before the start, which are unknown. */
  const pending: (number | null)[] = [null];
  const mending = startLoop({ clock, turn: mendNext });

  function look(): void {
    const byMs = Math.round(offsetMs() - lastMs);
    lastMs += byMs;
    if (Math.abs(byMs) < STEP_MS_MIN) return;
    latest = { byMs, atMs: clock.monotonicMs() };
    const way = byMs > 0 ? 'ahead' : 'back';
    log.warn({ by: inWords(Math.abs(byMs)), way }, `the clock stepped ${way}; rows that it delayed are made due`);
    onStep();
    mendStep(byMs);
  }

  function mendStep(byMs: number): void {
    pending.push(byMs);
    mending.wake();
  }

  async function mendNext(may: LoopTurn): Promise<number> {
    const [byMs] = pending;
    if (byMs === undefined) return NOT_BEFORE_WAKE;
    try {
      if (byMs === null) await hasten(WAIT_MS_MAX, may);
      else {
        if (byMs < 0) await hasten(SOON_MS, may);
        await mendRows(byMs, may);
      }
      pending.shift();
      return 0;
    } catch (fault) {
      if (!may.isStopping()) log.warn({ fault }, 'rows that the clock delayed could not be made due; trying again');
      return RETRY_MS;
    }
  }

  async function hasten(waitMsMax: number, { isStopping }: LoopTurn): Promise<void> {
    for (let hastened = 1; hastened > 0 && !isStopping(); ) {
      ({ hastened } = await store.hastenDue({ waitMsMax, nowMs: clock.nowMs(), limit: MEND_ROWS }));
    }
  }

  async function mendRows(stepMs: number, { isStopping, rest }: LoopTurn): Promise<void> {
    for (let after: number | null = 0; after !== null && !isStopping(); ) {
      after = (await store.mendTimes({ stepMs, nowMs: clock.nowMs(), after, limit: MEND_ROWS })).next;
      if (after !== null) await rest(REST_MS);
    }
  }

  const cancel = clock.every(LOOK_EVERY_MS, look);
  return {
    /** Whether ages can be trusted. Checks the clock first, so read the time before you call it. */
    isTrusted: () => {
      look();
      return clock.monotonicMs() - (latest?.atMs ?? startedMs) >= DOUBT_MS;
    },
    /** Records that the last heartbeat before this process was this far in the future. */
    wasAhead: (byMs: number) => {
      if (byMs < STEP_MS_MIN) return;
      log.warn({ by: inWords(byMs) }, 'the clock was ahead before this start; rows that it delayed are made due');
      mendStep(-byMs);
    },
    /** The latest step seen by this process, and how long ago it was; null if there was none. */
    latest: () => {
      look();
      return latest === null ? null : { byMs: latest.byMs, agoMs: clock.monotonicMs() - latest.atMs };
    },
    /** Records how far the service's clock was ahead at an answer. */
    serviceWasAhead: (byMs: number) => {
      serviceOffsetMs = offsetMs() + byMs;
    },
    /** How far the service's clock is ahead, also after a step of ours; null if the service has not said its time. */
    serviceAheadMs: () => (serviceOffsetMs === null ? null : serviceOffsetMs - offsetMs()),
    stop: async () => {
      cancel();
      await mending.stop();
    },
  };
}
