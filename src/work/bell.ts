import type { Cancel, Clock } from './clock.ts';

/** Tells everybody who waits that something may have happened. */
export type Bell = {
  ring(): void;
  /** Resolves when it rings, after `withinMs`, or when `gone` is aborted; at once where it will never ring again. */
  next(withinMs: number, gone: AbortSignal): Promise<void>;
  /** It rings for the last time. */
  end(): void;
  readonly ended: boolean;
  /** Who waits now. */
  readonly waiting: number;
};

export function openBell(clock: Clock): Bell {
  const waiting = new Set<() => void>();
  let ended = false;

  function ring(): void {
    for (const wake of [...waiting]) wake();
  }

  return {
    ring,
    next: (withinMs, gone) => {
      if (ended || gone.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        let cancel: Cancel = () => {};
        const wake = () => {
          cancel();
          gone.removeEventListener('abort', wake);
          waiting.delete(wake);
          resolve();
        };
        waiting.add(wake);
        gone.addEventListener('abort', wake);
        cancel = clock.after(withinMs, wake);
      });
    },
    end: () => {
      ended = true;
      ring();
    },
    get ended() {
      return ended;
    },
    get waiting() {
      return waiting.size;
    },
  };
}
