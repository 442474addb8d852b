import type { Cancel, Clock } from './clock.ts';
import type { BackgroundWorker } from './worker.ts';

export type PoolOptions<Job> = {
  clock: Clock;
  /** Jobs worked on at the same time, at most. */
  places: number;
  /** How long it sleeps without being woken. Signals are hints; this poll is the truth. */
  pollMs: number;
  claim: (limit: number) => Promise<Job[]>;
  /** Must not throw: what becomes of a job that fails is its own business. */
  work: (job: Job) => Promise<void>;
  /** A claim failed; the next poll tries again. */
  onClaimFailed: (error: unknown) => void;
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
  let wakeUp: () => void = () => {};

  async function claimOnce(): Promise<Job[]> {
    try {
      return await claim(places - busy.size);
    } catch (error) {
      if (!stopping) onClaimFailed(error);
      return [];
    }
  }

  /** Sleeps until it is woken, by a signal, by the poll, or by the end of a job where no place was free. */
  function sleep(): Promise<void> {
    return new Promise((resolve) => {
      let cancel: Cancel = () => {};
      wakeUp = () => {
        cancel();
        resolve();
      };
      cancel = clock.after(pollMs, wakeUp);
      if (woken || stopping) wakeUp();
    });
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
    wakeUp();
  }

  async function run(): Promise<void> {
    while (!stopping) {
      woken = false;
      const jobs = busy.size < places ? await claimOnce() : [];
      for (const job of jobs) begin(job);
      if (jobs.length === 0) await sleep();
    }
    await Promise.all(busy);
  }

  const running = run();
  return {
    wake,
    stop: async () => {
      stopping = true;
      wakeUp();
      await running;
    },
  };
}
