import type { Silences } from '../silences.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** When a failed delivery is tried again (spec section 6): 1 min, 5 min, 15 min, 1 h, 4 h, 12 h. */
const RETRY_MS = [1 * MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, 1 * HOUR_MS, 4 * HOUR_MS, 12 * HOUR_MS] as const;
const LAST_RETRY_MS = 12 * HOUR_MS;

export type Failed = {
  /** How many attempts were made, the failed one included. */
  attempts: number;
  firstAttemptMs: number;
  /** When the failed attempt ended. */
  endMs: number;
};

/** The time of the next attempt; null where none follows. */
export function nextAttemptMs({ attempts, firstAttemptMs, endMs }: Failed, silences: Silences): number | null {
  const retryMs = RETRY_MS[attempts - 1];
  const isDelay = silences.schedule === 'delays';
  if (retryMs !== undefined) return (isDelay ? endMs : firstAttemptMs) + retryMs;
  if (silences['after-last-retry'] === 'give-up') return null;
  const repeats = attempts - RETRY_MS.length;
  return isDelay ? endMs + LAST_RETRY_MS : firstAttemptMs + LAST_RETRY_MS * (repeats + 1);
}
