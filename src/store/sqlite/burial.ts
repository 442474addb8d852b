import type { Database } from 'better-sqlite3';
import { type Burial, burialDetail } from '../burial.ts';
import type { ClaimRef } from '../store.ts';
import { attentionVerbs } from './matters.ts';

/** Retires a leased row and raises the matter for a person; false where the lease is not the caller's any more. */
export function burier(db: Database): (claim: ClaimRef, burial: Burial) => boolean {
  const retire = db.prepare(
    `UPDATE inbox SET status = 'dead', ended_at_ms = @nowMs, fault_code = @code, fault_message = @message
     WHERE key = @eventKey AND attempt = @attempt AND status = 'leased' RETURNING link_key AS linkKey`,
  );
  const attention = attentionVerbs(db);
  return ({ eventKey, attempt }, { fault, kind, nowMs }) => {
    const row = retire.get({ eventKey, attempt, nowMs, ...fault }) as { linkKey: number } | undefined;
    if (row === undefined) return false;
    const detail = burialDetail(eventKey, fault);
    attention.raiseForLink(kind, { subject: String(eventKey), linkKey: row.linkKey, detail, atMs: nowMs });
    return true;
  };
}
