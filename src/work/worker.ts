import { type BackgroundWorker, type ClaimingOptions, startLoop } from './loop.ts';

export type WorkerOptions<Job> = ClaimingOptions<Job> & {
  /** Jobs claimed and worked on together. */
  batchMax: number;
  /** How long to rest after a batch that took `workedMs`, so that others get their turn. */
  restMs: (batch: readonly Job[], workedMs: number) => number;
};

/** Claims and works while there is something to claim, then sleeps until it is woken or its poll is due. */
export function startWorker<Job>(options: WorkerOptions<Job>): BackgroundWorker {
  const { clock, batchMax, work, restMs } = options;
  return startLoop(options, async ({ claim, rest }) => {
    const startedMs = clock.monotonicMs();
    const jobs = await claim(batchMax);
    await Promise.all(jobs.map(work));
    if (jobs.length === 0) return false;
    const durationMs = restMs(jobs, clock.monotonicMs() - startedMs);
    if (durationMs > 0) await rest(durationMs);
    return true;
  });
}
