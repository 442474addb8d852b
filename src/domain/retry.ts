/** The life of inbox and outbox rows: pending → leased → done | dead; leased → pending on retry or when the lease expires. */
export const ROW_STATUSES = ['pending', 'leased', 'done', 'dead'] as const;
export type RowStatus = (typeof ROW_STATUSES)[number];

/** What is kept of an attempt that failed. */
export type FaultNote = { code: string; message: string };

/** A fault as rows hold it; null if they hold none. */
export function faultNote(code: string | null, message: string | null): FaultNote | null {
  return code === null ? null : { code, message: message ?? '' };
}

export type RetryPolicy = { readonly baseMs: number; readonly maxMs: number; readonly attemptsMax: number };

/**
 * The wait before the attempt that follows attempt number `attempt` (1-based): doubling from `baseMs` up to `maxMs`,
 * of which the upper half is jitter. Null if `attempt` was the last.
 *
 * @param random a number in [0, 1)
 */
export function retryDelayMs(policy: RetryPolicy, attempt: number, random: number): number | null {
  if (attempt >= policy.attemptsMax) return null;
  const fullMs = Math.min(policy.maxMs, policy.baseMs * 2 ** (attempt - 1));
  return Math.round(fullMs / 2 + (fullMs / 2) * random);
}

/**
 * The waits after the first attempts; every later wait is as long as the last. No attempt is later than `forMs` after
 * the first.
 */
export type RetrySteps = { readonly stepsMs: readonly number[]; readonly forMs: number };

/**
 * The wait after attempt number `attempt` (1-based), up to a fifth shorter at random, so that jobs that failed
 * together do not retry together. Null once the time is over.
 *
 * @param triedForMs since the first attempt
 * @param random a number in [0, 1)
 */
export function steppedDelayMs(
  { stepsMs, forMs }: RetrySteps,
  { attempt, triedForMs }: { attempt: number; triedForMs: number },
  random: number,
): number | null {
  const leftMs = forMs - triedForMs;
  if (leftMs <= 0) return null;
  const stepMs = stepsMs[Math.min(attempt, stepsMs.length) - 1] ?? 0;
  return Math.min(leftMs, Math.round(stepMs * (0.8 + 0.2 * random)));
}

/**
 * How long a peer asks to wait: `Retry-After` as seconds or as a time (RFC 9110 §10.2.3), the latter on the peer's own
 * clock if its `Date` is given. Null if it does not say so in that form.
 */
export function retryAfterMs(retryAfter: string | null, date: string | null, nowMs: number): number | null {
  if (retryAfter !== null && /^[0-9]{1,15}$/.test(retryAfter)) return Number(retryAfter) * 1_000;
  const untilMs = httpDateMs(retryAfter);
  return untilMs === null ? null : untilMs - (httpDateMs(date) ?? nowMs);
}

/** A time as HTTP headers have it (RFC 9110 §5.6.7), in epoch milliseconds; null if it is none. */
export function httpDateMs(text: string | null): number | null {
  if (text === null || !/^[A-Za-z]{3,9},? /.test(text)) return null;
  // The oldest of the three forms does not name its zone, which is the same.
  const ms = Date.parse(text.endsWith(' GMT') ? text : `${text} GMT`);
  return Number.isNaN(ms) ? null : ms;
}
