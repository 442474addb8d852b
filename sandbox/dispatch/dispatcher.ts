import type { Cancel, TurnableClock } from '../clock.ts';
import type { SandboxOptions } from '../options.ts';
import type { Silences } from '../silences.ts';
import type { Delivery } from '../store/deliveries.ts';
import type { SandboxStore } from '../store/store.ts';
import { makeAttempt } from './attempt.ts';
import type { FaultPlans } from './faults.ts';

export type DispatcherOptions = {
  store: SandboxStore;
  clock: TurnableClock;
  faults: FaultPlans;
  silences: () => Silences;
  options: Pick<SandboxOptions, 'timeScale'>;
};

export type Dispatcher = {
  /** There may be a delivery that is due. Cheap. */
  wake(): void;
  /** Resolves when nothing that is due is still waiting or on its way. */
  idle(): Promise<void>;
  /** Ends after the attempts in hand. One that is not answered soon is broken off, and made again after a restart. */
  stop(): Promise<void>;
};

/** How many deliveries are on their way at the same time. */
const CONCURRENCY = 16;
/** Real milliseconds that attempts in hand are given to end by themselves. */
const STOP_GRACE_MS = 500;

/**
 * Sends what is due, oldest first. The first attempts of one link go out one after the other, in the order of their
 * events; retries wait for nobody. All that is known stands in the store, so a restart goes on where it was.
 */
export function openDispatcher(options: DispatcherOptions): Dispatcher {
  const { store, clock } = options;
  const inFlight = new Set<number>();
  const breakOff = new AbortController();
  let planned: { atMs: number; cancel: Cancel } | null = null;
  const waiters: (() => void)[] = [];
  let stopped = false;

  /** Starts what may start now, and plans for what is due later. */
  function pump(): void {
    if (stopped) return;
    const nowMs = clock.nowMs();
    if (inFlight.size < CONCURRENCY) {
      // Those on their way are still waiting in the store: among so many there are enough others.
      for (const delivery of store.dueDeliveries(nowMs, CONCURRENCY)) {
        if (inFlight.size >= CONCURRENCY) break;
        if (!inFlight.has(delivery.number)) void start(delivery);
      }
    }
    const nextMs = store.nextDueMs(nowMs);
    if (nextMs !== null) plan(nextMs);
  }

  async function start(delivery: Delivery): Promise<void> {
    inFlight.add(delivery.number);
    try {
      await makeAttempt(delivery, { ...options, signal: breakOff.signal });
    } finally {
      inFlight.delete(delivery.number);
      pump();
      if (inFlight.size === 0) for (const done of waiters.splice(0)) done();
    }
  }

  function plan(atMs: number): void {
    if (stopped || (planned !== null && planned.atMs <= atMs)) return;
    planned?.cancel();
    const cancel = clock.after(Math.max(0, atMs - clock.nowMs()), () => {
      planned = null;
      return idle();
    });
    planned = { atMs, cancel };
  }

  async function idle(): Promise<void> {
    pump();
    if (inFlight.size > 0) await new Promise<void>((resolve) => waiters.push(resolve));
  }

  return {
    wake: () => plan(clock.nowMs()),
    idle,
    stop: async () => {
      stopped = true;
      planned?.cancel();
      if (inFlight.size === 0) return;
      const grace = setTimeout(() => breakOff.abort(), STOP_GRACE_MS);
      await idle();
      clearTimeout(grace);
    },
  };
}
