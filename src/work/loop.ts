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
  /** A claim failed; the next poll tries again. Told at most once a minute: a store that is away fails each of them. */
  onClaimFailed: (error: unknown) => void;
};

/** A failure that follows sooner on one that was told says nothing new. */
const TELL_EVERY_MS = 60_000;

export type BackgroundWorker = {
  /** There may be work: claim now. Cheap, and may be called for every piece of work. */
  wake(): void;
  /** Ends after the jobs in hand. */
  stop(): Promise<void>;
};

/** What a turn of a loop may do: claim, where a failure is no job and is told; and rest, which only a stop ends early. */
export type Turn<Job> = { claim(limit: number): Promise<Job[]>; rest(durationMs: number): Promise<void> };

/**
 * Takes one turn after the other while each finds work, then sleeps until it is woken or its poll is due.
 *
 * @param turn says whether it found work
 */
export function startLoop<Job>(
  { clock, pollMs, claim, onClaimFailed }: ClaimingOptions<Job>,
  turn: (may: Turn<Job>) => Promise<boolean>,
): BackgroundWorker {
  const idle = new Rest(clock);
  const rest = new Rest(clock);
  let stopping = false;
  let woken = true;
  let quietUntilMs = Number.NEGATIVE_INFINITY;
  const may: Turn<Job> = {
    claim: async (limit) => {
      try {
        return await claim(limit);
      } catch (error) {
        const nowMs = clock.monotonicMs();
        if (!stopping && nowMs >= quietUntilMs) {
          quietUntilMs = nowMs + TELL_EVERY_MS;
          onClaimFailed(error);
        }
        return [];
      }
    },
    rest: (durationMs) => rest.sleep(durationMs),
  };

  async function run(): Promise<void> {
    while (!stopping) {
      woken = false;
      if (await turn(may)) continue;
      const slept = idle.sleep(pollMs);
      if (woken) idle.wake();
      await slept;
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
      rest.end();
      await running;
    },
  };
}
