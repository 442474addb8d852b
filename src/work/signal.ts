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
