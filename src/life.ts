import { Fault } from './fault.ts';
import type { Readiness } from './http/app.ts';
import type { Store } from './store/store.ts';
import type { Cancel, Clock } from './work/clock.ts';

/** A sign of life is overdue after so long. */
const HEARTBEAT_OVERDUE_MS = 6_000;

/** A delivery that could not be recorded counts for so long, unless a later one was: a proxy may send none meanwhile. */
const INTAKE_FAILED_MS = 15_000;

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
  #intakeFault: { message: string; untilMs: number } | null = null;
  #lateTicks = 0;
  readonly #clock: Clock;
  readonly #trouble: () => string | null;

  /** `trouble`: what else may keep requests from being taken; null while nothing does. */
  constructor(clock: Clock, trouble: () => string | null = () => null) {
    this.#clock = clock;
    this.#trouble = trouble;
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
    // What failed as a whole, and is well again, is so for deliveries too.
    if (fault === null && this.#beatFault !== null) this.#intakeFault = null;
    this.#beatFault = fault === null ? null : fault.message;
    if (fault === null) this.#lastBeatMs = this.#clock.monotonicMs();
  }

  /** The latest delivery was recorded (null), or the store refused it. */
  intake(fault: Fault | null): void {
    const untilMs = this.#clock.monotonicMs() + INTAKE_FAILED_MS;
    this.#intakeFault = fault === null ? null : { message: fault.message, untilMs };
  }

  #refusesDeliveries(): string | null {
    if (this.#intakeFault === null || this.#clock.monotonicMs() > this.#intakeFault.untilMs) return null;
    return `a delivery could not be recorded: ${this.#intakeFault.message}`;
  }

  readonly readiness: Readiness = () => {
    const overdue = this.#clock.monotonicMs() - this.#lastBeatMs > HEARTBEAT_OVERDUE_MS;
    const reason = this.draining
      ? 'the process is stopping'
      : (this.#fault?.message ??
        this.#beatFault ??
        (overdue ? 'the store does not answer' : null) ??
        this.#refusesDeliveries() ??
        (this.#lateTicks >= LOOP.lateTicks ? 'the event loop is blocked' : null) ??
        this.#trouble());
    return reason === null ? { ready: true } : { ready: false, reason };
  };
}

/**
 * The same store, which tells of each delivery whether it could be recorded. A small sign of life may find room where a
 * delivery does not, and a connection that the delivery was not given.
 */
export function watchIntake(store: Store, life: Pick<Life, 'intake'>): Store {
  function refused(fault: unknown): never {
    if (fault instanceof Fault && fault.code.startsWith('store_')) life.intake(fault);
    throw fault;
  }

  const recorded = <T>(value: T): T => {
    life.intake(null);
    return value;
  };

  return {
    ...store,
    findCredentials: (by) => store.findCredentials(by).catch(refused),
    recordDelivery: (delivery) => store.recordDelivery(delivery).then(recorded, refused),
    recordHint: (hint) => store.recordHint(hint).then(recorded, refused),
  };
}
