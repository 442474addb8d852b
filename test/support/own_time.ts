import { performance } from 'node:perf_hooks';

/**
 * Returns what tells the milliseconds since: those for which this process worked, in all its threads, and those for which
 * it waited. On a machine that does nothing else they are no fewer than a clock's; what a busy neighbour takes is not
 * among them.
 */
export function startOwnTime(): () => number {
  const cpu = process.cpuUsage();
  const loop = performance.eventLoopUtilization();
  return () => {
    const { user, system } = process.cpuUsage(cpu);
    return (user + system) / 1_000 + performance.eventLoopUtilization(loop).idle;
  };
}
