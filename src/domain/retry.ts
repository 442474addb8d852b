export type RetryPolicy = { readonly baseMs: number; readonly maxMs: number; readonly attemptsMax: number };

/**
 * The wait before the attempt that follows attempt number `attempt` (1-based): doubling from `baseMs` up to `maxMs`,
 * of which the upper half is jitter. Null where `attempt` was the last.
 *
 * @param random a number in [0, 1)
 */
export function retryDelayMs(policy: RetryPolicy, attempt: number, random: number): number | null {
  if (attempt >= policy.attemptsMax) return null;
  const fullMs = Math.min(policy.maxMs, policy.baseMs * 2 ** (attempt - 1));
  return Math.round(fullMs / 2 + (fullMs / 2) * random);
}
