import type { ApiPause, RateSeen } from '../domain/budget.ts';
import { httpDateMs, retryAfterMs } from '../domain/retry.ts';

/** What an answer says of when to ask again: X-RateLimit-* and Retry-After (spec §8). */

const RESET_MS_MAX = 60_000;
const RETRY_MS = { min: 1_000, max: 3_600_000, fallback: 60_000 } as const;
/** `X-RateLimit-Reset` is not explained: below the first it is seconds from now, below the second epoch seconds. */
const EPOCH_SECONDS_MIN = 1_000_000_000;
const EPOCH_MS_MIN = 100_000_000_000;

/** What an answer says of the limit; null unless limit and remainder are there as whole numbers. */
export function readRate(headers: Headers, nowMs: number): RateSeen | null {
  const limit = wholeNumber(headers.get('x-ratelimit-limit'));
  const remaining = wholeNumber(headers.get('x-ratelimit-remaining'));
  if (limit === null || remaining === null) return null;
  const resetAtMs = remaining === 0 ? readReset(headers, nowMs) : null;
  return { limit, remaining, ...(resetAtMs === null ? {} : { resetAtMs }) };
}

/** The service's clock in epoch milliseconds, from `Date`; null where it says none. */
export function readDate(headers: Headers): number | null {
  return httpDateMs(headers.get('date'));
}

/** Where nothing is left of the limit: a pause until it is reset. */
export function pauseUntilReset(seen: RateSeen | null, nowMs: number): ApiPause | null {
  const untilMs = seen?.resetAtMs ?? nowMs;
  return untilMs <= nowMs ? null : { untilMs, spares: null };
}

/** When the limit is reset: now, or within a minute; null where the answer does not say it. */
function readReset(headers: Headers, nowMs: number): number | null {
  const reset = wholeNumber(headers.get('x-ratelimit-reset'));
  if (reset === null) return null;
  // Epochs are compared with the service's own clock: ours may be wrong.
  const serviceMs = readDate(headers) ?? nowMs;
  const inMs = reset < EPOCH_SECONDS_MIN ? reset * 1_000 : (reset < EPOCH_MS_MIN ? reset * 1_000 : reset) - serviceMs;
  return nowMs + Math.min(RESET_MS_MAX, Math.max(0, inMs));
}

/** When `Retry-After` (RFC 9110 §10.2.3) lets a request be tried again: between a second and an hour; null where absent. */
export function readRetryAfter(headers: Headers, nowMs: number): number | null {
  const inMs = retryAfterMs(headers.get('retry-after'), headers.get('date'), nowMs);
  return inMs === null ? null : nowMs + Math.min(RETRY_MS.max, Math.max(RETRY_MS.min, inMs));
}

/** As `readRetryAfter`; a 429 without one is taken for a minute. */
export function retryAfterLimit(headers: Headers, nowMs: number): number {
  return readRetryAfter(headers, nowMs) ?? nowMs + RETRY_MS.fallback;
}

function wholeNumber(text: string | null): number | null {
  return text !== null && /^[0-9]{1,15}$/.test(text) ? Number(text) : null;
}
