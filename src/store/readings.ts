import { createHash } from 'node:crypto';
import { RETURN_EVERY_MS } from '../domain/check_queue.ts';
import type { Reading } from './asking.ts';
import type { Matter } from './matters.ts';
import { unreadDetail } from './settle.ts';

/** A reading as its row in the inbox holds it. Nobody signed it: its digest stands in the signature's place. */
export function readingColumns({ number, linkKey, reason, body, nowMs, leaseMs }: Reading) {
  const mac = createHash('sha256').update(body).digest();
  const dueAtMs = nowMs + leaseMs;
  return { linkKey, eventId: `reading:${number}`, mac, timestamp: String(nowMs), reason, nowMs, dueAtMs, number };
}

/**
 * What becomes of a customer's return: it asks for a check; it is only noted, where the clock was set back since the last
 * one; or nothing, because that was lately.
 */
export function turnOfReturn(returnedAtMs: number | null, nowMs: number): 'check' | 'note' | 'nothing' {
  if (returnedAtMs === null || returnedAtMs + RETURN_EVERY_MS <= nowMs) return 'check';
  return returnedAtMs > nowMs ? 'note' : 'nothing';
}

/** What a person is told of an order whose link the service does not know. */
export function linkMissingDetail(reference: string): string {
  return (
    `The service knows no link of order ${reference} (404): nothing can be asked about it. Look for the link in the ` +
    `service's panel; if its id here is wrong, correct it (settled links add).`
  );
}

/** An event that was not understood waits so long for the service's answer before a person is told. */
const UNANSWERED_MS = 3_600_000;

/** A failed check tells of events that came before this: of all, if the check is given up. */
export function unansweredSince(isGivenUp: boolean, nowMs: number): number {
  return isGivenUp ? nowMs : nowMs - UNANSWERED_MS;
}

/**
 * The first event of a link that was not understood and came after the link was read last; none if a person was told of
 * its order's since it came, for they may have ended that.
 */
export type Unanswered = { eventKey: number; why: string; orderKey: number; subject: string };

/** What a person is told of such an event. The next answer of the service ends it. */
export function unansweredMatter(
  { eventKey, why, orderKey, subject }: Unanswered,
  atMs: number,
): Matter & { orderKey: number } {
  const reason = why.replace(/^[A-Z]/, (letter) => letter.toLowerCase()).replace(/\.$/, '');
  const detail = `${unreadDetail(eventKey, reason)} The service was asked about its link, and gave no answer that says more.`;
  return { orderKey, subject, detail, atMs };
}
