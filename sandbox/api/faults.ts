import { setTimeout as wait } from 'node:timers/promises';
import type { FaultPlan } from '../dispatch/faults.ts';
import { type Answer, ApiError } from './errors.ts';
import type { RateLimit } from './limit.ts';

type FaultOptions = {
  plans: readonly FaultPlan[];
  limit: RateLimit;
  /** Resolves when no delivery that is due is waiting or on its way. */
  idle: () => Promise<void>;
};

/**
 * Carries out a request with the mischief that is planned for it, in the order of the plans.
 *
 * @returns null where the caller is to get no answer
 */
export async function withFaults(
  carryOut: () => Promise<Answer>,
  { plans, limit, idle }: FaultOptions,
): Promise<Answer | null> {
  for (const { fault, with: takes } of plans) {
    // Real milliseconds, for the caller's timeouts are real too. The wait keeps no process alive.
    if (fault === 'slow') await wait(takes.ms as number, undefined, { ref: false });
    if (fault === 'lose-response' && takes.when === 'before') return null;
    if (fault === 'rate-limit') throw limit.refusal(takes.retryAfterSeconds as number);
    if (fault === 'server-error') throw serverError(takes.status as number);
  }
  const isLost = plans.some(({ fault }) => fault === 'lose-response');
  try {
    const answer = await carryOut();
    if (plans.some(({ fault }) => fault === 'early-event')) await idle();
    return isLost ? null : answer;
  } catch (error) {
    if (isLost) return null;
    throw error;
  }
}

function serverError(status: number): ApiError {
  return new ApiError({ status, code: 'server_error' }, `A planned fault: the service answers ${status}.`);
}
