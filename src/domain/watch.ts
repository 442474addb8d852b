const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** After a link was made; then daily until it expires. */
const FRESH_MS = [2 * MINUTE_MS, 10 * MINUTE_MS, HOUR_MS, 6 * HOUR_MS] as const;
/** Just after it expires: the service's clock and ours need not agree to the second. */
const PAST_EXPIRY_MS = 30_000;
const DAYS_PAST_EXPIRY = 7;
/** A link whose expiry nobody knows is asked about for so long. */
const DAYS_WITHOUT_EXPIRY = 120;
/** After an order was paid: refunds and disputes have no documented event (spec §3, §6). */
const TAIL_DAYS = [1, 7, 30, 60, 90, 120] as const;

export type Watched = {
  readonly createdAtMs: number;
  /** When the link expires, as far as it is known. */
  readonly expiresAtMs: number | null;
  /** When its order became paid, if it did. */
  readonly settledAtMs: number | null;
};

/**
 * The next time at which the schedule asks about a link, after `afterMs`; null where it never does again. Times follow
 * from the link and its order alone, so a missed one is made up by the next and never by two.
 */
export function nextCheckAtMs(
  { createdAtMs, expiresAtMs, settledAtMs }: Watched,
  afterMs: number,
): number | null {
  if (settledAtMs !== null) return firstAfter(afterMs, settledAtMs, TAIL_DAYS.map(days));
  const endMs = expiresAtMs ?? createdAtMs + DAYS_WITHOUT_EXPIRY * DAY_MS;
  const open = firstAfter(afterMs, createdAtMs, FRESH_MS) ?? nextDaily(afterMs, createdAtMs);
  if (open < endMs) return open;
  if (expiresAtMs === null) return null;
  const past = Array.from({ length: DAYS_PAST_EXPIRY }, (_, index) => PAST_EXPIRY_MS + days(index + 1));
  return firstAfter(afterMs, expiresAtMs, [PAST_EXPIRY_MS, ...past]);
}

function firstAfter(afterMs: number, originMs: number, offsetsMs: readonly number[]): number | null {
  const offsetMs = offsetsMs.find((ms) => originMs + ms > afterMs);
  return offsetMs === undefined ? null : originMs + offsetMs;
}

/** The first whole day since the origin that lies after `afterMs`. */
function nextDaily(afterMs: number, originMs: number): number {
  return originMs + days(Math.floor(Math.max(0, afterMs - originMs) / DAY_MS) + 1);
}

function days(n: number): number {
  return n * DAY_MS;
}
