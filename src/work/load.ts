import { performance } from 'node:perf_hooks';
import type { Clock } from './clock.ts';

/** Shorter than this, a share says more of the moment than of the load. */
const WINDOW_MS_MIN = 100;

/** Returns what tells how busy this thread's event loop was of late, from 0 (idle) to 1. */
export function loopLoad(): () => number {
  let before = performance.eventLoopUtilization();
  let utilization = 0;
  return () => {
    const now = performance.eventLoopUtilization();
    const since = performance.eventLoopUtilization(now, before);
    if (since.active + since.idle >= WINDOW_MS_MIN) {
      utilization = since.utilization;
      before = now;
    }
    return utilization;
  };
}

/** Tells for which share of the time of late something was so, from 0 (never) to 1. */
export type ShareOfTime = { set(isSo: boolean): void; read(): number };

export function shareOfTime({ monotonicMs }: Pick<Clock, 'monotonicMs'>): ShareOfTime {
  let isSo = false;
  let sinceMs = monotonicMs();
  let windowMs = sinceMs;
  let soMs = 0;
  let share = 0;

  function count(): number {
    const nowMs = monotonicMs();
    if (isSo) soMs += nowMs - sinceMs;
    sinceMs = nowMs;
    return nowMs;
  }

  return {
    set: (next) => {
      count();
      isSo = next;
    },
    read: () => {
      const nowMs = count();
      if (nowMs - windowMs >= WINDOW_MS_MIN) {
        share = soMs / (nowMs - windowMs);
        windowMs = nowMs;
        soMs = 0;
      }
      return share;
    },
  };
}
