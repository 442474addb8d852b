import type { Cancel } from '../clock.ts';
import type { Delivery } from '../store/deliveries.ts';
import type { SandboxStore } from '../store/store.ts';
import { type AttemptOptions, makeAttempt } from './attempt.ts';
import { releaseAll } from './delivery_faults.ts';

type DispatcherOptions = Omit<AttemptOptions, 'signal'>;

export type Dispatcher = {
  /** Looks for due deliveries. Cheap, so call it if there may be one. */
  wake(): void;
  /** Resolves when no delivery that exists now is due or in flight. It does not wait for later ones. */
  idle(): Promise<void>;
  /** Sends everything that a reorder holds back. */
  sendHeldBack(): void;
  /** Resolves when no attempt is in flight. One without a prompt answer is aborted, and made again after a restart. */
  stop(): Promise<void>;
};

/** How many deliveries may be in flight at the same time. */
const CONCURRENCY = 16;
/** And how many to one receiver, so that one that never answers leaves room for the others. */
const CONCURRENCY_PER_RECEIVER = 4;
/** Real milliseconds that attempts in flight have to end when the dispatcher stops. */
const STOP_GRACE_MS = 500;

/**
 * Sends what is due, oldest first. The first attempts of one link go out one after the other, in the order of their
 * events; retries do not wait for others. All state is in the store, so a restart continues where the last run stopped.
 */
export function openDispatcher(options: DispatcherOptions): Dispatcher {
  const { store, clock } = options;
  /** The receiver of each delivery, by its number. */
  const inFlight = new Map<number, string>();
  const breakOff = new AbortController();
  let timer: { atMs: number; cancel: Cancel } | null = null;
  const waiters: (() => void)[] = [];
  let isAwake = false;
  let stopped = false;
  /** The time that the last pump took as now. */
  let pumpedMs = 0;
  // While the clock turns, deliveries created since its last move wait for the next one.
  let lastNumber = Number.MAX_SAFE_INTEGER;

  /** Starts what may start now, and sets a timer for what is due later. */
  function pump(): void {
    const nowMs = clock.nowMs();
    pumpedMs = nowMs;
    if (stopped) return;
    for (const [number, receiver] of chooseDue(store, { nowMs, lastNumber, inFlight })) void start(number, receiver);
    const nextMs = store.nextDueMs(nowMs);
    if (nextMs !== null) setTimer(nextMs);
  }

  async function start(number: number, receiver: string): Promise<void> {
    inFlight.set(number, receiver);
    try {
      const delivery = store.findDelivery({ number }) as Delivery;
      await makeAttempt(delivery, { ...options, signal: breakOff.signal });
    } finally {
      inFlight.delete(number);
      pump();
      for (const done of waiters.splice(0)) done();
    }
  }

  function setTimer(atMs: number): void {
    if (timer !== null && timer.atMs <= atMs) return;
    timer?.cancel();
    const cancel = clock.after(Math.max(0, atMs - clock.nowMs()), () => {
      timer = null;
      pump();
    });
    timer = { atMs, cancel };
  }

  function wake(): void {
    if (isAwake) return;
    isAwake = true;
    setImmediate(() => {
      isAwake = false;
      pump();
    });
  }

  async function idle(): Promise<void> {
    if (!stopped && isAhead()) return;
    const last = stopped ? 0 : store.lastDeliveryNumber();
    const isBusy = (nowMs: number) => (stopped ? inFlight.size > 0 : store.isDue(nowMs, last));
    pump();
    // Every attempt that ends pumps before it resolves attemptEnd().
    while (isBusy(pumpedMs)) await attemptEnd();
  }

  /** Whether all that waits is due later, for which this sets the timer. A turn asks this before each of its moves. */
  function isAhead(): boolean {
    const nextMs = store.nextDueMs(0);
    if (nextMs !== null && nextMs > clock.nowMs()) setTimer(nextMs);
    return nextMs === null || nextMs > clock.nowMs();
  }

  function attemptEnd(): Promise<void> {
    return new Promise((resolve) => void waiters.push(resolve));
  }

  clock.aroundTurns({
    beforeMove: () => {
      if (!stopped) lastNumber = store.lastDeliveryNumber();
      return idle();
    },
    afterTurn: () => {
      lastNumber = Number.MAX_SAFE_INTEGER;
      pump();
    },
  });

  return {
    wake,
    idle,
    sendHeldBack: () => {
      store.transaction(() => releaseAll(options));
      wake();
    },
    stop: async () => {
      stopped = true;
      timer?.cancel();
      for (const done of waiters.splice(0)) done();
      const grace = setTimeout(() => breakOff.abort(), STOP_GRACE_MS);
      while (inFlight.size > 0) await attemptEnd();
      clearTimeout(grace);
    },
  };
}

type Now = { nowMs: number; lastNumber: number; inFlight: ReadonlyMap<number, string> };

/** The numbers of the deliveries that may start now, each with its receiver. */
function chooseDue(store: SandboxStore, { nowMs, lastNumber, inFlight }: Now): Map<number, string> {
  const chosen = new Map<number, string>();
  if (inFlight.size >= CONCURRENCY) return chosen;
  const counts = new Map<string, number>();
  for (const receiver of inFlight.values()) counts.set(receiver, (counts.get(receiver) ?? 0) + 1);
  for (const { number, url } of store.dueDeliveries(nowMs, lastNumber)) {
    const receiver = receiverOf(url);
    const count = counts.get(receiver) ?? 0;
    if (inFlight.has(number) || count >= CONCURRENCY_PER_RECEIVER) continue;
    counts.set(receiver, count + 1);
    chosen.set(number, receiver);
    if (inFlight.size + chosen.size >= CONCURRENCY) break;
  }
  return chosen;
}

/** Scheme, host and port. Runs for every waiting delivery, so it does not parse the whole address. */
function receiverOf(url: string): string {
  return /^\w+:\/\/[^/?#]*/.exec(url)?.[0].toLowerCase() ?? url;
}
