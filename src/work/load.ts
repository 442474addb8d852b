import { performance } from 'node:perf_hooks';

/** Returns what tells how busy this thread's event loop was since it was asked last, from 0 (idle) to 1. */
export function loopLoad(): () => number {
  let before = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return utilization;
  };
}
