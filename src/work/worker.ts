import type { Clock } from './clock.ts';
import { Rest } from './rest.ts';

/** What claims jobs and works on them. */
export type ClaimingOptions<Job> = {
  clock: Clock;
  /** How long it sleeps without being woken. Signals are hints; this poll is the truth. */
  pollMs: number;
  claim: (limit: number) => Promise<Job[]>;
  /** Must not throw: what becomes of a job that fails is its own business. */
  work: (job: Job) => Promise<void>;
  /** A claim failed; the next poll tries again. */
  onClaimFailed: (error: unknown) => void;
};

export type WorkerOptions<Job> = ClaimingOptions<Job> & {
  /** Jobs claimed and worked on together. */
  batchMax: number;
  /** How long to rest after a batch that took `workedMs`, so that others get their turn. */
  restMs: (batch: readonly Job[], workedMs: number) => number;
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
  const idle = new Rest(clock);
  const between = new Rest(clock);

  async function claimOnce(): Promise<Job[]> {
    try {
      return await claim(batchMax);
    } catch (error) {
      if (!stopping) onClaimFailed(error);
      return [];
    }
  }

  async function run(): Promise<void> {
    while (!stopping) {
      woken = false;
      const startedMs = clock.monotonicMs();
      const jobs = await claimOnce();
      await Promise.all(jobs.map(work));
      if (jobs.length === 0) {
        const slept = idle.sleep(pollMs);
        if (woken) idle.wake();
        await slept;
        continue;
      }
      const durationMs = restMs(jobs, clock.monotonicMs() - startedMs);
      if (durationMs > 0 && !stopping) await between.sleep(durationMs);
    }
  }

  const running = run();
  return {
    wake: () => {
      woken = true;
      idle.wake();
    },
    stop: async () => {
      stopping = true;
      idle.end();
      await running;
    },
  };
}
