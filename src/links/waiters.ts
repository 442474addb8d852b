import type { Clock } from '../work/clock.ts';

/** How an opening ended, or an attempt that the shop must hear of at once. */
export type End = { outcome: 'opened' } | NoLink;

/** Why the shop gets no link. `foreignId`: of the service's link of this reference, if settled did not make it. */
export type NoLink =
  | { outcome: 'refused' | 'withheld' | 'key_refused'; detail: string }
  | { outcome: 'taken'; detail: string; foreignId: string | null };

/** How many ends are kept for requests that begin to wait slightly too late. */
const LATELY_MAX = 64;

type Waiter = { linkKey: number; finish: (end: End | null) => void };

/** Requests that wait for openings to end. */
export class Waiters {
  readonly #clock: Clock;
  readonly #waiting = new Set<Waiter>();
  readonly #lately = new Map<number, End>();
  #released = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How the opening ends; null if it has not ended in time. */
  waitFor(linkKey: number, withinMs: number): Promise<End | null> {
    const ended = this.#lately.get(linkKey);
    if (ended !== undefined || this.#released) return Promise.resolve(ended ?? null);
    return new Promise((resolve) => {
      const finish = (end: End | null) => {
        cancel();
        this.#waiting.delete(waiter);
        resolve(end);
      };
      const waiter = { linkKey, finish };
      this.#waiting.add(waiter);
      const cancel = this.#clock.after(Math.max(0, withinMs), () => finish(null));
    });
  }

  tell(linkKey: number, end: End): void {
    // Other ends do not last: a refused order is forgotten, and the key of its link is used again.
    if (end.outcome === 'opened' || end.outcome === 'withheld') this.#keep(linkKey, end);
    for (const waiter of [...this.#waiting]) if (waiter.linkKey === linkKey) waiter.finish(end);
  }

  get isReleased(): boolean {
    return this.#released;
  }

  /** Ends all waiting, because this process stops. The next process continues the openings. */
  release(): void {
    this.#released = true;
    for (const { finish } of [...this.#waiting]) finish(null);
  }

  #keep(linkKey: number, end: End): void {
    const [oldest] = this.#lately.size >= LATELY_MAX ? this.#lately.keys() : [];
    if (oldest !== undefined) this.#lately.delete(oldest);
    this.#lately.set(linkKey, end);
  }
}
