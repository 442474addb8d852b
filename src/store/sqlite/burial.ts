import type { Database } from 'better-sqlite3';
import { type Burial, burialMatter } from '../burial.ts';
import type { ClaimRef } from '../store.ts';
import { attentionVerbs, linkChecks } from './matters.ts';

/** Retires a leased row and raises the matter for a person; false where the lease is not the caller's any more. */
export function burier(db: Database): (claim: ClaimRef, burial: Burial) => boolean {
  const retire = db.prepare(
    `UPDATE inbox SET status = 'dead', ended_at_ms = @nowMs, fault_code = @code, fault_message = @message
     WHERE key = @eventKey AND attempt = @attempt AND status = 'leased' RETURNING link_key AS linkKey, reading,
       (SELECT o.reference FROM link l JOIN orders o ON o.key = l.order_key WHERE l.key = link_key) AS reference`,
  );
  const attention = attentionVerbs(db);
  const checks = linkChecks(db);
  return ({ eventKey, attempt }, burial) => {
    const { fault, nowMs } = burial;
    const row = retire.get({ eventKey, attempt, nowMs, ...fault }) as
      | { linkKey: number; reading: number | null; reference: string }
      | undefined;
    if (row === undefined) return false;
    const { linkKey, reading, reference } = row;
    const { kind, ...matter } = burialMatter(eventKey, reference, burial);
    attention.raiseForLink(kind, { ...matter, linkKey, atMs: nowMs });
    // The check that its receipt queued may have been answered before there was a matter to end.
    if (kind === 'event_not_understood' && reading === null) {
      checks.request({ linkKey, reason: 'unreadable', atMs: nowMs });
    }
    return true;
  };
}
