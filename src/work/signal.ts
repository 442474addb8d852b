import type { Cancel, Clock } from './clock.ts';

export type Signal = ReturnType<typeof openSignal>;

/** Signals that something may have happened, to listeners and to current waiters. */
export function openSignal(clock: Pick<Clock, 'after'>) {
  const listeners: (() => void)[] = [];
  const waiting = new Set<() => void>();
  let ended = false;

  function wakeAll(): void {
    for (const wake of waiting) wake();
  }

  /** Resolves when the signal is raised, after `withinMs`, or when `gone` is aborted; at once after `end`. */
  function next(withinMs: number, gone?: AbortSignal): Promise<void> {
    if (ended || gone?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      let cancel: Cancel = () => {};
      const wake = () => {
        cancel();
        gone?.removeEventListener('abort', wake);
        waiting.delete(wake);
        resolve();
      };
      waiting.add(wake);
      gone?.addEventListener('abort', wake);
      // Node would end a timer with an infinite delay at once.
      if (withinMs !== Number.POSITIVE_INFINITY) cancel = clock.after(withinMs, wake);
    });
  }

  return {
    raise: () => {
      wakeAll();
      for (const heard of listeners) heard();
    },
    /** Calls `heard` each time the signal is raised. */
    listen: (heard: () => void) => void listeners.push(heard),
    next,
    /** Releases all waiters. From now on `next` never waits. */
    end: () => {
      ended = true;
      wakeAll();
    },
    get ended() {
      return ended;
    },
    /** The number of waiters. */
    get waiting() {
      return waiting.size;
    },
  };
}

/** Admits a number of holders at once. */
export type Semaphore = { hold<T>(work: () => Promise<T>): Promise<T> };

/**
 * Others wait their turn in the order of arrival. If more than `waitingMax` wait, the one that has waited longest fails:
 * refusing new ones instead would shut out all of them while others keep the queue full.
 */
export function openSemaphore(
  max: number,
  { waitingMax, refusal }: { waitingMax: number; refusal: () => Error } = NEVER_REFUSES,
): Semaphore {
  const waiting: PromiseWithResolvers<void>[] = [];
  let taken = 0;
  return {
    hold: async (work) => {
      if (taken < max) taken++;
      else {
        const turn = Promise.withResolvers<void>();
        waiting.push(turn);
        if (waiting.length > waitingMax) waiting.shift()?.reject(refusal());
        await turn.promise;
      }
      try {
        return await work();
      } finally {
        const next = waiting.shift();
        if (next === undefined) taken--;
        else next.resolve();
      }
    },
  };
}

const NEVER_REFUSES = { waitingMax: Number.POSITIVE_INFINITY, refusal: () => new Error('too many wait') };
