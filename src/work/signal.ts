import type { Cancel, Clock } from './clock.ts';

export type Signal = ReturnType<typeof openSignal>;

/** Says that something may have happened: to those who listen, and to those who wait for it now. */
export function openSignal(clock: Pick<Clock, 'after'>) {
  const listeners: (() => void)[] = [];
  const waiting = new Set<() => void>();
  let ended = false;

  function wakeAll(): void {
    for (const wake of waiting) wake();
  }

  /** Resolves when it is raised, after `withinMs`, or when `gone` is aborted; at once after `end`. */
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
    /** Calls `heard` each time it is raised. */
    listen: (heard: () => void) => void listeners.push(heard),
    next,
    /** Lets go of everyone who waits; from now on `next` waits no more. */
    end: () => {
      ended = true;
      wakeAll();
    },
    get ended() {
      return ended;
    },
    /** How many wait now. */
    get waiting() {
      return waiting.size;
    },
  };
}
