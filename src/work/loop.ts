import type { Clock } from './clock.ts';
import { openSignal } from './signal.ts';

export type BackgroundWorker = {
  /** Starts the next turn now, because there may be work. Cheap enough to call for every piece of work. */
  wake(): void;
  /** Stops after the current turn and jobs. */
  stop(): Promise<void>;
};

/** What a turn may do besides its work. */
export type LoopTurn = {
  /** Waits; only a stop ends it early. */
  rest(durationMs: number): Promise<void>;
  isStopping(): boolean;
  /** Whether it was woken, and did not come by time. */
  wasWoken(): boolean;
};

export type LoopOptions = {
  clock: Clock;
  /** The delay before the first turn; none by default. */
  firstAfterMs?: number;
  /** Must not throw. Returns the milliseconds until the next turn: 0 for now, or `NOT_BEFORE_WAKE`. */
  turn: (may: LoopTurn) => Promise<number>;
};

export const NOT_BEFORE_WAKE = Number.POSITIVE_INFINITY;

/** Takes one turn after another. In between it sleeps as long as the turn said, or until it is woken. */
export function startLoop({ clock, firstAfterMs = 0, turn }: LoopOptions): BackgroundWorker {
  const sleeping = openSignal(clock);
  const resting = openSignal(clock);
  let isStopping = false;
  let isWoken = false;
  let wasWoken = false;
  const may: LoopTurn = {
    rest: (durationMs) => resting.next(durationMs),
    isStopping: () => isStopping,
    wasWoken: () => wasWoken,
  };

  async function run(): Promise<void> {
    for (let delayMs = firstAfterMs; !isStopping; ) {
      if (delayMs > 0 && !isWoken) await sleeping.next(delayMs);
      if (isStopping) return;
      wasWoken = isWoken;
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

/** How a worker or pool claims its jobs and works on them. */
type ClaimOptions<Job> = {
  clock: Clock;
  /** The longest sleep. Wake-ups are only hints; this poll finds all work. */
  pollMs: number;
  /** How long ago anything last changed in the store. After a quiet minute, polls claim every ten seconds. */
  quietMs: () => number;
  claim: (limit: number) => Promise<Job[]>;
  /** Must not throw: it handles a job's failure itself. */
  work: (job: Job) => Promise<void>;
  /** Called when a claim failed, at most once a minute: without a store every claim fails. The next poll retries. */
  onClaimFailed: (error: unknown) => void;
};

export type WorkerOptions<Job> = ClaimOptions<Job> & {
  /** The most jobs claimed and worked on together. */
  batchMax: number;
  /** How long to rest after a batch that took `workedMs`, so that other work gets its turn. */
  restMs: (batch: readonly Job[], workedMs: number) => number;
};

/** Works on jobs in batches, for work that waits only for the store. */
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
  /** The most jobs worked on at once. */
  places: number;
};

/** Claims a job for every free place, so that a slow job delays no other: for work that waits for requests. */
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

/** A further failure within this time is not reported. */
const TELL_EVERY_MS = 60_000;
/** After so long without a change, only a row whose time comes can be due. */
const QUIET_AFTER_MS = 60_000;
const CLAIM_EVERY_QUIET_MS = 10_000;

/** Claims jobs; returns none if the claim fails. */
function claimOrTell<Job>({ clock, quietMs, claim, onClaimFailed }: ClaimOptions<Job>) {
  let silentUntilMs = Number.NEGATIVE_INFINITY;
  let claimedAtMs = Number.NEGATIVE_INFINITY;
  return async (limit: number, { isStopping, wasWoken }: LoopTurn): Promise<Job[]> => {
    const nowMs = clock.monotonicMs();
    const isQuiet = quietMs() >= QUIET_AFTER_MS && nowMs - claimedAtMs < CLAIM_EVERY_QUIET_MS;
    if (isQuiet && !wasWoken()) return [];
    claimedAtMs = nowMs;
    try {
      return await claim(limit);
    } catch (error) {
      if (!isStopping() && nowMs >= silentUntilMs) {
        silentUntilMs = nowMs + TELL_EVERY_MS;
        onClaimFailed(error);
      }
      return [];
    }
  };
}
