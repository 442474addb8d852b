import type { Clock } from '../work/clock.ts';

/** So many attempts in a row failed: the shop is down, and not a few orders. */
const DOWN_AFTER = 20;
/** Then each kind of notice is tried this often. */
const DOWN_EVERY_MS = 200;

/** How fast notices are sent: as places are free, or slowly while the shop takes none. The first that it takes ends that. */
export class Pace {
  readonly #clock: Clock;
  readonly #onDown: () => void;
  readonly #onUp: () => void;
  #failuresInARow = 0;

  constructor({ clock, onDown, onUp }: { clock: Clock; onDown: () => void; onUp: () => void }) {
    this.#clock = clock;
    this.#onDown = onDown;
    this.#onUp = onUp;
  }

  note(delivered: boolean): void {
    const wasDown = this.#isDown;
    this.#failuresInARow = delivered ? 0 : this.#failuresInARow + 1;
    if (this.#isDown && !wasDown) this.#onDown();
    if (wasDown && !this.#isDown) this.#onUp();
  }

  /** One of those who take turns. `admits` says how many of the free places may be used now; `again` is called when more may. */
  turns(): { admits(free: number, again: () => void): number } {
    let lastMs = Number.NEGATIVE_INFINITY;
    let waits = false;
    return {
      admits: (free, again) => {
        if (!this.#isDown) return free;
        const waitMs = lastMs + DOWN_EVERY_MS - this.#clock.monotonicMs();
        if (waitMs <= 0) {
          lastMs = this.#clock.monotonicMs();
          return 1;
        }
        if (!waits) {
          waits = true;
          this.#clock.after(waitMs, () => {
            waits = false;
            again();
          });
        }
        return 0;
      },
    };
  }

  get #isDown(): boolean {
    return this.#failuresInARow >= DOWN_AFTER;
  }
}
