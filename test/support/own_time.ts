import { performance } from 'node:perf_hooks';

/**
 * Returns a function for the milliseconds since in which this process worked, in all its threads, or waited. On an idle
 * machine they are at least a clock's; time that other processes took does not count.
 */
export function startOwnTime(): () => number {
  const cpu = process.cpuUsage();
  const loop = performance.eventLoopUtilization();
  return () => {
    const { user, system } = process.cpuUsage(cpu);
    return (user + system) / 1_000 + performance.eventLoopUtilization(loop).idle;
  };
}
