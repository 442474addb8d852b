import { createHash } from 'node:crypto';
import { RETURN_EVERY_MS } from '../domain/check.ts';
import type { Reading } from './asking.ts';

/** A reading as its row in the inbox holds it. Nobody signed it: its digest stands in the signature's place. */
export function readingColumns({ number, linkKey, reason, body, nowMs, leaseMs }: Reading) {
  const mac = createHash('sha256').update(body).digest();
  const dueAtMs = nowMs + leaseMs;
  return {
    linkKey,
    eventId: `reading:${number}`,
    mac,
    timestamp: String(nowMs),
    reason,
    nowMs,
    dueAtMs,
    number,
  };
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
