import { END_MATTER } from '../domain/advice.ts';
import type { CheckReason } from '../domain/check_queue.ts';
import type { Delivery } from './store.ts';

/** A request for a check; `confirms`: a completion waits for the API's answer, and is held if that never comes. */
export type CheckRequest = { linkKey: number; reason: CheckReason; atMs: number; confirms?: boolean };

/** A standing matter for a person. */
export type Matter = { subject: string; detail: string; atMs: number };

/**
 * The matter that an event id came again with other content: one for each link, which counts. `beforeKey`: an event that
 * has another content of this id.
 */
export function conflictMatter(
  { linkKey, eventId, receivedAtMs }: Delivery,
  beforeKey: number,
  eventKey: number,
): Matter & { linkKey: number } {
  const detail =
    `Event id ${eventId} came again with other content (events ${beforeKey} and ${eventKey}). Both were processed, and no ` +
    'payment is counted twice. Compare them: settled events show ' +
    `${beforeKey}, and settled events show ${eventKey}. When you have seen to it: ${END_MATTER}`;
  return { subject: `link ${linkKey}`, linkKey, detail, atMs: receivedAtMs };
}

/** A reading that was applied; `tellsAll`: see `answered.ts`. */
export type MootBy = { orderKey: number; reading: number; tellsAll: boolean; atMs: number };
