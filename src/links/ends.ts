import type { Clock } from '../work/clock.ts';

/** How an opening ended, or an attempt of which a person should know at once. */
export type End = { outcome: 'opened' } | { outcome: 'refused' | 'taken' | 'withheld' | 'key_refused'; detail: string };

/** Ends kept for those who begin to wait a moment too late. */
const LATELY_MAX = 64;

/** Those who wait for openings to end. */
export class Ends {
  readonly #clock: Clock;
  readonly #waiting = new Map<number, Set<(end: End | null) => void>>();
  readonly #lately = new Map<number, End>();
  #released = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How the opening ends; null where it has not ended in time. */
  waitFor(linkKey: number, withinMs: number): Promise<End | null> {
    const ended = this.#lately.get(linkKey);
    if (ended !== undefined || this.#released) return Promise.resolve(ended ?? null);
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(linkKey) ?? new Set();
      const finish = (end: End | null) => {
        cancel();
        waiting.delete(finish);
        if (waiting.size === 0) this.#waiting.delete(linkKey);
        resolve(end);
      };
      const cancel = this.#clock.after(Math.max(0, withinMs), () => finish(null));
      this.#waiting.set(linkKey, waiting.add(finish));
    });
  }

  tell(linkKey: number, end: End): void {
    // The others are not for ever: a refused order is forgotten, and the number of its link used again.
    if (end.outcome === 'opened' || end.outcome === 'withheld') this.#keep(linkKey, end);
    for (const finish of [...(this.#waiting.get(linkKey) ?? [])]) finish(end);
  }

  get isReleased(): boolean {
    return this.#released;
  }

  /** Nobody waits any longer: this process is stopping, and the openings go on with the next. */
  release(): void {
    this.#released = true;
    for (const waiting of [...this.#waiting.values()]) for (const finish of [...waiting]) finish(null);
  }

  #keep(linkKey: number, end: End): void {
    const [oldest] = this.#lately.size >= LATELY_MAX ? this.#lately.keys() : [];
    if (oldest !== undefined) this.#lately.delete(oldest);
    this.#lately.set(linkKey, end);
  }
}
