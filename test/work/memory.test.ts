import { getHeapStatistics } from 'node:v8';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/work/clock.ts';
import { watchMemory } from '../../src/work/memory.ts';
import { eventually } from '../support/timing.ts';

const MIB = 1024 ** 2;
const heapMiB = () => getHeapStatistics().total_heap_size / MIB;

/** Looks that the test takes in place of a clock. */
function watch() {
  const looks: (() => void)[] = [];
  const keep = (_ms: number, look: () => void) => {
    looks.push(look);
    return () => {};
  };
  watchMemory({ after: keep, every: keep });
  return () => looks[0]?.();
}

/** Makes garbage that outlives small collections. */
function fill(mib: number): void {
  const kept = Array.from({ length: mib }, () => Array.from({ length: MIB / 8 }, (_, n) => n + 0.5));
  expect(kept).toHaveLength(mib);
}

const idle = () => new Promise<void>((resolve) => systemClock.after(300, resolve));

describe('memory', () => {
  it('is given back by an idle thread, and not by a busy one', async () => {
    const look = watch();
    fill(64);
    const filled = heapMiB();
    look();
    expect(heapMiB()).toBeGreaterThanOrEqual(filled);
    // On a busy machine it may take several times until the thread was idle between two looks.
    await eventually(async () => {
      await idle();
      look();
      expect(heapMiB()).toBeLessThan(filled - 32);
    });
  });
});
