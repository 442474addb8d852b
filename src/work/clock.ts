import { performance } from 'node:perf_hooks';

/** Time and timers. Passed to everything that needs them, so that tests can control them. */
export type Clock = {
  /** Epoch milliseconds. */
  nowMs(): number;
  /** Milliseconds that never decrease, for measuring durations. */
  monotonicMs(): number;
  /** Runs `work` once after `delayMs`, unless cancelled. Does not keep the process alive. */
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

/** Keeps the process alive until cancelled; waiting for a timer of a `Clock` does not. */
export function stayAlive(): Cancel {
  const timer = setInterval(() => {}, 60_000);
  return () => clearInterval(timer);
}

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const;

/** A duration for people: `0.25 s`, `59 s`, `2 h 5 min`. Whole seconds from 10 s on, and at most two units. */
export function inWords(ms: number): string {
  if (ms < 10_000) return `${Math.round(ms) / 1000} s`;
  if (ms < 120_000) return `${Math.round(ms / 1000)} s`;
  let left = Math.round(ms / 1000);
  const parts = UNITS.flatMap(([unit, seconds]) => {
    const n = Math.floor(left / seconds);
    left -= n * seconds;
    return n === 0 ? [] : [`${n} ${unit}`];
  });
  return parts.slice(0, 2).join(' ');
}

/** The time left to wait, for people: whole seconds, rounded up. */
export function waitInWords(ms: number): string {
  return inWords(Math.ceil(Math.max(0, ms) / 1000) * 1000);
}
