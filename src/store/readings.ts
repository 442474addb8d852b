import { createHash } from 'node:crypto';
import { RETURN_EVERY_MS } from '../domain/check_queue.ts';
import type { Reading } from './contract_links.ts';

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

/** An event that was not understood waits so long for the service's answer before a person is told. */
const UNANSWERED_MS = 3_600_000;

/** A failed check tells of events that came before this: of all, if the check is given up. */
export function unansweredSince(isGivenUp: boolean, nowMs: number): number {
  return isGivenUp ? nowMs : nowMs - UNANSWERED_MS;
}
