import { availableParallelism } from 'node:os';
import type { Figures } from './measure.ts';
import { machineCpuSeconds } from './servers.ts';

/**
 * Takes a measurement; a patient one waits for the machine to be idle, and is repeated where other processes disturbed
 * it all the same. The least disturbed one counts.
 */
export type Take = (measure: () => Promise<Figures>) => Promise<Figures>;

const IDLE_SHARE = 0.08;
const LOOK_MS = 500;
const IDLE_WITHIN_MS = 60_000;
const DISTURBED_SHARE = 0.08;
const REPEATS_MAX = 3;

export const takeOnce: Take = (measure) => measure();

export const takePatiently: Take = async (measure) => {
  let best: Figures | null = null;
  for (let repeat = 0; repeat <= REPEATS_MAX; repeat++) {
    await untilIdle();
    const figures = await measure();
    if (best === null || figures.othersShare < best.othersShare) best = figures;
    if (!(best.othersShare > DISTURBED_SHARE)) break;
  }
  return best as Figures;
};

async function untilIdle(): Promise<void> {
  for (let waitedMs = 0; waitedMs < IDLE_WITHIN_MS; waitedMs += LOOK_MS) {
    const before = machineCpuSeconds();
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    const busy = (machineCpuSeconds() - before) / (LOOK_MS / 1000) / availableParallelism();
    if (!(busy > IDLE_SHARE)) return;
  }
}
