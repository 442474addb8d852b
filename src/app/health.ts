import { performance } from 'node:perf_hooks';
import { OUTAGE_MS } from '../domain/retry.ts';
import { sentence } from '../explain/glossary.ts';
import { Fault } from '../fault.ts';
import type { Readiness } from '../http/app.ts';
import type { Log } from '../observe/log.ts';
import type { Store } from '../store/contract.ts';
import { type Cancel, type Clock, inWords } from '../work/clock.ts';

/** A heartbeat is overdue after this time. */
const HEARTBEAT_OVERDUE_MS = 6_000;

/** A delivery that could not be recorded counts this long, unless a later one is recorded: a proxy may send none. */
const INTAKE_FAILED_MS = 15_000;

/** The event loop counts as blocked if a timer of this period is this late, this many times in a row. */
const LOOP = { tickMs: 250, lateMs: 200, lateTicks: 3 } as const;

/** The health of the process, as it sees it. */
export class Health {
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
  #matters: readonly string[] = [];
  #others: readonly string[] = [];
  readonly #trouble: () => string | null;

  /** `trouble`: another reason to refuse requests; null if there is none. */
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

  /** Watches for a blocked event loop until cancelled. */
  watchLoop(): Cancel {
    let lastTickMs = this.#clock.monotonicMs();
    return this.#clock.every(LOOP.tickMs, () => {
      const nowMs = this.#clock.monotonicMs();
      this.#lateTicks = nowMs - lastTickMs - LOOP.tickMs > LOOP.lateMs ? this.#lateTicks + 1 : 0;
      lastTickMs = nowMs;
    });
  }

  /** Records a written heartbeat (null), or why it failed. */
  beat(fault: Error | null): void {
    // A store that failed as a whole and recovered accepts deliveries again.
    if (fault === null && this.#beatFault !== null) this.#intakeFault = null;
    this.#beatFault = fault === null ? null : fault.message;
    if (fault === null) this.#lastBeatMs = this.#clock.monotonicMs();
  }

  /** Records that the latest delivery was recorded (null), or why the store refused it. */
  intake(fault: Fault | null): void {
    const untilMs = this.#clock.monotonicMs() + INTAKE_FAILED_MS;
    this.#intakeFault = fault === null ? null : { message: fault.message, untilMs };
  }

  /** Records what a person should know although deliveries can be taken. `matters`: what attention lists as well. */
  knows(matters: readonly string[], others: readonly string[]): void {
    this.#matters = matters;
    this.#others = others;
  }

  /** What is wrong now and is no matter, in sentences. */
  readonly unlisted = (): readonly string[] => {
    const state = this.readiness();
    if (state.ready) return this.#others;
    const deaf = `settled takes no deliveries now, so orders may be paid without its knowing: ${sentence(state.reason)}`;
    return [deaf, ...this.#others];
  };

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
    if (reason !== null) return { ready: false, reason };
    const troubles = [...this.#matters, ...this.#others];
    return troubles.length === 0 ? { ready: true } : { ready: true, troubles };
  };
}

/**
 * Wraps a store to note whether each delivery is recorded. A heartbeat is small, so it may find disk space or a
 * connection when a delivery does not.
 */
export function watchIntake(store: Store, health: Pick<Health, 'intake'>): Store {
  function refused(fault: unknown): never {
    if (fault instanceof Fault && fault.code.startsWith('store_')) health.intake(fault);
    throw fault;
  }

  const recorded = <T>(value: T): T => {
    health.intake(null);
    return value;
  };

  return {
    ...store,
    findCredentials: (by) => store.findCredentials(by).catch(refused),
    recordDelivery: (delivery) => store.recordDelivery(delivery).then(recorded, refused),
    recordHint: (hint) => store.recordHint(hint).then(recorded, refused),
  };
}

const HEARTBEAT_EVERY_MS = 2_000;
/** The delay after a failed catch-up. */
const CATCH_UP_AGAIN_MS = 30_000;

export type HeartbeatOptions = {
  store: Pick<Store, 'heartbeat'>;
  clock: Clock;
  health: Health;
  log: Log;
  /** Makes every open link due; undefined if no API is configured. */
  catchUp: () => Promise<unknown> | undefined;
  /** Whether the store is a copy. settled then asks for what it lacks, even if the copy is only moments old. */
  isRestored: boolean;
  /** Called with how far in the future the last heartbeat was: the clock has stepped back since. */
  onWasAhead: (byMs: number) => void;
};

/** Writes a heartbeat every two seconds, to detect a store that cannot be written even when no delivery comes. */
export function startHeartbeat(options: HeartbeatOptions): Cancel {
  const { store, clock, health, log, catchUp: catchUpAll, isRestored, onWasAhead } = options;
  let wasWell = true;
  let isFirst = true;
  /** A shared store reports an outage until the catch-up is done, and one catch-up is enough. */
  let isTold = false;
  function beat(): void {
    store.heartbeat(clock.nowMs()).then(
      ({ gapMs, aheadMs }) => {
        onWasAhead(aheadMs);
        if ((gapMs > OUTAGE_MS && !isTold) || (isFirst && isRestored) || aheadMs > OUTAGE_MS) catchUp(gapMs);
        isFirst = false;
        isTold = gapMs > OUTAGE_MS;
        if (!wasWell) log.info('the store can be written again');
        wasWell = true;
        health.beat(null);
      },
      (fault) => {
        if (wasWell && !health.draining)
          log.error({ fault }, 'the store cannot be written; deliveries are answered 503 until it can');
        wasWell = false;
        health.beat(fault);
      },
    );
  }

  function catchUp(gapMs: number): void {
    if (gapMs > 0) log.info({ down: inWords(gapMs) }, 'settled was away');
    catchUpAll()?.catch((fault: unknown) => {
      if (health.draining) return;
      log.error({ fault }, 'open links could not be made due; trying again');
      clock.after(CATCH_UP_AGAIN_MS, () => catchUp(0));
    });
  }

  beat();
  return clock.every(HEARTBEAT_EVERY_MS, beat);
}

/** A load measured over less time shows chance. */
const LOAD_WINDOW_MS_MIN = 100;

/** Returns a function that says how busy this thread's event loop was lately, from 0 (idle) to 1. */
export function eventLoopLoad(): () => number {
  let before = performance.eventLoopUtilization();
  let utilization = 0;
  return () => {
    const now = performance.eventLoopUtilization();
    const since = performance.eventLoopUtilization(now, before);
    if (since.active + since.idle >= LOAD_WINDOW_MS_MIN) {
      utilization = since.utilization;
      before = now;
    }
    return utilization;
  };
}
