import type { Cancel, Clock } from './clock.ts';

/** A sleep that can be ended; after `end` nobody sleeps any more. */
export class Rest {
  readonly #clock: Clock;
  #ended = false;
  #wakeUp: () => void = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  sleep(durationMs: number): Promise<void> {
    return new Promise((resolve) => {
      let cancel: Cancel = () => {};
      this.#wakeUp = () => {
        cancel();
        resolve();
      };
      cancel = this.#clock.after(durationMs, this.#wakeUp);
      if (this.#ended) this.#wakeUp();
    });
  }

  end(): void {
    this.#ended = true;
    this.#wakeUp();
  }

  readonly wake = (): void => this.#wakeUp();
}
