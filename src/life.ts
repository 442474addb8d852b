import type { Readiness } from './http/health.ts';
import type { Cancel, Clock } from './work/clock.ts';

/** A sign of life is overdue after so long. */
const HEARTBEAT_OVERDUE_MS = 6_000;

/** The event loop is blocked when a timer of this period comes later than this, so many times in a row. */
const LOOP = { tickMs: 100, lateMs: 200, lateTicks: 3 } as const;

/** What the process knows of its own health. */
export class Life {
  readonly failed: Promise<never>;
  readonly fail: (fault: Error) => void;
  draining = false;
  closed = false;
  #fault: Error | null = null;
  #beatFault: string | null = null;
  #lastBeatMs: number;
  #lateTicks = 0;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#lastBeatMs = clock.monotonicMs();
    const { promise, reject } = Promise.withResolvers<never>();
    promise.catch(() => {});
    this.failed = promise;
    this.fail = (fault) => {
      this.#fault ??= fault;
      reject(fault);
    };
  }

  /** Watches for an event loop that is blocked, until it is cancelled. */
  watchLoop(): Cancel {
    let lastTickMs = this.#clock.monotonicMs();
    return this.#clock.every(LOOP.tickMs, () => {
      const nowMs = this.#clock.monotonicMs();
      this.#lateTicks = nowMs - lastTickMs - LOOP.tickMs > LOOP.lateMs ? this.#lateTicks + 1 : 0;
      lastTickMs = nowMs;
    });
  }

  beat(fault: Error | null): void {
    this.#beatFault = fault === null ? null : fault.message;
    if (fault === null) this.#lastBeatMs = this.#clock.monotonicMs();
  }

  readonly readiness: Readiness = () => {
    const overdue = this.#clock.monotonicMs() - this.#lastBeatMs > HEARTBEAT_OVERDUE_MS;
    const reason = this.draining
      ? 'the process is stopping'
      : (this.#fault?.message ??
        this.#beatFault ??
        (overdue ? 'the store does not answer' : null) ??
        (this.#lateTicks >= LOOP.lateTicks ? 'the event loop is blocked' : null));
    return reason === null ? { ready: true } : { ready: false, reason };
  };
}
