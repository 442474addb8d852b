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
/** Each call takes a few milliseconds of the store's time. */
const HASTEN_ROWS = 1_000;
const RETRY_MS = 30_000;

export type ClockStepsOptions = {
  store: Pick<Store, 'hastenDue'>;
  /** The store's clock: this machine's, or the database's. */
  clock: Clock;
  log: Log;
  onStep: () => void;
};

export type ClockSteps = ReturnType<typeof watchClock>;

/**
 * Watches for steps of the clock: set by a person or NTP, or slept through by a suspended machine. Makes rows due
 * that a clock ahead delayed, including one before the start of the process.
 */
export function watchClock({ store, clock, log, onStep }: ClockStepsOptions) {
  const offsetMs = () => clock.nowMs() - clock.monotonicMs();
  const startedMs = clock.monotonicMs();
  let lastMs = offsetMs();
  let latest: { byMs: number; atMs: number } | null = null;
  /** The service's clock, less the monotonic one, at its last answer. */
  let serviceOffsetMs: number | null = null;
  /** Rows that wait for longer are to be made due; null if none are. */
  let waitMsMax: number | null = WAIT_MS_MAX;
  const hastening = startLoop({ clock, turn: hastenNext });

  function look(): void {
    const byMs = Math.round(offsetMs() - lastMs);
    lastMs += byMs;
    if (Math.abs(byMs) < STEP_MS_MIN) return;
    latest = { byMs, atMs: clock.monotonicMs() };
    const way = byMs > 0 ? 'ahead' : 'back';
    log.warn({ by: inWords(Math.abs(byMs)), way }, `the clock stepped ${way}`);
    onStep();
    if (byMs < 0) hasten();
  }

  function hasten(): void {
    waitMsMax = SOON_MS;
    hastening.wake();
  }

  async function hastenNext({ isStopping }: LoopTurn): Promise<number> {
    if (waitMsMax === null) return NOT_BEFORE_WAKE;
    const asked = { waitMsMax, nowMs: clock.nowMs(), limit: HASTEN_ROWS };
    waitMsMax = null;
    try {
      const { hastened } = await store.hastenDue(asked);
      if (hastened > 0) waitMsMax ??= asked.waitMsMax;
      return 0;
    } catch (fault) {
      waitMsMax ??= asked.waitMsMax;
      if (!isStopping()) log.warn({ fault }, 'rows that the clock delayed could not be made due; trying again');
      return RETRY_MS;
    }
  }

  const cancel = clock.every(LOOK_EVERY_MS, look);
  return {
    /** Whether ages can be trusted. Checks the clock first, so read the time before you call it. */
    isTrusted: () => {
      look();
      return clock.monotonicMs() - (latest?.atMs ?? startedMs) >= DOUBT_MS;
    },
    /** Makes due what a clock that was this far ahead delayed, here or in another process. */
    wasAhead: (byMs: number) => {
      if (byMs < STEP_MS_MIN) return;
      log.warn({ by: inWords(byMs) }, 'the clock was ahead; rows that it delayed are made due');
      hasten();
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
      await hastening.stop();
    },
  };
}
