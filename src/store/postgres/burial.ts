import { type Burial, burialMatter } from '../burial.ts';
import type { ClaimRef } from '../store.ts';
import { attention, requestCheck } from './matters.ts';
import { statement } from './statement.ts';
import type { Transaction } from './transaction.ts';

const RETIRE = statement(
  `UPDATE inbox SET status = 'dead', holder = NULL, ended_at_ms = @nowMs, fault_code = @code, fault_message = @message
   WHERE key = @eventKey AND attempt = @attempt AND holder = @replica AND status = 'leased'
   RETURNING link_key AS linkKey, reading,
     (SELECT o.reference FROM link l JOIN orders o ON o.key = l.order_key WHERE l.key = link_key) AS reference`,
);

/** Retires a leased row and raises the matter for a person; false where the lease is not the caller's any more. */
export async function bury(tx: Transaction, { eventKey, attempt }: ClaimRef, burial: Burial): Promise<boolean> {
  const { replica } = tx;
  const { fault, nowMs } = burial;
  type Retired = { linkKey: number; reading: number | null; reference: string };
  const row = await tx.one<Retired>(RETIRE, { eventKey, attempt, replica, nowMs, ...fault });
  if (row === undefined) return false;
  const { linkKey, reading, reference } = row;
  const { kind, ...matter } = burialMatter(eventKey, reference, burial);
  attention.raiseForLink(tx, kind, { ...matter, linkKey, atMs: nowMs });
  // The check that its receipt queued may have been answered before there was a matter to end.
  if (kind === 'event_not_understood' && reading === null) {
    requestCheck(tx, { linkKey, reason: 'unreadable', atMs: nowMs });
  }
  return true;
}
