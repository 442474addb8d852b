import type { Silences } from '../options.ts';
import { ApiError } from './errors.ts';

/** The period that the limit is counted over (spec section 8: requests per minute). */
const WINDOW_MS = 60_000;

export type RateLimit = {
  /** Counts a request, or throws 429 where the key has no more. Gives the headers for the answer. */
  take(key: string): Record<string, string>;
  /** The 429 of a limit that is reached. */
  refusal(retryAfterSeconds: number): ApiError;
};

type RateLimitOptions = {
  /** Requests a minute for each key; null for no limit, and no headers. */
  limit: number | null;
  nowMs: () => number;
  silences: () => Silences;
};

/**
 * A true sliding count: it remembers when each request of the last minute was accepted, so that no stretch of 60 s has
 * more than the limit. Refused requests are not counted.
 */
export function openRateLimit({ limit, nowMs, silences }: RateLimitOptions): RateLimit {
  /** For each key, the times of what was accepted in the last minute, oldest first: never more than the limit. */
  const acceptedMs = new Map<string, number[]>();

  function headers(remaining: number, freeInMs: number): Record<string, string> {
    if (limit === null) return {};
    const freeAtMs = silences()['rate-reset'] === 'seconds' ? freeInMs : nowMs() + freeInMs;
    return {
      'x-ratelimit-limit': String(limit),
      'x-ratelimit-remaining': String(remaining),
      // The spec does not say what is reset; here it is when the oldest counted request leaves the minute.
      'x-ratelimit-reset': String(Math.ceil(freeAtMs / 1_000)),
    };
  }

  function refusal(retryAfterSeconds: number): ApiError {
    const retry = { 'retry-after': String(retryAfterSeconds) };
    const message = `The rate limit is reached. Try again after ${retryAfterSeconds} s.`;
    return new ApiError(
      { status: 429, code: 'rate_limit_exceeded', headers: { ...headers(0, retryAfterSeconds * 1_000), ...retry } },
      message,
    );
  }

  return {
    refusal,
    take: (key) => {
      if (limit === null) return {};
      const now = nowMs();
      const times = (acceptedMs.get(key) ?? []).filter((atMs) => now - atMs < WINDOW_MS);
      acceptedMs.set(key, times);
      if (times.length < limit) times.push(now);
      else throw refusal(Math.ceil(((times[0] as number) + WINDOW_MS - now) / 1_000));
      return headers(limit - times.length, (times[0] as number) + WINDOW_MS - now);
    },
  };
}
