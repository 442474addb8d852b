import { Rest } from './rest.ts';
import type { BackgroundWorker, ClaimingOptions } from './worker.ts';

export type PoolOptions<Job> = ClaimingOptions<Job> & {
  /** Jobs worked on at the same time, at most. */
  places: number;
};

/**
 * Claims a job for every free place, so that a slow one holds up no other: for work that waits for others, as requests
 * do. Its sibling `startWorker` works in batches.
 */
export function startPool<Job>(options: PoolOptions<Job>): BackgroundWorker {
  const { clock, places, pollMs, claim, work, onClaimFailed } = options;
  const busy = new Set<Promise<void>>();
  let stopping = false;
  let woken = true;
  const idle = new Rest(clock);

  async function claimOnce(): Promise<Job[]> {
    try {
      return await claim(places - busy.size);
    } catch (error) {
      if (!stopping) onClaimFailed(error);
      return [];
    }
  }

  function begin(job: Job): void {
    const working = work(job).finally(() => {
      if (busy.size >= places) wake();
      busy.delete(working);
    });
    busy.add(working);
  }

  function wake(): void {
    woken = true;
    idle.wake();
  }

  async function run(): Promise<void> {
    while (!stopping) {
      woken = false;
      const jobs = busy.size < places ? await claimOnce() : [];
      for (const job of jobs) begin(job);
      if (jobs.length > 0) continue;
      // Until it is woken, by a signal, by the poll, or by the end of a job where no place was free.
      const slept = idle.sleep(pollMs);
      if (woken) idle.wake();
      await slept;
    }
    await Promise.all(busy);
  }

  const running = run();
  return {
    wake,
    stop: async () => {
      stopping = true;
      idle.end();
      await running;
    },
  };
}
