import type { Store } from '../store/store.ts';
import type { Clock } from '../work/clock.ts';
import { firstLine } from './chronicle.ts';
import { iso } from './times.ts';

/** What an order without a link waits for. */
export type Waiting = {
  /** Why the last attempt failed, and when the next one is. */
  detail: string;
  /** Null while an attempt is under way. */
  nextAttemptAt: string | null;
  retryAfterSeconds: number;
};

const ATTEMPT_SECONDS = 5;
const RETRY_AFTER_SECONDS_MAX = 3_600;

/** How far the opening of an order's link is. */
export async function waitingFor(
  { store, clock }: { store: Pick<Store, 'timeline'>; clock: Clock },
  reference: string,
): Promise<Waiting> {
  const opening = (await store.timeline(reference))?.opening ?? null;
  if (opening?.status !== 'pending') {
    const detail = 'An attempt to open it is under way.';
    return { detail, nextAttemptAt: null, retryAfterSeconds: ATTEMPT_SECONDS };
  }
  const { fault, dueAtMs } = opening;
  const nextAttemptAt = iso(dueAtMs);
  const failed = fault === null ? '' : `${firstLine(fault.message)} `;
  const seconds = Math.ceil((dueAtMs - clock.nowMs()) / 1000);
  return {
    detail: `${failed}The next attempt to open it is at ${nextAttemptAt}.`,
    nextAttemptAt,
    retryAfterSeconds: Math.min(RETRY_AFTER_SECONDS_MAX, Math.max(1, seconds)),
  };
}
