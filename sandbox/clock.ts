import { performance } from 'node:perf_hooks';

export type Cancel = () => void;

/** A running clock that can be turned forward. */
export type TurnableClock = {
  /** Epoch milliseconds of the sandbox. */
  nowMs(): number;
  /** Milliseconds that only grow; turning the clock does not change them. */
  monotonicMs(): number;
  /** Runs `work` once after `delayMs`. */
  after(delayMs: number, work: () => void | Promise<void>): Cancel;
  /** Runs `work` every `periodMs`. One run makes up for all that a turn passes over, as after a computer's sleep. */
  every(periodMs: number, work: () => void | Promise<void>): Cancel;
  /**
   * Turns the clock forward. What falls due meanwhile runs in the order of its time, each after the end of the last.
   */
  advance(byMs: number): Promise<void>;
  /** Sets what runs around the moves of a turn. */
  aroundTurns(hooks: TurnHooks): void;
  /** Cancels all timers. */
  stop(): void;
};

type TurnHooks = {
  /** Awaited before each move, for work that must end at the time at which it began. */
  beforeMove(): Promise<void>;
  /** Called once a turn is over. */
  afterTurn(): void;
};

type Timer = { dueMs: number; work: () => void | Promise<void>; periodMs: number | null };

/** setTimeout takes no more. */
const REAL_DELAY_MS_MAX = 2_147_483_647;

/**
 * @param startMs epoch milliseconds at which it starts
 * @param scale how many seconds of the sandbox pass in a real one
 */
export function openClock({ startMs, scale }: { startMs: number; scale: number }): TurnableClock {
  const originMs = performance.now();
  const timers = new Set<Timer>();
  const running = new Set<Promise<void>>();
  let turnedMs = 0;
  let turning: Promise<void> | null = null;
  let wakeUp: NodeJS.Timeout | undefined;
  let stopped = false;
  let hooks: TurnHooks | null = null;

  const monotonicMs = () => (performance.now() - originMs) * scale;
  const nowMs = () => Math.floor(startMs + monotonicMs() + turnedMs);

  function next(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of timers) if (first === undefined || timer.dueMs < first.dueMs) first = timer;
    return first;
  }

  /** Sets a real timer for the next work. During a turn there is none: `turn` runs what falls due. */
  function arm(): void {
    clearTimeout(wakeUp);
    const timer = next();
    if (timer === undefined || turning !== null || stopped) return;
    const realMs = Math.min(REAL_DELAY_MS_MAX, Math.max(0, timer.dueMs - nowMs()) / scale);
    wakeUp = setTimeout(() => {
      if (turning !== null) return;
      for (const due of [...timers].filter(({ dueMs }) => dueMs <= nowMs()).sort(byTime)) {
        if (timers.delete(due)) void start(due, nowMs());
      }
      arm();
    }, realMs).unref();
  }

  function start(timer: Timer, endMs: number): Promise<void> {
    const work = run(timer, endMs).finally(() => running.delete(work));
    running.add(work);
    return work;
  }

  async function run(timer: Timer, endMs: number): Promise<void> {
    if (timer.periodMs !== null) {
      timer.dueMs = endMs + timer.periodMs;
      timers.add(timer);
    }
    await timer.work();
  }

  function plan(timer: Timer): Cancel {
    timers.add(timer);
    arm();
    return () => void timers.delete(timer);
  }

  async function turn(byMs: number): Promise<void> {
    const targetMs = nowMs() + byMs;
    for (;;) {
      // Work that is running must end at its own time: do not turn the clock during it.
      await Promise.all(running);
      await hooks?.beforeMove();
      const timer = next();
      if (timer === undefined || timer.dueMs > targetMs || stopped) break;
      timers.delete(timer);
      turnedMs += Math.max(0, timer.dueMs - nowMs());
      await start(timer, targetMs);
    }
    turnedMs += Math.max(0, targetMs - nowMs());
  }

  return {
    nowMs,
    monotonicMs,
    after: (delayMs, work) => plan({ dueMs: nowMs() + delayMs, work, periodMs: null }),
    every: (periodMs, work) => plan({ dueMs: nowMs() + periodMs, work, periodMs }),
    advance: async (byMs) => {
      while (turning !== null) await turning;
      turning = turn(byMs);
      try {
        await turning;
      } finally {
        turning = null;
        arm();
        hooks?.afterTurn();
      }
    },
    aroundTurns: (given) => {
      hooks = given;
    },
    stop: () => {
      stopped = true;
      clearTimeout(wakeUp);
      timers.clear();
    },
  };
}

function byTime(one: Timer, other: Timer): number {
  return one.dueMs - other.dueMs;
}
