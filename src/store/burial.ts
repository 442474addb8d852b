import { END_MATTER } from '../domain/advice.ts';
import { unreadDetail } from './settle.ts';
import type { FaultNote } from './store.ts';

export type Burial = { fault: FaultNote; kind: 'event_dead' | 'link_mismatch'; nowMs: number };

/**
 * The matter that a dead row is for a person. What is no JSON belongs to the one matter of its link's events that were
 * not understood, so that neither one delivery raises two, nor many deliveries many.
 */
export function burialMatter(
  eventKey: number,
  reference: string,
  { fault: { code, message }, kind }: Burial,
): { kind: Burial['kind'] | 'event_not_understood'; subject: string; detail: string } {
  if (code === 'unreadable_event') {
    const detail = unreadDetail(eventKey, 'it is no JSON that can be read');
    return { kind: 'event_not_understood', subject: reference, detail };
  }
  const detail =
    `Event ${eventKey} cannot be settled (${code}): ${message} Nothing was counted for it. Look at it (settled events show ` +
    `${eventKey}), and at the payment in the service's panel. When its cause is gone, settle it again: settled events replay ` +
    `${eventKey}. If it is not about this order: ${END_MATTER}`;
  return { kind, subject: String(eventKey), detail };
}
