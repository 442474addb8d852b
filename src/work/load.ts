import { performance } from 'node:perf_hooks';

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
