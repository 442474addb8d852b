/** Epoch milliseconds as 13 digits: no sign, exponent, fraction or other script's digits. */
const TIMESTAMP = /^[1-9][0-9]{12}$/;

/** Reads the timestamp header into epoch milliseconds; null where it does not follow the grammar. */
export function readTimestamp(header: string): number | null {
  return TIMESTAMP.test(header) ? Number(header) : null;
}

/** Whether a signed timestamp lies within the tolerance of our clock, before or after it. */
export function isFresh({
  timestampMs,
  nowMs,
  toleranceSeconds,
}: {
  timestampMs: number;
  nowMs: number;
  toleranceSeconds: number;
}): boolean {
  return Math.abs(nowMs - timestampMs) <= toleranceSeconds * 1000;
}
