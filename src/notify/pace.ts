import type { Clock } from '../work/clock.ts';

/** After this many failed attempts in a row the shop is down, not only a few orders. */
const DOWN_AFTER = 20;
/** How often each kind of notice is tried then. */
const DOWN_EVERY_MS = 200;

/** How fast notices are sent: as places are free, or slowly while the shop takes none, until it takes one. */
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

  get isDown(): boolean {
    return this.#failuresInARow >= DOWN_AFTER;
  }

  note(delivered: boolean): void {
    const wasDown = this.isDown;
    this.#failuresInARow = delivered ? 0 : this.#failuresInARow + 1;
    if (this.isDown && !wasDown) this.#onDown();
    if (wasDown && !this.isDown) this.#onUp();
  }

  /**
   * For one kind of notice: returns a function that says how many of the free places may be used now. If it said none,
   * `again` is called when it may be asked again.
   */
  turns(again: () => void): (free: number) => number {
    let resting = false;
    let asked = false;
    return (free) => {
      if (!this.isDown) return free;
      if (resting) {
        asked = true;
        return 0;
      }
      resting = true;
      asked = false;
      this.#clock.after(DOWN_EVERY_MS, () => {
        resting = false;
        if (asked) again();
      });
      return 1;
    };
  }
}
