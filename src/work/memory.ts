import { performance } from 'node:perf_hooks';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock } from './clock.ts';

const FIRST_LOOK_MS = 5_000;
const LOOK_EVERY_MS = 60_000;
/** A thread counts as idle if its event loop was busy for less than this share of the time since the look before. */
const IDLE_BELOW = 0.05;
/** To give less back is not worth a collection, which takes 30 to 100 ms. */
const WORTH_BYTES = 8 * 1024 ** 2;

/**
 * Gives back memory that this thread needed to start or in a burst, once it is idle. V8 keeps such memory as long as
 * nothing is allocated: settled beside a shop would hold a fifth more than it uses.
 */
export function watchMemory(clock: Pick<Clock, 'after' | 'every'>): void {
  let before = performance.eventLoopUtilization();
  let keptBytes = 0;

  function look(): void {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    if (utilization >= IDLE_BELOW || getHeapStatistics().total_heap_size - keptBytes < WORTH_BYTES) return;
    collect();
    keptBytes = getHeapStatistics().total_heap_size;
  }

  clock.after(FIRST_LOOK_MS, look);
  clock.every(LOOK_EVERY_MS, look);
}

/** Collects garbage, and shrinks the heap to what is left. Node offers that only by a flag. */
function collect(): void {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as (options: object) => void;
  setFlagsFromString('--no-expose-gc');
  gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
