import { type BackgroundWorker, type ClaimingOptions, startLoop } from './loop.ts';

export type PoolOptions<Job> = ClaimingOptions<Job> & {
  /** Jobs worked on at the same time, at most. */
  places: number;
};

/**
 * Claims a job for every free place, so that a slow one holds up no other: for work that waits for others, as requests
 * do. Its sibling `startWorker` works in batches.
 */
export function startPool<Job>(options: PoolOptions<Job>): BackgroundWorker {
  const { places, work } = options;
  const busy = new Set<Promise<void>>();

  function begin(job: Job): void {
    const working = work(job).finally(() => {
      // Where no place was free, nobody claims before one is.
      if (busy.size >= places) loop.wake();
      busy.delete(working);
    });
    busy.add(working);
  }

  const loop = startLoop<Job>(options, async ({ claim }) => {
    const jobs = busy.size < places ? await claim(places - busy.size) : [];
    for (const job of jobs) begin(job);
    return jobs.length > 0;
  });
  return {
    wake: loop.wake,
    stop: async () => {
      await loop.stop();
      await Promise.all(busy);
    },
  };
}
