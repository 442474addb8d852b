import { namesOf, ROW_STATUS_WORDS } from '../vocabulary.ts';

/** Inbox and outbox rows: pending → leased → done | dead; leased → pending on retry or when the lease expires. */
export type RowStatus = keyof typeof ROW_STATUS_WORDS;
export const ROW_STATUSES = namesOf(ROW_STATUS_WORDS);

/** Asks for leases of due rows: at most `limit`, until `nowMs + leaseMs`. */
export type Claim = { limit: number; nowMs: number; leaseMs: number };

/** The stored fault of a failed attempt. */
export type FaultNote = { code: string; message: string };

/** Builds a fault from the columns of a row; null if the row has none. */
export function faultNote(code: string | null, message: string | null): FaultNote | null {
  return code === null ? null : { code, message: message ?? '' };
}

export type RetryPolicy = { readonly baseMs: number; readonly maxMs: number; readonly attemptsMax: number };

/**
 * The delay before the attempt after number `attempt` (1-based). It doubles from `baseMs` up to `maxMs`; the upper half
 * of it is jitter. Null if `attempt` was the last.
 * @param random a number in [0, 1)
 */
export function retryDelayMs(policy: RetryPolicy, attempt: number, random: number): number | null {
  if (attempt >= policy.attemptsMax) return null;
  const fullMs = Math.min(policy.maxMs, policy.baseMs * 2 ** (attempt - 1));
  return Math.round(fullMs / 2 + (fullMs / 2) * random);
}

/** Delays after the first attempts; the last one repeats. No attempt comes later than `forMs` after the first. */
export type RetrySteps = { readonly stepsMs: readonly number[]; readonly forMs: number };

/**
 * The delay after attempt number `attempt` (1-based), shortened at random by up to a fifth so that jobs that failed
 * together do not retry together. Null once the time is over.
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
 * How long a peer asks to wait: `Retry-After` in seconds or as a time (RFC 9110 §10.2.3). A time is measured on the
 * peer's own clock if its `Date` is given. Null if the header has neither form.
 */
export function retryAfterMs(retryAfter: string | null, date: string | null, nowMs: number): number | null {
  if (retryAfter !== null && /^[0-9]{1,15}$/.test(retryAfter)) return Number(retryAfter) * 1_000;
  const untilMs = httpDateMs(retryAfter);
  return untilMs === null ? null : untilMs - (httpDateMs(date) ?? nowMs);
}

/** Reads a time of an HTTP header (RFC 9110 §5.6.7) into epoch milliseconds; null if it is none. */
export function httpDateMs(text: string | null): number | null {
  if (text === null || !/^[A-Za-z]{3,9},? /.test(text)) return null;
  // The oldest of the three forms names no time zone; it is GMT as well.
  const ms = Date.parse(text.endsWith(' GMT') ? text : `${text} GMT`);
  return Number.isNaN(ms) ? null : ms;
}

/** After a longer outage the service may have given up on deliveries: its first retries come within minutes. */
export const OUTAGE_MS = 120_000;
/** A replica without a heartbeat for longer counts as gone. */
export const ALIVE_MS = 60_000;
