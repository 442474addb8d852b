import type { Outcome } from '../domain/decision.ts';
import type { LearnedBy } from '../domain/order.ts';
import type { FaultNote } from '../domain/retry.ts';
import type { SettleJob } from './contract_inbox.ts';

/** What is noted at a row that is done and was not understood. */
export function unreadNote({ notUnderstood }: SettleJob): FaultNote | null {
  if (notUnderstood === null) return null;
  const message = `${notUnderstood.slice(0, 1).toUpperCase()}${notUnderstood.slice(1)}.`;
  return { code: 'event_not_understood', message };
}

/** Faults of rows that wait to be understood, as SQL lists them. */
export const UNREAD_FAULTS = "('event_not_understood', 'unreadable_event')";

/**
 * What a row does to the matter that events of its link were not understood: one matter for all of them, whose subject is
 * the order's reference. With an API to ask, the answer tells more than a person can find. An event says nothing of
 * others: those that were not understood may have told of another payment than the one that it made the order paid by.
 *
 * - `raises`: a person is told of it, and why it was not understood
 * - `pays`: that person is told that this event made the order paid
 * - `ends`: this event is understood, so the matter is over unless others wait
 */
export function unreadMatter(
  { notUnderstood, policy }: SettleJob,
  {
    outcomeBefore,
    faultBefore,
    reading,
  }: { outcomeBefore: Outcome | null; faultBefore: string | null; reading: number | null },
  { learnedBy }: { learnedBy: LearnedBy | null },
): { raises: string | null; pays: boolean; ends: boolean } {
  if (notUnderstood !== null) {
    const tells = policy.asks === 'never' || reading !== null;
    return { raises: tells ? notUnderstood : null, pays: false, ends: false };
  }
  // A reading ends it with the other matters that readings end.
  if (reading !== null) return { raises: null, pays: false, ends: false };
  const isReplay = outcomeBefore !== null || faultBefore !== null;
  return { raises: null, pays: learnedBy !== null, ends: isReplay };
}
