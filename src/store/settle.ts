import { END_MATTER } from '../domain/advice.ts';
import type { Outcome } from '../domain/decision.ts';
import type { LearnedBy } from '../domain/order.ts';
import type { FaultNote, SettleJob } from './store.ts';

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
 * - `raises`: what a person is told
 * - `adds`: what that person is told beside it
 * - `ends`: this event is understood, so the matter is over unless others wait
 */
export function unreadMatter(
  { eventKey, notUnderstood, policy }: SettleJob,
  {
    outcomeBefore,
    faultBefore,
    reading,
  }: { outcomeBefore: Outcome | null; faultBefore: string | null; reading: number | null },
  { learnedBy }: { learnedBy: LearnedBy | null },
): { raises: string | null; adds: string | null; ends: boolean } {
  if (notUnderstood !== null) {
    const tells = policy.asks === 'never' || reading !== null;
    return { raises: tells ? unreadDetail(eventKey, notUnderstood) : null, adds: null, ends: false };
  }
  // A reading ends it with the other matters that readings end.
  if (reading !== null) return { raises: null, adds: null, ends: false };
  const isReplay = outcomeBefore !== null || faultBefore !== null;
  return { raises: null, adds: learnedBy === null ? null : paidSince(eventKey), ends: isReplay };
}

function paidSince(eventKey: number): string {
  return ` The order was paid since, by event ${eventKey}: it is for you to see that this was the same payment.`;
}

/** The detail of `event_not_understood`, of the last such event. */
export function unreadDetail(eventKey: number, why: string): string {
  return (
    `Event ${eventKey} is authentic, and settled does not understand it: ${why}. Nothing was counted for it. Look at it ` +
    `(settled events show ${eventKey}), and at the payment in the service's panel. Once settled has an API to ask ` +
    `(SETTLED_API_URL, SETTLED_API_KEY), it asks about the order itself. When this is over: ${END_MATTER}`
  );
}
