import type { Cancel, Clock } from './clock.ts';

export type WorkerOptions<Job> = {
  clock: Clock;
  /** Jobs claimed and worked on together. */
  batchMax: number;
  /** How long the worker sleeps without being woken. Signals are hints; this poll is the truth. */
  pollMs: number;
  claim: (limit: number) => Promise<Job[]>;
  /** Must not throw: what becomes of a job that fails is its own business. */
  work: (job: Job) => Promise<void>;
  /** How long to rest after a batch that took `workedMs`, so that others get their turn. */
  restMs: (batch: readonly Job[], workedMs: number) => number;
  /** A claim failed; the worker sleeps until its next poll. */
  onClaimFailed: (error: unknown) => void;
};

export type BackgroundWorker = {
  /** There may be work: claim now. Cheap, and may be called for every piece of work. */
  wake(): void;
  /** Ends after the jobs in hand. */
  stop(): Promise<void>;
};

/** Claims and works while there is something to claim, then sleeps until it is woken or its poll is due. */
export function startWorker<Job>(options: WorkerOptions<Job>): BackgroundWorker {
  const { clock, batchMax, pollMs, claim, work, restMs, onClaimFailed } = options;
  let stopping = false;
  let woken = true;
  let wakeUp: () => void = () => {};

  async function claimOnce(): Promise<Job[]> {
    try {
      return await claim(batchMax);
    } catch (error) {
      if (!stopping) onClaimFailed(error);
      return [];
    }
  }

  function rest(durationMs: number): Promise<void> {
    return new Promise((resolve) => {
      wakeUp = () => {};
      clock.after(durationMs, resolve);
    });
  }

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

  async function run(): Promise<void> {
    while (!stopping) {
      woken = false;
      const startedMs = clock.monotonicMs();
      const jobs = await claimOnce();
      await Promise.all(jobs.map(work));
      if (jobs.length === 0) {
        await sleep();
        continue;
      }
      const durationMs = restMs(jobs, clock.monotonicMs() - startedMs);
      if (durationMs > 0 && !stopping) await rest(durationMs);
    }
  }

  const running = run();
  return {
    wake: () => {
      woken = true;
      wakeUp();
    },
    stop: async () => {
      stopping = true;
      wakeUp();
      await running;
    },
  };
}
