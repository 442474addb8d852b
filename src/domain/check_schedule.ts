const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** When to check a new link, counted from its creation. After these, settled checks it daily until it expires. */
const FRESH_MS = [2 * MINUTE_MS, 10 * MINUTE_MS, HOUR_MS, 6 * HOUR_MS] as const;
/** settled checks a link this long after its expiry, because the service's clock and ours may differ by seconds. */
const PAST_EXPIRY_MS = 30_000;
const DAYS_PAST_EXPIRY = 7;
/** How many days the schedule covers a link whose expiry is unknown. */
const DAYS_WITHOUT_EXPIRY = 120;
/** When to check a paid order: no event is documented for refunds and disputes (spec §3, §6). */
const TAIL_DAYS = [1, 7, 30, 60, 90, 120] as const;
/** The schedule asks about no link later than this from now. */
export const PLANNED_WITHIN_MS = 31 * DAY_MS;

export type Watched = {
  readonly createdAtMs: number;
  /** When the link expires; null if unknown. */
  readonly expiresAtMs: number | null;
  /** When its order became paid; null if it did not. */
  readonly settledAtMs: number | null;
  /** Whether the last reading says that the link can still be paid, whatever its expiry. */
  readonly mayBePaid: boolean;
};

/**
 * The next time after `afterMs` at which the schedule asks about a link; null if the schedule has ended. Times depend
 * on the link and its order alone, so one check makes up for all that were missed. The schedule of an open order does
 * not end while its link can be paid: the recorded expiry, or the clock, may be wrong.
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
 * The next scheduled time after now. A creation or payment time in the future was written while the clock was ahead, so
 * the schedule does not wait for it. settled then checks an open order hourly and a paid one daily.
 */
export function nextCheckFromNowMs(watched: Watched, nowMs: number): number | null {
  const { createdAtMs, settledAtMs } = watched;
  if (settledAtMs !== null && settledAtMs > nowMs) return nowMs + DAY_MS;
  if (settledAtMs === null && createdAtMs > nowMs) return nowMs + HOUR_MS;
  return nextCheckAtMs(watched, nowMs);
}

/** The next scheduled time of a paid order after `afterMs`; null if its schedule has ended. */
export function firstTailAfter(afterMs: number, settledAtMs: number): number | null {
  return firstAfter(afterMs, settledAtMs, TAIL_DAYS.map(days));
}

/**
 * When to ask about a link planned for `plannedMs`: at that time, or later if its order was paid meanwhile. The planned
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

/** The first whole day, counted from the origin, after `afterMs`. */
function nextDaily(afterMs: number, originMs: number): number {
  return originMs + days(Math.floor(Math.max(0, afterMs - originMs) / DAY_MS) + 1);
}

function days(n: number): number {
  return n * DAY_MS;
}
