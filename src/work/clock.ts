import { performance } from 'node:perf_hooks';

/** Time and timers, as an argument of everything that needs them, so that a test can turn them. */
export type Clock = {
  /** Epoch milliseconds. */
  nowMs(): number;
  /** Milliseconds that only ever grow, for measuring how long something took. */
  monotonicMs(): number;
  /** Runs `work` once after `delayMs`; returns what takes it back. Does not keep the process alive. */
  after(delayMs: number, work: () => void): Cancel;
  /** Runs `work` every `periodMs`. Does not keep the process alive. */
  every(periodMs: number, work: () => void): Cancel;
};

export type Cancel = () => void;

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after: (delayMs, work) => {
    const timer = setTimeout(work, delayMs).unref();
    return () => clearTimeout(timer);
  },
  every: (periodMs, work) => {
    const timer = setInterval(work, periodMs).unref();
    return () => clearInterval(timer);
  },
};
