const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Checks of a new link, after its creation; then daily until it expires. */
const FRESH_MS = [2 * MINUTE_MS, 10 * MINUTE_MS, HOUR_MS, 6 * HOUR_MS] as const;
/** A check after the expiry: the service's clock and ours need not agree to the second. */
const PAST_EXPIRY_MS = 30_000;
const DAYS_PAST_EXPIRY = 7;
/** How long the schedule asks about a link whose expiry is unknown. */
const DAYS_WITHOUT_EXPIRY = 120;
/** After an order was paid: refunds and disputes have no documented event (spec §3, §6). */
const TAIL_DAYS = [1, 7, 30, 60, 90, 120] as const;

export type Watched = {
  readonly createdAtMs: number;
  /** When the link expires, as far as it is known. */
  readonly expiresAtMs: number | null;
  /** When its order became paid, if it did. */
  readonly settledAtMs: number | null;
  /** Whether the last reading says that the link can still be paid, with any expiry. */
  readonly mayBePaid: boolean;
};

/**
 * The next time at which the schedule asks about a link, after `afterMs`; null if the schedule has ended. Times follow
 * from the link and its order alone, so one check makes up for all that were missed. While a link can be paid the
 * schedule of an open order does not end: an expiry may be wrong, and so may the clock by which it seems to be past.
 */
export function nextCheckAtMs(
  { createdAtMs, expiresAtMs, settledAtMs, mayBePaid }: Watched,
  afterMs: number,
): number | null {
  if (settledAtMs !== null) return firstTailAfter(afterMs, settledAtMs);
  const open = firstAfter(afterMs, createdAtMs, FRESH_MS) ?? nextDaily(afterMs, createdAtMs);
  if (expiresAtMs === null) {
    return mayBePaid || open < createdAtMs + days(DAYS_WITHOUT_EXPIRY) ? open : null;
  }
  if (open < expiresAtMs) return open;
  const pastMs = expiresAtMs + PAST_EXPIRY_MS;
  if (afterMs < pastMs) return pastMs;
  const daily = nextDaily(afterMs, pastMs);
  return mayBePaid || daily <= pastMs + days(DAYS_PAST_EXPIRY) ? daily : null;
}

/**
 * The next time after now. If a time of the link is in the future, it was written while the clock was ahead, and the
 * schedule does not wait for it: settled asks about the link every hour while its order is open, and every day after
 * it was paid.
 */
export function nextCheckFromNowMs(watched: Watched, nowMs: number): number | null {
  const { createdAtMs, settledAtMs } = watched;
  if (settledAtMs !== null && settledAtMs > nowMs) return nowMs + DAY_MS;
  if (settledAtMs === null && createdAtMs > nowMs) return nowMs + HOUR_MS;
  return nextCheckAtMs(watched, nowMs);
}

/** The next scheduled time after `afterMs` of an order that was paid; null if its schedule is over. */
export function firstTailAfter(afterMs: number, settledAtMs: number): number | null {
  return firstAfter(afterMs, settledAtMs, TAIL_DAYS.map(days));
}

/**
 * When settled asks about a link whose scheduled time is `plannedMs`: then, unless its order was paid meanwhile. The
 * time of an open order comes before the first one of a paid order.
 */
export function firstCheckAtMs({ settledAtMs }: Pick<Watched, 'settledAtMs'>, plannedMs: number): number {
  if (settledAtMs === null) return plannedMs;
  return Math.max(plannedMs, firstTailAfter(settledAtMs, settledAtMs) ?? plannedMs);
}

function firstAfter(afterMs: number, originMs: number, offsetsMs: readonly number[]): number | null {
  const offsetMs = offsetsMs.find((ms) => originMs + ms > afterMs);
  return offsetMs === undefined ? null : originMs + offsetMs;
}

/** The first whole day since the origin after `afterMs`. */
function nextDaily(afterMs: number, originMs: number): number {
  return originMs + days(Math.floor(Math.max(0, afterMs - originMs) / DAY_MS) + 1);
}

function days(n: number): number {
  return n * DAY_MS;
}
