import type { Clock } from './clock.ts';
import { openSignal } from './signal.ts';

export type BackgroundWorker = {
  /** There may be work: take the next turn now. Cheap, so it may be called for every piece of work. */
  wake(): void;
  /** Ends after the turn and the jobs in hand. */
  stop(): Promise<void>;
};

/** What a turn of a loop may do beside its work. */
export type LoopTurn = {
  /** Waits; only a stop ends it early. */
  rest(durationMs: number): Promise<void>;
  isStopping(): boolean;
};

export type LoopOptions = {
  clock: Clock;
  /** The first turn begins after this time; at once if left out. */
  firstAfterMs?: number;
  /** Must not throw. Returns the milliseconds until the next turn: 0 for at once, `NOT_BEFORE_WAKE`. */
  turn: (may: LoopTurn) => Promise<number>;
};

export const NOT_BEFORE_WAKE = Number.POSITIVE_INFINITY;

/** Takes one turn after another. Between two it sleeps for as long as the turn said, or until it is woken. */
export function startLoop({ clock, firstAfterMs = 0, turn }: LoopOptions): BackgroundWorker {
  const sleeping = openSignal(clock);
  const resting = openSignal(clock);
  let isStopping = false;
  let isWoken = false;
  const may: LoopTurn = { rest: (durationMs) => resting.next(durationMs), isStopping: () => isStopping };

  async function run(): Promise<void> {
    for (let delayMs = firstAfterMs; !isStopping; ) {
      if (delayMs > 0 && !isWoken) await sleeping.next(delayMs);
      if (isStopping) return;
      isWoken = false;
      delayMs = await turn(may);
    }
  }

  const running = run();
  return {
    wake: () => {
      isWoken = true;
      sleeping.raise();
    },
    stop: async () => {
      isStopping = true;
      sleeping.end();
      resting.end();
      await running;
    },
  };
}

/** What a worker or a pool claims jobs with and works on them by. */
type ClaimOptions<Job> = {
  clock: Clock;
  /** How long it sleeps without being woken. Signals are hints; this poll is the truth. */
  pollMs: number;
  claim: (limit: number) => Promise<Job[]>;
  /** Must not throw: it handles the failure of a job itself. */
  work: (job: Job) => Promise<void>;
  /** A claim failed; the next poll tries again. Called at most once a minute, because every claim fails without a store. */
  onClaimFailed: (error: unknown) => void;
};

export type WorkerOptions<Job> = ClaimOptions<Job> & {
  /** Jobs claimed and worked on together. */
  batchMax: number;
  /** How long to rest after a batch that took `workedMs`, so that others get their turn. */
  restMs: (batch: readonly Job[], workedMs: number) => number;
};

/** Works on jobs in batches: for work that waits for nothing but the store. */
export function startWorker<Job>(options: WorkerOptions<Job>): BackgroundWorker {
  const { clock, pollMs, batchMax, work, restMs } = options;
  const claim = claimOrTell(options);
  return startLoop({
    clock,
    turn: async (may) => {
      const startedMs = clock.monotonicMs();
      const jobs = await claim(batchMax, may);
      await Promise.all(jobs.map(work));
      if (jobs.length === 0) return pollMs;
      const durationMs = restMs(jobs, clock.monotonicMs() - startedMs);
      if (durationMs > 0) await may.rest(durationMs);
      return 0;
    },
  });
}

export type PoolOptions<Job> = ClaimOptions<Job> & {
  /** Jobs worked on at the same time, at most. */
  places: number;
};

/** Claims a job for every free place, so that a slow one delays no other: for work that waits for others, like requests. */
export function startPool<Job>(options: PoolOptions<Job>): BackgroundWorker {
  const { clock, pollMs, places, work } = options;
  const claim = claimOrTell(options);
  const busy = new Set<Promise<void>>();

  function begin(job: Job): void {
    const working = work(job).finally(() => {
      // While every place was taken, nothing was claimed.
      if (busy.size >= places) loop.wake();
      busy.delete(working);
    });
    busy.add(working);
  }

  const loop = startLoop({
    clock,
    turn: async (may) => {
      const jobs = busy.size < places ? await claim(places - busy.size, may) : [];
      for (const job of jobs) begin(job);
      return jobs.length > 0 ? 0 : pollMs;
    },
  });
  return {
    wake: loop.wake,
    stop: async () => {
      await loop.stop();
      await Promise.all(busy);
    },
  };
}

/** A failure within this time after one that was told says nothing new. */
const TELL_EVERY_MS = 60_000;

/** Claims jobs; none if the claim fails. */
function claimOrTell<Job>({ clock, claim, onClaimFailed }: ClaimOptions<Job>) {
  let quietUntilMs = Number.NEGATIVE_INFINITY;
  return async (limit: number, { isStopping }: LoopTurn): Promise<Job[]> => {
    try {
      return await claim(limit);
    } catch (error) {
      const nowMs = clock.monotonicMs();
      if (!isStopping() && nowMs >= quietUntilMs) {
        quietUntilMs = nowMs + TELL_EVERY_MS;
        onClaimFailed(error);
      }
      return [];
    }
  };
}
