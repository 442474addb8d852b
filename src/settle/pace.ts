/** Events settled together: each has its own transaction, and they share one fsync. */
export const BATCH_MAX = 256;

/** While deliveries fill the event loop, settlement pauses for this many times as long as it worked, */
const REST_FACTOR = 15;
/** but at most this long; after a slow batch, as on a distant database, this many times as long as it took. */
const REST_MS_MAX = 200;
const REST_FACTOR_MIN = 4;
/** The event loop is full above this share of its time. */
const LOAD_FULL = 0.89;
/** Above this share a short rest lets more events come together: they share a claim and a commit. */
const LOAD_BUSY = 0.4;
const GATHER_MS = 40;
/** Settlement does not yield if an event has waited longer than this. */
const YIELD_MS_MAX = 10_000;

export type SettledBatch = {
  /** How many events it had, of `BATCH_MAX`. */
  events: number;
  /** Deliveries that were recorded since the batch before. */
  arrivals: number;
  workedMs: number;
  /** How long ago its oldest event was received. */
  waitedMs: number;
  /** How busy the event loop was lately, from 0 to 1. */
  load: number;
  /** Whether other processes use the store as well: then the event loop does not show how busy that is. */
  isShared: boolean;
};

/**
 * How many milliseconds settlement rests after a batch. It yields to deliveries, because an acknowledgement has a deadline
 * and a settlement has none: a burst is recorded first, and settled within ten seconds of waiting.
 */
export function restAfterBatchMs({ events, arrivals, workedMs, waitedMs, load, isShared }: SettledBatch): number {
  if (arrivals === 0) return 0;
  const isBurst = isShared && events === BATCH_MAX && arrivals > BATCH_MAX;
  if ((load > LOAD_FULL || isBurst) && waitedMs < YIELD_MS_MAX) {
    const longestMs = Math.max(REST_MS_MAX, workedMs * REST_FACTOR_MIN);
    return Math.min(longestMs, workedMs * REST_FACTOR, YIELD_MS_MAX - waitedMs);
  }
  return load > LOAD_BUSY && events < BATCH_MAX ? GATHER_MS : 0;
}
