import { performance } from 'node:perf_hooks';

/** Takes back what was planned. */
export type Cancel = () => void;

/** A clock that runs by itself and can be turned forward. */
export type TurnableClock = {
  /** Epoch milliseconds of the sandbox. */
  nowMs(): number;
  /** Milliseconds that only ever grow; turning the clock does not move them. */
  monotonicMs(): number;
  /** Runs `work` once after `delayMs`. */
  after(delayMs: number, work: () => void | Promise<void>): Cancel;
  /** Runs `work` every `periodMs`. What a turn passes over is made up by one run, as after a computer's sleep. */
  every(periodMs: number, work: () => void | Promise<void>): Cancel;
  /** Turns the clock forward. What falls due on the way runs in the order of its time, each after the end of the last. */
  advance(byMs: number): Promise<void>;
  /** Says what goes around the moves of a turn. */
  aroundTurns(hooks: TurnHooks): void;
  /** Forgets everything that is planned. */
  stop(): void;
};

type TurnHooks = {
  /** Awaited before each move: what is to end at the time that it began at. */
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

  /** A turn runs what is due by itself; otherwise a real timer waits for the next. */
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
      // What runs already ends at its own time: the clock is not turned under it.
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
