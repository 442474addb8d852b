import { availableParallelism } from 'node:os';
import { setTimeout as after } from 'node:timers/promises';
import { machineCpuSeconds } from './servers.ts';

/** How a measurement is made: once, or repeated until other processes do not disturb it. */
export type MeasureWith = <F extends { othersShare: number }>(measure: () => Promise<F>) => Promise<F>;

/** The machine is idle, or a measurement disturbed, at these shares of its processor time. */
const IDLE_SHARE = 0.08;
const DISTURBED_SHARE = 0.08;
const LOOK_MS = 500;
const IDLE_WITHIN_MS = 60_000;
const REPEATS_MAX = 3;

/** Takes the first measurement, whatever else the machine does. */
export const measureOnce: MeasureWith = (measure) => measure();

/**
 * Waits for an idle machine, and repeats a measurement that other processes disturbed. Returns the least disturbed one.
 */
export const measurePatiently: MeasureWith = async (measure) => {
  await untilIdle();
  let best = await measure();
  for (let repeat = 1; repeat <= REPEATS_MAX && best.othersShare > DISTURBED_SHARE; repeat++) {
    await untilIdle();
    const figures = await measure();
    if (figures.othersShare < best.othersShare) best = figures;
  }
  return best;
};

/** Waits for an idle machine, for a minute at most. */
async function untilIdle(): Promise<void> {
  for (let waitedMs = 0; waitedMs < IDLE_WITHIN_MS; waitedMs += LOOK_MS) {
    const before = machineCpuSeconds();
    await after(LOOK_MS);
    const busy = (machineCpuSeconds() - before) / (LOOK_MS / 1000) / availableParallelism();
    if (!(busy > IDLE_SHARE)) return;
  }
}
