import { type Burial, burialDetail } from '../burial.ts';
import type { ClaimRef } from '../store.ts';
import { attention } from './matters.ts';
import { statement } from './statement.ts';
import type { Transaction } from './transaction.ts';

const RETIRE = statement(
  `UPDATE inbox SET status = 'dead', holder = NULL, ended_at_ms = @nowMs, fault_code = @code, fault_message = @message
   WHERE key = @eventKey AND attempt = @attempt AND holder = @replica AND status = 'leased'
   RETURNING link_key AS linkKey`,
);

/** Retires a leased row and raises the matter for a person; false where the lease is not the caller's any more. */
export async function bury(
  tx: Transaction,
  { eventKey, attempt }: ClaimRef,
  { fault, kind, nowMs }: Burial,
): Promise<boolean> {
  const { replica } = tx;
  const row = await tx.one<{ linkKey: number }>(RETIRE, { eventKey, attempt, replica, nowMs, ...fault });
  if (row === undefined) return false;
  const detail = burialDetail(eventKey, fault);
  attention.raiseForLink(tx, kind, { subject: String(eventKey), linkKey: row.linkKey, detail, atMs: nowMs });
  return true;
}
