import type { Switches } from '../options.ts';
import { ApiError } from './errors.ts';

/** The limit counts requests per minute (spec section 8). */
const WINDOW_MS = 60_000;

export type RateLimit = {
  /** Counts a request and returns the headers of its answer. Throws 429 if the key has no more. */
  take(key: string): Record<string, string>;
  /** The 429 itself. */
  refusal(retryAfterSeconds: number): ApiError;
};

type RateLimitOptions = {
  /** Requests a minute for each key; null for no limit, and no headers. */
  limit: number | null;
  nowMs: () => number;
  switches: () => Switches;
};

/**
 * A true sliding window: it remembers when each request of the last minute was accepted, so that no 60 s have more than
 * the limit. Refused requests do not count.
 */
export function openRateLimit({ limit, nowMs, switches }: RateLimitOptions): RateLimit {
  /** For each key, when the requests of the last minute were accepted, oldest first: never more than the limit. */
  const acceptedMs = new Map<string, number[]>();

  function headers(remaining: number, freeInMs: number): Record<string, string> {
    const written = switches()['rate-reset'];
    if (limit === null || written === 'none') return {};
    const freeAtMs = written === 'seconds' ? freeInMs : nowMs() + freeInMs;
    return {
      'x-ratelimit-limit': String(limit),
      'x-ratelimit-remaining': String(remaining),
      // The spec does not say what is reset. Here it is the moment when the oldest counted request leaves the window.
      'x-ratelimit-reset': String(written === 'epoch-ms' ? freeAtMs : Math.ceil(freeAtMs / 1_000)),
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
